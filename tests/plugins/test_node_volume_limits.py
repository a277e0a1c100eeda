from collections.abc import Sequence
from typing import Any

import pytest
from tests.plugins.small_cluster import Cluster, node, wakes
from tests.plugins.storage import (
    DRIVER,
    attachment,
    claim,
    csi_node,
    ephemeral,
    owned_by,
    pod,
    storage_class,
    volume,
)

from kubesched.api.objects import (
    CSINode,
    KubeObject,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    VolumeAttachment,
)
from kubesched.core.runner import Broken, verdict_of
from kubesched.framework.events import ASSIGNED_POD_DELETE, Action, ClusterEvent, resource_name
from kubesched.framework.profile import Tiers
from kubesched.framework.status import SKIP, Code
from kubesched.framework.tools import Tools
from kubesched.plugins.node_volume_limits import REASON, NodeVolumeLimits
from kubesched.testing.parity import Desk

EBS = "kubernetes.io/aws-ebs"


def disks(*names: str, driver: str = DRIVER) -> list[KubeObject]:
    """Claims bound to CSI volumes of the same names."""
    volumes = [volume(f"vol-{name}", handle=f"h-{name}", driver=driver) for name in names]
    return [*volumes, *(claim(name, f"vol-{name}") for name in names)]


def ebs(disk: str) -> dict[str, Any]:
    return {"name": f"v-{disk}", "awsElasticBlockStore": {"volumeID": disk}}


def limited(to: int, *, migrated: str = "") -> CSINode:
    return csi_node("n1", csi_example_com=to, ebs_csi_aws_com=to, migrated=migrated)


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("wanted", "limit", "fits"),
    [
        pytest.param(pod("p", "c"), 3, True, id="the last place"),
        pytest.param(pod("p", "c"), 2, False, id="one too many"),
        pytest.param(pod("p", "c", "d"), 3, False, id="two, and room for one"),
        pytest.param(pod("p", "a"), 2, True, id="a volume that is there already takes no place"),
        pytest.param(pod("p", "a", "c"), 2, False, id="one that is there and one that is not"),
        pytest.param(pod("p", "c", "c"), 3, True, id="one volume named twice takes one place"),
        pytest.param(pod("p"), 0, True, id="no volume"),
    ],
)
def test_a_node_holds_only_so_many_volumes_of_a_driver(wanted: Pod, limit: int, fits: bool) -> None:
    there = [pod("x", "a", "b", on="n1"), pod("y", "b", on="n1"), pod("z", "d", on="n2")]
    cluster = Cluster(node("n1"), node("n2"), limited(limit), *disks(*"abcd"), *there)
    answers = cluster.filter(NodeVolumeLimits(), wanted)
    assert {name: status.message for name, status in answers.items() if not status.ok} == (
        {} if fits else {"n1": REASON}
    )
    assert fits or answers["n1"].code is Code.UNSCHEDULABLE


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([], id="no CSINode"),
        pytest.param([csi_node("n1")], id="no driver"),
        pytest.param([csi_node("n1", csi_example_com=None)], id="no count"),
        pytest.param([csi_node("n1", other_com=0)], id="a limit for another driver"),
    ],
)
def test_no_limit_is_no_limit(objects: Sequence[KubeObject]) -> None:
    cluster = Cluster(node("n1"), *objects, *disks("a"))
    assert cluster.rejects(NodeVolumeLimits(), pod("p", "a")) == {}


def test_every_driver_has_its_own_limit() -> None:
    both = csi_node("n1", csi_example_com=1, other_com=1)
    cluster = Cluster(node("n1"), both, *disks("a"), *disks("b", driver="other.com"), pod("x", "b", on="n1"))
    assert cluster.rejects(NodeVolumeLimits(), pod("p", "a")) == {}


def test_the_lower_limit_is_found_beside_a_higher_one() -> None:
    both = csi_node("n1", csi_example_com=1, other_com=100)
    there = pod("x", "c", on="n1")
    cluster = Cluster(node("n1"), both, *disks("a", "c"), *disks("b", driver="other.com"), there)
    assert cluster.rejects(NodeVolumeLimits(), pod("p", "a", "b")) == {"n1": REASON}
    assert cluster.rejects(NodeVolumeLimits(), pod("p", "b")) == {}


def test_volumes_attached_for_no_pod_count_too() -> None:
    attached = [attachment("one", "vol-b"), attachment("two", "vol-c", node="n2"), attachment("three", "missing")]
    cluster = Cluster(node("n1"), limited(1), *disks(*"abc"), *attached)
    assert cluster.rejects(NodeVolumeLimits(), pod("p", "a")) == {"n1": REASON}


def test_a_volume_both_used_and_attached_counts_once() -> None:
    cluster = Cluster(node("n1"), limited(2), *disks("a", "b"), pod("x", "b", on="n1"), attachment("one", "vol-b"))
    assert cluster.rejects(NodeVolumeLimits(), pod("p", "a")) == {}


