from collections.abc import Mapping, Sequence

import pytest
from tests.plugins.small_cluster import Cluster, node, wakes
from tests.plugins.storage import BETA_ZONE, REGION, ZONE, claim, pod, storage_class, volume

from kubesched.api.objects import KubeObject, PersistentVolume, StorageClass
from kubesched.framework.events import NODE, Action, ClusterEvent, resource_name
from kubesched.framework.status import SKIP, Code
from kubesched.plugins.volume_zone import REASON, VolumeZone

BETA_REGION = "failure-domain.beta.kubernetes.io/region"
Labels = Mapping[str, str]


@pytest.mark.parametrize(
    ("of_volume", "of_node", "fits"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, True, id="the same zone"),
        pytest.param({ZONE: "a"}, {ZONE: "b"}, False, id="another zone"),
        pytest.param({ZONE: "a"}, {}, True, id="a node of no zone takes everything"),
        pytest.param({ZONE: "a"}, {"other": "b"}, True, id="nor do other labels make a zone"),
        pytest.param({}, {ZONE: "a"}, True, id="a volume of no zone goes everywhere"),
        pytest.param({"other": "a"}, {ZONE: "b"}, True, id="other labels of a volume do not count"),
        pytest.param({REGION: "r"}, {REGION: "r", ZONE: "a"}, True, id="the same region"),
        pytest.param({REGION: "r"}, {REGION: "s", ZONE: "a"}, False, id="another region"),
        pytest.param({REGION: "r"}, {ZONE: "a"}, False, id="a node with a zone and no region"),
        pytest.param({REGION: "r", ZONE: "a"}, {REGION: "r", ZONE: "b"}, False, id="the region alone is not enough"),
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, True, id="one of several zones"),
        pytest.param({ZONE: "a__b"}, {ZONE: "c"}, False, id="none of several zones"),
        pytest.param({ZONE: "a__ b"}, {ZONE: "b"}, True, id="several zones, written wide"),
        pytest.param({ZONE: "a____b"}, {ZONE: "c"}, True, id="a list with a hole says nothing"),
        pytest.param({BETA_ZONE: "a"}, {BETA_ZONE: "a"}, True, id="old labels on both"),
        pytest.param({BETA_ZONE: "a"}, {BETA_ZONE: "b"}, False, id="old labels that differ"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "a"}, True, id="an old volume, a new node"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "b"}, False, id="an old volume, a new node elsewhere"),
        pytest.param(
            {BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, False, id="the node's label of the same age counts"
        ),
        pytest.param({ZONE: "a"}, {BETA_ZONE: "a"}, False, id="a new volume, an old node"),
        pytest.param({BETA_REGION: "r"}, {REGION: "r"}, True, id="an old volume's region, a new node"),
    ],
)
def test_a_pod_goes_to_the_zone_of_its_volume(of_volume: Labels, of_node: Labels, fits: bool) -> None:
    cluster = Cluster(node("n1", labels=of_node), claim("data", "vol"), volume("vol", labels=of_volume))
    assert cluster.rejects(VolumeZone(), pod("p", "data")) == ({} if fits else {"n1": REASON})


