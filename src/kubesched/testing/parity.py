"""The same cluster, the same pods: does this scheduler decide what kube-scheduler decided?

A recorded case is a small cluster, the pods to place in order, and for each pod what kube-scheduler's own framework
answered: who turned which node down and why, every plugin's weighted score, the best nodes, the message, what
preemption made of it.  A Decision's `fields` are the same words; `differences` names what is not equal.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from kubesched.api.objects import KINDS, Pod, read
from kubesched.api.time import Instant
from kubesched.assemble import profiles_of
from kubesched.cluster.columns import Nodes
from kubesched.cluster.mirror import Mirror
from kubesched.cluster.podinfo import PodInfo
from kubesched.config.load import load
from kubesched.core.board import Boards
from kubesched.core.luck import SeededLuck
from kubesched.core.schedule import schedule
from kubesched.explain.fields import fields
from kubesched.framework.cycle import Cycle
from kubesched.framework.errors import KubeschedError

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


class Answers(NamedTuple):
    """This scheduler's answers to a case, one per pod, in the words of the recording."""

    decisions: list[Json]
    boards_differ: list[Difference]  # what was decided otherwise from answers kept from pods alike


def decide(case: Json, tier: Tier, *, boards: bool = False) -> Answers:
    """Place the pods of a case, one after the other.

    Args:
        boards: decide each pod also from answers kept from pods alike, and say where that makes a difference.
    """
    mirror = Mirror()
    for raw in case["objects"]:
        kind = KINDS.get(raw.get("kind", ""))
        if kind is not None:
            mirror.observe(read(raw, kind))
    profiles = profiles_of(load(case.get("config") or {}), tie="name")
    desk = Desk(mirror)
    for profile in profiles.values():
        profile.keep_tier(tier)
        for plugin in profile.plugins:
            plugin.tools.attach(desk)
    answers, kept = Answers([], []), Boards()
    for number, raw in enumerate(case["pods"]):
        info = PodInfo(read(raw, Pod))
        profile = profiles[info.pod.spec.scheduler_name]
        if boards:
            # The long way, with a board that may be out of date or not there yet, and with one that is up to date.
            long, *short = [
                fields(schedule(_cycle(mirror, info, number), profile, boards=used)) for used in (None, kept, kept)
            ]
            for told in short:
                answers.boards_differ.extend(differences(case["id"], [long], [told]))
        cycle = _cycle(mirror, info, number)
        decision = schedule(cycle, profile, exhaustive=True)  # the recordings score a lone node too
        answers.decisions.append(fields(decision))
        if decision.placed:
            mirror.assume(info, decision.node)
            for plugin in profile.reserve:
                plugin.reserve(cycle, info, decision.node)
    return answers


def _cycle(mirror: Mirror, info: PodInfo, number: int) -> Cycle:
    nodes = Nodes(mirror.table, mirror.table.rows)
    return Cycle(info, nodes, mirror.objects, now=NOON, luck=SeededLuck(0, number), number=number)


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
