"""Storage: what a pod mounts, the claims and volumes behind it, and what drivers can do."""

from __future__ import annotations

from msgspec import field

from kubesched.api.objects.meta import KubeObject, Quantity, ResourceList, View
from kubesched.api.objects.terms import LabelSelector, NodeSelector

# ── what a pod mounts ────────────────────────────────────────────────────────────────────────────────────────


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


# ── what there is to be mounted ──────────────────────────────────────────────────────────────────────────────


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
