"""Any run at all: boards, none, boards that are dropped now and then — the same effects and the same decisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from kubesched.api.objects import KubeObject, Node, Pod
from kubesched.api.time import Instant, seconds
from kubesched.assemble import build
from kubesched.core.board import Boards
from kubesched.core.core import Core
from kubesched.core.messages import Bind, Completed, Evict, Observed, Tick
from kubesched.explain.fields import fields
from kubesched.testing.builders import node, pod

NAMES = ("n0", "n1", "n2", "n3")
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
BLUE = {"labelSelector": {"matchLabels": {"color": "blue"}}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def near(which: str, key: str) -> dict[str, Any]:
    return {"affinity": {which: {REQUIRED: [{**BLUE, "topologyKey": key}]}}}


def spread(key: str, action: str) -> dict[str, Any]:
    return {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, **BLUE}]}


KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"cpu": 3, "priority": 10},
    near("podAffinity", ZONE),
    near("podAntiAffinity", HOST),
    {"affinity": {"podAffinity": {PREFERRED: [{"weight": 5, "podAffinityTerm": {**BLUE, "topologyKey": ZONE}}]}}},
    {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 5, "podAffinityTerm": {**BLUE, "topologyKey": HOST}}]}}},
    spread(ZONE, "DoNotSchedule"),
    spread(HOST, "ScheduleAnyway"),
    {"host_ports": [80]},
)

happenings = st.one_of(
    st.tuples(st.just("pods"), st.integers(0, len(KINDS) - 1), st.integers(2, 4), st.sampled_from(["blue", "red"])),
    st.tuples(st.just("pods"), st.integers(0, len(KINDS) - 1), st.integers(2, 4), st.just("blue")),
    st.tuples(st.just("pods"), st.integers(2, 7), st.integers(2, 4), st.just("blue")),
    st.tuples(st.just("end"), st.integers(0, 30)),
    st.tuples(st.just("node"), st.sampled_from(NAMES), st.sampled_from(["za", "zb"]), st.booleans()),
    st.tuples(st.just("gone"), st.sampled_from(NAMES)),
    st.tuples(st.just("later"), st.integers(1, 20)),
)


class Run:
    """One core and its small cluster; what it said, and what it decided in full."""

    def __init__(self, disturb: Callable[[Core], None]) -> None:
        self.core = build(seed=5)
        self.disturb = disturb
        self.now = Instant(0)
        self.version = 0
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.told: list[str] = []
        self.hits = 0

    def hear(self, event: Any) -> None:
        self.disturb(self.core)
        effects = self.core.handle(event, self.now)
        self.told.append(str(effects))
        self.told += [str(fields(decision)) for decision in self.core.decisions.fresh]
        for effect in effects:
            self.hear(Completed(effect.id))
            if isinstance(effect, Bind):
                bound = self.pods[effect.uid]
                self.pods[effect.uid] = structs.replace(bound, spec=structs.replace(bound.spec, node_name=effect.node))
                self.see(self.pods[effect.uid])
            elif isinstance(effect, Evict):
                self.end(effect.uid)

    def see(self, obj: KubeObject, gone: bool = False) -> None:
        self.version += 1
        meta = structs.replace(obj.metadata, resource_version=str(self.version))
        self.hear(Observed(structs.replace(obj, metadata=meta), gone))  # type: ignore[arg-type]

    def end(self, uid: str) -> None:
        if uid in self.pods:
            self.see(self.pods.pop(uid), gone=True)

    def happen(self, number: int, what: str, *about: Any) -> None:
        match what:
            case "pods":
                kind, count, color = about
                for i in range(count):
                    one = pod(f"p{number}-{i}", **{"cpu": "400m", "labels": {"color": color}, **KINDS[kind]})
                    self.pods[one.uid] = one
                    self.see(one)
                while self.core.ready:
                    self.hear(Tick())
            case "end" if self.pods:
                self.end(list(self.pods)[about[0] % len(self.pods)])
            case "node":
                name, zone, cordoned = about
                known = self.nodes.get(name)
                one_node = node(name, cpu=4, zone=zone, labels={HOST: name}, unschedulable=cordoned)
                if known is not None:
                    one_node = structs.replace(one_node, metadata=structs.replace(one_node.metadata, uid=known.uid))
                self.nodes[name] = one_node
                self.see(one_node)
            case "gone" if about[0] in self.nodes:
                self.see(self.nodes.pop(about[0]), gone=True)
            case "later":
                self.now = Instant(self.now + seconds(about[0]))
                self.hear(Tick())


def without(core: Core) -> None:
    core.boards = None


def tiny(core: Core) -> None:
    """One board, which remembers one version, and is dropped now and then."""
    if core.boards is None or core.position % 5 == 0:
        core.boards = Boards(at_most=1, remembered=1)


@given(st.lists(happenings, min_size=8, max_size=20))
def test_boards_change_nothing(story: list[tuple[Any, ...]]) -> None:
    first = [("node", name, zone, False) for name, zone in zip(NAMES[:3], ("za", "zb", "za"), strict=True)]
    runs = [Run(disturb) for disturb in (without, lambda core: None, tiny)]
    for run in runs:
        for number, happening in enumerate((*first, *story)):
            run.happen(number, *happening)
    plain, *others = runs
    for other in others:
        assert other.told == plain.told
