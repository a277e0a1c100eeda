"""What must hold of the small plugins whatever the cluster: tiers agree, signatures are honest, hints miss nothing."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from hypothesis import given, note
from hypothesis import strategies as st
from tests.plugins.small_cluster import Cluster, raw_scores, wakes_on_any
from tests.plugins.small_cluster import node as make_node

from kubesched.api.objects import DeviceClass, Node, Pod, read
from kubesched.cluster.columns import Nodes
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.events import ASSIGNED_POD_DELETE, NODE, Action, ClusterEvent, node_changes
from kubesched.framework.hooks import NodeSubset
from kubesched.framework.status import SKIP, Status
from kubesched.plugins.dynamic_resources import DynamicResources
from kubesched.plugins.image_locality import ImageLocality
from kubesched.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from kubesched.plugins.node_declared_features import NodeDeclaredFeatures
from kubesched.plugins.node_name import NodeName
from kubesched.plugins.node_ports import NodePorts
from kubesched.plugins.node_resources_balanced import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from kubesched.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from kubesched.plugins.node_unschedulable import NodeUnschedulable
from kubesched.plugins.taint_toleration import TaintToleration

# ── random clusters, small enough that things happen to meet ─────────────────────────────────────────────────

NAMES = ("n1", "n2", "n3", "n4")
RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi", "unheard-of")
FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")
IMAGES = ("web:1", "web:latest", "db:2")

amounts = st.sampled_from((0, 1, 2, 3, 5, 8, "1500m"))
resources = st.dictionaries(st.sampled_from(RESOURCES), amounts, max_size=4)
labels = st.dictionaries(st.sampled_from("ab"), st.sampled_from(("", "1", "2", "x")))
effects = st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule"))
taints = st.fixed_dictionaries({"key": st.sampled_from("kl"), "value": st.sampled_from(("", "v")), "effect": effects})
tolerations = st.fixed_dictionaries(
    {
        "key": st.sampled_from(("", "k", "l", "node.kubernetes.io/unschedulable")),
        "operator": st.sampled_from(("", "Equal", "Exists", "Gt")),
        "value": st.sampled_from(("", "v")),
        "effect": st.one_of(st.just(""), effects),
    }
)
requirements = st.fixed_dictionaries(
    {
        "key": st.sampled_from("abc"),
        "operator": st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near")),
        "values": st.lists(st.sampled_from(("1", "2", "x")), max_size=2),
    }
)
fields = st.fixed_dictionaries(
    {
        "key": st.sampled_from(("metadata.name", "metadata.name", "spec.other")),
        "operator": st.sampled_from(("In", "NotIn")),
        "values": st.lists(st.sampled_from((*NAMES, "")), min_size=1, max_size=1),
    }
)
terms = st.fixed_dictionaries(
    {"matchExpressions": st.lists(requirements, max_size=2), "matchFields": st.lists(fields, max_size=2)}
)
readable_terms = st.fixed_dictionaries({"matchFields": st.lists(fields, max_size=2)})
ports = st.fixed_dictionaries(
    {
        "hostPort": st.sampled_from((0, 80, 81)),
        "hostIP": st.sampled_from(("", "10.0.0.1", "10.0.0.2")),
        "protocol": st.sampled_from(("", "UDP")),
    }
)
containers = st.fixed_dictionaries(
    {"name": st.just("c"), "image": st.sampled_from(("web", "web:1", "db:2", "other"))},
    optional={
        "resources": st.fixed_dictionaries({"requests": resources}),
        "ports": st.lists(ports, max_size=2),
        "restartPolicy": st.just("Always"),
        "restartPolicyRules": st.just([{"action": "RestartAllContainers"}]),
    },
)


@st.composite
def node_affinities(draw: st.DrawFn) -> dict[str, Any]:
    affinity: dict[str, Any] = {}
    if draw(st.booleans()):
        chosen = draw(st.lists(terms, max_size=2))
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": chosen}
    if draw(st.booleans()):
        weighted = st.fixed_dictionaries({"weight": st.integers(0, 100), "preference": readable_terms})
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = draw(st.lists(weighted, max_size=2))
    return affinity


specs = st.fixed_dictionaries(
    {"containers": st.lists(containers, min_size=1, max_size=2)},
    optional={
        "initContainers": st.lists(containers, max_size=2),
        "nodeName": st.sampled_from(("", "n1", "elsewhere")),
        "nodeSelector": labels,
        "affinity": st.fixed_dictionaries({"nodeAffinity": node_affinities()}),
        "tolerations": st.lists(tolerations, max_size=3),
        "overhead": resources,
        "resources": st.fixed_dictionaries({"requests": resources}),
        "hostNetwork": st.booleans(),
        "hostUsers": st.booleans(),
    },
)


def pod_of(spec: dict[str, Any], name: str = "p", on: str | None = None) -> Pod:
    placed = spec if on is None else {**spec, "nodeName": on}
    return read({"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": placed}, Pod)


pods = specs.map(pod_of)


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    return make_node(
        name,
        allocatable={"pods": draw(st.sampled_from((0, 1, 2, 9))), **draw(resources)},
        labels=draw(labels),
        taints=draw(st.lists(taints, max_size=2)),
        unschedulable=draw(st.booleans()),
        images=draw(st.dictionaries(st.sampled_from(IMAGES), st.sampled_from((1, 50 << 20, 900 << 20, 5 << 30)))),
        features=draw(st.lists(st.sampled_from(FEATURES), unique=True)),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    cluster = Cluster(*(draw(nodes(name)) for name in names))
    for index, spec in enumerate(draw(st.lists(specs, max_size=4))):
        cluster.mirror.observe(pod_of(spec, f"there-{index}", on=draw(st.sampled_from((*names, "unknown")))))
    if draw(st.booleans()):
        spec = {"extendedResourceName": "example.com/gpu"}
        cluster.mirror.observe(read({"metadata": {"name": "gpus", "uid": "gpus"}, "spec": spec}, DeviceClass))
    for name in draw(st.lists(st.sampled_from(names), unique=True, max_size=1)):
        cluster.mirror.observe(draw(nodes(name)))  # seen again, changed: values nobody has any more stay behind
    return cluster


# ── the plugins, with and without arguments ──────────────────────────────────────────────────────────────────

Maker = Callable[[], Any]


def added_affinity() -> NodeAffinity:
    in_1 = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}
    added = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [in_1]},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": in_1}],
    }
    return NodeAffinity(msgspec.convert({"addedAffinity": added}, NodeAffinityArgs))


def fit(kind: str, ignored: tuple[str, ...] = (), **more: Any) -> NodeResourcesFit:
    chosen = [{"name": name, "weight": weight} for weight, name in enumerate(RESOURCES, 1)]
    strategy = {"type": kind, "resources": chosen, **more}
    return NodeResourcesFit(
        msgspec.convert({"ignoredResources": ignored, "scoringStrategy": strategy}, NodeResourcesFitArgs)
    )


def shaped() -> NodeResourcesFit:
    points = [{"utilization": 0, "score": 9}, {"utilization": 40, "score": 0}, {"utilization": 90, "score": 7}]
    return fit("RequestedToCapacityRatio", requestedToCapacityRatio={"shape": points})


def balanced() -> NodeResourcesBalancedAllocation:
    chosen = {"resources": [{"name": name} for name in RESOURCES]}
    return NodeResourcesBalancedAllocation(msgspec.convert(chosen, NodeResourcesBalancedAllocationArgs))


FILTERS: dict[str, Maker] = {
    "NodeUnschedulable": NodeUnschedulable,
    "NodeName": NodeName,
    "TaintToleration": TaintToleration,
    "NodeAffinity": NodeAffinity,
    "NodeAffinity, added": added_affinity,
    "NodePorts": NodePorts,
    "NodeResourcesFit": NodeResourcesFit,
    "NodeResourcesFit, ignoring": lambda: fit("LeastAllocated", ("example.com/gpu",)),
    "DynamicResources": DynamicResources,
    "NodeDeclaredFeatures": NodeDeclaredFeatures,
}
SCORERS: dict[str, Maker] = {
    "TaintToleration": TaintToleration,
    "NodeAffinity": NodeAffinity,
    "NodeAffinity, added": added_affinity,
    "NodeResourcesFit": NodeResourcesFit,
    "NodeResourcesFit, least": lambda: fit("LeastAllocated"),
    "NodeResourcesFit, most": lambda: fit("MostAllocated"),
    "NodeResourcesFit, shape": shaped,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
    "NodeResourcesBalancedAllocation, all": balanced,
    "ImageLocality": ImageLocality,
}


def scores(plugin: Any, cluster: Cluster, pod: Pod, chosen: Nodes) -> list[int] | Status:
    """Raw scores, both tiers having said the same; or why there are none."""
    cycle = cluster.cycle(pod)
    if hasattr(plugin, "pre_score"):
        before: Status = plugin.pre_score(cycle, cycle.pod, chosen)
        if not before.ok:
            return before
    found: list[int] = raw_scores(plugin, cycle, chosen).tolist()
    return found


# ── tiers agree ──────────────────────────────────────────────────────────────────────────────────────────────


def shuffled(cluster: Cluster, data: st.DataObject) -> Nodes:
    """Some of the nodes, in any order."""
    rows = data.draw(st.permutations(cluster.nodes.rows.tolist()))
    return Nodes(cluster.mirror.table, np.array(rows[: data.draw(st.integers(0, len(rows)))], dtype=np.int32))


@given(cluster=clusters(), pod=pods, data=st.data())
def test_a_plugin_says_the_same_of_one_node_and_of_all(cluster: Cluster, pod: Pod, data: st.DataObject) -> None:
    chosen = shuffled(cluster, data)
    for name, make in FILTERS.items():
        note(name)
        cluster.filter(make(), pod, chosen)  # compares the tiers
    for name, make in SCORERS.items():
        note(name)
        scores(make(), cluster, pod, chosen)  # compares the tiers


@given(cluster=clusters(), pod=pods)
def test_scores_end_between_0_and_100(cluster: Cluster, pod: Pod) -> None:
    for name, make in SCORERS.items():
        note(name)
        found = cluster.scores(make(), pod).values()
        assert all(0 <= score <= 100 for score in found)


@given(cluster=clusters(), pod=pods)
def test_the_nodes_left_out_by_name_would_have_been_turned_down(cluster: Cluster, pod: Pod) -> None:
    cycle = cluster.cycle(pod)
    before = NodeAffinity().pre_filter(cycle, cycle.pod, cycle.nodes)
    allowed = {node.name for node in cycle.nodes if NodeAffinity().filter(cycle, cycle.pod, node).ok}
    if isinstance(before, NodeSubset):
        assert allowed <= before.names
    elif not before.ok and before is not SKIP:
        assert not allowed


# ── pods that are signed alike are answered alike ────────────────────────────────────────────────────────────

PARTS = ("containers", "initContainers", "nodeName", "nodeSelector", "affinity", "tolerations", "overhead", "resources")


@given(cluster=clusters(), spec=specs, other=specs, part=st.sampled_from((*PARTS, "hostNetwork", "hostUsers")))
def test_pods_that_are_answered_differently_are_signed_differently(
    cluster: Cluster, spec: dict[str, Any], other: dict[str, Any], part: str
) -> None:
    changed = {key: value for key, value in spec.items() if key != part or key == "containers"}
    changed.update({part: other[part]} if part in other else {})
    one, two = pod_of(spec), pod_of(changed, "q")
    for name, make in (FILTERS | SCORERS).items():
        note(name)
        plugin = make()
        signed = [plugin.sign_pod(PodInfo(pod)) for pod in (one, two)]
        hash(signed[0])
        if _answers(plugin, cluster, one) != _answers(plugin, cluster, two):
            assert signed[0] != signed[1]


def _answers(plugin: Any, cluster: Cluster, pod: Pod) -> tuple[Any, Any]:
    filtered = cluster.filter(plugin, pod) if hasattr(plugin, "filter") else None
    return filtered, scores(plugin, cluster, pod, cluster.nodes) if hasattr(plugin, "score") else None


@given(spec=specs, data=st.data())
def test_the_order_of_what_has_no_order_does_not_sign(spec: dict[str, Any], data: st.DataObject) -> None:
    turned = {**spec}
    for key in ("tolerations", "containers"):
        turned[key] = data.draw(st.permutations(spec.get(key, [])))
    for name, make in (FILTERS | SCORERS).items():
        note(name)
        assert make().sign_pod(PodInfo(pod_of(spec))) == make().sign_pod(PodInfo(pod_of(turned, "q")))


# ── hints miss nothing ───────────────────────────────────────────────────────────────────────────────────────


@given(old=nodes("n1"), new=nodes("n1"), pod=pods, there=st.lists(specs, max_size=2))
def test_a_pod_is_woken_when_a_node_starts_to_fit(old: Node, new: Node, pod: Pod, there: list[dict[str, Any]]) -> None:
    """A node that changes in several ways at once is told of in several events; one of them must wake."""
    placed = [pod_of(spec, f"there-{index}", on="n1") for index, spec in enumerate(there)]
    for name, make in FILTERS.items():
        note(name)
        plugin = make()
        if _fits(plugin, Cluster(new, *placed), pod) and not _fits(plugin, Cluster(old, *placed), pod):
            assert wakes_on_any(plugin, node_changes(old, new), pod, old, new)


@given(elsewhere=nodes("n2"), new=nodes("n1"), pod=pods)
def test_a_pod_that_was_turned_down_is_woken_by_a_new_node_that_fits(elsewhere: Node, new: Node, pod: Pod) -> None:
    for name, make in FILTERS.items():
        note(name)
        plugin = make()
        if _fits(plugin, Cluster(new), pod) and not _fits(plugin, Cluster(elsewhere), pod):
            assert wakes_on_any(plugin, [ClusterEvent(NODE, Action.ADD)], pod, None, new)


@given(node=nodes("n1"), gone=specs, pod=pods, stays=st.lists(specs, max_size=1))
def test_a_pod_is_woken_when_another_makes_room(
    node: Node, gone: dict[str, Any], pod: Pod, stays: list[dict[str, Any]]
) -> None:
    leaving = pod_of(gone, "leaving", on="n1")
    placed = [pod_of(spec, f"there-{index}", on="n1") for index, spec in enumerate(stays)]
    for name, make in FILTERS.items():
        note(name)
        plugin = make()
        before, after = (_fits(plugin, Cluster(node, *there), pod) for there in ([*placed, leaving], placed))
        if after and not before:
            assert wakes_on_any(plugin, [ASSIGNED_POD_DELETE], pod, leaving, None)


def _fits(plugin: Any, cluster: Cluster, pod: Pod) -> bool:
    [status] = cluster.filter(plugin, pod).values()
    return status.ok
