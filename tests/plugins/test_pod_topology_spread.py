"""PodTopologySpread: what is counted, who is turned down, and how nodes compare."""

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plugins.neighbourhood import World, answers, node, pod, raw_scores
from tests.plugins.spreading import FOO, HOST, SQUARE, ZONE, default, hard, pods, soft, wants

from kubesched.api.objects import KubeObject, Node, Pod, ReplicaSet, ReplicationController, Service, StatefulSet, read
from kubesched.api.selectors import compile_label_selector
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import NotWritten
from kubesched.framework.features import Features
from kubesched.framework.status import Code, Status, error
from kubesched.framework.tools import Tools
from kubesched.plugins.pod_topology_spread import NO_LABEL, TOO_SKEWED, PodTopologySpread, PodTopologySpreadArgs
from kubesched.plugins.spread_constraints import HARD, SOFT
from kubesched.plugins.spread_domains import HardSpread, Minimum

MISSING, FULL = Code.UNRESOLVABLE, Code.UNSCHEDULABLE

# ── what pre_filter counts ───────────────────────────────────────────────────────────────────────────────────


def counted(
    world: World, pod: Pod, plugin: PodTopologySpread | None = None
) -> list[tuple[dict[str, int], tuple[int, int]]]:
    """Per constraint, the pods of each domain, and what its two emptiest hold (2³¹−1 where there is none)."""
    cycle = world.cycle(pod)
    assert (plugin or PodTopologySpread()).pre_filter(cycle, cycle.pod, world.nodes).ok
    return described(world, cycle.get(HardSpread))


def described(world: World, spread: HardSpread) -> list[tuple[dict[str, int], tuple[int, int]]]:
    found = []
    for one in spread.domains:
        values = world.mirror.table.label(one.constraint.topology_key).vocab.values
        seen = sorted(set(one.codes[one.counted].tolist()))
        assert one.size == len(seen)
        counts = {values[code]: int(one.counts[code]) for code in seen}
        found.append((counts, (one.minimum.first[1], one.minimum.second[1])))
    return found


