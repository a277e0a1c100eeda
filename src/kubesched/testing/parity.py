"""The same cluster, the same pods: does this scheduler decide what kube-scheduler decided?

A recorded case is a small cluster, the pods to place in order, and for each pod what kube-scheduler's own framework
answered: who turned which node down and why, every plugin's weighted score, the best nodes, the message, what
preemption made of it.  A Decision's `fields` are the same words; `differences` names what is not equal.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

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
from kubesched.framework.errors import InternalError, KubeschedError
from kubesched.framework.features import Features
from kubesched.framework.profile import Profile

Json = dict[str, Any]
Tier: TypeAlias = Literal["scalar", "vector"]
Promised: TypeAlias = dict[str, tuple[PodInfo, ...]]  # node → pods nominated to it

# When the cases were recorded nothing moved; start times in them lie before this.
NOON: Instant = Instant(1_767_268_800_000_000_000)


class RecordingError(KubeschedError):
    """A file of recorded cases that cannot be read; says which file and line."""


class Case(Struct, omit_defaults=True):
    """What kube-scheduler was asked: a cluster, and pods to place one after the other."""

    id: str
    objects: list[Json]
    pods: list[Json]
    config: Json | None = None


class Answer(Struct):
    """What it decided, one decision per pod."""

    decisions: list[Json]


class Recording(Struct):
    """One line of a file of recorded cases."""

    case: Case
    answer: Answer


def read_recordings(path: Path) -> Iterator[Recording]:
    """The cases of a file: JSON lines, gzipped or not.  Raises RecordingError."""
    opened = gzip.open if path.suffix == ".gz" else open
    number = 0
    try:
        with opened(path, "rb") as file:
            for line in file:
                number += 1
                yield msgspec.json.decode(line, type=Recording)
    except (OSError, EOFError, zlib.error) as error:
        raise RecordingError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except msgspec.ValidationError as error:
        wanted = '{"case": {"id", "objects", "pods"}, "answer": {"decisions"}}'
        raise RecordingError(f"{path}:{number}: {error}; a line is {wanted}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path}:{number}: not JSON: {error}") from None


# ── deciding a case ──────────────────────────────────────────────────────────────────────────────────────────


class Answers(NamedTuple):
    """This scheduler's answers to a case, one per pod, in the words of the recording."""

    decisions: list[Json]
    boards_differ: list[Difference]  # what was decided otherwise from answers kept from pods alike


def decide(case: Case, tier: Tier, *, boards: bool = False) -> Answers:
    """Place the pods of a case, one after the other.

    Args:
        boards: decide each pod also from answers kept from pods alike, and say where that makes a difference.
    """
    mirror = Mirror()
    for raw in case.objects:
        kind = KINDS.get(raw.get("kind", ""))
        if kind is not None:
            mirror.observe(read(raw, kind))
    profiles = profiles_of(load(case.config or {}), tie="name")
    desk = Desk(mirror)
    for profile in profiles.values():
        profile.keep_tier(tier)
        for plugin in profile.plugins:
            plugin.tools.attach(desk)
    answers, kept = Answers([], []), Boards()
    asked = [PodInfo(read(raw, Pod)) for raw in case.pods]
    promised = _promised([*_waiting(case), *asked])
    for number, info in enumerate(asked):
        profile = _profile_of(info, profiles)
        if boards:
            # The long way, with a board that may be out of date or not there yet, and with one that is up to date.
            long, *short = [
                fields(schedule(_cycle(mirror, info, number, promised), profile, boards=used))
                for used in (None, kept, kept)
            ]
            for told in short:
                answers.boards_differ.extend(differences(case.id, [long], [told]))
        cycle = _cycle(mirror, info, number, promised)
        decision = schedule(cycle, profile, exhaustive=True)  # the recordings score a lone node too
        answers.decisions.append(fields(decision))
        if decision.placed:
            promised = _without(promised, info)
            mirror.assume(info, decision.node)
            for plugin in profile.reserve:
                plugin.reserve(cycle, info, decision.node)
    return answers


def _profile_of(info: PodInfo, profiles: Mapping[str, Profile]) -> Profile:
    name = info.pod.spec.scheduler_name
    if name not in profiles:
        raise RecordingError(f'pod {info.key} asks for the scheduler "{name}"; there are: {", ".join(profiles)}')
    return profiles[name]


def _waiting(case: Case) -> Iterator[PodInfo]:
    """The pods of the cluster that are on no node."""
    for raw in case.objects:
        if raw.get("kind") == "Pod" and not raw.get("spec", {}).get("nodeName"):
            yield PodInfo(read(raw, Pod))