def test_all_volumes_must_be_reachable() -> None:
    zones = [node(f"n-{zone}", labels={ZONE: zone}) for zone in "abc"]
    volumes = [volume("one", labels={ZONE: "a__b"}), volume("two", labels={ZONE: "b__c"})]
    cluster = Cluster(*zones, *volumes, claim("first", "one"), claim("second", "two"))

    rejected = cluster.filter(VolumeZone(), pod("p", "first", "second"))
    assert [name for name, status in rejected.items() if status.ok] == ["n-b"]
    assert rejected["n-a"].code is Code.UNRESOLVABLE


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([], 'persistentvolumeclaim "data" not found', id="no such claim"),
        pytest.param(
            [claim("data", storage_class=None)],
            "PersistentVolumeClaim had no pv name and storageClass name",
            id="neither volume nor class",
        ),
        pytest.param([claim("data")], 'storageclass.storage.k8s.io "wait" not found', id="no such class"),
        pytest.param(
            [claim("data"), storage_class(mode=None)],
            'VolumeBindingMode not set for StorageClass "wait"',
            id="a class of no mode",
        ),
        pytest.param(
            [claim("data"), storage_class(mode="Immediate")],
            "PersistentVolume had no name",
            id="its controller is yet to bind it",
        ),
        pytest.param([claim("data", "vol")], 'persistentvolume "vol" not found', id="no such volume"),
    ],
)
def test_claims_that_lead_nowhere(objects: Sequence[KubeObject], reason: str) -> None:
    [status] = Cluster(node(), *objects).filter(VolumeZone(), pod("p", "data")).values()
    assert (status.code, status.message) == (Code.UNRESOLVABLE, reason)


def test_a_claim_without_a_name() -> None:
    [status] = Cluster(node()).filter(VolumeZone(), pod("p", "")).values()
    assert status.message == "PersistentVolumeClaim had no name"


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([claim("data"), storage_class()], id="its volume is chosen later"),
        pytest.param([claim("data", "vol"), volume("vol")], id="a volume of no zone"),
    ],
)
def test_a_pod_whose_volumes_have_no_place_is_not_looked_at(objects: Sequence[KubeObject]) -> None:
    cycle = Cluster(node(labels={ZONE: "a"}), *objects).cycle(pod("p", "data"))
    assert VolumeZone().pre_filter(cycle, cycle.pod, cycle.nodes) is SKIP


# ── hints ────────────────────────────────────────────────────────────────────────────────────────────────────

CLAIM, VOLUME, CLASS = (resource_name(kind) for kind in ("PersistentVolumeClaim", "PersistentVolume", "StorageClass"))


@pytest.mark.parametrize(
    ("name", "namespace", "expected"), [("data", "default", True), ("x", "default", False), ("data", "x", False)]
)
@pytest.mark.parametrize("action", [Action.ADD, Action.UPDATE])
def test_claims_that_wake(action: Action, name: str, namespace: str, expected: bool) -> None:
    new = claim(name, namespace=namespace)
    old = None if action is Action.ADD else new
    assert wakes(VolumeZone(), ClusterEvent(CLAIM, action), pod("p", "data"), old, new) is expected


@pytest.mark.parametrize(
    ("new", "expected"),
    [(storage_class(), True), (storage_class(mode="Immediate"), False), (storage_class(mode=None), False)],
)
def test_classes_that_wake(new: StorageClass, expected: bool) -> None:
    assert wakes(VolumeZone(), ClusterEvent(CLASS, Action.ADD), pod("p", "data"), None, new) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, volume(), True, id="a new volume"),
        pytest.param(volume(), volume(labels={ZONE: "a"}), True, id="it got a zone"),
        pytest.param(volume(labels={ZONE: "a"}), volume(labels={ZONE: "b"}), True, id="its zone changed"),
        pytest.param(volume(labels={ZONE: "a"}), volume(labels={BETA_ZONE: "a"}), True, id="its label did"),
        pytest.param(volume(labels={ZONE: "a"}), volume(labels={ZONE: "a", "x": "y"}), False, id="another label"),
        pytest.param(volume(), volume(phase="Bound"), False, id="no label at all"),
    ],
)
def test_volumes_that_wake(old: PersistentVolume | None, new: PersistentVolume, expected: bool) -> None:
    action = Action.ADD if old is None else Action.UPDATE
    assert wakes(VolumeZone(), ClusterEvent(VOLUME, action), pod("p", "data"), old, new) is expected


@pytest.mark.parametrize("action", [Action.ADD, Action.UPDATE_NODE_LABEL])
def test_nodes_wake(action: Action) -> None:
    assert wakes(VolumeZone(), ClusterEvent(NODE, action), pod("p", "data"), None, node())