NONE = 2**31 - 1
STATES: dict[str, tuple[list[KubeObject], Pod, list[tuple[dict[str, int], tuple[int, int]]]]] = {
    "an empty cluster has empty domains": ([*SQUARE], wants(hard("zone")), [({"zone1": 0, "zone2": 0}, (0, 0))]),
    "pods add up by zone": (
        [*SQUARE, *pods(a=2, b=1, y=2)],
        wants(hard("zone")),
        [({"zone1": 3, "zone2": 2}, (2, 3))],
    ),
    "three zones have one emptiest and one next": (
        [*SQUARE, node("o", zone="zone3", node="o"), *pods(a=2, b=1, x=3, y=2)],
        wants(hard("zone")),
        [({"zone1": 3, "zone2": 5, "zone3": 0}, (0, 3))],
    ),
    "one zone has no next": (
        [node("a", zone="zone1"), *pods(a=1)],
        wants(hard("zone")),
        [({"zone1": 1}, (1, NONE))],
    ),
    "no node has the label: no domain at all": ([*SQUARE], wants(hard("rack")), [({}, (NONE, NONE))]),
    "pods of another namespace do not count": (
        [*SQUARE, *pods(a=1), pod("other", FOO, on="x", namespace="elsewhere")],
        wants(hard("zone")),
        [({"zone1": 1, "zone2": 0}, (0, 1))],
    ),
    "pods on their way out do not count": (
        [*SQUARE, *pods(a=1), pod("leaving", FOO, on="x", dying=True)],
        wants(hard("zone")),
        [({"zone1": 1, "zone2": 0}, (0, 1))],
    ),
    "pods the selector does not mean do not count": (
        [*SQUARE, *pods(a=1), pod("bar", {"bar": ""}, on="x")],
        wants(hard("zone")),
        [({"zone1": 1, "zone2": 0}, (0, 1))],
    ),
    "each constraint counts for itself": (
        [*SQUARE, *pods(a=2, b=1, x=3, y=4)],
        wants(hard("zone"), hard("node")),
        [({"zone1": 3, "zone2": 7}, (3, 7)), ({"a": 2, "b": 1, "x": 3, "y": 4}, (1, 2))],
    ),
    "each constraint has its own selector": (
        [*SQUARE, *pods(a=1), pod("bar", {"bar": ""}, on="x"), pod("both", {"bar": "", "foo": ""}, on="y")],
        wants(hard("zone"), hard("node", selector="bar")),
        [({"zone1": 1, "zone2": 1}, (1, 1)), ({"a": 0, "b": 0, "x": 1, "y": 1}, (0, 0))],
    ),
    "a node counts only with all labels asked for": (
        [*SQUARE, node("half", zone="zone1"), *pods(a=1, half=5)],
        wants(hard("zone"), hard("node")),
        [({"zone1": 1, "zone2": 0}, (0, 1)), ({"a": 1, "b": 0, "x": 0, "y": 0}, (0, 0))],
    ),
    "soft constraints are not filtered by": (
        [*SQUARE, *pods(a=1)],
        wants(hard("zone"), soft("rack")),
        [({"zone1": 1, "zone2": 0}, (0, 1))],
    ),
    "an empty selector counts nobody": (
        [*SQUARE, *pods(a=3)],
        wants(hard("zone", selector={})),
        [({"zone1": 0, "zone2": 0}, (0, 0))],
    ),
    "a null selector counts nobody": (
        [*SQUARE, *pods(a=3)],
        wants(hard("zone", selector=None)),
        [({"zone1": 0, "zone2": 0}, (0, 0))],
    ),
    "nodes the pod's nodeSelector leaves out do not count": (
        [*SQUARE, *pods(a=1, x=1)],
        wants(hard("node"), nodeSelector={"zone": "zone1"}),
        [({"a": 1, "b": 0}, (0, 1))],
    ),
    "unless affinity is to be ignored": (
        [*SQUARE, *pods(a=1, x=1)],
        wants(hard("node", nodeAffinityPolicy="Ignore"), nodeSelector={"zone": "zone1"}),
        [({"a": 1, "b": 0, "x": 1, "y": 0}, (0, 0))],
    ),
    "required node affinity leaves nodes out too": (
        [*SQUARE, *pods(a=1, x=1)],
        wants(
            hard("zone", nodeAffinityPolicy="Honor"),
            hard("node", nodeAffinityPolicy="Ignore"),
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["zone1"]}]}
                        ]
                    }
                }
            },
        ),
        [({"zone2": 1}, (1, NONE)), ({"a": 1, "b": 0, "x": 1, "y": 0}, (0, 0))],
    ),
    "tainted nodes count": (
        [*SQUARE, node("o", zone="zone3", node="o", taints=[{"key": "k", "effect": "NoSchedule"}]), *pods(o=1)],
        wants(hard("zone")),
        [({"zone1": 0, "zone2": 0, "zone3": 1}, (0, 0))],
    ),
    "unless taints are to be honoured": (
        [*SQUARE, node("o", zone="zone3", node="o", taints=[{"key": "k", "effect": "NoSchedule"}]), *pods(o=1)],
        wants(hard("zone", nodeTaintsPolicy="Honor")),
        [({"zone1": 0, "zone2": 0}, (0, 0))],
    ),
    "and then the tolerated ones still count": (
        [*SQUARE, node("o", zone="zone3", node="o", taints=[{"key": "k", "effect": "NoSchedule"}]), *pods(o=1)],
        wants(hard("zone", nodeTaintsPolicy="Honor"), tolerations=[{"key": "k", "operator": "Exists"}]),
        [({"zone1": 0, "zone2": 0, "zone3": 1}, (0, 0))],
    ),
    "and taints that only ask count as none": (
        [*SQUARE, node("o", zone="zone3", node="o", taints=[{"key": "k", "effect": "PreferNoSchedule"}])],
        wants(hard("zone", nodeTaintsPolicy="Honor")),
        [({"zone1": 0, "zone2": 0, "zone3": 0}, (0, 0))],
    ),
    "matchLabelKeys narrow the selector to the pod's own values": (
        [*SQUARE, pod("p1", {"foo": "", "rev": "1"}, on="a"), pod("p2", {"foo": "", "rev": "2"}, on="x")],
        wants(hard("zone", matchLabelKeys=["rev", "absent"]), labels={"foo": "", "rev": "1"}),
        [({"zone1": 1, "zone2": 0}, (0, 1))],
    ),
    "matchLabelKeys make nothing of a null selector": (
        [*SQUARE, pod("p1", {"foo": "", "rev": "1"}, on="a")],
        wants(hard("zone", selector=None, matchLabelKeys=["rev"]), labels={"foo": "", "rev": "1"}),
        [({"zone1": 0, "zone2": 0}, (0, 0))],
    ),
}


@pytest.mark.parametrize("case", STATES)
def test_pre_filter_counts(case: str) -> None:
    objects, waiting, expected = STATES[case]
    assert counted(World(*objects), waiting) == expected


def test_match_label_keys_are_left_alone_with_their_gate_off() -> None:
    world = World(*SQUARE, pod("p1", {"foo": "", "rev": "1"}, on="a"), pod("p2", {"foo": "", "rev": "2"}, on="x"))
    gates = Features().with_gates({"match_label_keys_in_pod_topology_spread": False})
    plugin = PodTopologySpread(tools=Tools("PodTopologySpread", gates))

    [(counts, _)] = counted(world, wants(hard("zone", matchLabelKeys=["rev"]), labels={"rev": "1"}), plugin)

    assert counts == {"zone1": 1, "zone2": 1}


