"""What a scheduler reads of a Kubernetes object, and nothing else.

An API server sends eight kilobytes for a pod of which a scheduler needs one.  The Structs here name exactly
the fields that some plugin, the queue or the core reads; decoding skips everything else without building it.
They are frozen: an object that changed is a new object, so any of them may be kept, compared and shared.

Names are Kubernetes' own in snake case (`node_name` is `nodeName` on the wire).  Absent, null and empty differ
only where Kubernetes makes a difference: those fields are `… | None`.  Go's decoder takes null for absent
everywhere, and so does `read()`.

What others name is gathered here; the parts objects are made of are in the module of their noun.
"""

from kubesched.api.objects.known import KINDS, Invalid, Object
from kubesched.api.objects.meta import KubeObject, ObjectMeta, Quantity, ResourceList
from kubesched.api.objects.nodes import Node, NodeSpec, NodeStatus
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
from kubesched.api.objects.pods import (
    Container,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from kubesched.api.objects.reading import UnreadableObject, read, read_or_invalid
from kubesched.api.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    TopologySelectorTerm,
    Volume,
    VolumeAttachment,
)
from kubesched.api.objects.terms import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)

__all__ = [
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "Container",
    "ContainerStatus",
    "DeviceClass",
    "Invalid",
    "KINDS",
    "KubeObject",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Namespace",
    "Node",
    "NodeAffinity",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "Object",
    "ObjectMeta",
    "ObjectReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeSpec",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodCondition",
    "PodDisruptionBudget",
    "PodSpec",
    "PodStatus",
    "PreferredSchedulingTerm",
    "Quantity",
    "ReplicaSet",
    "ReplicationController",
    "ResourceClaim",
    "ResourceList",
    "ResourceRequirements",
    "Service",
    "StatefulSet",
    "StorageClass",
    "Taint",
    "Toleration",
    "TopologySelectorTerm",
    "TopologySpreadConstraint",
    "UnreadableObject",
    "Volume",
    "VolumeAttachment",
    "read",
    "read_or_invalid",
]
