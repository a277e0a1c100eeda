"""In-tree volumes as the CSI drivers that have taken over from them see them.

Disks of the old cloud plugins (`awsElasticBlockStore` and its like) are served by CSI drivers today.  A CSINode
says in an annotation which plugins its node has handed over; on such a node a disk counts against its driver's
limit, and its zone is looked for under the driver's label instead of Kubernetes'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from msgspec import structs

from kubesched.api.labels import IN
from kubesched.api.objects import (
    CSINode,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeSpec,
    Volume,
)

MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_UNSPECIFIED = "UNSPECIFIED"

Source: TypeAlias = Volume | PersistentVolumeSpec
Labels: TypeAlias = Mapping[str, str]


class InTree(NamedTuple):
    """An in-tree plugin and the driver that took over."""

    plugin: str
    driver: str
    handle: Callable[[Source, Labels], str | None]  # the driver's name for a disk, None where it is of another kind
    limited: bool = False  # whether its disks count against the limits of a node
    zone_key: str = ""
    region_key: str = ""


class Disk(NamedTuple):
    """An in-tree disk by its CSI name."""

    plugin: InTree
    handle: str


# ── what the drivers call the disks ──────────────────────────────────────────────────────────────────────────


def _ebs(source: Source, labels: Labels) -> str | None:
    disk = source.aws_elastic_block_store
    if disk is None:
        return None
    scheme, _, path = disk.volume_id.partition("://")
    if scheme != "aws" or not path:
        return disk.volume_id
    handle = path.partition("/")[2].strip("/")
    return handle if handle.startswith("vol-") and "/" not in handle else ""


def _gce(source: Source, labels: Labels) -> str | None:
    disk = source.gce_persistent_disk
    if disk is None:
        return None
    zones = (labels.get(ZONE) or labels.get(BETA_ZONE) or "").split("__")
    if len(zones) == 1:
        return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{disk.pd_name}"
    regions = {zone.rpartition("-")[0] for zone in zones if zone.count("-") == 2}
    if len(regions) != 1:
        return ""
    return f"projects/{_UNSPECIFIED}/regions/{regions.pop()}/disks/{disk.pd_name}"


def _azure_disk(source: Source, labels: Labels) -> str | None:
    return None if source.azure_disk is None else source.azure_disk.disk_uri


def _azure_file(source: Source, labels: Labels) -> str | None:
    return None if source.azure_file is None else source.azure_file.share_name


def _cinder(source: Source, labels: Labels) -> str | None:
    return None if source.cinder is None else source.cinder.volume_id


def _vsphere(source: Source, labels: Labels) -> str | None:
    return None if source.vsphere_volume is None else source.vsphere_volume.volume_path


def _portworx(source: Source, labels: Labels) -> str | None:
    return None if source.portworx_volume is None else source.portworx_volume.volume_id


IN_TREE = (
    InTree("kubernetes.io/aws-ebs", "ebs.csi.aws.com", _ebs, True, "topology.ebs.csi.aws.com/zone"),
    InTree("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", _gce, True, "topology.gke.io/zone"),
    InTree("kubernetes.io/azure-disk", "disk.csi.azure.com", _azure_disk, True, "topology.disk.csi.azure.com/zone"),
    InTree("kubernetes.io/cinder", "cinder.csi.openstack.org", _cinder, True, "topology.cinder.csi.openstack.org/zone"),
    InTree("kubernetes.io/azure-file", "file.csi.azure.com", _azure_file),
    InTree(
        "kubernetes.io/vsphere-volume",
        "csi.vsphere.vmware.com",
        _vsphere,
        zone_key="topology.csi.vmware.com/zone",
        region_key="topology.csi.vmware.com/region",
    ),
    InTree("kubernetes.io/portworx-volume", "pxd.portworx.com", _portworx, True),
)


def in_tree_plugin(provisioner: str) -> InTree | None:
    """The in-tree plugin of this name, if there was one."""
    return next((one for one in IN_TREE if one.plugin == provisioner), None)


def in_tree_disk(source: Source, labels: Labels | None = None) -> Disk | None:
    """The in-tree disk behind a pod's volume or a PersistentVolume, or None where it is something else."""
    for plugin in IN_TREE:
        handle = plugin.handle(source, labels or {})
        if handle is not None:
            return Disk(plugin, handle)
    return None


def is_migrated(plugin: InTree, csi_node: CSINode | None) -> bool:
    """Whether the node has handed this plugin's disks over to the driver."""
    if csi_node is None:
        return False
    return plugin.plugin in csi_node.annotations.get(MIGRATED_PLUGINS, "").split(",")


# ── where a disk can be reached from ─────────────────────────────────────────────────────────────────────────


def required_affinity(volume: PersistentVolume, csi_node: CSINode | None) -> NodeSelector | None:
    """The nodes a volume can be used on, in the labels that the node has."""
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    disk = in_tree_disk(volume.spec, volume.labels)
    if disk is None or not disk.plugin.zone_key or not is_migrated(disk.plugin, csi_node):
        return required
    return _translated(required, volume.labels, disk.plugin)


def _translated(required: NodeSelector | None, labels: Labels, plugin: InTree) -> NodeSelector | None:
    keys = {requirement.key for requirement in _requirements(required)}
    old = ZONE not in keys and (BETA_ZONE in keys or (ZONE not in labels and BETA_ZONE in labels))
    zone, region = (BETA_ZONE, BETA_REGION) if old else (ZONE, REGION)
    required = _moved(required, zone, plugin.zone_key, labels)
    if plugin.region_key:
        return _moved(required, region, plugin.region_key, labels)
    return _renamed(required, BETA_REGION, REGION) if old else required


def _moved(required: NodeSelector | None, key: str, new_key: str, labels: Labels) -> NodeSelector | None:
    """Ask for the driver's label instead of Kubernetes'; what only the volume's own labels say is asked for too."""
    if any(requirement.key == key and requirement.values for requirement in _requirements(required)):
        return _renamed(required, key, new_key)
    values = tuple(sorted({value.strip() for value in labels.get(key, "").split("__")} - {""}))
    if not values:
        return required
    added = NodeSelectorRequirement(key=new_key, operator=IN, values=values)
    terms = required.node_selector_terms if required is not None else ()
    return NodeSelector(
        node_selector_terms=tuple(
            structs.replace(term, match_expressions=(*term.match_expressions, added))
            for term in terms or (NodeSelectorTerm(),)
        )
    )


def _renamed(required: NodeSelector | None, key: str, new_key: str) -> NodeSelector | None:
    if required is None:
        return None
    return NodeSelector(
        node_selector_terms=tuple(
            structs.replace(
                term,
                match_expressions=tuple(
                    structs.replace(one, key=new_key) if one.key == key else one for one in term.match_expressions
                ),
            )
            for term in required.node_selector_terms
        )
    )


def _requirements(required: NodeSelector | None) -> Iterator[NodeSelectorRequirement]:
    for term in required.node_selector_terms if required is not None else ():
        yield from term.match_expressions
