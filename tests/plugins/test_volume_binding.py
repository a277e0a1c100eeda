"""Where a pod's claims can be met: what VolumeBinding answers, in both tiers, and what wakes its pods."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec import structs
from tests.plugins.small_cluster import Cluster, node, wakes
from tests.plugins.storage import (
    BETA_ZONE,
    DRIVER,
    LOCAL,
    SELECTED_NODE,
    ZONE,
    affinity,
    capacity,
    claim,
    csi_driver,
    csi_node,
    ephemeral,
    owned_by,
    pod,
    storage_class,
    volume,
)

from kubesched.api.objects import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    KubeObject,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)
from kubesched.framework.events import NODE, Action, ClusterEvent, resource_name
from kubesched.framework.features import Features
from kubesched.framework.status import SKIP, Code, Status
from kubesched.framework.tools import Tools
from kubesched.plugins.scoring_strategy import UtilizationShapePoint
from kubesched.plugins.volume_binding import UNBOUND, VolumeBinding, VolumeBindingArgs, validate_volume_binding
from kubesched.plugins.volume_search import BIND_CONFLICT, NODE_CONFLICT, NOT_ENOUGH_SPACE, VOLUME_MISSING

A, B = node("a", labels={ZONE: "za"}), node("b", labels={ZONE: "zb"})


def before(*objects: KubeObject, wanted: Pod | None = None) -> Status:
    """What pre_filter answers."""
    cycle = Cluster(A, B, *objects).cycle(wanted or pod("p", "data"))
    answer = VolumeBinding().pre_filter(cycle, cycle.pod, cycle.nodes)
    assert isinstance(answer, Status)
    return answer


def rejects(*objects: KubeObject, wanted: Pod | None = None) -> dict[str, str]:
    return Cluster(A, B, *objects).rejects(VolumeBinding(), wanted or pod("p", "data"))


# ── before any node is looked at ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([], 'persistentvolumeclaim "data" not found', id="no such claim"),
        pytest.param(
            [claim("data", "vol", phase="Lost")],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "vol"',
            id="its volume was lost",
        ),
        pytest.param(
            [claim("data", deleted="2026-01-01T00:00:00Z")],
            'persistentvolumeclaim "data" is being deleted',
            id="it is being deleted",
        ),
        pytest.param([claim("data"), storage_class(mode="Immediate")], UNBOUND, id="a controller is to bind it"),
        pytest.param([claim("data")], UNBOUND, id="its class is missing"),
        pytest.param([claim("data", storage_class=None)], UNBOUND, id="it has no class"),
        pytest.param(
            [claim("data", "vol", bound=False), storage_class()], UNBOUND, id="its volume is chosen but not bound yet"
        ),
    ],
)
def test_claims_that_no_node_can_help(objects: Sequence[KubeObject], reason: str) -> None:
    status = before(*objects)
    assert (status.code, status.message) == (Code.UNRESOLVABLE, reason)


def test_a_class_of_no_mode_is_an_error() -> None:
    status = before(claim("data"), storage_class(mode=None))
    assert (status.code, status.message) == (Code.ERROR, 'VolumeBindingMode not set for StorageClass "wait"')


def test_the_first_claim_with_a_problem_is_told() -> None:
    status = before(claim("one", deleted="2026-01-01T00:00:00Z"), wanted=pod("p", "one", "two"))
    assert status.message == 'persistentvolumeclaim "one" is being deleted'


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param(
            [],
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"',
            id="not made yet",
        ),
        pytest.param(
            [claim("p-scratch")],
            "PVC default/p-scratch was not created for pod default/p (pod is not owner)",
            id="made for nobody",
        ),
        pytest.param(
            [claim("p-scratch", owners=owned_by("q"))],
            "PVC default/p-scratch was not created for pod default/p (pod is not owner)",
            id="made for another",
        ),
    ],
)
def test_claims_of_ephemeral_volumes(objects: Sequence[KubeObject], reason: str) -> None:
    status = before(*objects, wanted=pod(volumes=[ephemeral()]))
    assert (status.code, status.message) == (Code.UNRESOLVABLE, reason)


def test_an_ephemeral_volumes_own_claim_is_met_like_any_other() -> None:
    mine = claim("p-scratch", "vol", owners=owned_by("p"))
    assert rejects(mine, volume(of=mine, zone="za"), wanted=pod(volumes=[ephemeral()])) == {"b": NODE_CONFLICT}


def test_a_pod_without_claims_is_not_looked_at() -> None:
    assert before(wanted=pod(volumes=[{"name": "cache"}])) is SKIP


# ── bound claims ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_bound_volume_keeps_the_pod_where_it_can_be_reached() -> None:
    assert rejects(claim("data", "vol"), volume(zone="za")) == {"b": NODE_CONFLICT}


def test_evicting_pods_would_not_help() -> None:
    answers = Cluster(A, B, claim("data", "vol"), volume(zone="za")).filter(VolumeBinding(), pod("p", "data"))
    assert [status.code for status in answers.values()] == [Code.SUCCESS, Code.UNRESOLVABLE]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(None, {}, id="no affinity: reachable from everywhere"),
        pytest.param({}, {}, id="an empty one too"),
        pytest.param({"required": {"nodeSelectorTerms": []}}, {"a", "b"}, id="no term: from nowhere"),
        pytest.param(affinity({"key": ZONE, "operator": "NotIn", "values": ["za"]}), {"a"}, id="NotIn"),
        pytest.param(affinity({"key": ZONE, "operator": "Exists"}), {}, id="Exists"),
        pytest.param(affinity({"key": ZONE, "operator": "DoesNotExist"}), {"a", "b"}, id="DoesNotExist"),
        pytest.param(
            affinity({"key": ZONE, "operator": "In", "values": ["za"]}, {"key": "x", "operator": "Exists"}),
            {"a", "b"},
            id="all conditions of a term",
        ),
        pytest.param(
            {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
                        for zone in ("za", "zb")
                    ]
                }
            },
            {},
            id="one of the terms",
        ),
        pytest.param(affinity({"key": ZONE, "operator": "Nonsense"}), {"a", "b"}, id="a broken term matches nothing"),
        pytest.param(
            {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
                    ]
                }
            },
            {},
            id="a node's name is not asked about",
        ),
    ],
)
def test_the_affinity_of_a_volume(written: Any, expected: set[str]) -> None:
    rejected = rejects(claim("data", "vol"), volume(nodeAffinity=written))
    assert rejected == dict.fromkeys(sorted(expected), NODE_CONFLICT)


def test_a_volume_that_is_missing_keeps_the_pod_off_every_node() -> None:
    assert rejects(claim("data", "vol")) == {"a": VOLUME_MISSING, "b": VOLUME_MISSING}


def test_the_first_of_two_bound_claims_that_fails_is_told() -> None:
    objects = [claim("one", "here"), claim("two", "gone"), volume("here", zone="za")]
    assert rejects(*objects, wanted=pod("p", "one", "two")) == {"a": VOLUME_MISSING, "b": NODE_CONFLICT}


@pytest.mark.parametrize(
    ("migrated", "expected"), [("kubernetes.io/aws-ebs", {"a": NODE_CONFLICT}), ("", {"b": NODE_CONFLICT})]
)
def test_a_migrated_disk_is_looked_for_under_its_drivers_label(migrated: str, expected: dict[str, str]) -> None:
    disk = volume(zone="za", zone_key=BETA_ZONE, awsElasticBlockStore={"volumeID": "vol-1"})
    nodes = [
        node("a", labels={BETA_ZONE: "za", "topology.ebs.csi.aws.com/zone": "zb"}),
        node("b", labels={BETA_ZONE: "zb", "topology.ebs.csi.aws.com/zone": "za"}),
    ]
    objects = [csi_node("a", migrated=migrated), csi_node("b", migrated=migrated), claim("data", "vol"), disk]
    assert Cluster(*nodes, *objects).rejects(VolumeBinding(), pod("p", "data")) == expected


# ── volumes that are there ───────────────────────────────────────────────────────────────────────────────────


def other_claim() -> PersistentVolumeClaim:
    return claim("other")


@pytest.mark.parametrize(
    ("wanted", "offered", "fits"),
    [
        pytest.param(claim(), volume(), True, id="the same in everything"),
        pytest.param(claim(size="2Gi"), volume(size="1Gi"), False, id="too small"),
        pytest.param(claim(size="1Gi"), volume(size="1024Mi"), True, id="the same size, written otherwise"),
        pytest.param(claim(size=None), volume(size="1"), True, id="any size will do"),
        pytest.param(claim(), volume(storage_class="other"), False, id="another class"),
        pytest.param(claim(), volume(storage_class=""), False, id="no class"),
        pytest.param(
            claim(),
            volume(storage_class="x", annotations={"volume.beta.kubernetes.io/storage-class": "wait"}),
            True,
            id="the class in an annotation of old times",
        ),
        pytest.param(claim(), volume(phase="Bound"), False, id="not available"),
        pytest.param(claim(), volume(phase="Released"), False, id="released, not recycled"),
        pytest.param(claim(), volume(deleted="2026-01-01T00:00:00Z"), False, id="being deleted"),
        pytest.param(claim(), volume(of=other_claim()), False, id="somebody else's"),
        pytest.param(claim(modes=["ReadWriteMany"]), volume(), False, id="it cannot be used so"),
        pytest.param(claim(), volume(modes=["ReadWriteOnce", "ReadOnlyMany"]), True, id="it can be used in more ways"),
        pytest.param(claim(volumeMode="Block"), volume(), False, id="a file system, not a device"),
        pytest.param(claim(volumeMode="Filesystem"), volume(), True, id="a file system unless it says otherwise"),
        pytest.param(claim(volumeMode="Block"), volume(volumeMode="Block"), True, id="a device"),
        pytest.param(claim(volumeAttributesClassName="fast"), volume(), False, id="other attributes"),
        pytest.param(claim(volumeAttributesClassName=""), volume(), True, id="no attributes are no attributes"),
        pytest.param(claim(), volume(volumeAttributesClassName="fast"), False, id="attributes nobody asked for"),
        pytest.param(claim(selector={"matchLabels": {"x": "1"}}), volume(labels={"x": "1"}), True, id="it is selected"),
        pytest.param(claim(selector={"matchLabels": {"x": "1"}}), volume(labels={"x": "2"}), False, id="it is not"),
        pytest.param(claim(selector={}), volume(), True, id="an empty selector selects all"),
        pytest.param(claim(), volume(zone="za"), True, id="it can be reached"),
        pytest.param(claim(), volume(zone="zb"), False, id="it cannot be reached"),
        # what says it belongs to the claim
        pytest.param(claim(), volume(of=claim(), phase="Bound"), True, id="its own, whatever the phase"),
        pytest.param(claim(), volume(of=claim(), storage_class="x"), False, id="its own, though of another class"),
        pytest.param(claim(), volume(of=claim(), modes=[]), True, id="its own, whatever it can be used for"),
        pytest.param(claim(), volume(of=claim(), size="1Mi"), False, id="its own, but too small"),
        pytest.param(claim(), volume(of=claim(), zone="zb"), False, id="its own, out of reach"),
        pytest.param(
            claim(), volume(claimRef={"namespace": "default", "name": "data"}), True, id="its own, by name alone"
        ),
        pytest.param(
            claim(),
            volume(claimRef={"namespace": "default", "name": "data", "uid": "old"}),
            False,
            id="it belonged to a claim of this name that is gone",
        ),
        pytest.param(claim(), volume(claimRef={"namespace": "x", "name": "data"}), False, id="of another namespace"),
    ],
)
def test_which_volume_serves_a_claim(wanted: PersistentVolumeClaim, offered: PersistentVolume, fits: bool) -> None:
    rejected = Cluster(A, LOCAL, wanted, offered).rejects(VolumeBinding(), pod("p", "data"))
    assert rejected == ({} if fits else {"a": BIND_CONFLICT})


def chosen(*objects: KubeObject, wanted: Pod | None = None, on: str = "a") -> dict[str, str]:
    """The volume assumed for each claim when the pod is placed on a node."""
    cycle = Cluster(A, B, LOCAL, *objects).cycle(wanted or pod("p", "data"))
    plugin = VolumeBinding()
    assert plugin.pre_filter(cycle, cycle.pod, cycle.nodes).ok
    assert plugin.reserve(cycle, cycle.pod, on).ok
    assumed = [obj for obj in cycle.objects.assumed() if isinstance(obj, PersistentVolume)]
    return {obj.spec.claim_ref.name: obj.name for obj in assumed if obj.spec.claim_ref is not None}


def test_the_smallest_volume_that_serves_is_chosen() -> None:
    volumes = [volume("large", size="5Gi"), volume("small", size="2Gi"), volume("tiny", size="1Mi")]
    assert chosen(claim(), *volumes) == {"data": "small"}


def test_of_equal_volumes_the_first_is_chosen() -> None:
    assert chosen(claim(), volume("z"), volume("a"), volume("m")) == {"data": "z"}


def test_a_volume_meant_for_the_claim_is_chosen_though_a_smaller_one_is_free() -> None:
    meant = volume("meant", size="9Gi", claimRef={"namespace": "default", "name": "data"})
    assert chosen(claim(), volume("small"), meant) == {"data": "meant"}


def test_a_volume_meant_for_the_claim_but_out_of_reach_leaves_no_other_choice() -> None:
    meant = volume("meant", claimRef={"namespace": "default", "name": "data"}, zone="zb")
    assert rejects(claim(), LOCAL, volume("small"), meant) == {"a": BIND_CONFLICT}


def test_each_node_gets_the_volume_it_can_reach() -> None:
    volumes = [volume("there", zone="zb"), volume("here", size="2Gi", zone="za")]
    assert chosen(claim(), *volumes, on="a") == {"data": "here"}
    assert chosen(claim(), *volumes, on="b") == {"data": "there"}


def test_two_claims_do_not_get_the_same_volume() -> None:
    both = pod("p", "one", "two")
    claims = [claim("one"), claim("two")]
    assert rejects(*claims, LOCAL, volume(), wanted=both) == {"a": BIND_CONFLICT, "b": BIND_CONFLICT}
    assert chosen(*claims, volume("x"), volume("y"), wanted=both) == {"one": "x", "two": "y"}


def test_the_smaller_claim_chooses_first() -> None:
    claims = [claim("large", size="3Gi"), claim("small", size="1Gi")]
    volumes = [volume("x", size="3Gi"), volume("y", size="4Gi")]
    assert chosen(*claims, *volumes, wanted=pod("p", "large", "small")) == {"small": "x", "large": "y"}


def test_claims_of_different_classes_choose_among_their_own() -> None:
    other = storage_class("other", "kubernetes.io/no-provisioner")
    claims = [claim("one"), claim("two", storage_class="other")]
    volumes = [volume("x", storage_class="other", size="2Gi"), volume("y")]
    assert chosen(*claims, *volumes, other, wanted=pod("p", "one", "two")) == {"one": "y", "two": "x"}


def test_reasons_of_bound_and_of_waiting_claims_are_told_together() -> None:
    bound = claim("bound", "here")
    objects = [bound, volume("here", zone="za", of=bound), claim("waiting"), LOCAL]
    rejected = rejects(*objects, wanted=pod("p", "bound", "waiting"))
    assert rejected == {"a": BIND_CONFLICT, "b": f"{NODE_CONFLICT}, {BIND_CONFLICT}"}


# ── volumes to be made ───────────────────────────────────────────────────────────────────────────────────────


def test_a_provisioner_makes_what_is_not_there() -> None:
    assert rejects(claim(), storage_class()) == {}


@pytest.mark.parametrize("provisioner", ["", "kubernetes.io/no-provisioner"])
def test_some_classes_make_nothing(provisioner: str) -> None:
    assert rejects(claim(), storage_class(provisioner=provisioner)) == {"a": BIND_CONFLICT, "b": BIND_CONFLICT}


@pytest.mark.parametrize(
    ("allowed", "refused"),
    [
        pytest.param([{ZONE: ["za"]}], {"b"}, id="one zone"),
        pytest.param([{ZONE: ["za", "zb"]}], set(), id="both in one term"),
        pytest.param([{ZONE: ["za"]}, {ZONE: ["zb"]}], set(), id="both in two terms"),
        pytest.param([{ZONE: ["za"], "disk": ["ssd"]}], {"a", "b"}, id="all conditions of a term"),
        pytest.param([{}], {"a", "b"}, id="a term that says nothing allows nothing"),
        pytest.param([{ZONE: []}], {"a", "b"}, id="a condition without values is broken"),
    ],
)
def test_allowed_topologies(allowed: Sequence[Mapping[str, Sequence[str]]], refused: set[str]) -> None:
    rejected = rejects(claim(), storage_class(allowed=allowed))
    assert rejected == dict.fromkeys(sorted(refused), BIND_CONFLICT)


HERE = {ZONE: "za"}


@pytest.mark.parametrize(
    ("objects", "refused"),
    [
        pytest.param([csi_driver()], {"a", "b"}, id="no capacity told is no capacity"),
        pytest.param([csi_driver(), capacity(size="1Gi", where=HERE)], {"b"}, id="enough in one place"),
        pytest.param([csi_driver(), capacity(size="1Gi", where={})], set(), id="enough everywhere"),
        pytest.param([csi_driver(), capacity(size="1Mi", where={})], {"a", "b"}, id="too little"),
        pytest.param([csi_driver(), capacity(size="9Gi", at_most="1Mi", where={})], {"a", "b"}, id="not in one piece"),
        pytest.param([csi_driver(), capacity(at_most="9Gi", where={})], set(), id="the largest piece alone"),
        pytest.param([csi_driver(), capacity(where={})], {"a", "b"}, id="a capacity that says nothing"),
        pytest.param([csi_driver(), capacity(size="1Gi")], {"a", "b"}, id="a capacity of nowhere"),
        pytest.param(
            [csi_driver(), capacity(size="1Gi", where={}, storage_class="other")], {"a", "b"}, id="of another class"
        ),
        pytest.param(
            [csi_driver(), capacity("x", "1Mi", where=HERE), capacity("y", "1Gi", where=HERE)],
            {"b"},
            id="one of several",
        ),
        pytest.param([csi_driver(capacity=False)], set(), id="the driver does not tell"),
        pytest.param([csi_driver(capacity=None)], set(), id="it does not say that it tells"),
        pytest.param([csi_driver("other.com")], set(), id="another driver tells"),
    ],
)
def test_capacity(objects: Sequence[KubeObject], refused: set[str]) -> None:
    rejected = rejects(claim(), storage_class(), *objects)
    assert rejected == dict.fromkeys(sorted(refused), NOT_ENOUGH_SPACE)


def test_a_claim_of_no_size_fits_any_capacity() -> None:
    assert rejects(claim(size=None), storage_class(), csi_driver()) == {}


def test_a_topology_that_is_not_allowed_is_told_before_too_little_room() -> None:
    objects = [claim(), storage_class(allowed=[{ZONE: ["za"]}]), csi_driver()]
    assert rejects(*objects) == {"a": NOT_ENOUGH_SPACE, "b": BIND_CONFLICT}


def test_the_first_of_two_claims_that_cannot_be_met_is_told() -> None:
    nothing = storage_class("nothing", "kubernetes.io/no-provisioner")
    claims = [claim("one", storage_class="nothing"), claim("two")]
    objects = [*claims, nothing, storage_class(), csi_driver()]
    assert rejects(*objects, wanted=pod("p", "one", "two")) == {"a": BIND_CONFLICT, "b": BIND_CONFLICT}
    assert rejects(*objects, wanted=pod("p", "two", "one")) == {"a": NOT_ENOUGH_SPACE, "b": NOT_ENOUGH_SPACE}


def test_a_volume_that_is_there_needs_no_room() -> None:
    assert rejects(claim(), storage_class(), csi_driver(), volume(zone="za")) == {"b": NOT_ENOUGH_SPACE}


def test_a_claim_that_was_promised_to_a_node_goes_there_or_nowhere() -> None:
    promised = claim(annotations={SELECTED_NODE: "a"})
    assert rejects(promised, storage_class(), volume()) == {"b": BIND_CONFLICT}
    assert rejects(promised, storage_class(), csi_driver(), volume()) == {"a": NOT_ENOUGH_SPACE, "b": BIND_CONFLICT}


# ── scoring by capacity ──────────────────────────────────────────────────────────────────────────────────────

SCORING = Features(storage_capacity_scoring=True)


def scores(*objects: KubeObject, wanted: Pod | None = None, shape: Any = None) -> dict[str, int]:
    plugin = VolumeBinding(VolumeBindingArgs(shape=shape), Tools("VolumeBinding", SCORING))
    cycle = Cluster(A, B, *objects).cycle(wanted or pod("p", "data"))
    assert plugin.pre_filter(cycle, cycle.pod, cycle.nodes).ok
    assert plugin.pre_score(cycle, cycle.pod, cycle.nodes).ok
    return {info.name: plugin.score(cycle, cycle.pod, info) for info in cycle.nodes}


def test_volumes_are_not_scored_without_the_gate() -> None:
    cycle = Cluster(A, claim("data", "vol"), volume()).cycle(pod("p", "data"))
    plugin = VolumeBinding(tools=Tools("VolumeBinding"))
    plugin.pre_filter(cycle, cycle.pod, cycle.nodes)
    assert plugin.pre_score(cycle, cycle.pod, cycle.nodes) is SKIP


def test_a_pod_without_claims_is_not_scored() -> None:
    cycle = Cluster(A).cycle(pod())
    plugin = VolumeBinding(tools=Tools("VolumeBinding", SCORING))
    plugin.pre_filter(cycle, cycle.pod, cycle.nodes)
    assert plugin.pre_score(cycle, cycle.pod, cycle.nodes) is SKIP


def test_the_less_of_a_volume_is_used_the_better_unless_the_shape_says_otherwise() -> None:
    objects = [claim(size="1Gi"), LOCAL, volume("x", size="1Gi", zone="za"), volume("y", size="4Gi", zone="zb")]
    assert scores(*objects) == {"a": 0, "b": 75}
    fullest = tuple(UtilizationShapePoint(utilization=at, score=at // 10) for at in (0, 100))
    assert scores(*objects, shape=fullest) == {"a": 100, "b": 25}


def test_room_for_volumes_to_be_made_is_shared_by_the_claims_of_a_class() -> None:
    rooms = [capacity("x", "10Gi", where={ZONE: "za"}), capacity("y", "4Gi", where={ZONE: "zb"})]
    objects = [claim("one", size="1Gi"), claim("two", size="1Gi"), storage_class(), csi_driver(), *rooms]
    assert scores(*objects, wanted=pod("p", "one", "two")) == {"a": 80, "b": 50}


def test_classes_count_alike() -> None:
    other = storage_class("other", "kubernetes.io/no-provisioner")
    claims = [claim("one", size="1Gi"), claim("two", size="1Gi", storage_class="other")]
    volumes = [volume("x", size="2Gi"), volume("y", size="1Gi", storage_class="other")]
    assert scores(*claims, LOCAL, other, *volumes, wanted=pod("p", "one", "two")) == {"a": 25, "b": 25}


# ── hints ────────────────────────────────────────────────────────────────────────────────────────────────────


def wakes_on(kind: type[KubeObject], old: KubeObject | None, new: KubeObject, waiting: Pod | None = None) -> bool:
    event = ClusterEvent(resource_name(kind), Action.ADD if old is None else Action.UPDATE)
    return wakes(VolumeBinding(), event, waiting or pod("p", "data"), old, new)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, csi_node(), True),
        (csi_node(), csi_node(migrated="x"), True),
        (csi_node(migrated="x"), csi_node(migrated="x,y"), True),
        (csi_node(migrated="x"), csi_node(migrated="x", a=1), False),
        (csi_node(), csi_node(a=1), False),
    ],
)
def test_csi_nodes_that_wake(old: CSINode | None, new: CSINode, expected: bool) -> None:
    assert wakes_on(CSINode, old, new) is expected


@pytest.mark.parametrize(
    ("waiting", "name", "namespace", "expected"),
    [
        (pod("p", "data"), "data", "default", True),
        (pod("p", "data"), "other", "default", False),
        (pod("p", "data"), "data", "elsewhere", False),
        (pod(volumes=[ephemeral()]), "p-scratch", "default", True),
        (pod(volumes=[ephemeral()]), "p-scratch", "elsewhere", False),
        (pod(), "data", "default", False),
    ],
)
@pytest.mark.parametrize("changed", [False, True])
def test_claims_that_wake(waiting: Pod, name: str, namespace: str, expected: bool, changed: bool) -> None:
    new = claim(name, namespace=namespace)
    assert wakes_on(PersistentVolumeClaim, new if changed else None, new, waiting) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, storage_class(), True),
        (storage_class(), storage_class(allowed=[{ZONE: ["za"]}]), True),
        (storage_class(allowed=[{ZONE: ["za"]}]), storage_class(allowed=[{ZONE: ["zb"]}]), True),
        (storage_class(), structs.replace(storage_class(), provisioner="other.com"), False),
    ],
)
def test_classes_that_wake(old: StorageClass | None, new: StorageClass, expected: bool) -> None:
    assert wakes_on(StorageClass, old, new) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (None, capacity(), True),
        (capacity(), capacity(size="1Gi"), True),
        (capacity(size="1Gi"), capacity(size="2Gi"), True),
        (capacity(size="2Gi"), capacity(size="1Gi"), False),
        (capacity(size="2Gi"), capacity(), False),
        (capacity(), capacity(at_most="1Gi"), True),
        (capacity(at_most="1Gi"), capacity(at_most="2Gi"), True),
        (capacity(size="9Gi", at_most="2Gi"), capacity(size="10Gi", at_most="2Gi"), False),
        (capacity(size="2Gi"), capacity(size="2Gi", at_most="1Gi"), False),
        (capacity(size="1Gi"), capacity(size="1Gi", at_most="2Gi"), True),
        (capacity(size="1Gi"), capacity(size="1024Mi"), False),
    ],
)
def test_capacities_that_wake(old: CSIStorageCapacity | None, new: CSIStorageCapacity, expected: bool) -> None:
    assert wakes_on(CSIStorageCapacity, old, new) is expected


INLINE = pod(volumes=[{"name": "v", "csi": {"driver": DRIVER}}])


@pytest.mark.parametrize(
    ("waiting", "old", "new", "expected"),
    [
        (INLINE, csi_driver(), csi_driver(capacity=False), True),
        (INLINE, csi_driver(), csi_driver(capacity=None), True),
        (INLINE, csi_driver(capacity=False), csi_driver(), False),
        (INLINE, csi_driver(capacity=None), csi_driver(), False),
        (INLINE, csi_driver(), csi_driver(), False),
        (INLINE, csi_driver(capacity=None), csi_driver(capacity=False), False),
        (INLINE, csi_driver("other.com"), csi_driver("other.com", capacity=False), False),
        (pod("p", "data"), csi_driver(), csi_driver(capacity=False), False),
    ],
)
def test_drivers_that_wake(waiting: Pod, old: CSIDriver, new: CSIDriver, expected: bool) -> None:
    assert wakes_on(CSIDriver, old, new, waiting) is expected


@pytest.mark.parametrize("old", [None, volume()])
def test_every_new_or_changed_volume_wakes(old: PersistentVolume | None) -> None:
    assert wakes_on(PersistentVolume, old, volume())


@pytest.mark.parametrize(
    ("action", "expected"), [(Action.ADD, True), (Action.UPDATE_NODE_LABEL, True), (Action.UPDATE_NODE_TAINT, False)]
)
def test_nodes_that_wake(action: Action, expected: bool) -> None:
    assert wakes(VolumeBinding(), ClusterEvent(NODE, action), pod("p", "data"), None, node()) is expected


# ── arguments ────────────────────────────────────────────────────────────────────────────────────────────────


def test_arguments_that_are_fine() -> None:
    assert list(validate_volume_binding(VolumeBindingArgs())) == []
    assert list(validate_volume_binding(VolumeBindingArgs(bind_timeout_seconds=0))) == []


def test_a_timeout_is_not_negative() -> None:
    [(path, message)] = validate_volume_binding(VolumeBindingArgs(bind_timeout_seconds=-1))
    problem = "Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value"
    assert (path, message) == ("bindTimeoutSeconds", problem)


def test_a_shape_needs_its_gate() -> None:
    args = VolumeBindingArgs(shape=(UtilizationShapePoint(utilization=0, score=11),))
    [(path, message)] = validate_volume_binding(args)
    assert path == "shape"
    assert message.endswith("unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring")
    assert list(validate_volume_binding(args, SCORING)) == [
        ("shape[0].score", "Invalid value: 11: not in valid range [0, 10]")
    ]
    assert list(validate_volume_binding(VolumeBindingArgs(shape=()), SCORING)) == [
        ("shape", "Required value: at least one point must be specified")
    ]