def test_the_pods_own_volume_attached_for_nobody_counts_twice_as_in_kube_scheduler() -> None:
    cluster = Cluster(node("n1"), limited(1), *disks("a"), attachment("one", "vol-a"))
    assert cluster.rejects(NodeVolumeLimits(), pod("p", "a")) == {"n1": REASON}


# ── claims that have no volume yet ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("objects", "counts"),
    [
        pytest.param([claim("new"), storage_class()], True, id="its class has the driver"),
        pytest.param([claim("new", "gone"), storage_class()], True, id="its volume is missing"),
        pytest.param([claim("new"), storage_class(provisioner="other.com")], False, id="its class has another driver"),
        pytest.param([claim("new")], False, id="its class is missing"),
        pytest.param([claim("new", storage_class=None)], False, id="it has no class"),
        pytest.param([claim("new", "local"), volume("local")], False, id="a volume of no driver"),
    ],
)
def test_a_claim_without_a_volume_takes_the_place_of_one_to_come(objects: Sequence[KubeObject], counts: bool) -> None:
    cluster = Cluster(node("n1"), limited(1), *objects, *disks("a"), pod("x", "a", on="n1"))
    assert cluster.rejects(NodeVolumeLimits(), pod("p", "new")) == ({"n1": REASON} if counts else {})


def test_two_claims_to_come_take_two_places() -> None:
    cluster = Cluster(node("n1"), limited(1), claim("one"), claim("two"), storage_class())
    assert cluster.rejects(NodeVolumeLimits(), pod("p", "one", "two")) == {"n1": REASON}


def test_a_missing_claim_is_found_out() -> None:
    [status] = Cluster(node("n1"), limited(1)).filter(NodeVolumeLimits(), pod("p", "data")).values()
    text = 'looking up PVC default/data: persistentvolumeclaim "data" not found'
    assert (status.code, status.message) == (Code.UNRESOLVABLE, text)


def test_the_claim_of_an_ephemeral_volume_counts() -> None:
    mine = claim("p-scratch", "vol-e", owners=owned_by("p"))
    cluster = Cluster(node("n1"), limited(0), mine, volume("vol-e", handle="e"))
    assert cluster.rejects(NodeVolumeLimits(), pod(volumes=[ephemeral()])) == {"n1": REASON}


def test_a_claim_made_for_another_pod_ends_the_attempt() -> None:
    cluster = Cluster(node("n1"), claim("p-scratch", owners=owned_by("q")))
    cycle = cluster.cycle(pod(volumes=[ephemeral()]))
    text = "PVC default/p-scratch was not created for pod default/p (pod is not owner)"
    plugin = NodeVolumeLimits()
    for tiers in (
        Tiers(plugin.name, plugin, plugin.filter, None),
        Tiers(plugin.name, plugin, plugin.filter, plugin.filter_all),
    ):
        with pytest.raises(Broken, match=text.replace("(", r"\(").replace(")", r"\)")):
            verdict_of(cycle, tiers, cycle.nodes)


def test_a_placed_pods_claim_that_was_made_for_another_counts_for_nobody() -> None:
    foreign = claim("x-scratch", "vol-e", owners=owned_by("q"))
    there = pod("x", on="n1", volumes=[ephemeral()])
    cluster = Cluster(node("n1"), limited(1), foreign, volume("vol-e", handle="e"), there, *disks("a"))
    assert cluster.rejects(NodeVolumeLimits(), pod("p", "a")) == {}


# ── disks of the old plugins ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("migrated", [EBS, "kubernetes.io/gce-pd", ""])
def test_in_tree_disks_count_as_their_drivers_whatever_the_node_says_was_migrated(migrated: str) -> None:
    cluster = Cluster(node("n1"), limited(1, migrated=migrated), pod("x", on="n1", volumes=[ebs("vol-1")]))
    assert cluster.rejects(NodeVolumeLimits(), pod(volumes=[ebs("vol-2")])) == {"n1": REASON}


def test_a_disk_is_the_same_behind_a_claim_and_in_a_pod() -> None:
    behind = volume("pv", awsElasticBlockStore={"volumeID": "aws://zone-a/vol-1"})
    objects = [limited(1, migrated=EBS), behind, claim("data", "pv"), pod("x", "data", on="n1")]
    assert Cluster(node("n1"), *objects).rejects(NodeVolumeLimits(), pod(volumes=[ebs("vol-1")])) == {}


def test_a_class_of_an_old_plugin_makes_volumes_of_its_driver() -> None:
    objects = [limited(0, migrated=EBS), claim("new"), storage_class(provisioner=EBS)]
    assert Cluster(node("n1"), *objects).rejects(NodeVolumeLimits(), pod("p", "new")) == {"n1": REASON}


@pytest.mark.parametrize("volumes", [[], [{"name": "cache"}], [{"name": "v", "csi": {"driver": DRIVER}}]])
def test_a_pod_without_attachable_volumes_is_not_looked_at(volumes: list[dict[str, Any]]) -> None:
    cycle = Cluster(node()).cycle(pod(volumes=volumes))
    assert NodeVolumeLimits().pre_filter(cycle, cycle.pod, cycle.nodes) is SKIP


