"""NodeResourcesFit: does it have room?  And which room would be best."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from kubesched.api.labels import quoted
from kubesched.api.names import check_qualified_name
from kubesched.api.objects import DeviceClass, KubeObject, Node, Pod
from kubesched.api.quantity import is_extended_resource, is_scalar_resource, resource_amount
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, PodInfo, pod_requests
from kubesched.cluster.types import Mask, Scores
from kubesched.framework.cycle import Cycle
from kubesched.framework.errors import ConfigError
from kubesched.framework.events import NODE, POD, Action, Hint, QueueingHint, resource_name
from kubesched.framework.features import Features
from kubesched.framework.hooks import Signature
from kubesched.framework.status import SUCCESS, Code, Status, unschedulable
from kubesched.framework.tools import Tools
from kubesched.framework.vector import Verdict
from kubesched.plugins.dynamic_resources import backed_by_devices, implicit_resource
from kubesched.plugins.resource_scoring import (
    DEFAULT_RESOURCES,
    Demand,
    ResourceSpec,
    demands,
    load,
    load_all,
    scoring_requests,
    signed_requests,
)
from kubesched.plugins.scoring_strategy import (
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
    Strategy,
    UtilizationShapePoint,
    mean_score,
    mean_scores,
    validate_shape,
)

TOO_MANY_PODS = "Too many pods"

_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


# ── arguments ────────────────────────────────────────────────────────────────────────────────────────────────


class RequestedToCapacityRatioParam(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How nodes with room are told apart.

    Args:
        type: LeastAllocated spreads, MostAllocated packs, RequestedToCapacityRatio does as its shape says.
        resources: which resources count, and how much; cpu and memory alike if none is named.
    """

    type: str = _STRATEGIES[0]
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None

    def __post_init__(self) -> None:
        if not self.resources:
            force_setattr(self, "resources", DEFAULT_RESOURCES)