def _promised(pods: Sequence[PodInfo]) -> Promised:
    """Who was promised room on which node, as their statuses say."""
    found: Promised = {}
    for info in pods:
        name = info.pod.status.nominated_node_name
        if name:
            found[name] = (*found.get(name, ()), info)
    return found


def _without(promised: Promised, placed: PodInfo) -> Promised:
    return {node: tuple(one for one in pods if one.uid != placed.uid) for node, pods in promised.items()}


def _cycle(mirror: Mirror, info: PodInfo, number: int, promised: Promised) -> Cycle:
    nodes = Nodes(mirror.table, mirror.table.rows)
    luck = SeededLuck(0, number)
    return Cycle(info, nodes, mirror.objects, now=NOON, luck=luck, number=number, nominated=promised)


class Desk:
    """As much of a core as plugins can see."""

    now = NOON
    features = Features()
    verbosity = 10  # everything is heard: a remark must not change an answer

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

    @property
    def leaving(self) -> Set[str]:
        return frozenset()

    def promised(self, uid: str) -> None:
        return None


# ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────


class Difference(NamedTuple):
    """One thing in which a decision is not the recorded one."""

    case: str
    pod: str
    node: str  # empty where the difference is not about one node
    plugin: str  # whose word it is, where it is one plugin's
    what: str  # `rejected`, `scores`, `message` …: the field that is not equal
    expected: Any
    got: Any

    def __str__(self) -> str:
        about = [self.case, self.pod, self.node and f"node {self.node}", self.plugin and f"plugin {self.plugin}"]
        words = f"{self.what}: expected {_shown(self.expected)}, got {_shown(self.got)}"
        return "  ".join((*filter(None, about), words))


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
    told = {key: value for key, value in decision.items() if value not in (None, {}, "", [])}
    if "scores" in told:
        told["scores"] = {
            node: {plugin: score for plugin, score in by_plugin.items() if score}
            for node, by_plugin in told["scores"].items()
        }
    return told


def _unequal(expected: Json, got: Json) -> Iterator[tuple[str, str, str, Any, Any]]:
    """(node, plugin, field, expected, got), field by field and node by node."""
    for what in sorted({*expected, *got}):
        one, other = expected.get(what), got.get(what)
        if one == other:
            continue
        if what not in ("rejected", "scores", "totals"):
            yield "", _plugin(one) or _plugin(other), what, one, other
            continue
        for node in sorted({*(one or {}), *(other or {})}):
            yield from _unequal_node(what, node, (one or {}).get(node), (other or {}).get(node))


def _unequal_node(what: str, node: str, one: Any, other: Any) -> Iterator[tuple[str, str, str, Any, Any]]:
    if one == other:
        return
    if what == "scores":
        one, other = one or {}, other or {}
        for plugin in sorted({*one, *other}):
            if one.get(plugin) != other.get(plugin):
                yield node, plugin, "score", one.get(plugin), other.get(plugin)
    else:
        yield node, _plugin(one) or _plugin(other), what.removesuffix("s"), one, other


def _plugin(value: Any) -> str:
    return str(value.get("plugin", "")) if isinstance(value, dict) else ""


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict) and isinstance(value.get("reasons"), list):
        by = f" by {value['plugin']}" if value.get("plugin") else ""
        return f"{value.get('code')}{by}: {', '.join(map(str, value['reasons']))}"
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


# ── one case, asked and compared ─────────────────────────────────────────────────────────────────────────────


class Compared(NamedTuple):
    """How one case went."""

    decisions: int
    differences: list[Difference]  # from what was recorded
    tiers_disagree: list[Difference]
    boards_differ: list[Difference]

    @property
    def agrees(self) -> bool:
        return not (self.differences or self.tiers_disagree or self.boards_differ)


def compare(recording: Recording, tiers: Sequence[Tier], *, boards: bool = False) -> Compared:
    """Decide a case in each tier, and compare with the recording and with each other.  Raises RecordingError."""
    case, expected = recording.case, recording.answer.decisions
    try:
        answers = [decide(case, tier, boards=boards) for tier in tiers]
    except InternalError:
        raise
    except (KubeschedError, ValueError) as error:
        raise RecordingError(f"case {case.id}: {error}") from None
    return Compared(
        len(expected),
        differences(case.id, expected, answers[0].decisions),
        [d for other in answers[1:] for d in differences(case.id, answers[0].decisions, other.decisions)],
        [d for each in answers for d in each.boards_differ],
    )
