from typing import Any

import pytest
from tests.plugins.storage import BETA_ZONE, REGION, ZONE, affinity, csi_node, volume

from kubesched.api.objects import Volume
from kubesched.plugins.csi_migration import in_tree_disk, in_tree_plugin, is_migrated, required_affinity

EBS, EBS_ZONE = "kubernetes.io/aws-ebs", "topology.ebs.csi.aws.com/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"


@pytest.mark.parametrize(
    ("source", "labels", "driver", "handle"),
    [
        ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, {}, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://zone-a/vol-1"}}, {}, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}}, {}, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://zone-a/disk-1"}}, {}, "ebs.csi.aws.com", ""),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
        ),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {ZONE: "eu-west1-b"},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/eu-west1-b/disks/d",
        ),
        (
            {"gcePersistentDisk": {"pdName": "d"}},
            {BETA_ZONE: "eu-west1-b__eu-west1-c"},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/regions/eu-west1/disks/d",
        ),
        ({"gcePersistentDisk": {"pdName": "d"}}, {ZONE: "a-b-c__d-e-f"}, "pd.csi.storage.gke.io", ""),
        ({"azureDisk": {"diskName": "d", "diskURI": "/x/d"}}, {}, "disk.csi.azure.com", "/x/d"),
        ({"cinder": {"volumeID": "v"}}, {}, "cinder.csi.openstack.org", "v"),
        ({"vsphereVolume": {"volumePath": "[ds] v"}}, {}, "csi.vsphere.vmware.com", "[ds] v"),
        ({"portworxVolume": {"volumeID": "v"}}, {}, "pxd.portworx.com", "v"),
        ({"azureFile": {"shareName": "s"}}, {}, "file.csi.azure.com", "s"),
    ],
)
def test_what_a_driver_calls_a_disk(source: Any, labels: dict[str, str], driver: str, handle: str) -> None:
    disk = in_tree_disk(volume(labels=labels, **source).spec, labels)
    assert disk is not None
    assert (disk.plugin.driver, disk.handle) == (driver, handle)


def test_other_volumes_are_no_disks_of_old_plugins() -> None:
    assert in_tree_disk(volume(handle="h").spec) is None
    assert in_tree_disk(Volume(name="cache")) is None
    assert in_tree_plugin("csi.example.com") is None


def test_a_node_says_which_plugins_it_has_handed_over() -> None:
    plugin = in_tree_plugin(EBS)
    assert plugin is not None
    assert is_migrated(plugin, csi_node(migrated=f"a,{EBS}"))
    assert not is_migrated(plugin, csi_node(migrated=f"{EBS}-x"))
    assert not is_migrated(plugin, csi_node())
    assert not is_migrated(plugin, None)


def requirement(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


@pytest.mark.parametrize(
    ("written", "labels", "expected"),
    [
        pytest.param([requirement(ZONE, "a")], {}, [(EBS_ZONE, ("a",))], id="its zone is renamed"),
        pytest.param([requirement(BETA_ZONE, "a")], {}, [(EBS_ZONE, ("a",))], id="as is an old one"),
        pytest.param(
            [requirement(BETA_ZONE, "a"), requirement(BETA_REGION, "r")],
            {},
            [(EBS_ZONE, ("a",)), (REGION, ("r",))],
            id="an old region becomes a new one",
        ),
        pytest.param(
            [requirement(ZONE, "a"), requirement(REGION, "r")],
            {},
            [(EBS_ZONE, ("a",)), (REGION, ("r",))],
            id="a new region stays",
        ),
        pytest.param([], {ZONE: "b__a"}, [(EBS_ZONE, ("a", "b"))], id="labels alone say it too"),
        pytest.param([], {BETA_ZONE: "a"}, [(EBS_ZONE, ("a",))], id="old labels do"),
        pytest.param([requirement(ZONE, "a")], {ZONE: "b"}, [(EBS_ZONE, ("a",))], id="the affinity goes first"),
        pytest.param(
            [requirement("disk", "ssd")],
            {ZONE: "a"},
            [("disk", ("ssd",)), (EBS_ZONE, ("a",))],
            id="a label's zone is added",
        ),
        pytest.param([requirement("disk", "ssd")], {}, [("disk", ("ssd",))], id="no zone, nothing to say"),
        pytest.param([], {}, [], id="nothing at all"),
    ],
)
def test_a_migrated_disk_is_looked_for_under_its_drivers_label(
    written: list[dict[str, Any]], labels: dict[str, str], expected: list[tuple[str, tuple[str, ...]]]
) -> None:
    more: dict[str, Any] = {"nodeAffinity": affinity(*written)} if written else {}
    disk = volume(labels=labels, awsElasticBlockStore={"volumeID": "vol-1"}, **more)
    required = required_affinity(disk, csi_node(migrated=EBS))
    terms = required.node_selector_terms if required is not None else ()
    assert [(one.key, one.values) for term in terms for one in term.match_expressions] == expected


def test_a_vsphere_disk_has_labels_for_zone_and_region() -> None:
    written = affinity(requirement(ZONE, "a"), requirement(REGION, "r"))
    disk = volume(vsphereVolume={"volumePath": "v"}, nodeAffinity=written)
    required = required_affinity(disk, csi_node(migrated="kubernetes.io/vsphere-volume"))
    assert required is not None
    keys = [one.key for term in required.node_selector_terms for one in term.match_expressions]
    assert keys == ["topology.csi.vmware.com/zone", "topology.csi.vmware.com/region"]


@pytest.mark.parametrize("node", [None, csi_node(), csi_node(migrated="kubernetes.io/gce-pd")])
def test_a_disk_that_is_not_migrated_there_stays_as_it_is(node: Any) -> None:
    disk = volume(zone="a", awsElasticBlockStore={"volumeID": "vol-1"})
    assert disk.spec.node_affinity is not None
    assert required_affinity(disk, node) == disk.spec.node_affinity.required