def test_comparing_tolerations_count_with_their_gate_on() -> None:
    tainted = node("o", zone="zone3", taints=[{"key": "tier", "value": "3", "effect": "NoSchedule"}])
    waiting = wants(
        hard("zone", nodeTaintsPolicy="Honor"), tolerations=[{"key": "tier", "operator": "Gt", "value": "2"}]
    )
    gates = Features().with_gates({"taint_toleration_comparison_operators": True})
    plugin = PodTopologySpread(tools=Tools("PodTopologySpread", gates))

    assert counted(World(*SQUARE, tainted), waiting)[0][0] == {"zone1": 0, "zone2": 0}
    assert counted(World(*SQUARE, tainted), waiting, plugin)[0][0] == {"zone1": 0, "zone2": 0, "zone3": 0}


def test_without_hard_constraints_there_is_nothing_to_filter() -> None:
    world = World(*SQUARE)
    assert world.filter(PodTopologySpread(), wants(soft("zone"))) == Status(Code.SKIP)
    assert world.filter(PodTopologySpread(), pod("plain")) == Status(Code.SKIP)


def test_filter_before_pre_filter_cannot_answer() -> None:
    world = World(*SQUARE)
    cycle = world.cycle(wants(hard("zone")))
    with pytest.raises(NotWritten, match="not found"):
        PodTopologySpread().filter(cycle, cycle.pod, world.named("a"))


def test_a_selector_that_means_nothing_is_an_error_that_says_so() -> None:
    broken = {"matchExpressions": [{"key": "foo", "operator": "Nearly"}]}
    world = World(*SQUARE)

    problem = '"Nearly" is not a valid label selector operator'

    assert world.filter(PodTopologySpread(), wants(hard("zone", selector=broken))) == error(
        f"get constraints from pod: obtaining pod's hard topology spread constraints: {problem}"
    )
    assert world.scores(PodTopologySpread(), wants(soft("zone", selector=broken))) == error(
        f"calculating preScoreState: obtaining pod's soft topology spread constraints: {problem}"
    )


# ── pods that come and go while the cycle runs ───────────────────────────────────────────────────────────────


def test_a_pod_added_or_removed_changes_its_domains_alone() -> None:
    world = World(*SQUARE, *pods(a=1, x=2))
    cycle = world.cycle(wants(hard("zone"), hard("node")))
    plugin = PodTopologySpread()
    plugin.pre_filter(cycle, cycle.pod, world.nodes)
    kept = cycle.get(HardSpread).clone()

    plugin.add_pod(cycle, cycle.pod, PodInfo(pod("more", FOO)), world.named("b"))
    assert described(world, cycle.get(HardSpread)) == [
        ({"zone1": 2, "zone2": 2}, (2, 2)),
        ({"a": 1, "b": 1, "x": 2, "y": 0}, (0, 1)),
    ]
    plugin.remove_pod(cycle, cycle.pod, PodInfo(pod("gone", FOO)), world.named("x"))
    assert [counts for counts, _ in described(world, cycle.get(HardSpread))] == [
        {"zone1": 2, "zone2": 1},
        {"a": 1, "b": 1, "x": 1, "y": 0},
    ]
    assert described(world, kept) == [
        ({"zone1": 1, "zone2": 2}, (1, 2)),
        ({"a": 1, "b": 0, "x": 2, "y": 0}, (0, 0)),
    ]


@pytest.mark.parametrize(
    ("other", "on", "constraint"),
    [
        (pod("other", {"bar": ""}), "a", hard("zone")),
        (pod("other", FOO, namespace="elsewhere"), "a", hard("zone")),
        (pod("other", FOO), "half", hard("zone")),
        (pod("other", FOO), "tainted", hard("zone", nodeTaintsPolicy="Honor")),
        (pod("other", FOO), "left-out", hard("zone")),
    ],
    ids=["other labels", "other namespace", "a key is missing", "an untolerated taint", "not a node for the pod"],
)
def test_a_pod_the_constraint_does_not_count_changes_nothing(other: Pod, on: str, constraint: dict[str, Any]) -> None:
    world = World(
        node("a", zone="zone1", node="a", disk="ssd"),
        node("half", zone="zone1", disk="ssd"),
        node("tainted", zone="zone1", node="t", disk="ssd", taints=[{"key": "k", "effect": "NoExecute"}]),
        node("left-out", zone="zone1", node="l"),
    )
    cycle = world.cycle(wants(constraint, hard("node"), nodeSelector={"disk": "ssd"}))
    plugin = PodTopologySpread()
    plugin.pre_filter(cycle, cycle.pod, world.nodes)
    before = described(world, cycle.get(HardSpread))[0]

    plugin.add_pod(cycle, cycle.pod, PodInfo(other), world.named(on))
    assert described(world, cycle.get(HardSpread))[0] == before
    plugin.remove_pod(cycle, cycle.pod, PodInfo(other), world.named(on))
    assert described(world, cycle.get(HardSpread))[0] == before


