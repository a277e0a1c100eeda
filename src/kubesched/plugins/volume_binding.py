"""VolumeBinding: a pod goes where its claims can be met, and its claims are met where it goes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from kubesched.api.labels import quoted
from kubesched.api.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    KubeObject,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    Volume,
)
from kubesched.api.time import seconds
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, Action, Hint, QueueingHint, resource_name
from kubesched.framework.features import Features
from kubesched.framework.hooks import Signature, Write
from kubesched.framework.status import SKIP, SUCCESS, Status, error, unresolvable
from kubesched.framework.steps import Steps
from kubesched.framework.tools import Tools
from kubesched.framework.vector import Verdict
from kubesched.plugins.csi_migration import MIGRATED_PLUGINS
from kubesched.plugins.scoring_strategy import UtilizationShapePoint, broken_linear, validate_shape
from kubesched.plugins.volume_claiming import Claiming
from kubesched.plugins.volume_search import Found, Search, missing_node, volume_limit
from kubesched.plugins.volumes import (
    VolumeProblem,
    after_claim_change,
    alike_volumes,
    claim_name,
    claim_names,
    claim_not_found,
    class_of,
    find_claim,
    is_fully_bound,
    not_owned,
    requested_storage,
    sign_volumes,
    storage_of,
    waits_for_pod,
)

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
_SHAPE = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=0))
_FULL = 100


class VolumeBindingArgs(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of VolumeBinding.

    Args:
        bind_timeout_seconds: how long a placed pod waits for its volumes before it is tried again.
        shape: from how much of a node's storage would be used to a score of 0 to 10; only with the feature gate
            StorageCapacityScoring, and the emptier the better where not given.
    """

    bind_timeout_seconds: int = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


def validate_volume_binding(args: VolumeBindingArgs, features: Features | None = None) -> Iterator[tuple[str, str]]:
    """What is wrong with the arguments, as (path, message)."""
    if args.bind_timeout_seconds < 0:
        problem = "invalid BindTimeoutSeconds, should not be a negative value"
        yield "bindTimeoutSeconds", f"Invalid value: {args.bind_timeout_seconds}: {problem}"
    if args.shape is None:
        return
    if (features or Features()).storage_capacity_scoring:
        yield from validate_shape(args.shape, "shape")
    else:
        problem = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        points = [f"{point.utilization}→{point.score}" for point in args.shape]
        yield "shape", f"Invalid value: [{', '.join(points)}]: {problem}"


