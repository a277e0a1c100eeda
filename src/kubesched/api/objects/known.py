"""Every kind a scheduler reads, and what stands for an object that could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, get_args

from kubesched.api.objects.meta import KubeObject
from kubesched.api.objects.nodes import Node
from kubesched.api.objects.others import (
    DeviceClass,
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    Service,
    StatefulSet,
)
from kubesched.api.objects.pods import Pod
from kubesched.api.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)


class Invalid(KubeObject, frozen=True, tag="Invalid"):
    """An object that could not be read.  What its metadata said is kept, so that it stays visible.

    `scheduler` is who would have to place it: of a pod that waits for a node, and still says that much.
    """

    of: str = ""
    error: str = ""
    scheduler: str = ""


Object: TypeAlias = (
    Pod
    | Node
    | Namespace
    | PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
    | PodDisruptionBudget
    | Service
    | ReplicationController
    | ReplicaSet
    | StatefulSet
    | DeviceClass
    | ResourceClaim
    | Invalid
)

KINDS: Mapping[str, type[KubeObject]] = {cls.__name__: cls for cls in get_args(Object) if cls is not Invalid}
"""Every kind a scheduler reads, by its name."""
