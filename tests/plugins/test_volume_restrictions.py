from typing import Any

import pytest
from tests.plugins.small_cluster import Cluster, node, wakes
from tests.plugins.storage import claim, pod

from kubesched.api.objects import Pod
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.events import ASSIGNED_POD_DELETE, NODE, Action, ClusterEvent, resource_name
from kubesched.framework.status import SKIP, Code
from kubesched.plugins.volume_restrictions import CLAIM_TAKEN, DISK_TAKEN, VolumeRestrictions

ONE_POD = ("ReadWriteOncePod",)


def gce(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"name": "v", "gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def ebs(name: str, read_only: bool = False) -> dict[str, Any]:
    return {"name": "v", "awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(iqn: str, read_only: bool = False, lun: int = 0) -> dict[str, Any]:
    return {"name": "v", "iscsi": {"targetPortal": "1.2.3.4", "iqn": iqn, "lun": lun, "readOnly": read_only}}


def rbd(*monitors: str, pool: str = "p", image: str = "i", read_only: bool = False) -> dict[str, Any]:
    return {"name": "v", "rbd": {"monitors": monitors, "pool": pool, "image": image, "readOnly": read_only}}


# ── disks ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("used", "wanted", "fits"),
    [
        pytest.param(gce("a"), gce("b"), True, id="gce, another disk"),
        pytest.param(gce("a"), gce("a"), False, id="gce, the same disk"),
        pytest.param(gce("a", True), gce("a", True), True, id="gce, both only read"),
        pytest.param(gce("a", True), gce("a"), False, id="gce, one of them writes"),
        pytest.param(ebs("a"), ebs("b"), True, id="ebs, another disk"),
        pytest.param(ebs("a"), ebs("a"), False, id="ebs, the same disk"),
        pytest.param(ebs("a", True), ebs("a", True), False, id="ebs is not shared, not even for reading"),
        pytest.param(iscsi("a"), iscsi("b"), True, id="iscsi, another target"),
        pytest.param(iscsi("a"), iscsi("a", lun=1), False, id="iscsi, another unit of the same target"),
        pytest.param(iscsi("a", True), iscsi("a", True), True, id="iscsi, both only read"),
        pytest.param(iscsi("a"), iscsi("a", True), False, id="iscsi, one of them writes"),
        pytest.param(rbd("m1"), rbd("m2"), True, id="rbd, another cluster"),
        pytest.param(rbd("m1", "m2"), rbd("m2", "m3"), False, id="rbd, one monitor in common"),
        pytest.param(rbd("m1"), rbd("m1", pool="q"), True, id="rbd, another pool"),
        pytest.param(rbd("m1"), rbd("m1", image="j"), True, id="rbd, another image"),
        pytest.param(rbd("m1", read_only=True), rbd("m1", read_only=True), True, id="rbd, both only read"),
        pytest.param(rbd("m1", read_only=True), rbd("m1"), False, id="rbd, one of them writes"),
        pytest.param(gce("a"), ebs("a"), True, id="disks of different kinds"),
    ],
)
def test_a_disk_is_not_attached_twice(used: dict[str, Any], wanted: dict[str, Any], fits: bool) -> None:
    cluster = Cluster(node("n1"), node("n2"), pod("there", on="n1", volumes=[used]))
    rejected = cluster.rejects(VolumeRestrictions(), pod(volumes=[wanted]))
    assert rejected == ({} if fits else {"n1": DISK_TAKEN})


def test_any_of_several_disks_is_enough() -> None:
    cluster = Cluster(node("n1"), pod("there", on="n1", volumes=[gce("a"), gce("b")]))
    assert cluster.rejects(VolumeRestrictions(), pod(volumes=[gce("c"), gce("b")])) == {"n1": DISK_TAKEN}


def test_a_pod_without_disks_and_exclusive_claims_is_not_looked_at() -> None:
    cluster = Cluster(node(), claim("shared"), pod("there", "shared", on="n1"))
    cycle = cluster.cycle(pod("p", "shared", volumes=[{"name": "cache"}]))
    assert VolumeRestrictions().pre_filter(cycle, cycle.pod, cycle.nodes) is SKIP


# ── claims for one pod ───────────────────────────────────────────────────────────────────────────────────────


def test_an_exclusive_claim_in_use_keeps_the_pod_off_every_node() -> None:
    cluster = Cluster(node("n1"), node("n2"), claim("mine", modes=ONE_POD), pod("there", "mine", on="n1"))
    answers = cluster.filter(VolumeRestrictions(), pod("p", "mine"))
    assert {name: status.message for name, status in answers.items()} == {"n1": CLAIM_TAKEN, "n2": CLAIM_TAKEN}
    assert {status.code for status in answers.values()} == {Code.UNSCHEDULABLE}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(pod("there", "other", on="n1"), id="it uses another claim"),
        pytest.param(pod("there", "mine", on="n1", namespace="elsewhere"), id="a claim of the same name elsewhere"),
        pytest.param(pod("there", "mine"), id="it is not placed yet"),
    ],
)
def test_an_exclusive_claim_that_nobody_uses_is_free(other: Pod) -> None:
    cluster = Cluster(node("n1"), claim("mine", modes=ONE_POD), claim("other", modes=ONE_POD), other)
    assert cluster.rejects(VolumeRestrictions(), pod("p", "mine")) == {}


