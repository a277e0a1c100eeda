"""The same cluster, the same pods: does this scheduler decide what kube-scheduler decided?

A recorded case is a small cluster, the pods to place in order, and for each pod what kube-scheduler's own framework
answered: who turned which node down and why, every plugin's weighted score, the best nodes, the message, what
preemption made of it.  `answer` puts a Decision in the same words; `differences` names what is not equal.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from kubesched.assemble import profiles_of
from kubesched.config.load import load

from kubesched.api.objects import KINDS, Pod, read
from kubesched.api.time import Instant
from kubesched.cluster.columns import Nodes
from kubesched.cluster.mirror import Mirror
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.luck import SeededLuck
from kubesched.core.schedule import schedule
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.errors import KubeschedError
from kubesched.framework.profile import Profile
from kubesched.framework.status import Status

Json = dict[str, Any]
Tier: TypeAlias = Literal["scalar", "vector"]

# When the cases were recorded nothing moved; start times in them lie before this.
NOON: Instant = Instant(1_767_268_800_000_000_000)


class RecordingError(KubeschedError):
    """A file of recorded cases that cannot be read; says which file and line."""


class Difference(NamedTuple):
    """One thing in which a decision is not the recorded one."""

    case: str
    pod: str
    what: str  # `rejected.node-3`, `scores.node-1.ImageLocality`, `message` …
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.case}  {self.pod}  {self.what}: expected {_shown(self.expected)}, got {_shown(self.got)}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)


def read_cases(path: Path) -> Iterator[Json]:
    """The cases of a file: JSON lines, gzipped or not.  Raises RecordingError."""
    opened = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                record = json.loads(line)
                if not isinstance(record, dict) or "case" not in record or "answer" not in record:
                    raise RecordingError(f'{path}:{number}: a line is {{"case": …, "answer": …}}')
                yield record
    except (OSError, EOFError) as error:
        raise RecordingError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise RecordingError(f"{path}:{number + 1}: not JSON: {error}") from None


# ── deciding a case ──────────────────────────────────────────────────────────────────────────────────────────


def decide(case: Json, tier: Tier) -> list[Json]:
    """This scheduler's answers to a case, one per pod, in the words of the recording."""
    mirror = Mirror()
    for raw in case["objects"]:
        kind = KINDS.get(raw.get("kind", ""))
        if kind is not None:
            mirror.observe(read(raw, kind))
    profiles = profiles_of(load(case.get("config") or {}), tie="name")
    for profile in profiles.values():
        profile.keep_tier(tier)
    desk = Desk(mirror)
    for profile in profiles.values():
        for plugin in profile.plugins:
            plugin.tools.attach(desk)
    answers = []
    for number, raw in enumerate(case["pods"]):
        info = PodInfo(read(raw, Pod))
        profile = profiles[info.pod.spec.scheduler_name]
        cycle = Cycle(
            info,
            Nodes(mirror.table, mirror.table.rows),
            mirror.objects,
            now=NOON,
            luck=SeededLuck(0, number),
            number=number,
        )
        decision = schedule(cycle, profile, exhaustive=True)  # the recordings score a lone node too
        answers.append(answer(decision, profile))
        if decision.placed:
            mirror.assume(info, decision.node)
            for plugin in profile.reserve:
                plugin.reserve(cycle, info, decision.node)
    return answers


class Desk:
    """As much of a core as plugins can see."""

    now = NOON

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror

    @property
    def nodes(self) -> Nodes:
        return Nodes(self.mirror.table, self.mirror.table.rows)

    @property
    def objects(self) -> Any:
        return self.mirror.objects

    def waiting(self) -> Sequence[Any]:
        return ()

    def wish(self, wish: Any) -> None:
        """Nobody is there to grant it."""

    def pods(self, namespace: str | None = None) -> Iterator[PodInfo]:
        return (tracked.info for tracked in self.mirror.placed.values() if namespace in (None, tracked.info.namespace))

    def preempting(self, uid: str) -> bool:
        return False


def answer(decision: Decision, profile: Profile) -> Json:
    """A Decision in the words of a recording."""
    told: Json = {"pod": decision.pod, "feasible": sorted(decision.feasible_nodes)}
    if decision.pre_filter is not None:
        told["preFilter"] = _status(decision.pre_filter)
    if decision.pre_filter_nodes is not None:
        told["preFilterNodes"] = sorted(decision.pre_filter_nodes)
    rejected = {decision.names[row]: _status(status) for row, status in decision.rejected.each()}
    if rejected:
        told["rejected"] = rejected
    if decision.placed:
        told["chosen"] = decision.node
        told["best"] = sorted(decision.best)
        told.update(_scores(decision))
    elif decision.outcome is Outcome.ERROR:
        told["error"] = decision.error
    else:
        told["message"] = decision.message
    if decision.post_filter is not None:
        told["postFilter"] = _post_filter(decision)
    return told


def _status(status: Status) -> Json:
    told: Json = {"code": status.code.text, "reasons": sorted(status.reasons)}
    if status.plugin:
        told["plugin"] = status.plugin
    return told


def _scores(decision: Decision) -> Json:
    if decision.totals is None:
        return {}
    names = decision.feasible_nodes
    return {
        "scores": {name: dict(decision.scores_of(name)) for name in names},
        "totals": {name: int(total) for name, total in zip(names, np.asarray(decision.totals), strict=True)},
    }


def _post_filter(decision: Decision) -> Json:
    result = decision.post_filter
    assert result is not None
    told: Json = {"code": result.status.code.text}
    if result.status.message:
        told["message"] = result.status.message
    if result.node:
        told["nominatedNode"] = result.node
    if result.victims:
        told["victims"] = sorted(victim.key for victim in result.victims)
    return told


# ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────


def differences(case: str, expected: Sequence[Mapping[str, Any]], got: Sequence[Mapping[str, Any]]) -> list[Difference]:
    """What is not equal between recorded and own decisions, pod by pod."""
    found: list[Difference] = []
    for i in range(max(len(expected), len(got))):
        one = expected[i] if i < len(expected) else {}
        other = got[i] if i < len(got) else {}
        pod = str(one.get("pod") or other.get("pod"))
        found.extend(Difference(case, pod, *rest) for rest in _unequal(_comparable(one), _comparable(other)))
    return found


def _comparable(decision: Mapping[str, Any]) -> Json:
    """A plugin that skipped scoring may be absent or 0: leave zeros out."""
    told = {key: value for key, value in decision.items() if value not in (None, {}, "")}
    if "scores" in told:
        told["scores"] = {
            node: {plugin: score for plugin, score in by_plugin.items() if score}
            for node, by_plugin in told["scores"].items()
        }
    return told


def _unequal(expected: Any, got: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in sorted({*expected, *got}):
            yield from _unequal(expected.get(key), got.get(key), f"{path}.{key}" if path else str(key))
    elif expected != got:
        yield path, expected, got