# ── hints ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("deleted", "expected"),
    [
        pytest.param(pod("q", "data", on="n1"), True, id="it had a claim"),
        pytest.param(pod("q", on="n1", volumes=[ephemeral()]), True, id="it had an ephemeral volume"),
        pytest.param(pod("q", on="n1", volumes=[ebs("vol-1")]), True, id="it had a disk that may be migrated"),
        pytest.param(pod("q", on="n1", volumes=[{"name": "cache"}]), False, id="it had nothing to detach"),
        pytest.param(pod("q", "data"), False, id="it was nowhere"),
        pytest.param(pod("q", "data", status={"nominatedNodeName": "n1"}), True, id="it was nominated"),
    ],
)
def test_deletions_that_wake(deleted: Pod, expected: bool) -> None:
    event = ASSIGNED_POD_DELETE
    assert wakes(NodeVolumeLimits(), event, pod("p", "data"), deleted, None) is expected


@pytest.mark.parametrize(
    ("waiting", "name", "namespace", "expected"),
    [
        (pod("p", "data"), "data", "default", True),
        (pod("p", "data"), "other", "default", False),
        (pod("p", "data"), "data", "elsewhere", False),
        (pod(volumes=[ephemeral()]), "p-scratch", "default", True),
        (pod(volumes=[ephemeral()]), "scratch", "default", False),
    ],
)
def test_claims_that_wake(waiting: Pod, name: str, namespace: str, expected: bool) -> None:
    event = ClusterEvent(resource_name("PersistentVolumeClaim"), Action.ADD)
    assert wakes(NodeVolumeLimits(), event, waiting, None, claim(name, namespace=namespace)) is expected


@pytest.mark.parametrize(
    ("waiting", "detached", "expected"),
    [
        (pod("p", "data"), attachment("a", "vol"), True),
        (pod("p", "data"), attachment("a", "vol", attacher="other.com"), True),
        (pod(volumes=[ebs("vol-1")]), attachment("a", "vol", attacher="ebs.csi.aws.com"), True),
        (pod(volumes=[ebs("vol-1")]), attachment("a", "vol", attacher="other.com"), False),
        (pod(volumes=[{"name": "cache"}]), attachment("a", "vol"), False),
        (pod(), attachment("a", "vol"), False),
    ],
)
def test_detachments_that_wake(waiting: Pod, detached: VolumeAttachment, expected: bool) -> None:
    event = ClusterEvent(resource_name("VolumeAttachment"), Action.DELETE)
    assert wakes(NodeVolumeLimits(), event, waiting, detached, None) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (csi_node(a=1), csi_node(a=2), True),
        (csi_node(a=2), csi_node(a=1), False),
        (csi_node(a=1), csi_node(a=1, b=1), True),
        (csi_node(a=1, b=2), csi_node(a=1, b=2), False),
        (csi_node(a=None), csi_node(a=1), True),
        (csi_node(a=1), csi_node(a=None), True),
        (csi_node(a=1, b=1), csi_node(b=1), True),
    ],
)
def test_limits_that_wake(old: CSINode, new: CSINode, expected: bool) -> None:
    event = ClusterEvent(resource_name("CSINode"), Action.UPDATE)
    assert wakes(NodeVolumeLimits(), event, pod("p", "data"), old, new) is expected


def test_a_new_csi_node_wakes() -> None:
    event = ClusterEvent(resource_name("CSINode"), Action.ADD)
    assert wakes(NodeVolumeLimits(), event, pod("p", "data"), None, csi_node())


@pytest.mark.parametrize(("new", "expected"), [(volume("vol"), True), (volume("vol", handle="h"), False)])
def test_a_volume_of_no_driver_wakes_for_it_takes_no_place(new: PersistentVolume, expected: bool) -> None:
    event = ClusterEvent(resource_name("PersistentVolume"), Action.ADD)
    assert wakes(NodeVolumeLimits(), event, pod("p", "data"), None, new) is expected


@pytest.mark.parametrize(
    ("found", "old", "expected"),
    [
        pytest.param(volume("vol"), claim("other"), True, id="a place it was counted for is free"),
        pytest.param(volume("vol", handle="h"), claim("other"), False, id="it takes the place it was counted for"),
        pytest.param(volume("vol"), None, False, id="it was not counted"),
    ],
)
def test_a_claim_of_another_that_is_bound_to_a_volume_of_no_driver_wakes(
    found: PersistentVolume, old: PersistentVolumeClaim | None, expected: bool
) -> None:
    tools = Tools("NodeVolumeLimits")
    tools.attach(Desk(Cluster(found).mirror))
    event = ClusterEvent(resource_name("PersistentVolumeClaim"), Action.UPDATE)
    assert wakes(NodeVolumeLimits(tools), event, pod("p", "data"), old, claim("other", "vol")) is expected
