"""NodeVolumeLimits: a node can hold only so many volumes of a CSI driver."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from kubesched.api.objects import (
    CSIDriver,
    CSINode,
    KubeObject,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    Volume,
    VolumeAttachment,
)
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, POD, Action, Hint, QueueingHint, resource_name
from kubesched.framework.hooks import Signature
from kubesched.framework.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from kubesched.framework.tools import Tools
from kubesched.framework.vector import Verdict
from kubesched.plugins.csi_migration import in_tree_disk, in_tree_plugin
from kubesched.plugins.volumes import (
    VolumeProblem,
    after_claim_change,
    alike_volumes,
    claim_name,
    claim_names,
    claim_not_found,
    class_of,
    find_claim,
    not_owned,
    sign_volumes,
)

REASON = "node(s) exceed max volume count"
_TOO_MANY = unschedulable(REASON)


class Attachable(NamedTuple):
    """A volume that takes one of a driver's places on a node.

    Kept from kube-scheduler: the disk of an in-tree plugin is its driver's, whether the node says that the plugin was
    migrated or not.
    """

    driver: str
    handle: str


class _Wanted(Struct, frozen=True):
    """What the pod would attach, or why nobody can say; and what is attached to nodes already, by their names."""

    problem: Status = SUCCESS
    volumes: tuple[Attachable, ...] = ()
    drivers: tuple[str, ...] = ()
    attachments: Mapping[str, tuple[Attachable, ...]] = {}


class NodeVolumeLimits:
    """Keep a node's CSI drivers from being asked for more volumes than they can attach.

    What it does:  counts per driver the volumes that the pods on a node use, and those attached to it for other
                   reasons; rejects the node if the pod's volumes would make it more than its CSINode allows.
    Answers:       Unschedulable — evicting pods frees places.  UnschedulableAndUnresolvable for a pod whose claim
                   does not exist.
    Wakes on:      a node or CSINode added, a CSINode gone or one of its limits raised or lifted; a pod with volumes
                   leaves a node, or one with the same volumes comes; a claim of the pod is created or changes; a
                   volume is detached; a claim has lost its class, or has a volume of no CSI driver.
    Tiers:         filter, filter_all.
    Same as:       kube-scheduler NodeVolumeLimits, v1.36, but that a claim which is not the one of a placed
                   pod's ephemeral volume is not counted, where kube-scheduler gives the attempt up.
    """

    name = "NodeVolumeLimits"
    reads = (CSINode, CSIDriver, PersistentVolumeClaim, PersistentVolume, StorageClass, VolumeAttachment)
    board: Literal["node", "row"] = "node"

    def __init__(self, tools: Tools | None = None) -> None:
        self.tools = tools
        self._limits: dict[str, tuple[CSINode, Mapping[str, int]]] = {}

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        return SUCCESS if _has_attachable(pod.pod) else SKIP

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        wanted = self._wanted(cycle, pod)
        if not wanted.problem.ok:
            return wanted.problem
        return _TOO_MANY if self._exceeds(cycle.objects, wanted, node.name, node.pods) else SUCCESS

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        wanted = self._wanted(cycle, pod)
        if not wanted.problem.ok:
            if not wanted.problem.rejected:
                raise VolumeProblem(wanted.problem.message)
            for i in range(len(nodes)):
                verdict.answer(i, wanted.problem)
        elif wanted.volumes:
            pods = nodes.table.pods
            for i, (name, row) in enumerate(zip(nodes.names, nodes.rows.tolist(), strict=True)):
                if self._exceeds(cycle.objects, wanted, name, pods[row]):
                    verdict.answer(i, _TOO_MANY)
        return verdict

    def _exceeds(self, objects: Objects, wanted: _Wanted, node: str, pods: Sequence[PodInfo]) -> bool:
        """Whether the wanted volumes would be too many for some driver of the node."""
        csi_node = objects.get(CSINode, node)
        if csi_node is None:
            return False
        limits = self._limits_of(csi_node)
        asked = [limits[driver] for driver in wanted.drivers if driver in limits]
        if not asked:
            return False
        attached = wanted.attachments.get(node, ())
        at_most = len(wanted.volumes) + len(attached)
        for other in pods:
            at_most += len(other.pod.spec.volumes)
        # Far from any limit there is no need to look at each volume.
        return at_most > min(asked) and _counts_exceed(objects, wanted.volumes, limits, attached, pods)

    def _limits_of(self, csi_node: CSINode) -> Mapping[str, int]:
        """The limits in a CSINode, read once for each version of it."""
        known = self._limits.get(csi_node.name)
        if known is None or known[0] is not csi_node:
            known = self._limits[csi_node.name] = (csi_node, _limits(csi_node))
        return known[1]

    def _wanted(self, cycle: Cycle, pod: PodInfo) -> _Wanted:
        """Worked out for the first node that asks, for all."""
        wanted = cycle.find(_Wanted)
        if wanted is None:
            wanted = _look_up(pod.pod, cycle.objects)
            cycle.put(wanted)
        return wanted

    def events_to_register(self) -> Sequence[Hint]:
        csi_node = resource_name("CSINode")
        return (
            # Beyond kube-scheduler: a node without a CSINode has no limits, a volume that others brought takes no
            # place of its own, and a claim may need none once its class is gone, or its volume is one of no driver.
            Hint(NODE, Action.ADD),
            Hint(resource_name(StorageClass), Action.DELETE),
            Hint(resource_name(PersistentVolume), Action.ADD, _after_volume_added),
            Hint(csi_node, Action.ADD | Action.DELETE),
            Hint(csi_node, Action.UPDATE, _after_csi_node_change),
            Hint(POD, Action.DELETE, _after_pod_deleted),
            Hint(POD, Action.ADD, _after_pod_placed),
            Hint(resource_name(PersistentVolumeClaim), Action.ADD | Action.UPDATE, self._after_claim_change),
            Hint(resource_name("VolumeAttachment"), Action.DELETE, _after_detached),
        )

    def _after_claim_change(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        """A claim of the pod; or that of another, which counted by its class and turns out to have an odd volume."""
        name = new.spec.volume_name if isinstance(new, PersistentVolumeClaim) else ""
        if name and old is not None and self.tools is not None and self.tools.attached:
            volume = self.tools.objects.get(PersistentVolume, name)
            if volume is not None and volume.spec.csi is None:
                return QueueingHint.QUEUE
        return after_claim_change(pod, old, new)

    def sign_pod(self, pod: PodInfo) -> Signature | Status:
        return sign_volumes(pod)

    def alike(self, cycle: Cycle, pod: PodInfo) -> Hashable | None:
        return alike_volumes(pod)


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────


def _counts_exceed(
    objects: Objects,
    volumes: Sequence[Attachable],
    limits: Mapping[str, int],
    attached: Sequence[Attachable],
    pods: Sequence[PodInfo],
) -> bool:
    """Count, driver by driver, what is there and what would come."""
    new = dict(map(_counted, volumes))
    used: dict[str, str] = {}
    for other in pods:
        used.update(map(_counted, _attachables(other.pod, objects)))
    # Kept from kube-scheduler: a volume of this pod that is attached while no pod uses it counts twice.
    for handle in used:
        new.pop(handle, None)
    counts: dict[str, int] = {}
    for driver in (used | dict(map(_counted, attached))).values():
        counts[driver] = counts.get(driver, 0) + 1
    for driver in new.values():
        counts[driver] = counts.get(driver, 0) + 1
    return any(counts[driver] > limits[driver] for driver in new.values() if driver in limits)


def _counted(volume: Attachable) -> tuple[str, str]:
    """A volume by a name of its own, with its driver."""
    return f"{volume.driver}/{volume.handle}", volume.driver


def _limits(csi_node: CSINode | None) -> dict[str, int]:
    if csi_node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


# ── from volumes to drivers ──────────────────────────────────────────────────────────────────────────────────


def _look_up(pod: Pod, objects: Objects) -> _Wanted:
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            continue
        if not name:
            return _Wanted(error("PersistentVolumeClaim had no name"))
        claim = find_claim(pod, name, objects)
        if claim is None:
            text = f"looking up PVC {pod.namespace}/{name}: {claim_not_found(name)}"
            return _Wanted(unresolvable(text))
        if volume.ephemeral is not None and not_owned(pod, claim):
            return _Wanted(error(not_owned(pod, claim)))
    volumes = tuple(_attachables(pod, objects))
    drivers = tuple(dict.fromkeys(volume.driver for volume in volumes))
    return _Wanted(SUCCESS, volumes, drivers, _attachments(objects) if volumes else {})


def _attachables(pod: Pod, objects: Objects) -> Iterator[Attachable]:
    """The volumes of a pod that take a place; claims that cannot be followed take none."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            disk = in_tree_disk(volume)
            found = Attachable(disk.plugin.driver, disk.handle) if disk and disk.plugin.limited else None
        else:
            claim = find_claim(pod, name, objects)
            if claim is None or (volume.ephemeral is not None and not_owned(pod, claim)):
                continue
            found = _attachable(claim, objects)
        if found is not None and found.driver and found.handle:
            yield found