def test_a_claim_that_is_missing_is_said_in_the_words_of_the_api_server() -> None:
    [status] = Cluster(node()).filter(VolumeRestrictions(), pod("p", "data")).values()
    assert (status.code, status.message) == (Code.UNRESOLVABLE, 'persistentvolumeclaim "data" not found')


def test_a_disk_that_is_taken_is_told_before_a_claim() -> None:
    user = pod("there", "mine", on="n1", volumes=[gce("a")])
    cluster = Cluster(node("n1"), node("n2"), claim("mine", modes=ONE_POD), user)
    rejected = cluster.rejects(VolumeRestrictions(), pod("p", "mine", volumes=[gce("a")]))
    assert rejected == {"n1": DISK_TAKEN, "n2": CLAIM_TAKEN}


def test_the_claim_is_free_when_its_users_are_thought_away_and_taken_when_they_are_back() -> None:
    users = [pod("a", "mine", "yours", on="n1"), pod("b", "mine", on="n1", namespace="elsewhere")]
    claims = [claim("mine", modes=ONE_POD), claim("yours", modes=ONE_POD)]
    cluster = Cluster(node("n1"), *claims, *users)
    plugin, cycle = VolumeRestrictions(), cluster.cycle(pod("p", "mine", "yours"))
    plugin.pre_filter(cycle, cycle.pod, cycle.nodes)
    here = NodeInfo(cycle.table, 0)
    usual = cycle.scratch

    cycle.scratch = cycle.cloned_scratch()
    plugin.remove_pod(cycle, cycle.pod, PodInfo(users[1]), here)
    assert plugin.filter(cycle, cycle.pod, here).message == CLAIM_TAKEN  # another namespace changes nothing
    plugin.remove_pod(cycle, cycle.pod, PodInfo(users[0]), here)
    assert plugin.filter(cycle, cycle.pod, here).ok
    plugin.add_pod(cycle, cycle.pod, PodInfo(users[0]), here)
    assert plugin.filter(cycle, cycle.pod, here).message == CLAIM_TAKEN

    plugin.remove_pod(cycle, cycle.pod, PodInfo(users[0]), here)
    cycle.scratch = usual
    assert plugin.filter(cycle, cycle.pod, here).message == CLAIM_TAKEN, "a thought must leave no trace"


# ── hints ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("waiting", "deleted", "expected"),
    [
        (pod(volumes=[gce("a")]), pod("q", on="n1", volumes=[gce("a")]), True),
        (pod(volumes=[gce("a")]), pod("q", on="n1", volumes=[gce("b")]), False),
        (pod(volumes=[gce("a", True)]), pod("q", on="n1", volumes=[gce("a", True)]), False),
        (pod(volumes=[ebs("a")]), pod("q", on="n1", volumes=[ebs("a")]), True),
        (pod(volumes=[rbd("m")]), pod("q", on="n1", volumes=[rbd("m")]), True),
        (pod(volumes=[iscsi("i")]), pod("q", on="n1", volumes=[iscsi("i")]), True),
        (pod("p", "data"), pod("q", "data", on="n1"), True),
        (pod("p", "data"), pod("q", "other", on="n1"), False),
        (pod("p", "data"), pod("q", "data", on="n1", namespace="elsewhere"), False),
        (pod(volumes=[gce("a")]), pod("q", on="n1", volumes=[gce("a")], namespace="elsewhere"), False),
        (pod("p", "data"), pod("q", on="n1"), False),
    ],
)
def test_deletions_that_wake(waiting: Pod, deleted: Pod, expected: bool) -> None:
    assert wakes(VolumeRestrictions(), ASSIGNED_POD_DELETE, waiting, deleted, None) is expected


@pytest.mark.parametrize(
    ("name", "namespace", "expected"), [("data", "default", True), ("other", "default", False), ("data", "x", False)]
)
def test_claims_that_wake(name: str, namespace: str, expected: bool) -> None:
    added = ClusterEvent(resource_name("PersistentVolumeClaim"), Action.ADD)
    new = claim(name, namespace=namespace)
    assert wakes(VolumeRestrictions(), added, pod("p", "data"), None, new) is expected


def test_a_new_node_wakes() -> None:
    assert wakes(VolumeRestrictions(), ClusterEvent(NODE, Action.ADD), pod("p", "data"), None, node())
