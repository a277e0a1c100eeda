"""VolumeRestrictions: some disks cannot be attached twice, and some claims are for one pod at a time."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np

from kubesched.api.objects import KubeObject, PersistentVolumeClaim, Pod, Volume
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.types import Mask
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, POD, Action, Hint, QueueingHint, resource_name
from kubesched.framework.hooks import Signature
from kubesched.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from kubesched.framework.vector import Verdict
from kubesched.plugins.volumes import (
    READ_WRITE_ONCE_POD,
    after_claim_change,
    alike_volumes,
    claim_not_found,
    find_claim,
    sign_volumes,
)

DISK_TAKEN = "node(s) had no available disk"
CLAIM_TAKEN = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_DISK_TAKEN, _CLAIM_TAKEN = unschedulable(DISK_TAKEN), unschedulable(CLAIM_TAKEN)


class _Exclusive:
    """The pod's claims that only one pod may use, and how often others use them now."""

    def __init__(self, claims: frozenset[str], in_use: int) -> None:
        self.claims = claims
        self.in_use = in_use

    def clone(self) -> _Exclusive:
        return _Exclusive(self.claims, self.in_use)

    def count(self, other: PodInfo, sign: int) -> None:
        self.in_use += sign * sum(claim in self.claims for claim in other.claims)


class VolumeRestrictions:
    """Keep pods apart whose volumes cannot be used by both.

    What it does:  rejects a node where a pod has the same GCE, EBS, iSCSI or RBD disk (read-only ones may be
                   shared, EBS never); rejects every node while another pod, wherever it is, uses a
                   ReadWriteOncePod claim of this pod.
    Answers:       Unschedulable — the other pod may be evicted.  UnschedulableAndUnresolvable for a pod whose
                   claim does not exist.
    Wakes on:      a pod with such a disk or claim is deleted; Node added; a claim of the pod is created.
    Tiers:         filter, filter_all.
    Same as:       kube-scheduler VolumeRestrictions, v1.36.
    """

    name = "VolumeRestrictions"
    reads = (PersistentVolumeClaim,)
    board: Literal["node", "row"] = "node"

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        exclusive: set[str] = set()
        for name in pod.claims:
            claim = find_claim(pod.pod, name, cycle.objects)
            if claim is None:
                return unresolvable(claim_not_found(name))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive.add(name)
        in_use = sum(f"{pod.namespace}/{name}" in cycle.table.claims for name in exclusive)
        if not in_use and not any(_is_disk(volume) for volume in pod.pod.spec.volumes):
            return SKIP
        cycle.put(_Exclusive(frozenset(exclusive), in_use))
        return SUCCESS

    def add_pod(self, cycle: Cycle, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        if other.namespace == pod.namespace:
            cycle.get(_Exclusive).count(other, 1)

    def remove_pod(self, cycle: Cycle, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        if other.namespace == pod.namespace:
            cycle.get(_Exclusive).count(other, -1)

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        disks = _disks(pod.pod)
        if disks and any(_collide(disks, other.pod) for other in node.pods):
            return _DISK_TAKEN
        return _CLAIM_TAKEN if cycle.get(_Exclusive).in_use > 0 else SUCCESS

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        disks = _disks(pod.pod)
        if disks:
            pods = nodes.table.pods
            taken = (any(_collide(disks, other.pod) for other in pods[row]) for row in nodes.rows.tolist())
            mask: Mask = np.fromiter(taken, dtype=np.bool_, count=len(nodes))
            verdict.reject(mask, DISK_TAKEN)
        if cycle.get(_Exclusive).in_use > 0:
            verdict.reject(verdict.ok, CLAIM_TAKEN)
        return verdict

    def events_to_register(self) -> Sequence[Hint]:
        return (
            Hint(POD, Action.DELETE, self._after_pod_deleted),
            Hint(NODE, Action.ADD),
            Hint(resource_name("PersistentVolumeClaim"), Action.ADD, after_claim_change),
        )

    def _after_pod_deleted(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        if not isinstance(old, Pod) or old.namespace != pod.namespace:
            return QueueingHint.SKIP
        freed = _collide(_disks(pod.pod), old) or any(claim in pod.claims for claim in PodInfo(old).claims)
        return QueueingHint.QUEUE if freed else QueueingHint.SKIP

    def sign_pod(self, pod: PodInfo) -> Signature | Status:
        return sign_volumes(pod)

    def alike(self, cycle: Cycle, pod: PodInfo) -> Hashable | None:
        return alike_volumes(pod)


# ── disks that cannot be in two places ───────────────────────────────────────────────────────────────────────


def _is_disk(volume: Volume) -> bool:
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    )


def _disks(pod: Pod) -> list[Volume]:
    return [volume for volume in pod.spec.volumes if _is_disk(volume)]


def _collide(disks: Sequence[Volume], other: Pod) -> bool:
    """Whether the other pod has one of these disks in a way that excludes sharing it."""
    return any(_same_disk(mine, theirs) for theirs in other.spec.volumes if _is_disk(theirs) for mine in disks)


def _same_disk(a: Volume, b: Volume) -> bool:
    if a.gce_persistent_disk is not None and b.gce_persistent_disk is not None:
        gce, other_gce = a.gce_persistent_disk, b.gce_persistent_disk
        if gce.pd_name == other_gce.pd_name and not (gce.read_only and other_gce.read_only):
            return True
    if a.aws_elastic_block_store is not None and b.aws_elastic_block_store is not None:
        if a.aws_elastic_block_store.volume_id == b.aws_elastic_block_store.volume_id:
            return True
    if a.iscsi is not None and b.iscsi is not None:
        if a.iscsi.iqn == b.iscsi.iqn and not (a.iscsi.read_only and b.iscsi.read_only):
            return True
    if a.rbd is not None and b.rbd is not None:
        same = a.rbd.pool == b.rbd.pool and a.rbd.image == b.rbd.image
        shared = any(monitor in b.rbd.monitors for monitor in a.rbd.monitors)
        return same and shared and not (a.rbd.read_only and b.rbd.read_only)
    return False
