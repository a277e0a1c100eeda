"""What is measured: a cluster, pods that ask for one thing each, and what must be true once they are placed.

A figure without its outcome is worth nothing: whoever skips the work is quickest.  Every workload therefore says
itself what a right placement looks like, and a run that fails its workload has no figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, TypeAlias

from kubesched.api.objects import Node, Pod
from kubesched.testing.builders import HOSTNAME, ZONE, node, pod

ZONES = ("za", "zb", "zc")
PODS_A_NODE = 110
MAX_SKEW = 5
_BLUE = {"matchLabels": {"color": "blue"}}


class Placement(NamedTuple):
    """Where the pods went: pods by the node they are on, and each node's zone."""

    nodes: Sequence[Node]
    pods: Sequence[tuple[Pod, str]]

    def by_node(self) -> Counter[str]:
        """How many pods each node got that got any."""
        return Counter(name for _, name in self.pods)

    def by_zone(self) -> Counter[str]:
        zones = {one.name: one.labels[ZONE] for one in self.nodes}
        return Counter(zones[name] for _, name in self.pods)


Check: TypeAlias = Callable[[Placement], Iterator[str]]


class Workload(NamedTuple):
    """One kind of question.

    `reference` is how many pods a second kube-scheduler v1.36 placed with its own sampling (two shared cores, 5,000
    nodes), `goal` how many times that is aimed at here, with all nodes scored.
    """

    name: str
    about: str
    spec: Callable[[int], Mapping[str, Any]]  # what pod number i adds to the plain one
    check: Check
    reference: int
    goal: float


def nodes_of(count: int) -> list[Node]:
    """Nodes of one size in three zones."""
    return [
        node(
            f"node-{i}",
            cpu=32,
            memory="128Gi",
            pods=PODS_A_NODE,
            zone=ZONES[i % len(ZONES)],
            region="r1",
            labels={HOSTNAME: f"node-{i}", "kubernetes.io/os": "linux"},
            resources={"ephemeral-storage": "100Gi"},
        )
        for i in range(count)
    ]


def pods_of(workload: Workload, count: int) -> list[Pod]:
    """The pods of a workload, in the order they arrive."""
    pods = [_pod(workload, i) for i in range(count)]
    if workload.name == "mixed":
        Random(0).shuffle(pods)
    return pods


def _pod(workload: Workload, i: int) -> Pod:
    plain: dict[str, Any] = {"cpu": "100m", "memory": "500Mi", "labels": {"app": f"app-{i % 10}", "color": "blue"}}
    return pod(f"pod-{i}", **{**plain, **workload.spec(i)})


# ── what a pod may ask ───────────────────────────────────────────────────────────────────────────────────────


def _nothing(i: int) -> Mapping[str, Any]:
    return {}


def _spread(i: int) -> Mapping[str, Any]:
    return _constraint(ZONE, "DoNotSchedule")


def _softspread(i: int) -> Mapping[str, Any]:
    return _constraint(HOSTNAME, "ScheduleAnyway")