def _attachable(claim: PersistentVolumeClaim, objects: Objects) -> Attachable | None:
    volume = objects.get(PersistentVolume, claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is None:
        return _yet_to_come(claim, objects)
    if volume.spec.csi is not None:
        return Attachable(volume.spec.csi.driver, volume.spec.csi.volume_handle)
    disk = in_tree_disk(volume.spec, volume.labels)
    if disk is None or not disk.plugin.limited:
        return None
    return Attachable(disk.plugin.driver, disk.handle)


def _yet_to_come(claim: PersistentVolumeClaim, objects: Objects) -> Attachable | None:
    """A claim without a volume will get one from its class; until then it goes by a name no driver gives."""
    name = class_of(claim)
    found = objects.get(StorageClass, name) if name else None
    if found is None:
        return None
    handle = f"a volume for {claim.key}"
    plugin = in_tree_plugin(found.provisioner)
    if plugin is None:
        return Attachable(found.provisioner, handle)
    return Attachable(plugin.driver, handle) if plugin.limited else None


def _attachments(objects: Objects) -> Mapping[str, tuple[Attachable, ...]]:
    """What is attached to each node."""
    by_node: dict[str, list[Attachable]] = {}
    for attachment in objects.all(VolumeAttachment):
        spec = attachment.spec
        name = spec.source.persistent_volume_name
        volume = objects.get(PersistentVolume, name) if spec.attacher and name is not None else None
        if volume is not None and volume.spec.csi is not None:
            attached = Attachable(spec.attacher, volume.spec.csi.volume_handle)
            by_node.setdefault(spec.node_name, []).append(attached)
    return {node: tuple(attached) for node, attached in by_node.items()}


def _has_attachable(pod: Pod) -> bool:
    return any(_may_attach(volume) for volume in pod.spec.volumes)


def _may_attach(volume: Volume) -> bool:
    return (
        volume.persistent_volume_claim is not None or volume.ephemeral is not None or in_tree_disk(volume) is not None
    )


# ── hints ────────────────────────────────────────────────────────────────────────────────────────────────────


def _after_csi_node_change(pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
    before = _limits(old if isinstance(old, CSINode) else None)
    after = _limits(new if isinstance(new, CSINode) else None)
    raised = any(limit > before.get(driver, 0) for driver, limit in after.items())
    lifted = any(driver not in after for driver in before)  # beyond kube-scheduler: no limit at all
    return QueueingHint.QUEUE if raised or lifted else QueueingHint.SKIP


def _after_volume_added(pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
    return QueueingHint.QUEUE if isinstance(new, PersistentVolume) and new.spec.csi is None else QueueingHint.SKIP


def _after_pod_deleted(pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
    if not isinstance(old, Pod) or not (old.spec.node_name or old.status.nominated_node_name):
        return QueueingHint.SKIP
    return QueueingHint.QUEUE if _has_attachable(old) else QueueingHint.SKIP


def _after_pod_placed(pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
    if not isinstance(new, Pod) or not new.spec.node_name:
        return QueueingHint.SKIP
    claims = new.namespace == pod.namespace and not {*claim_names(new)}.isdisjoint(claim_names(pod.pod))
    mine, theirs = ({in_tree_disk(volume) for volume in one.spec.volumes} - {None} for one in (pod.pod, new))
    return QueueingHint.QUEUE if claims or not mine.isdisjoint(theirs) else QueueingHint.SKIP


def _after_detached(pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
    if not isinstance(old, VolumeAttachment):
        return QueueingHint.SKIP
    for volume in pod.pod.spec.volumes:
        disk = in_tree_disk(volume)
        if volume.persistent_volume_claim is not None or (disk and disk.plugin.driver == old.spec.attacher):
            return QueueingHint.QUEUE
    return QueueingHint.SKIP