def test_a_pod_on_its_way_out_counts_when_it_is_taken_off() -> None:
    """Kept from kube-scheduler: it was not counted, and yet its leaving is."""
    world = World(*SQUARE, *pods(a=2), pod("leaving", FOO, on="a", dying=True))
    cycle = world.cycle(wants(hard("zone")))
    plugin = PodTopologySpread()
    plugin.pre_filter(cycle, cycle.pod, world.nodes)

    plugin.remove_pod(cycle, cycle.pod, PodInfo(pod("leaving", FOO, dying=True)), world.named("a"))

    assert described(world, cycle.get(HardSpread))[0][0] == {"zone1": 1, "zone2": 0}


class TwoEntries:
    """kube-scheduler's tracker, told in its own order; the rule, word for word."""

    def __init__(self, counts: Iterable[tuple[int, int]] = ()) -> None:
        self.entries = [(-1, NONE), (-1, NONE)]
        for domain, count in counts:
            self.update(domain, count)

    def update(self, domain: int, count: int) -> None:
        known = [at for at in (0, 1) if self.entries[at][0] == domain]
        if known:
            self.entries[known[0]] = (domain, count)
            self.entries.sort(key=lambda entry: entry[1])
        elif count < self.entries[0][1]:
            self.entries = [(domain, count), self.entries[0]]
        elif count < self.entries[1][1]:
            self.entries[1] = (domain, count)


@given(st.lists(st.integers(0, 4), max_size=6), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=12))
def test_the_minimum_is_the_two_entries_of_kube_scheduler(counts: list[int], moves: list[tuple[int, int]]) -> None:
    domains = np.arange(len(counts), dtype=np.int32)
    minimum = Minimum.over(domains, np.array(counts, dtype=np.int64))
    rule = TwoEntries(enumerate(counts))
    assert [minimum.first, minimum.second] == rule.entries

    for domain, count in moves:
        minimum.update(domain, count)
        rule.update(domain, count)
        assert [minimum.first, minimum.second] == rule.entries


@given(
    st.lists(st.sampled_from("abxy"), max_size=12), st.lists(st.integers(0, 11), max_size=6), st.sampled_from("abxy")
)
def test_what_moves_leave_behind_is_what_counting_again_finds(on: list[str], leaving: list[int], to: str) -> None:
    """Counts always; the minimum after any number of departures and one arrival, for which two entries suffice."""
    placed = [pod(f"p{i}", FOO, on=where) for i, where in enumerate(on)]
    waiting = wants(hard("zone"), hard("node"))
    world = World(*SQUARE, *placed)
    cycle = world.cycle(waiting)
    plugin = PodTopologySpread()
    plugin.pre_filter(cycle, cycle.pod, world.nodes)

    left = dict(enumerate(placed))
    for index in leaving:
        if index in left:
            gone = left.pop(index)
            plugin.remove_pod(cycle, cycle.pod, PodInfo(gone), world.named(gone.spec.node_name))
    again = counted(World(*SQUARE, *left.values()), waiting)
    found = described(world, cycle.get(HardSpread))
    assert [(counts, least) for counts, (least, _) in found] == [(counts, least) for counts, (least, _) in again]

    if not leaving:
        plugin.add_pod(cycle, cycle.pod, PodInfo(pod("more", FOO)), world.named(to))
        again = counted(World(*SQUARE, *left.values(), pod("more", FOO, on=to)), waiting)
        found = described(world, cycle.get(HardSpread))
        assert [(counts, least) for counts, (least, _) in found] == [(counts, least) for counts, (least, _) in again]


# ── who is turned down ───────────────────────────────────────────────────────────────────────────────────────

