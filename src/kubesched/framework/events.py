"""What happens in a cluster, as the queue sees it, and who wants to hear of it.

A pod that was turned down sleeps until something happens that may help it.  Each plugin registers the events
that can undo its no; a Hint may look closer and say that this one does not.  An event that no plugin registered
wakes nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, IntFlag
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from kubesched.api.kinds import CustomResource, kind_of
from kubesched.api.objects import KubeObject, Node, Pod
from kubesched.cluster.podinfo import pod_requests

if TYPE_CHECKING:
    from kubesched.cluster.podinfo import PodInfo


class Action(IntFlag):
    """What happened to a resource, in Kubernetes' bits."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8188
    ALL = 8191


_ACTION_TEXT = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE: "Update",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    Action.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
}

# The resource part of an event: a kind, with its group where it is not one of the oldest; or one of these.
POD, NODE, ANYTHING = "Pod", "Node", "*"
ASSIGNED_POD, UNSCHEDULED_POD = "AssignedPod", "UnschedulablePod"
_GROUPED = {
    "CSINode": "storage.k8s.io/CSINode",
    "CSIDriver": "storage.k8s.io/CSIDriver",
    "CSIStorageCapacity": "storage.k8s.io/CSIStorageCapacity",
    "StorageClass": "storage.k8s.io/StorageClass",
    "VolumeAttachment": "storage.k8s.io/VolumeAttachment",
    "ResourceClaim": "resource.k8s.io/ResourceClaim",
    "ResourceSlice": "resource.k8s.io/ResourceSlice",
    "DeviceClass": "resource.k8s.io/DeviceClass",
    "PodGroup": "scheduling.k8s.io/PodGroup",
}

# Whom a plugin listens to that does not say: everything concrete.
EVERY_RESOURCE = (
    POD,
    NODE,
    "PersistentVolume",
    "PersistentVolumeClaim",
    "storage.k8s.io/CSINode",
    "storage.k8s.io/CSIDriver",
    "storage.k8s.io/CSIStorageCapacity",
    "storage.k8s.io/StorageClass",
    "resource.k8s.io/ResourceClaim",
    "resource.k8s.io/DeviceClass",
)


def resource_name(kind: str | type[KubeObject]) -> str:
    """The name of a resource in an event: `Node`, `storage.k8s.io/CSINode`, `budgets.v1.acme.example`."""
    if not isinstance(kind, str) and issubclass(kind, CustomResource):
        own = kind_of(kind)
        return f"{own.plural}.{own.version}.{own.group}"  # as Kubernetes names kinds it does not know
    name = kind if isinstance(kind, str) else kind.__name__
    return _GROUPED.get(name, name)


class ClusterEvent(Struct, frozen=True):
    """Something that happened: to which resource, and what."""

    resource: str
    action: Action
    special: str = ""  # a label of its own: `ForceActivate`, `UnschedulableTimeout`

    @property
    def label(self) -> str:
        """The name in metrics and records: `NodeAdd`, `AssignedPodDelete`."""
        return self.special or self.resource + _ACTION_TEXT.get(self.action, "")

    @property
    def wildcard(self) -> bool:
        return self.resource == ANYTHING and self.action == Action.ALL


FORCE_ACTIVATE = ClusterEvent(ANYTHING, Action.ALL, "ForceActivate")
UNSCHEDULABLE_TIMEOUT = ClusterEvent(ANYTHING, Action.ALL, "UnschedulableTimeout")
ASSIGNED_POD_ADD = ClusterEvent(ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(ASSIGNED_POD, Action.DELETE)


class QueueingHint(Enum):
    """A hint's answer: the event may help this pod, or it cannot."""

    QUEUE = "Queue"
    SKIP = "QueueSkip"


def said_by(answer: QueueingHint | None) -> str:
    """What a hint said, as metrics name it; None stands for one that failed."""
    return "Error" if answer is None else answer.value


HintFunction: TypeAlias = "Callable[[PodInfo, KubeObject | None, KubeObject | None], QueueingHint]"


class Hint(Struct, frozen=True):
    """An event a plugin wants to hear of, and a closer look at it.  No function: it may always help."""

    resource: str
    action: Action
    look: HintFunction | None = None

    def matches(self, event: ClusterEvent) -> bool:
        if self.resource == ANYTHING and self.action == Action.ALL:
            return True
        same = self.resource in (event.resource, ANYTHING) or (
            self.resource == POD and event.resource in (ASSIGNED_POD, UNSCHEDULED_POD)
        )
        return same and bool(self.action & event.action) and event.action <= self.action


# ── from a difference between two versions to the events it means ────────────────────────────────────────────


def node_changes(old: Node, new: Node) -> Iterator[ClusterEvent]:
    """What changed about a node that scheduling can notice, in Kubernetes' order."""
    for action, changed in (
        (Action.UPDATE_NODE_TAINT, old.spec.unschedulable and not new.spec.unschedulable),
        (Action.UPDATE_NODE_ALLOCATABLE, old.status.allocatable != new.status.allocatable),
        (Action.UPDATE_NODE_LABEL, old.metadata.labels != new.metadata.labels),
        (Action.UPDATE_NODE_TAINT, old.spec.taints != new.spec.taints),
        (Action.UPDATE_NODE_CONDITION, _conditions(old) != _conditions(new)),
        (Action.UPDATE_NODE_ANNOTATION, old.metadata.annotations != new.metadata.annotations),
        (Action.UPDATE_NODE_DECLARED_FEATURE, old.status.declared_features != new.status.declared_features),
    ):
        if changed:
            yield ClusterEvent(NODE, action)


def pod_changes(old: Pod, new: Pod) -> Iterator[ClusterEvent]:
    """What changed about a pod that scheduling can notice; a change of anything else is one plain Update."""
    resource = ASSIGNED_POD if new.spec.node_name else UNSCHEDULED_POD
    found = False
    for action, changed in (
        (Action.UPDATE_POD_LABEL, old.metadata.labels != new.metadata.labels),
        (Action.UPDATE_POD_SCALE_DOWN, _scaled_down(old, new)),
        (
            Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
            bool(old.spec.scheduling_gates) and not new.spec.scheduling_gates,
        ),
        (Action.UPDATE_POD_TOLERATION, len(old.spec.tolerations) != len(new.spec.tolerations)),
        (
            Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
            old.status.resource_claim_statuses != new.status.resource_claim_statuses,
        ),
    ):
        if changed:
            found = True
            yield ClusterEvent(resource, action)
    if not found:
        yield ClusterEvent(resource, Action.UPDATE)


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def _scaled_down(old: Pod, new: Pod) -> bool:
    if _sizes(old) == _sizes(new):
        return False
    before, after = pod_requests(old, status=True), pod_requests(new, status=True)
    return any(name not in after or after[name] < amount for name, amount in before.items())


def _sizes(pod: Pod) -> tuple[object, ...]:
    """All that says how much a pod holds: what it asks for, what it was given, and what it cannot be given."""
    spec, status = pod.spec, pod.status
    given = (status.container_statuses, status.init_container_statuses, status.resources, status.allocated_resources)
    pending = [condition.reason for condition in status.conditions if condition.type == "PodResizePending"]
    return spec.containers, spec.init_containers, spec.resources, *given, pending