class NodeResourcesFitArgs(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of NodeResourcesFit.

    Args:
        ignored_resources: extended resources that somebody else looks after.
        ignored_resource_groups: as above, all of a group: `example.com` for example.com/gpu and example.com/nic.
    """

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


def validate_node_resources_fit(args: NodeResourcesFitArgs) -> Iterator[tuple[str, str]]:
    """What is wrong with the arguments, as (path, message)."""
    for at, name in enumerate(args.ignored_resources):
        yield from _name_faults(f"ignoredResources[{at}]", name)
    for at, group in enumerate(args.ignored_resource_groups):
        path = f"ignoredResourceGroups[{at}]"
        if "/" in group:
            yield path, f"Invalid value: {quoted(group)}: resource group name can't contain '/'"
        yield from _name_faults(path, group)
    yield from _strategy_faults(args.scoring_strategy)


def _name_faults(path: str, name: str) -> Iterator[tuple[str, str]]:
    for fault in (check_qualified_name(name) or "").split("; "):
        if fault:
            yield path, f"Invalid value: {quoted(name)}: {fault}"


def _strategy_faults(strategy: ScoringStrategy) -> Iterator[tuple[str, str]]:
    if strategy.type not in _STRATEGIES:
        supported = ", ".join(map(quoted, _STRATEGIES))
        yield "scoringStrategy.type", f"Unsupported value: {quoted(strategy.type)}: supported values: {supported}"
    for at, spec in enumerate(strategy.resources):
        if not 0 < spec.weight <= 100:
            message = f"Invalid value: {spec.weight}: resource weight of {spec.name} not in valid range (0, 100]"
            yield f"scoringStrategy.resources[{at}].weight", message
    path, ratio = "scoringStrategy.requestedToCapacityRatio", strategy.requested_to_capacity_ratio
    if strategy.type == "RequestedToCapacityRatio":
        if ratio is None:
            yield path, "Required value: must be specified when type is RequestedToCapacityRatio"
        else:
            yield from validate_shape(ratio.shape, f"{path}.shape")
    elif ratio is not None:
        yield path, "Forbidden: must be nil when type is not RequestedToCapacityRatio"


def _strategy(args: NodeResourcesFitArgs) -> Strategy:
    """Kept from kube-scheduler: these arguments are checked when the plugin is made, too."""
    for path, message in validate_node_resources_fit(args):
        raise ConfigError(path, message)
    ratio = args.scoring_strategy.requested_to_capacity_ratio
    if ratio is not None:
        return RequestedToCapacityRatio(ratio.shape)
    return LeastAllocated() if args.scoring_strategy.type == "LeastAllocated" else MostAllocated()


# ── the plugin ───────────────────────────────────────────────────────────────────────────────────────────────


class _Wanted(Struct, frozen=True):
    """What a node must have free, in the order reasons are given; and what devices may provide instead."""

    amounts: tuple[tuple[str, int], ...]
    devices: frozenset[str] = frozenset()


class _Demands(Struct, frozen=True):
    """What the score looks at."""

    each: tuple[Demand, ...]


class NodeResourcesFit:
    """Keep pods off nodes that have no room for them, and choose among those that have.

    What it does:  rejects nodes where the pod's requests, added to those of the pods there, exceed what the node
                   can give, or where one more pod is one too many; scores by how full the node would be.
    Answers:       Unschedulable, `Insufficient <resource>` for each that lacks; UnschedulableAndUnresolvable if
                   the pod asks for more than the whole node.
    Wakes on:      a placed pod deleted or scaled down; Node added or its allocatable changed, if the pod would
                   fit the empty node; a DeviceClass for a resource the pod asks for.
    Tiers:         filter, filter_all, score, score_all.
    Same as:       kube-scheduler NodeResourcesFit, v1.36.
    """

    name = "NodeResourcesFit"
    reads = (DeviceClass,)
    board: Literal["node", "row"] = "row"

    def __init__(self, args: NodeResourcesFitArgs | None = None, tools: Tools | None = None) -> None:
        self.args = args or NodeResourcesFitArgs()
        self.tools = tools
        self._strategy = _strategy(self.args)
        self._device_classes = (tools.features if tools is not None else Features()).dra_extended_resource

    # ── filter ───────────────────────────────────────────────────────────────────────────────────────────────

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        cycle.put(self._wanted(pod, cycle.objects))
        return SUCCESS

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        wanted = cycle.find(_Wanted) or self._wanted(pod, cycle.objects)
        reasons: list[str] = []
        hopeless = False
        if node.pod_count + 1 > node.pods_allowed:
            reasons.append(TOO_MANY_PODS)
        for resource, amount in wanted.amounts:
            taken, capacity = node.room(resource)
            if resource in wanted.devices and capacity <= 0:
                continue
            if amount > capacity - taken:
                reasons.append(_insufficient(resource))
                hopeless = hopeless or amount > capacity
        return _no(reasons, hopeless) if reasons else SUCCESS

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        wanted = cycle.find(_Wanted) or self._wanted(pod, cycle.objects)
        verdict = Verdict(len(nodes))
        verdict.reject(nodes.pod_count + 1 > nodes.pods_allowed, TOO_MANY_PODS)
        for resource, amount in wanted.amounts:
            capacity = nodes.capacity(resource)
            lacking: Mask = amount > capacity - nodes.taken(resource)
            if resource in wanted.devices:
                lacking = lacking & (capacity > 0)
            verdict.reject(lacking, _insufficient(resource), unresolvable=amount > capacity)
        return verdict

    def spare(
        self, cycle: Cycle, pod: PodInfo, node: NodeInfo, others: Sequence[PodInfo]
    ) -> Sequence[PodInfo] | Status:
        wanted = cycle.find(_Wanted) or self._wanted(pod, cycle.objects)
        places = node.pods_allowed - (node.pod_count - len(others)) - 1
        reasons = [TOO_MANY_PODS] if places < 0 else []
        hopeless = False
        left: dict[str, int] = {}
        for resource, amount in wanted.amounts:
            capacity = node.allocatable(resource)
            if resource in wanted.devices and capacity <= 0:
                continue
            taken = node.requested(resource) - sum([other.usage.get(resource, 0) for other in others])
            left[resource] = capacity - taken - amount
            if left[resource] < 0:
                reasons.append(_insufficient(resource))
                hopeless = hopeless or amount > capacity
        return _bring_back(others, places, left) if not reasons else _no(reasons, hopeless)

    def _wanted(self, pod: PodInfo, objects: Objects | None) -> _Wanted:
        requests = pod.requests
        basic = [(name, requests[name]) for name in (CPU, MEMORY, EPHEMERAL_STORAGE) if requests.get(name, 0) > 0]
        scalars = [
            (name, amount)
            for name, amount in requests.items()
            if amount > 0 and name not in (CPU, MEMORY, EPHEMERAL_STORAGE) and not self._ignores(name)
        ]
        devices: frozenset[str] = frozenset()
        if scalars and objects is not None and self._device_classes:
            devices = backed_by_devices(objects, (name for name, _ in scalars))
        return _Wanted(tuple(basic + scalars), devices)

    def _ignores(self, resource: str) -> bool:
        if not is_extended_resource(resource):
            return False
        group = resource.partition("/")[0]
        return resource in self.args.ignored_resources or group in self.args.ignored_resource_groups

    # ── score ────────────────────────────────────────────────────────────────────────────────────────────────

    def pre_score(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        cycle.put(self._demands(pod))
        return SUCCESS

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        wanted = cycle.find(_Demands) or self._demands(pod)
        return mean_score(self._strategy, [load(node, demand, guessed=True) for demand in wanted.each])

    def score_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Scores:
        wanted = cycle.find(_Demands) or self._demands(pod)
        loads = (load_all(nodes, demand, guessed=True) for demand in wanted.each)
        return mean_scores(self._strategy, len(nodes), loads)

    def _demands(self, pod: PodInfo) -> _Demands:
        return _Demands(demands(self.args.scoring_strategy.resources, scoring_requests(pod)))

    # ── hints ────────────────────────────────────────────────────────────────────────────────────────────────

    def events_to_register(self) -> Sequence[Hint]:
        hints = (
            Hint(POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, self._after_pod_change),
            Hint(NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, self._after_node_change),
        )
        if not self._device_classes:
            return hints
        return (*hints, Hint(resource_name(DeviceClass), Action.ADD | Action.UPDATE, self._after_device_class_change))

    def _after_pod_change(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        if new is None:
            held_room = isinstance(old, Pod) and (old.spec.node_name or old.status.nominated_node_name)
            return QueueingHint.QUEUE if held_room else QueueingHint.SKIP
        if new.uid == pod.uid:
            return QueueingHint.QUEUE
        if not isinstance(old, Pod) or not isinstance(new, Pod) or not new.spec.node_name:
            return QueueingHint.SKIP
        before, after = pod_requests(old, status=True), pod_requests(new, status=True)
        wanted = (name for name, amount in pod.usage.items() if amount)
        freed = any(before.get(name, 0) > after.get(name, 0) for name in wanted)
        return QueueingHint.QUEUE if freed else QueueingHint.SKIP

    def _after_node_change(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        if not isinstance(new, Node):
            return QueueingHint.SKIP
        # kube-scheduler forgets here which resources it ignores, and sleeps when such a node is large enough.
        wanted = self._wanted(pod, _objects_of(self.tools))
        after = _allocatable(new)
        if not _fits_empty(wanted, after):
            return QueueingHint.SKIP
        if not isinstance(old, Node) or _gained(wanted, _allocatable(old), after):
            return QueueingHint.QUEUE
        return QueueingHint.SKIP

    def _after_device_class_change(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        if not isinstance(new, DeviceClass):
            return QueueingHint.SKIP
        resource = new.spec.extended_resource_name
        if isinstance(old, DeviceClass):
            helps = resource != old.spec.extended_resource_name and resource in pod.requests
        else:
            helps = resource in pod.requests or implicit_resource(new) in pod.requests
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP

    def context(self, cycle: Cycle) -> Hashable:
        return cycle.objects.changed(DeviceClass)

    def alike(self, cycle: Cycle, pod: PodInfo) -> Hashable | None:
        scalars = any(is_scalar_resource(name) for name, amount in pod.requests.items() if amount > 0)
        return None if scalars and cycle.objects.any(DeviceClass) else signed_requests(pod)

    def sign_pod(self, pod: PodInfo) -> Signature | Status:
        objects = _objects_of(self.tools)
        if objects is not None and self._wanted(pod, objects).devices:
            return unschedulable("signature disabled when dra extended resources are used in the cluster")
        return (signed_requests(pod),)


def _no(reasons: Sequence[str], hopeless: bool) -> Status:
    return Status(Code.UNRESOLVABLE, tuple(reasons)) if hopeless else unschedulable(*reasons)


def _bring_back(others: Sequence[PodInfo], places: int, left: dict[str, int]) -> list[PodInfo]:
    """Let pods come back, one by one, where they find a place and enough of everything; returns the others."""
    gone: list[PodInfo] = []
    for other in others:
        usage = other.usage
        after = {resource: amount - usage.get(resource, 0) for resource, amount in left.items()}
        if not places or min(after.values(), default=0) < 0:
            gone.append(other)
        else:
            places, left = places - 1, after
    return gone


def _insufficient(resource: str) -> str:
    return f"Insufficient {resource}"


def _objects_of(tools: Tools | None) -> Objects | None:
    """The cluster's other objects, where there is a cluster."""
    return tools.objects if tools is not None and tools.attached else None


def _allocatable(node: Node) -> dict[str, int]:
    return {name: resource_amount(name, quantity) for name, quantity in node.status.allocatable.items()}


def _fits_empty(wanted: _Wanted, capacity: Mapping[str, int]) -> bool:
    """Whether the pod would fit if nothing else were on the node."""
    if capacity.get(PODS, 0) < 1:
        return False
    return all(
        amount <= capacity.get(resource, 0) or (resource in wanted.devices and capacity.get(resource, 0) <= 0)
        for resource, amount in wanted.amounts
    )


def _gained(wanted: _Wanted, before: Mapping[str, int], after: Mapping[str, int]) -> bool:
    """Whether the node can give more of something the pod needs than it could."""
    if wanted.devices:
        return True
    needed = (PODS, *(resource for resource, _ in wanted.amounts))
    return any(after.get(resource, 0) > before.get(resource, 0) for resource in needed)
