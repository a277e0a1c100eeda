"""What a scheduler reads of a Kubernetes object, and nothing else.

An API server sends eight kilobytes for a pod of which a scheduler needs one.  The Structs here name exactly
the fields that some plugin, the queue or the core reads; decoding skips everything else without building it.
They are frozen: an object that changed is a new object, so any of them may be kept, compared and shared.

Names are Kubernetes' own in snake case (`node_name` is `nodeName` on the wire).  Absent, null and empty differ
only where Kubernetes makes a difference: those fields are `… | None`.  Go's decoder takes null for absent
everywhere, and so does `read()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import Struct, field

Quantity: TypeAlias = str | int | float  # as written; quantity.py makes exact integers of it
ResourceList: TypeAlias = dict[str, Quantity]


class View(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """The settings every view shares: frozen, camelCase on the wire, defaults left out, no cycles to collect."""


# ── what every object has ────────────────────────────────────────────────────────────────────────────────────


class OwnerReference(View, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(View, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class KubeObject(View, frozen=True, tag_field="kind"):
    """An object with metadata; `kind` is its tag on the wire and in a journal."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def kind(self) -> str:
        return type(self).__name__

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone for what lives outside namespaces."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if one says so."""
        return next((owner for owner in self.metadata.owner_references if owner.controller), None)


# ── selectors, taints, affinity ──────────────────────────────────────────────────────────────────────────────