VERDICTS: dict[str, tuple[list[KubeObject], Pod, dict[str, Code]]] = {
    "no pods: anywhere": ([*SQUARE], wants(hard("zone")), {}),
    "the fuller zone is out": ([*SQUARE, *pods(a=1)], wants(hard("zone")), {"a": FULL, "b": FULL}),
    "a wider skew lets it in": ([*SQUARE, *pods(a=1)], wants(hard("zone", 2)), {}),
    "the fuller hosts are out": (
        [*SQUARE, *pods(a=2, b=1, x=3)],
        wants(hard("node")),
        {"a": FULL, "b": FULL, "x": FULL},
    ),
    "hosts within the skew": ([*SQUARE, *pods(a=2, b=1, x=3, y=0)], wants(hard("node", 2)), {"a": FULL, "x": FULL}),
    "a pod that is not among those counted adds nothing": (
        [*SQUARE, *pods(a=1)],
        wants(hard("zone"), labels={"bar": ""}),
        {},
    ),
    "and is turned down only where the skew is passed already": (
        [*SQUARE, *pods(a=2)],
        wants(hard("zone"), labels={"bar": ""}),
        {"a": FULL, "b": FULL},
    ),
    "a node without the label is out for good": (
        [*SQUARE, node("bare"), *pods(a=1)],
        wants(hard("zone")),
        {"a": FULL, "b": FULL, "bare": MISSING},
    ),
    "no node has the label": ([*SQUARE], wants(hard("rack")), dict.fromkeys("abxy", MISSING)),
    "two constraints: both must agree": (
        [*SQUARE, *pods(a=2, b=1, x=2, y=1)],
        wants(hard("zone"), hard("node")),
        {"a": FULL, "x": FULL},
    ),
    "two constraints: nobody is left": (
        [*SQUARE, *pods(a=1, b=1, x=1, y=0)],
        wants(hard("zone"), hard("node", selector="bar"), labels={"foo": "", "bar": ""}),
        {"a": FULL, "b": FULL},
    ),
    "the first constraint that fails speaks": (
        [*SQUARE, node("half", zone="zone1"), *pods(a=1)],
        wants(hard("zone"), hard("node")),
        {"a": FULL, "b": FULL, "half": FULL},
    ),
    "in the pod's order": (
        [*SQUARE, node("half", zone="zone1"), *pods(a=1)],
        wants(hard("node"), hard("zone")),
        {"a": FULL, "b": FULL, "half": MISSING},
    ),
    "a domain no counted node is in is empty, not absent": (
        [*SQUARE, *pods(x=5)],
        wants(hard("zone"), nodeSelector={"zone": "zone1"}),
        {},
    ),
    "fewer domains than asked for: the minimum is 0": (
        [*SQUARE, *pods(a=1, x=1)],
        wants(hard("zone", minDomains=3)),
        dict.fromkeys("abxy", FULL),
    ),
    "as many domains as asked for: the minimum is what it is": (
        [*SQUARE, *pods(a=1, x=1)],
        wants(hard("zone", minDomains=2)),
        {},
    ),
    "taints honoured: a domain out of reach does not hold the others back": (
        [*SQUARE, node("o", zone="zone3", taints=[{"key": "k", "effect": "NoSchedule"}]), *pods(a=1, x=1)],
        wants(hard("zone", nodeTaintsPolicy="Honor")),
        {},
    ),
    "taints ignored: it does": (
        [*SQUARE, node("o", zone="zone3", taints=[{"key": "k", "effect": "NoSchedule"}]), *pods(a=1, x=1)],
        wants(hard("zone")),
        dict.fromkeys("abxy", FULL),
    ),
    "an empty selector still counts the pod itself": (
        [*SQUARE, *pods(a=9)],
        wants(hard("zone", selector={})),
        {},
    ),
    "soft constraints turn nobody down": ([*SQUARE, *pods(a=9)], wants(soft("zone")), {}),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_nodes_turned_down(case: str) -> None:
    objects, waiting, expected = VERDICTS[case]
    assert World(*objects).rejected(PodTopologySpread(), waiting) == expected


def test_the_two_reasons_are_kube_schedulers() -> None:
    found = World(*SQUARE, node("bare"), *pods(a=1)).filter(PodTopologySpread(), wants(hard("zone")))
    assert isinstance(found, dict)
    assert found["a"].reasons == (TOO_SKEWED,) == ("node(s) didn't match pod topology spread constraints",)
    assert found["bare"].reasons == (NO_LABEL,)
    assert NO_LABEL == "node(s) didn't match pod topology spread constraints (missing required label)"


# ── constraints by default ───────────────────────────────────────────────────────────────────────────────────


def owned(kind: str, name: str, version: str = "apps/v1") -> Pod:
    waiting = pod("new", FOO | {"app": "web"})
    raw = msgspec.to_builtins(waiting)
    raw["metadata"]["ownerReferences"] = [{"apiVersion": version, "kind": kind, "name": name, "controller": True}]
    return read(raw, Pod)


def service(name: str, selector: dict[str, str] | None, namespace: str = "default") -> Service:
    return read(
        {"metadata": {"name": name, "namespace": namespace, "uid": name}, "spec": {"selector": selector}}, Service
    )


def controller(kind: type[KubeObject], selector: Any) -> KubeObject:
    return read({"metadata": {"name": "c", "namespace": "default", "uid": "c"}, "spec": {"selector": selector}}, kind)


LISTED = PodTopologySpreadArgs(defaulting_type="List", default_constraints=(default("zone", when=HARD),))


@pytest.mark.parametrize(
    ("waiting", "objects", "counts"),
    [
        (pod("new", FOO), [], None),
        (pod("new", FOO), [service("s", FOO)], {"zone1": 2, "zone2": 1}),
        (pod("new", FOO), [service("s", {"bar": ""})], None),
        (pod("new", FOO), [service("s", FOO, namespace="elsewhere")], None),
        (pod("new", FOO), [service("s", None), service("t", {})], None),
        (pod("new", FOO | {"app": "web"}), [service("s", FOO), service("t", {"app": "web"})], {"zone1": 1, "zone2": 0}),
        (owned("ReplicaSet", "c"), [controller(ReplicaSet, {"matchLabels": FOO})], {"zone1": 2, "zone2": 1}),
        (owned("ReplicaSet", "c"), [controller(ReplicaSet, None)], None),
        (owned("ReplicaSet", "c"), [], None),
        (owned("ReplicaSet", "c", "example.com/v1"), [controller(ReplicaSet, {"matchLabels": FOO})], None),
        (
            owned("StatefulSet", "c"),
            [
                controller(
                    StatefulSet, {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}]}
                ),
                service("s", FOO),
            ],
            {"zone1": 1, "zone2": 0},
        ),
        (
            owned("ReplicaSet", "c"),
            [controller(ReplicaSet, {"matchExpressions": [{"key": "x", "operator": "?"}]}), service("s", FOO)],
            {"zone1": 2, "zone2": 1},
        ),
        (owned("ReplicationController", "c", "v1"), [controller(ReplicationController, FOO)], {"zone1": 2, "zone2": 1}),
        (owned("ReplicationController", "c"), [controller(ReplicationController, FOO)], None),
    ],
    ids=[
        "nobody means it",
        "a service",
        "a service of others",
        "a service elsewhere",
        "services without selector",
        "two services",
        "a replica set",
        "a replica set without selector",
        "a replica set that is gone",
        "a namesake kind",
        "a stateful set and a service",
        "a broken replica set",
        "a replication controller",
        "a replication controller of another group",
    ],
)
def test_default_constraints_take_the_selector_of_those_who_mean_the_pod(
    waiting: Pod, objects: list[KubeObject], counts: dict[str, int] | None
) -> None:
    placed = [pod("web", FOO | {"app": "web"}, on="a"), pod("p1", FOO, on="b"), pod("p2", FOO, on="x")]
    world = World(*SQUARE, *placed, *objects)
    plugin = PodTopologySpread(LISTED)
    if counts is None:
        assert world.filter(plugin, waiting) == Status(Code.SKIP)
    else:
        assert counted(world, waiting, plugin)[0][0] == counts