def _constraint(key: str, action: str) -> Mapping[str, Any]:
    one = {"maxSkew": MAX_SKEW, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": _BLUE}
    return {"topologySpreadConstraints": [one]}


def _antiaffinity(i: int) -> Mapping[str, Any]:
    return _neighbours("podAntiAffinity", HOSTNAME)


def _affinity(i: int) -> Mapping[str, Any]:
    return _neighbours("podAffinity", ZONE)


def _neighbours(which: str, key: str) -> Mapping[str, Any]:
    term = {"labelSelector": _BLUE, "topologyKey": key}
    return {"affinity": {which: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _prefaffinity(i: int) -> Mapping[str, Any]:
    term = {"weight": 1, "podAffinityTerm": {"labelSelector": _BLUE, "topologyKey": HOSTNAME}}
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _nodeaffinity(i: int) -> Mapping[str, Any]:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["za", "zb"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def _unique(i: int) -> Mapping[str, Any]:
    labels = {"app": f"app-{i % 10}", "color": "blue", "number": str(i)}
    return {"cpu": f"{100 + i}m", "memory": f"{500 + i}Mi", "labels": labels}


_ONE_EACH = (_nothing, _spread, _softspread, _antiaffinity, _affinity, _prefaffinity, _nodeaffinity)


def _mixed(i: int) -> Mapping[str, Any]:
    return _ONE_EACH[i % len(_ONE_EACH)](i)


# ── what must be true afterwards ─────────────────────────────────────────────────────────────────────────────


def _roomy(placed: Placement) -> Iterator[str]:
    fullest, count = placed.by_node().most_common(1)[0]
    if count > PODS_A_NODE:
        yield f"{fullest} holds {count} pods, {PODS_A_NODE} is the most"


def _even_zones(placed: Placement) -> Iterator[str]:
    counts = [placed.by_zone()[zone] for zone in ZONES]
    if max(counts) - min(counts) > MAX_SKEW:
        yield f"the zones hold {counts} pods: they differ by more than {MAX_SKEW}"


def _even_nodes(placed: Placement) -> Iterator[str]:
    counts = placed.by_node().values()
    most, least = max(counts), min(counts) if len(counts) == len(placed.nodes) else 0
    if most - least > MAX_SKEW:
        yield f"a node holds {most} pods and another {least}: they differ by more than {MAX_SKEW}"


def _one_a_node(placed: Placement) -> Iterator[str]:
    fullest, count = placed.by_node().most_common(1)[0]
    if count > 1:
        yield f"{fullest} holds {count} pods that stay away from each other"


def _one_zone(placed: Placement) -> Iterator[str]:
    if len(placed.by_zone()) > 1:
        yield f"pods that belong together are in {len(placed.by_zone())} zones"


def _gathered(placed: Placement) -> Iterator[str]:
    used = len(placed.by_node())
    if len(placed.pods) > 2 and 2 * used > len(placed.pods):
        yield f"{len(placed.pods)} pods that would rather be together are on {used} nodes"


def _allowed_zones(placed: Placement) -> Iterator[str]:
    if strangers := placed.by_zone()["zc"]:
        yield f"{strangers} pods are in zc, which their node affinity rules out"


def _each_its_own(placed: Placement) -> Iterator[str]:
    """Of pods that ask for different things, every one got what it asked for."""
    counts, zones = placed.by_node(), {one.name: one.labels[ZONE] for one in placed.nodes}
    for one, name in placed.pods:
        affinity = one.spec.affinity
        if affinity is not None and affinity.pod_anti_affinity is not None and counts[name] > 1:
            yield f"{one.name} wants {name} for itself and has {counts[name] - 1} neighbours there"
        if affinity is not None and affinity.node_affinity is not None and zones[name] == "zc":
            yield f"{one.name} is in zc, which its node affinity rules out"


# ── the list ─────────────────────────────────────────────────────────────────────────────────────────────────

WORKLOADS = {
    one.name: one
    for one in (
        Workload("basic", "requests, nothing else", _nothing, _roomy, 784, 10),
        Workload("spread", "DoNotSchedule over zones, maxSkew 5", _spread, _even_zones, 436, 7),
        Workload("softspread", "ScheduleAnyway over hosts, maxSkew 5", _softspread, _even_nodes, 731, 10),
        Workload("antiaffinity", "required anti-affinity, hosts", _antiaffinity, _one_a_node, 420, 7),
        Workload("affinity", "required affinity, zones", _affinity, _one_zone, 315, 7),
        Workload("prefaffinity", "preferred affinity, hosts", _prefaffinity, _gathered, 584, 10),
        Workload("nodeaffinity", "required node affinity, two zones", _nodeaffinity, _allowed_zones, 625, 10),
        Workload("mixed", "the seven above in turn, shuffled", _mixed, _each_its_own, 784, 3),
        Workload("unique", "every pod its own requests and labels", _unique, _roomy, 784, 1.5),
    )
}