class LabelSelectorRequirement(View, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(View, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelectorRequirement(View, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(View, frozen=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(View, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(View, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(View, frozen=True):
    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredSchedulingTerm, ...] | None = field(
        default=None, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(View, frozen=True):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""


class WeightedPodAffinityTerm(View, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(View, frozen=True):
    """Pod affinity and pod anti-affinity share this shape."""

    required: tuple[PodAffinityTerm, ...] = field(default=(), name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[WeightedPodAffinityTerm, ...] = field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(View, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Taint(View, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(View, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class TopologySpreadConstraint(View, frozen=True):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


# ── pods ─────────────────────────────────────────────────────────────────────────────────────────────────────


class ResourceRequirements(View, frozen=True):
    requests: ResourceList = {}
    limits: ResourceList = {}


class ContainerPort(View, frozen=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class RestartRule(View, frozen=True):
    action: str = ""


class Container(View, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] = ()


class PersistentVolumeClaimVolumeSource(View, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class VolumeResourceRequirements(View, frozen=True):
    requests: ResourceList = {}


class PersistentVolumeClaimSpec(View, frozen=True):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ()
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    selector: LabelSelector | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(View, frozen=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(View, frozen=True):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class GCEPersistentDisk(View, frozen=True):
    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStore(View, frozen=True):
    volume_id: str = field(default="", name="volumeID")
    read_only: bool = False


class RBD(View, frozen=True):
    monitors: tuple[str, ...] = ()
    pool: str = ""
    image: str = ""
    read_only: bool = False


class ISCSI(View, frozen=True):
    iqn: str = ""
    target_portal: str = ""
    lun: int = 0
    read_only: bool = False


class CSIVolumeSource(View, frozen=True):
    """A CSI volume: inline in a pod (`driver` alone) or behind a PersistentVolume (with its handle)."""

    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


class AzureDisk(View, frozen=True):
    disk_name: str = ""
    disk_uri: str = field(default="", name="diskURI")


class AzureFile(View, frozen=True):
    secret_name: str = ""
    secret_namespace: str | None = None
    share_name: str = ""


class Cinder(View, frozen=True):
    volume_id: str = field(default="", name="volumeID")


class VsphereVolume(View, frozen=True):
    volume_path: str = ""


class PortworxVolume(View, frozen=True):
    volume_id: str = field(default="", name="volumeID")


class ImageVolumeSource(View, frozen=True):
    reference: str = ""


class Volume(View, frozen=True):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    rbd: RBD | None = None
    iscsi: ISCSI | None = None
    csi: CSIVolumeSource | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None
    image: ImageVolumeSource | None = None


class PodSchedulingGate(View, frozen=True):
    name: str = ""


class PodResourceClaim(View, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(View, frozen=True):
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    preemption_policy: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    host_network: bool = False
    host_users: bool | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    termination_grace_period_seconds: int | None = None


class PodCondition(View, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0


class ContainerStatus(View, frozen=True):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodResourceClaimStatus(View, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(View, frozen=True):
    phase: str = ""
    start_time: str | None = None
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()


class Pod(KubeObject, frozen=True, tag="Pod"):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def finished(self) -> bool:
        """Whether it holds no capacity any more: it ran to its end, well or badly."""
        return self.status.phase in ("Succeeded", "Failed")


# ── nodes ────────────────────────────────────────────────────────────────────────────────────────────────────


class NodeSpec(View, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(View, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""


class ContainerImage(View, frozen=True):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeStatus(View, frozen=True):
    allocatable: ResourceList = {}
    capacity: ResourceList = {}
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubeObject, frozen=True, tag="Node"):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Namespace(KubeObject, frozen=True, tag="Namespace"):
    pass


# ── storage ──────────────────────────────────────────────────────────────────────────────────────────────────


class ObjectReference(View, frozen=True):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(View, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(View, frozen=True):
    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str | None = None
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    vsphere_volume: VsphereVolume | None = None
    portworx_volume: PortworxVolume | None = None


class PhaseStatus(View, frozen=True):
    phase: str = ""


class PersistentVolume(KubeObject, frozen=True, tag="PersistentVolume"):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PhaseStatus = PhaseStatus()


class PersistentVolumeClaim(KubeObject, frozen=True, tag="PersistentVolumeClaim"):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PhaseStatus = PhaseStatus()


class TopologySelectorLabelRequirement(View, frozen=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(View, frozen=True):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] = ()


class StorageClass(KubeObject, frozen=True, tag="StorageClass"):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class VolumeNodeResources(View, frozen=True):
    count: int | None = None


class CSINodeDriver(View, frozen=True):
    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(View, frozen=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubeObject, frozen=True, tag="CSINode"):
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(View, frozen=True):
    storage_capacity: bool | None = None


class CSIDriver(KubeObject, frozen=True, tag="CSIDriver"):
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeObject, frozen=True, tag="CSIStorageCapacity"):
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(View, frozen=True):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(View, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(KubeObject, frozen=True, tag="VolumeAttachment"):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


# ── workloads and their protection ───────────────────────────────────────────────────────────────────────────


class PodDisruptionBudgetSpec(View, frozen=True):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(View, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str | None] = {}


class PodDisruptionBudget(KubeObject, frozen=True, tag="PodDisruptionBudget"):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class MapSelectorSpec(View, frozen=True):
    selector: dict[str, str] | None = None


class LabelSelectorSpec(View, frozen=True):
    selector: LabelSelector | None = None


class Service(KubeObject, frozen=True, tag="Service"):
    spec: MapSelectorSpec = MapSelectorSpec()


class ReplicationController(KubeObject, frozen=True, tag="ReplicationController"):
    spec: MapSelectorSpec = MapSelectorSpec()


class ReplicaSet(KubeObject, frozen=True, tag="ReplicaSet"):
    spec: LabelSelectorSpec = LabelSelectorSpec()


class StatefulSet(KubeObject, frozen=True, tag="StatefulSet"):
    spec: LabelSelectorSpec = LabelSelectorSpec()


# ── devices: enough to say plainly that a pod wants them ─────────────────────────────────────────────────────


class DeviceClassSpec(View, frozen=True):
    extended_resource_name: str | None = None


class DeviceClass(KubeObject, frozen=True, tag="DeviceClass"):
    spec: DeviceClassSpec = DeviceClassSpec()


class ResourceClaim(KubeObject, frozen=True, tag="ResourceClaim"):
    pass


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

T = TypeVar("T", bound=KubeObject)


class UnreadableObject(ValueError):
    """An object that does not have the shape its kind promises; says where in it and what was expected."""


def read(raw: Mapping[str, Any], kind: type[T]) -> T:
    """Make a view of an object given as plain data.  Raises UnreadableObject."""
    try:
        return msgspec.convert(raw, kind)
    except (msgspec.ValidationError, RecursionError):
        pass  # most often a null that Go's decoder would take for absent
    try:
        return msgspec.convert(_without_nulls(raw), kind)
    except msgspec.ValidationError as error:
        raise UnreadableObject(f"{_describe(raw, kind)}: {_sentence(error)}") from None
    except RecursionError:
        raise UnreadableObject(f"{_describe(raw, kind)}: it is nested too deeply") from None


def read_or_invalid(raw: Mapping[str, Any], kind: type[T]) -> T | Invalid:
    """Make a view, or an Invalid that says what is wrong with the object and still names it."""
    try:
        return read(raw, kind)
    except UnreadableObject as error:
        scheduler = _scheduler_of(raw.get("spec")) if kind is Pod else ""
        return Invalid(_salvaged(raw.get("metadata")), of=kind.__name__, error=str(error), scheduler=scheduler)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _salvaged(meta: Any) -> ObjectMeta:
    if not isinstance(meta, Mapping):
        return ObjectMeta()
    names = ("name", "namespace", "uid", "resourceVersion")
    return msgspec.convert({name: meta[name] for name in names if isinstance(meta.get(name), str)}, ObjectMeta)


def _scheduler_of(spec: Any) -> str:
    """Who would have to place a pod of which only parts can be read; empty where that cannot be told."""
    fields = spec if isinstance(spec, Mapping) else {}
    name = fields.get("schedulerName") or "default-scheduler"
    return name if isinstance(name, str) and not fields.get("nodeName") else ""


def _describe(raw: Any, kind: type[KubeObject]) -> str:
    meta = raw.get("metadata") if isinstance(raw, Mapping) else None
    salvaged = _salvaged(meta)
    name = f"{salvaged.namespace}/{salvaged.name}" if salvaged.namespace else salvaged.name
    return f"{kind.__name__} {name!r}" if name else f"a {kind.__name__} without a name"


def _sentence(error: msgspec.ValidationError) -> str:
    """`Expected `str`, got `int` - at `$.spec.nodeName`` → `spec.nodeName: expected str, got int`."""
    what, at, path = str(error).partition(" - at ")
    what = what.replace("`", "")
    what = what[:1].lower() + what[1:]
    where = path.strip("`").removeprefix("$").lstrip(".")
    return f"{where}: {what}" if at and where else what