def test_a_pods_own_constraints_replace_the_defaults_of_either_kind() -> None:
    world = World(*SQUARE, *pods(a=9), service("s", FOO))
    assert world.filter(PodTopologySpread(LISTED), wants(soft("zone"))) == Status(Code.SKIP)


def test_a_service_seen_later_is_heard_of() -> None:
    world = World(*SQUARE, *pods(a=1))
    plugin = PodTopologySpread(LISTED)
    assert world.rejected(plugin, pod("new", FOO)) == {}

    world.mirror.observe(service("s", FOO))

    assert world.rejected(plugin, pod("new", FOO)) == {"a": FULL, "b": FULL}


# ── how nodes compare ────────────────────────────────────────────────────────────────────────────────────────

ROW = [
    node("a", zone="zone1", node="a", **{HOST: "a"}),
    node("b", zone="zone1", node="b", **{HOST: "b"}),
    node("x", zone="zone2", node="x", **{HOST: "x"}),
    node("y", zone="zone2", node="y", **{HOST: "y"}),
]
SCORES: dict[str, tuple[list[KubeObject], Pod, str, dict[str, int]]] = {
    "an empty cluster: all alike": ([*ROW], wants(soft(HOST)), "", dict.fromkeys("abxy", 100)),
    "equally many: all alike": ([*ROW, *pods(a=1, b=1, x=1, y=1)], wants(soft(HOST)), "", dict.fromkeys("abxy", 100)),
    # Four hosts weigh ln 6 = 1.79 a pod: 2, 1, 0, 3 pods are charged 4, 2, 0, 5.
    "the emptier the host, the better": (
        [*ROW, *pods(a=2, b=1, y=3)],
        wants(soft(HOST)),
        "",
        {"a": 20, "b": 60, "x": 100, "y": 0},
    ),
    # Of two hosts, ln 4 = 1.39 a pod: 3 and 1.
    "only feasible nodes are compared": ([*ROW, *pods(a=2, b=1)], wants(soft(HOST)), "ab", {"a": 33, "b": 100}),
    # Two zones weigh ln 4 = 1.39 a pod: 3 pods are charged 4, 1 is charged 1.
    "zones count the pods of all nodes": (
        [*ROW, *pods(a=2, b=1, y=1)],
        wants(soft("zone")),
        "ax",
        {"a": 25, "x": 100},
    ),
    "a wider skew evens out": (
        [*ROW, *pods(a=2, b=1, y=1)],
        wants(soft("zone", 5)),
        "ax",
        {"a": 62, "x": 100},
    ),
    # A label that is not the host name is counted for all its nodes, even where every node has its own value.
    "a host label of one's own": (
        [*ROW, *pods(a=2, b=1, y=3)],
        wants(soft("node")),
        "",
        {"a": 20, "b": 60, "x": 100, "y": 0},
    ),
    "a node without the label is left out and gets nothing": (
        [*ROW, node("bare"), *pods(a=1, bare=7)],
        wants(soft("zone")),
        "",
        {"a": 0, "b": 0, "x": 100, "y": 100, "bare": 0},
    ),
    "all nodes are left out": ([*ROW], wants(soft("rack")), "", dict.fromkeys("abxy", 0)),
    "charges of several constraints add up": (
        # zone: ln 4, 3 and 1 pods; host: ln 6, 2 1 0 1 pods; a 7.74, b 5.95, x 1.39, y 3.18.
        [*ROW, *pods(a=2, b=1, y=1)],
        wants(soft("zone"), soft(HOST)),
        "",
        {"a": 12, "b": 37, "x": 100, "y": 75},
    ),
    "nodes the pod may not use are not counted": (
        # zone1 counts a alone: 1 pod; zone2 has 1 too.
        [*ROW, node("c", zone="zone1", node="c", disk="hdd"), *pods(a=1, x=1, c=5)],
        wants(
            soft("zone"),
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}]
                    }
                }
            },
        ),
        "abxy",
        dict.fromkeys("abxy", 100),
    ),
    "pods on their way out and of other namespaces are not counted": (
        [*ROW, *pods(a=1), pod("d", FOO, on="x", dying=True), pod("e", FOO, on="x", namespace="elsewhere")],
        wants(soft("zone")),
        "",
        {"a": 0, "b": 0, "x": 100, "y": 100},
    ),
}


