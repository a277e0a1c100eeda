"""VolumeZone: a pod must go to the zone where its volumes are."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct

from kubesched.api.objects import KubeObject, PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.types import Mask
from kubesched.cluster.vocab import ABSENT
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, Action, Hint, QueueingHint, resource_name
from kubesched.framework.hooks import Signature
from kubesched.framework.status import SKIP, SUCCESS, Status, unresolvable
from kubesched.framework.vector import Verdict
from kubesched.plugins.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE
from kubesched.plugins.volumes import (
    WAIT_FOR_FIRST_CONSUMER,
    after_claim_change,
    alike_volumes,
    claim_not_found,
    class_of,
    find_claim,
    mode_not_set,
    not_found,
    sign_volumes,
)

REASON = "node(s) had no available volume zone"
_ELSEWHERE = unresolvable(REASON)
_TOPOLOGY = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_MODERN = {BETA_ZONE: ZONE, BETA_REGION: REGION, ZONE: ZONE, REGION: REGION}


class _Place(NamedTuple):
    """A label that a node must have one of these values of."""

    key: str
    values: frozenset[str]


class _Places(Struct, frozen=True):
    """Where the pod's volumes are; all must hold."""

    places: tuple[_Place, ...]


class VolumeZone:
    """Keep pods to the zone and region of the volumes they have claimed.

    What it does:  rejects nodes whose zone or region is not among those in the labels of a bound volume (several
                   are written `a__b`); nodes without any such label take every pod.
    Answers:       UnschedulableAndUnresolvable — volumes do not move.
    Wakes on:      a late-binding StorageClass appears; Node added or its labels changed; a claim of the pod
                   appears or changes; a volume appears, or its zone changes.
    Tiers:         filter, filter_all.
    Same as:       kube-scheduler VolumeZone, v1.36.
    """

    name = "VolumeZone"
    reads = (PersistentVolumeClaim, PersistentVolume, StorageClass)
    board: Literal["node", "row"] = "node"

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        places: list[_Place] = []
        for name in pod.claims:
            if not name:
                return unresolvable("PersistentVolumeClaim had no name")
            claim = find_claim(pod.pod, name, cycle.objects)
            if claim is None:
                return unresolvable(claim_not_found(name))
            if not claim.spec.volume_name:
                problem = _why_unbound(claim, cycle.objects)
                if problem:
                    return unresolvable(problem)
                continue
            volume = cycle.objects.get(PersistentVolume, claim.spec.volume_name)
            if volume is None:
                return unresolvable(not_found("persistentvolume", claim.spec.volume_name))
            places.extend(_places(volume))
        if not places:
            return SKIP
        cycle.put(_Places(tuple(places)))
        return SUCCESS

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        labels = node.labels
        if not any(key in labels for key in _TOPOLOGY):
            return SUCCESS
        for key, values in cycle.get(_Places).places:
            value = labels.get(key)
            if value is None:
                value = labels.get(_MODERN[key])
            if value not in values:
                return _ELSEWHERE
        return SUCCESS

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        zoned: Mask = np.zeros(len(nodes), dtype=np.bool_)
        for key in _TOPOLOGY:
            zoned |= nodes.label(key) != ABSENT
        there: Mask = np.ones(len(nodes), dtype=np.bool_)
        for key, values in dict.fromkeys(cycle.get(_Places).places):
            modern = nodes.by_label(_MODERN[key], values.__contains__)
            there &= np.where(nodes.label(key) == ABSENT, modern, nodes.by_label(key, values.__contains__))
        verdict.reject(zoned & ~there, REASON, unresolvable=True)
        return verdict

    def events_to_register(self) -> Sequence[Hint]:
        volume = resource_name("PersistentVolume")
        return (
            Hint(resource_name("StorageClass"), Action.ADD, _after_class_added),
            Hint(NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            Hint(resource_name("PersistentVolumeClaim"), Action.ADD | Action.UPDATE, after_claim_change),
            Hint(volume, Action.ADD | Action.UPDATE, _after_volume_change),
        )

    def sign_pod(self, pod: PodInfo) -> Signature | Status:
        return sign_volumes(pod)

    def alike(self, cycle: Cycle, pod: PodInfo) -> Hashable | None:
        return alike_volumes(pod)


def _why_unbound(claim: PersistentVolumeClaim, objects: Objects) -> str:
    """Why a claim without a volume keeps its pod waiting; empty where the volume is yet to be chosen."""
    name = class_of(claim)
    if not name:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    found = objects.get(StorageClass, name)
    if found is None:
        return not_found("storageclass.storage.k8s.io", name)
    if found.volume_binding_mode is None:
        return mode_not_set(name)
    return "" if found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else "PersistentVolume had no name"


def _places(volume: PersistentVolume) -> Iterator[_Place]:
    for key in _TOPOLOGY:
        if key in volume.labels:
            values = frozenset(value.strip() for value in volume.labels[key].split("__"))
            if "" not in values:  # a list with a hole says nothing
                yield _Place(key, values)


def _after_class_added(pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
    late = isinstance(new, StorageClass) and new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return QueueingHint.QUEUE if late else QueueingHint.SKIP


def _after_volume_change(pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
    if not isinstance(old, PersistentVolume) or not isinstance(new, PersistentVolume):
        return QueueingHint.QUEUE
    return QueueingHint.QUEUE if tuple(_places(old)) != tuple(_places(new)) else QueueingHint.SKIP
