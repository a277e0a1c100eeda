"""How pods, claims, volumes and storage classes refer to each other.

A pod's volume names a claim, or stands for one made for this very pod; a claim is bound to a volume, or waits
for one of its class.  These are the questions that all volume plugins ask of that chain.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import msgspec
from msgspec import structs

from kubesched.api.labels import quoted
from kubesched.api.objects import (
    KubeObject,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    ResourceList,
    StorageClass,
    Volume,
)
from kubesched.api.quantity import parse_units
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.errors import KubeschedError
from kubesched.framework.events import QueueingHint
from kubesched.framework.hooks import Signature
from kubesched.framework.status import Status, unschedulable

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_STORAGE = "storage"

NO_SIGNATURE = unschedulable("pods with persistent volume claims are not signable")


class VolumeProblem(KubeschedError):
    """Something about a claim, a volume or a class makes the question unanswerable."""


# ── from pods to claims ──────────────────────────────────────────────────────────────────────────────────────


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """The claim behind a pod's volume, or None where there is none; ephemeral volumes have one of their own."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else None


def claim_names(pod: Pod) -> Iterator[str]:
    """The claims of a pod, in the order of its volumes."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is not None:
            yield name


def find_claim(pod: Pod, name: str, objects: Objects) -> PersistentVolumeClaim | None:
    return objects.get(PersistentVolumeClaim, f"{pod.namespace}/{name}")


def after_claim_change(pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
    """A claim that appeared or changed may help the pods that name it."""
    mine = new is not None and new.namespace == pod.namespace and new.name in claim_names(pod.pod)
    return QueueingHint.QUEUE if mine else QueueingHint.SKIP


def not_found(kind: str, name: str) -> str:
    """What an API server says of an object it does not have."""
    return f"{kind} {quoted(name)} not found"


def claim_not_found(name: str) -> str:
    return not_found("persistentvolumeclaim", name)


def not_owned(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """What is wrong with the claim of an ephemeral volume that was not made for this pod; empty if it was."""
    owner = claim.controller
    if owner is not None and owner.uid == pod.uid:
        return ""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


# ── claims, volumes and classes ──────────────────────────────────────────────────────────────────────────────


def class_of(claim: PersistentVolumeClaim | PersistentVolume) -> str:
    """The storage class of a claim or a volume; the annotation of old times goes first."""
    beta = claim.annotations.get(_BETA_CLASS)
    return beta if beta is not None else claim.spec.storage_class_name or ""


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.annotations


def waits_for_pod(claim: PersistentVolumeClaim, objects: Objects) -> bool:
    """Whether the claim is to be bound only when a pod needs it.  Raises VolumeProblem."""
    name = class_of(claim)
    found = objects.get(StorageClass, name) if name else None
    if found is None:
        return False
    if found.volume_binding_mode is None:
        raise VolumeProblem(mode_not_set(name))
    return found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def mode_not_set(storage_class: str) -> str:
    return f"VolumeBindingMode not set for StorageClass {quoted(storage_class)}"


def is_meant_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume says that it belongs to this claim."""
    ref = volume.spec.claim_ref
    if ref is None or ref.name != claim.name or ref.namespace != claim.namespace:
        return False
    return not ref.uid or ref.uid == claim.uid


def requested_storage(claim: PersistentVolumeClaim) -> int | None:
    """The bytes a claim asks for, None where it does not say.  Raises ValueError."""
    return _storage(claim.spec.resources.requests)


def storage_of(volume: PersistentVolume) -> int:
    """The bytes a volume has; one nobody can read counts as none."""
    try:
        return _storage(volume.spec.capacity) or 0
    except ValueError:
        return 0


def _storage(amounts: ResourceList) -> int | None:
    written = amounts.get(_STORAGE)
    return None if written is None else parse_units(written)


_NO_SOURCE = msgspec.json.encode(Volume())


# ── what of a pod's volumes decides where it fits ────────────────────────────────────────────────────────────


def alike_volumes(pod: PodInfo) -> Hashable | None:
    """For boards: pods without volumes that matter are alike; for any other the cluster must be asked."""
    sources = (msgspec.json.encode(structs.replace(volume, name="", image=None)) for volume in pod.pod.spec.volumes)
    return () if all(source == _NO_SOURCE for source in sources) else None


def sign_volumes(pod: PodInfo) -> Signature | Status:
    """The volumes of a pod that scheduling looks at, without their names.

    A pod with a claim is like no other: where it fits depends on who else uses the claim, anywhere.
    """
    sources = []
    for volume in pod.pod.spec.volumes:
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None:
            return NO_SIGNATURE
        source = msgspec.json.encode(structs.replace(volume, name=""))
        if source != _NO_SOURCE:
            sources.append(source)
    return (("v1.Pod.Spec.Volumes.NonSyntheticSources()", tuple(sorted(sources))),)