@pytest.mark.parametrize("case", SCORES)
def test_nodes_compared(case: str) -> None:
    objects, waiting, feasible, expected = SCORES[case]
    assert World(*objects).scores(PodTopologySpread(), waiting, *feasible) == expected


def test_there_is_nothing_to_score_without_soft_constraints() -> None:
    world = World(*ROW)
    assert world.scores(PodTopologySpread(), wants(hard("zone"))) == Status(Code.SKIP)
    assert world.scores(PodTopologySpread(), pod("plain", FOO)) == Status(Code.SKIP)
    assert World().scores(PodTopologySpread(), wants(soft("zone"))) == Status(Code.SKIP)


def test_the_built_in_defaults_compare_a_node_without_a_zone_by_its_host() -> None:
    zoned = [node("a", **{HOST: "a", ZONE: "z1"}), node("b", **{HOST: "b", ZONE: "z2"}), node("c", **{HOST: "c"})]
    world = World(*zoned, *pods(a=3, c=1), service("s", FOO))

    found = world.scores(PodTopologySpread(), pod("new", FOO))

    # host: ln 5 a pod and 2; zone (z1, z2, none): ln 5 a pod and 4.  a 4.83+2+4.83+4 → 16, b 2+4 → 6, c 1.61+2 → 4.
    assert found == {"a": 25, "b": 87, "c": 100}


def test_with_the_built_in_defaults_no_zone_and_the_empty_zone_are_one() -> None:
    """Kept from kube-scheduler; only the node that has the label is charged for it."""
    zoned = [node("a", **{ZONE: "z1"}), node("b", **{ZONE: ""}), node("c")]
    world = World(*zoned, *pods(a=2, b=1, c=2), service("s", FOO))
    cycle = world.cycle(pod("new", FOO))
    plugin = PodTopologySpread()
    plugin.pre_score(cycle, cycle.pod, world.nodes)

    # Two domains, ln 4 a pod and 4: a 2 pods, b 1 + 2 pods; c is in no domain.
    assert raw_scores(plugin, cycle, world.nodes).tolist() == [7, 8, 0]


def test_the_same_defaults_listed_leave_it_out() -> None:
    zoned = [node("a", **{HOST: "a", ZONE: "z1"}), node("b", **{HOST: "b", ZONE: "z2"}), node("c", **{HOST: "c"})]
    world = World(*zoned, *pods(a=3, c=1), service("s", FOO))
    args = PodTopologySpreadArgs(defaulting_type="List", default_constraints=(default(HOST, 3), default(ZONE, 5)))

    found = world.scores(PodTopologySpread(args), pod("new", FOO))

    assert isinstance(found, dict)
    assert found["c"] == 0
    assert found["b"] == 100


def test_answers_after_a_move_are_those_of_the_moved_cluster() -> None:
    world = World(*SQUARE, *pods(a=1))
    cycle = world.cycle(wants(hard("zone")))
    plugin = PodTopologySpread()
    plugin.pre_filter(cycle, cycle.pod, world.nodes)

    plugin.add_pod(cycle, cycle.pod, PodInfo(pod("more", FOO)), world.named("x"))

    assert all(status.ok for status in answers(plugin, cycle).values())


# ── against the rules, node by node and pod by pod ───────────────────────────────────────────────────────────