class VolumeBinding:
    """Place a pod where all its persistent volume claims can be met, and have them bound there.

    What it does:  rejects nodes from which a bound volume cannot be reached, and nodes where a claim that waits
                   for its pod finds neither a free volume (the smallest that serves it) nor a provisioner that
                   can make one there.  When a node is chosen it marks the volume, or tells the provisioner the
                   node, and lets the pod be bound only after its claims are.  With the feature gate
                   StorageCapacityScoring it scores nodes by how much of their storage would be used.
    Answers:       UnschedulableAndUnresolvable — evicting pods frees no volume.
    Wakes on:      StorageClass added or its allowed topologies changed; a claim of the pod or any volume
                   appears or changes; Node added or its labels changed; CSINode added or plugins migrated;
                   a CSIDriver stops telling capacity; a CSIStorageCapacity appears or grows.
    Tiers:         filter, filter_all, score.
    Same as:       kube-scheduler VolumeBinding, v1.36, but that a pod whose volumes are bound at once need not
                   wait a second for someone to look.
    """

    name = "VolumeBinding"
    reads = (PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode, CSIDriver, CSIStorageCapacity)
    writes = (Write("patch", PersistentVolumeClaim), Write("patch", PersistentVolume))
    board: Literal["node", "row"] = "node"

    def __init__(self, args: VolumeBindingArgs | None = None, tools: Tools | None = None) -> None:
        self.args = args or VolumeBindingArgs()
        self.tools = tools
        self._curve = [(point.utilization, point.score * 10) for point in self.args.shape or _SHAPE]

    # ── where can it go? ─────────────────────────────────────────────────────────────────────────────────────

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        claims: list[PersistentVolumeClaim] = []
        for volume in pod.pod.spec.volumes:
            name = claim_name(pod.pod, volume)
            if name is not None:
                claim = find_claim(pod.pod, name, cycle.objects)
                problem = _unusable(pod.pod, volume, name, claim)
                if problem or claim is None:
                    return unresolvable(problem)
                claims.append(claim)
        if not claims:
            return SKIP
        try:
            search = _search(claims, cycle.objects)
        except VolumeProblem as problem_found:
            return error(str(problem_found))
        if search is None:
            return unresolvable(UNBOUND)
        cycle.put(search)
        return SUCCESS

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        reasons = cycle.get(Search).at(node).reasons
        return unresolvable(*reasons) if reasons else SUCCESS

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        return cycle.get(Search).everywhere(nodes)

    # ── where would it rather? ───────────────────────────────────────────────────────────────────────────────

    def pre_score(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        wanted = self.tools is not None and self.tools.features.storage_capacity_scoring
        return SUCCESS if wanted and cycle.find(Search) is not None else SKIP

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        """The mean over storage classes of how the shape judges the use that would be made of each."""
        uses = _uses(cycle.get(Search).at(node))
        if not uses:
            return 0
        total = sum(broken_linear(self._curve, _percent(requested, capacity)) for requested, capacity in uses)
        return math.floor(total / len(uses) + 0.5)

    # ── it goes there ────────────────────────────────────────────────────────────────────────────────────────

    def reserve(self, cycle: Cycle, pod: PodInfo, node: str) -> Status:
        search = cycle.find(Search)
        if search is None or search.is_done:
            return SUCCESS
        chosen = cycle.nodes.named(node)
        if chosen is None:
            return error(missing_node(node))
        found = search.at(chosen)
        if found.reasons:
            return unresolvable(*found.reasons)
        cycle.put(Claiming(found, node, cycle.objects))
        return SUCCESS

    def unreserve(self, cycle: Cycle, pod: PodInfo, node: str) -> None:
        claiming = cycle.find(Claiming)
        if claiming is not None:
            claiming.give_up()

    def pre_bind(self, cycle: Cycle, pod: PodInfo, node: str) -> Status | Steps:
        search = cycle.find(Search)
        if search is None or search.is_done:
            return SUCCESS
        claiming = cycle.find(Claiming)
        if claiming is None or claiming.node != node:
            return error(f"no pod volume found for node {quoted(node)}")
        return claiming.steps(cycle.nodes, seconds(self.args.bind_timeout_seconds))

    # ── hints ────────────────────────────────────────────────────────────────────────────────────────────────

    def events_to_register(self) -> Sequence[Hint]:
        appears_or_changes = Action.ADD | Action.UPDATE
        return (
            Hint(resource_name("StorageClass"), appears_or_changes, _after_class_change),
            Hint(resource_name("PersistentVolumeClaim"), appears_or_changes, after_claim_change),
            Hint(resource_name("PersistentVolume"), appears_or_changes),
            Hint(NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            Hint(resource_name("CSINode"), appears_or_changes, _after_csi_node_change),
            Hint(resource_name("CSIDriver"), Action.UPDATE | Action.DELETE, self._after_driver_change),
            Hint(resource_name("CSIStorageCapacity"), appears_or_changes, _after_capacity_change),
        )

    def _after_driver_change(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        if not isinstance(old, CSIDriver) or not old.spec.storage_capacity:
            return QueueingHint.SKIP
        if isinstance(new, CSIDriver) and new.spec.storage_capacity:
            return QueueingHint.SKIP
        inline = any(volume.csi is not None and volume.csi.driver == old.name for volume in pod.pod.spec.volumes)
        return _queue_if(inline or self._provisions(old.name, pod))

    def _provisions(self, driver: str, pod: PodInfo) -> bool:
        """Whether a driver makes the volumes of a claim of the pod; kube-scheduler does not look."""
        if self.tools is None or not self.tools.attached:
            return False
        objects = self.tools.objects
        claims = (find_claim(pod.pod, name, objects) for name in claim_names(pod.pod))
        classes = (objects.get(StorageClass, class_of(claim)) for claim in claims if claim is not None)
        return any(one is not None and one.provisioner == driver for one in classes)

    def sign_pod(self, pod: PodInfo) -> Signature | Status:
        return sign_volumes(pod)

    def alike(self, cycle: Cycle, pod: PodInfo) -> Hashable | None:
        return alike_volumes(pod)


# ── the claims of a pod ──────────────────────────────────────────────────────────────────────────────────────


def _unusable(pod: Pod, volume: Volume, name: str, claim: PersistentVolumeClaim | None) -> str:
    """Why a pod cannot run with this claim, wherever it goes; empty if it can."""
    if claim is None:
        if volume.ephemeral is not None:
            return f"waiting for ephemeral volume controller to create the persistentvolumeclaim {quoted(name)}"
        return claim_not_found(name)
    if claim.status.phase == "Lost":
        gone = f"bound to non-existent persistentvolume {quoted(claim.spec.volume_name)}"
        return f"persistentvolumeclaim {quoted(claim.name)} {gone}"
    if claim.metadata.deletion_timestamp is not None:
        return f"persistentvolumeclaim {quoted(claim.name)} is being deleted"
    return not_owned(pod, claim) if volume.ephemeral is not None else ""


def _search(claims: Sequence[PersistentVolumeClaim], objects: Objects) -> Search | None:
    """Sort the claims; None if one of them is for its controller to bind first.  Raises VolumeProblem."""
    bound: list[PersistentVolumeClaim] = []
    delayed: list[PersistentVolumeClaim] = []
    waits_for_controller = False
    for claim in claims:
        if is_fully_bound(claim):
            bound.append(claim)
        elif waits_for_pod(claim, objects) and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            waits_for_controller = True
    return None if waits_for_controller else Search(bound, delayed, objects)


# ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────────


def _uses(found: Found) -> list[tuple[int, int]]:
    """How much would be asked of how much, per storage class."""
    uses: dict[str, tuple[int, int]] = {}
    for volume, claim in found.bindings:
        requested, capacity = uses.get(class_of(volume), (0, 0))
        uses[class_of(volume)] = (requested + (requested_storage(claim) or 0), capacity + storage_of(volume))
    if found.bindings:
        return list(uses.values())
    for claim, room in found.provisions:
        if room is not None:
            requested, _ = uses.get(class_of(claim), (0, 0))
            uses[class_of(claim)] = (requested + (requested_storage(claim) or 0), room.bytes)
    return list(uses.values())


def _percent(requested: int, capacity: int) -> int:
    return _FULL if capacity == 0 or requested > capacity else requested * _FULL // capacity


# ── hints ────────────────────────────────────────────────────────────────────────────────────────────────────


def _queue_if(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def _after_class_change(pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return QueueingHint.QUEUE
    return _queue_if(old.allowed_topologies != new.allowed_topologies)


def _after_csi_node_change(pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return QueueingHint.QUEUE
    return _queue_if(old.annotations.get(MIGRATED_PLUGINS) != new.annotations.get(MIGRATED_PLUGINS))


def _after_capacity_change(pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
    if not isinstance(old, CSIStorageCapacity) or not isinstance(new, CSIStorageCapacity):
        return QueueingHint.QUEUE
    before, now = volume_limit(old), volume_limit(new)
    return _queue_if(now is not None and (before is None or now > before))
