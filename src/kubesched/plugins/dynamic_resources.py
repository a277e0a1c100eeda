"""DynamicResources: devices that are claimed, and a plain word where they cannot be had.

kubesched does not allocate devices yet.  This plugin sees to it that a pod that needs one is not placed as if it
did not, and that its operator is told what to do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from kubesched.api.labels import quoted
from kubesched.api.objects import DeviceClass, KubeObject
from kubesched.api.quantity import is_scalar_resource
from kubesched.api.time import parse_duration, seconds
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.types import Mask, Scores
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Rejected
from kubesched.framework.events import NODE, Action, Hint, QueueingHint, resource_name
from kubesched.framework.features import Features
from kubesched.framework.hooks import Signature
from kubesched.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from kubesched.framework.tools import Tools
from kubesched.framework.vector import Verdict
from kubesched.plugins.normalize import default_normalize

CLAIMS = (
    "resource claims (spec.resourceClaims) are not supported by this version of kubesched: "
    "remove them from the pod, or set its spec.schedulerName to a scheduler that allocates devices"
)
_NO_CLAIMS = unresolvable(CLAIMS)


def no_device(resource: str) -> str:
    return f"{resource} stands for devices of a DeviceClass, which this version of kubesched does not allocate"


class DynamicResourcesArgs(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of DynamicResources, so that configurations that have them can be read."""

    filter_timeout: str = "10s"
    binding_timeout: str = "10m0s"  # as Go spells it


def validate_dynamic_resources(args: DynamicResourcesArgs) -> Iterator[tuple[str, str]]:
    """What is wrong with the arguments, as (path, message)."""
    for path, text, least, message in (
        ("filterTimeout", args.filter_timeout, 0, "must be zero or positive"),
        ("bindingTimeout", args.binding_timeout, seconds(1), "must be at least 1 second"),
    ):
        try:
            if parse_duration(text) < least:
                yield path, f"Invalid value: {quoted(text)}: {message}"
        except ValueError as error:
            yield path, f"Invalid value: {quoted(text)}: {error}"


class _Needs(Struct, frozen=True):
    """What a pod asks for that only devices can give."""

    claims: bool = False
    resources: tuple[str, ...] = ()


class DynamicResources:
    """Turn down, in plain words, pods that need devices to be allocated.

    What it does:  rejects pods with spec.resourceClaims; and, for pods that request an extended resource which a
                   DeviceClass stands for, nodes that do not offer that resource themselves.
    Answers:       UnschedulableAndUnresolvable.
    Wakes on:      Node added or its allocatable changed, DeviceClass changed; never for a pod with claims.
    Tiers:         filter, filter_all, score, score_all.
    Same as:       kube-scheduler DynamicResources, v1.36, for pods without claims.
    """

    name = "DynamicResources"
    reads = (DeviceClass,)
    board: Literal["node", "row"] = "node"

    def __init__(self, args: DynamicResourcesArgs | None = None, tools: Tools | None = None) -> None:
        self.args = args or DynamicResourcesArgs()
        self.tools = tools
        self._extended = (tools.features if tools is not None else Features()).dra_extended_resource

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return SUCCESS

    # ── filter ───────────────────────────────────────────────────────────────────────────────────────────────

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        needs = self._needs(pod, cycle.objects)
        cycle.put(needs)
        if needs.claims:
            return _NO_CLAIMS
        return SUCCESS if needs.resources else SKIP

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        lacking = (name for name in self._resources(cycle, pod) if node.allocatable(name) <= 0)
        resource = next(lacking, None)
        return SUCCESS if resource is None else unresolvable(no_device(resource))

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        for resource in self._resources(cycle, pod):
            lacking: Mask = nodes.capacity(resource) <= 0
            verdict.reject(verdict.ok & lacking, no_device(resource), unresolvable=True)
        return verdict

    def post_filter(self, cycle: Cycle, pod: PodInfo, rejected: Rejected) -> Status:
        # Kept from kube-scheduler: where an earlier pre_filter ended the attempt, nothing was written and this
        # raises; the attempt then ends in an error instead of going on to preemption.
        needs = cycle.get(_Needs)
        return unschedulable("still not schedulable" if needs.claims else "no new claims to deallocate")

    def _resources(self, cycle: Cycle, pod: PodInfo) -> tuple[str, ...]:
        return (cycle.find(_Needs) or self._needs(pod, cycle.objects)).resources

    def _needs(self, pod: PodInfo, objects: Objects) -> _Needs:
        wanted = [name for name, amount in pod.requests.items() if amount > 0 and is_scalar_resource(name)]
        backed = backed_by_devices(objects, wanted) if wanted and self._extended else frozenset()
        return _Needs(bool(pod.pod.spec.resource_claims), tuple(name for name in wanted if name in backed))

    # ── the points where allocated devices would count ───────────────────────────────────────────────────────

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        return 0

    def score_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Scores:
        return np.zeros(len(nodes), dtype=np.int64)

    def normalize_score(self, cycle: Cycle, pod: PodInfo, scores: Scores) -> Scores:
        return default_normalize(scores)

    def by_value(self, cycle: Cycle, pod: PodInfo) -> bool:
        return True

    def reserve(self, cycle: Cycle, pod: PodInfo, node: str) -> Status:
        return SUCCESS

    def unreserve(self, cycle: Cycle, pod: PodInfo, node: str) -> None:
        pass

    def pre_bind(self, cycle: Cycle, pod: PodInfo, node: str) -> Status:
        return SUCCESS

    # ── hints ────────────────────────────────────────────────────────────────────────────────────────────────

    def events_to_register(self) -> Sequence[Hint]:
        return (
            Hint(NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, self._unless_claims),
            Hint(resource_name(DeviceClass), Action.ADD | Action.UPDATE | Action.DELETE, self._unless_claims),
        )

    def _unless_claims(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        return QueueingHint.SKIP if pod.pod.spec.resource_claims else QueueingHint.QUEUE

    def sign_pod(self, pod: PodInfo) -> Signature | Status:
        if pod.pod.spec.resource_claims:
            return unschedulable("pods with dra resource claims are not signable")
        scalars = (name for name, amount in pod.requests.items() if amount > 0 and is_scalar_resource(name))
        return (("v1.Pod.Spec.DynamicResources", tuple(sorted(scalars))),)

    def outlook(self, cycle: Cycle, pod: PodInfo) -> Hashable:
        """Which resources stand for devices."""
        return cycle.objects.changed(DeviceClass)


# ── extended resources that stand for devices ────────────────────────────────────────────────────────────────


def implicit_resource(device_class: DeviceClass) -> str:
    """The extended resource every DeviceClass stands for, whatever else it says."""
    return f"deviceclass.resource.kubernetes.io/{device_class.name}"


def backed_by_devices(objects: Objects, resources: Iterable[str]) -> frozenset[str]:
    """Those of the resources which a DeviceClass stands for."""
    wanted = dict.fromkeys(resources)
    backed: list[str] = []
    for device_class in objects.all(DeviceClass):
        names = (device_class.spec.extended_resource_name, implicit_resource(device_class))
        backed += (name for name in names if name is not None and name in wanted)
    return frozenset(backed)