TAINT = {"key": "k", "effect": "NoSchedule"}
LABELS = st.builds(
    lambda zone, rack, host, tainted: (
        {
            **({"zone": zone} if zone is not None else {}),
            **({"rack": rack} if rack else {}),
            **({HOST: "h"} if host else {}),
        },
        tainted,
    ),
    st.sampled_from(["", "z1", "z2", "z3", None]),
    st.sampled_from(["r1", "r2", ""]),
    st.booleans(),
    st.booleans(),
)
PLACED = st.tuples(
    st.integers(0, 5), st.sampled_from(["foo", "bar", "none"]), st.sampled_from(["default", "elsewhere"]), st.booleans()
)
CONSTRAINT = st.builds(
    lambda key, skew, when, selector, least, affinity, taints: (
        hard(key, skew, selector)
        | {"whenUnsatisfiable": when, "nodeAffinityPolicy": affinity, "nodeTaintsPolicy": taints}
        | ({"minDomains": least} if least and when == HARD else {})
    ),
    st.sampled_from(["zone", "rack", HOST]),
    st.integers(1, 3),
    st.sampled_from([HARD, SOFT]),
    st.sampled_from(["foo", "bar", {}, None]),
    st.integers(0, 3),
    st.sampled_from(["Honor", "Ignore"]),
    st.sampled_from(["Honor", "Ignore"]),
)


@given(
    st.lists(LABELS, min_size=1, max_size=6),
    st.lists(PLACED, max_size=12),
    st.lists(CONSTRAINT, min_size=1, max_size=3),
    st.booleans(),
)
def test_both_tiers_say_what_the_rules_say(
    nodes: list[tuple[dict[str, str], bool]],
    placed: list[tuple[int, str, str, bool]],
    constraints: list[dict[str, Any]],
    racked: bool,
) -> None:
    cluster = [node(f"n{i}", taints=[TAINT] if tainted else [], **labels) for i, (labels, tainted) in enumerate(nodes)]
    neighbours = [
        pod(f"p{i}", {label: ""}, on=f"n{at % len(nodes)}", namespace=space, dying=dying)
        for i, (at, label, space, dying) in enumerate(placed)
    ]
    waiting = wants(*constraints, **({"nodeSelector": {"rack": "r1"}} if racked else {}))
    world, rules = World(*cluster, *neighbours), Rules(cluster, neighbours, waiting)
    plugin = PodTopologySpread()

    found = world.filter(plugin, waiting)
    assert rules.verdicts() == ({} if isinstance(found, Status) else {name: one.code for name, one in found.items()})

    cycle = world.cycle(waiting)
    if plugin.pre_score(cycle, cycle.pod, world.nodes).ok:
        raw = raw_scores(plugin, cycle, world.nodes)
        assert dict(zip(world.nodes.names, raw.tolist(), strict=True)) == rules.scores()


class Rules:
    """The written rules, applied the long way: every node, every pod on it, every constraint."""

    def __init__(self, nodes: list[Node], pods: list[Pod], waiting: Pod) -> None:
        self.nodes, self.pods, self.waiting = nodes, pods, waiting
        own = waiting.spec.topology_spread_constraints
        self.hard = [one for one in own if one.when_unsatisfiable == HARD]
        self.soft = [one for one in own if one.when_unsatisfiable == SOFT]

    def on(self, node: Node, constraint: Any) -> int:
        selector = compile_label_selector(constraint.label_selector)
        return sum(
            one.spec.node_name == node.name
            and one.namespace == self.waiting.namespace
            and not one.terminating
            and not selector.empty
            and selector.matches(one.labels)
            for one in self.pods
        )

    def counts(self, node: Node, constraint: Any, keys: list[str]) -> bool:
        if any(key not in node.labels for key in keys):
            return False
        if constraint.node_affinity_policy == "Honor" and not PodInfo(self.waiting).wants_node(node.labels, node.name):
            return False
        return not (constraint.node_taints_policy == "Honor" and node.spec.taints)

    def verdicts(self) -> dict[str, Code]:
        return {node.name: self.verdict(node) for node in self.nodes} if self.hard else {}

    def verdict(self, node: Node) -> Code:
        keys = [one.topology_key for one in self.hard]
        for one in self.hard:
            if one.topology_key not in node.labels:
                return MISSING
            domains: dict[str, int] = {}
            for other in self.nodes:
                if self.counts(other, one, keys):
                    value = other.labels[one.topology_key]
                    domains[value] = domains.get(value, 0) + self.on(other, one)
            least = 0 if len(domains) < (one.min_domains or 1) else min(domains.values())
            itself = compile_label_selector(one.label_selector).matches(self.waiting.labels)
            if domains.get(node.labels[one.topology_key], 0) + itself - least > one.max_skew:
                return FULL
        return Code.SUCCESS

    def scores(self) -> dict[str, int]:
        return {node.name: self.score(node) for node in self.nodes}

    def score(self, node: Node) -> int:
        keys = [one.topology_key for one in self.soft]
        compared = [other for other in self.nodes if all(key in other.labels for key in keys)]
        if node not in compared:
            return 0
        total = 0.0
        for one in self.soft:
            mine = node.labels[one.topology_key]
            if one.topology_key == HOST:
                size, count = len(compared), self.on(node, one)
            else:
                size = len({other.labels[one.topology_key] for other in compared})
                alike = [other for other in self.nodes if self.counts(other, one, keys)]
                count = sum(self.on(other, one) for other in alike if other.labels[one.topology_key] == mine)
            total += count * float(np.log(size + 2)) + (one.max_skew - 1)
        return int(total + 0.5)
