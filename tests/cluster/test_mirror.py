"""What the mirror makes of messages: first, again, late, collapsed into one, and unreadable."""

from __future__ import annotations

import pytest

from kubesched.api.objects import Invalid, KubeObject, ObjectMeta, PersistentVolumeClaim
from kubesched.cluster.mirror import Delta, Mirror
from kubesched.cluster.podinfo import PodInfo
from kubesched.testing import bound, changed, make, node, pod


@pytest.fixture
def mirror() -> Mirror:
    mirror = Mirror()
    mirror.observe(node("n1", cpu=4, version=1))
    mirror.observe(node("n2", cpu=4, version=2))
    return mirror


def told(mirror: Mirror, obj: KubeObject, gone: bool = False) -> list[tuple[str | None, str | None]]:
    """The deltas of a message, each side as its uid and version."""

    def shown(side: KubeObject | None) -> str | None:
        return None if side is None else f"{side.uid}@{side.metadata.resource_version}"

    return [(shown(delta.old), shown(delta.new)) for delta in mirror.observe(obj, gone)]


def cpu(mirror: Mirror, name: str) -> int:
    return int(mirror.table.requested[mirror.table.row_of[name], 0])


def invalid(of: str, name: str, uid: str, version: int, namespace: str = "") -> Invalid:
    meta = ObjectMeta(name=name, namespace=namespace, uid=uid, resource_version=str(version))
    return Invalid(metadata=meta, of=of, error="spec: expected object, got str")


KINDS = {
    "Pod": lambda uid, version: pod("x", uid=uid, version=version),
    "Node": lambda uid, version: node("x", uid=uid, version=version),
    "PersistentVolumeClaim": lambda uid, version: make(
        "PersistentVolumeClaim", "x", namespace="default", uid=uid, version=version
    ),
}


@pytest.mark.parametrize("kind", KINDS)
class TestAnyKind:
    def test_appears_changes_and_goes(self, mirror, kind):
        obj = KINDS[kind]

        assert told(mirror, obj("u", 5)) == [(None, "u@5")]
        assert told(mirror, obj("u", 6)) == [("u@5", "u@6")]
        assert told(mirror, obj("u", 7), gone=True) == [("u@6", None)]

    def test_what_was_told_already_tells_nothing_and_is_counted(self, mirror, kind):
        obj = KINDS[kind]
        mirror.observe(obj("u", 5))

        assert told(mirror, obj("u", 5)) == []
        assert told(mirror, obj("u", 4)) == []
        assert mirror.duplicates == 2

    def test_versions_of_two_and_ten_are_compared_as_numbers(self, mirror, kind):
        obj = KINDS[kind]
        mirror.observe(obj("u", 9))

        assert told(mirror, obj("u", 10)) == [("u@9", "u@10")]

    def test_a_namesake_is_the_end_of_one_and_the_birth_of_the_other(self, mirror, kind):
        obj = KINDS[kind]
        mirror.observe(obj("first", 5))

        assert told(mirror, obj("second", 8)) == [("first@5", None), (None, "second@8")]

    def test_news_of_a_namesake_before_it_is_old_news(self, mirror, kind):
        obj = KINDS[kind]
        mirror.observe(obj("second", 8))

        assert told(mirror, obj("first", 6)) == []
        assert told(mirror, obj("first", 7), gone=True) == []

    def test_the_end_of_a_namesake_after_it_is_its_own_end_too(self, mirror, kind):
        obj = KINDS[kind]
        mirror.observe(obj("first", 5))

        assert told(mirror, obj("second", 9), gone=True) == [("first@5", None)]

    def test_the_end_of_what_nobody_saw_is_nothing(self, mirror, kind):
        assert told(mirror, KINDS[kind]("u", 5), gone=True) == []

    def test_gone_twice_is_gone_once(self, mirror, kind):
        obj = KINDS[kind]
        mirror.observe(obj("u", 5))
        mirror.observe(obj("u", 6), gone=True)

        assert told(mirror, obj("u", 6), gone=True) == []

    def test_a_version_nobody_can_read_is_kept_beside_the_last_one_that_could_be(self, mirror, kind):
        obj = KINDS[kind]
        mirror.observe(first := obj("u", 5))
        broken = invalid(kind, "x", "u", 6, first.namespace)

        assert told(mirror, broken) == []
        assert mirror.invalid == {(kind, first.key): broken}
        assert told(mirror, obj("u", 7)) == [("u@5", "u@7")]
        assert mirror.invalid == {}

    def test_what_was_told_before_the_unreadable_version_does_not_replace_it(self, mirror, kind):
        obj = KINDS[kind]
        mirror.observe(first := obj("u", 5))
        mirror.observe(invalid(kind, "x", "u", 7, first.namespace))

        assert told(mirror, obj("u", 6)) == []
        assert len(mirror.invalid) == 1

    def test_an_unreadable_object_that_goes_is_gone_with_its_last_readable_version(self, mirror, kind):
        obj = KINDS[kind]
        mirror.observe(first := obj("u", 5))
        broken = invalid(kind, "x", "u", 6, first.namespace)
        mirror.observe(broken)

        assert told(mirror, broken, gone=True) == [("u@5", None)]
        assert mirror.invalid == {}

    def test_an_unreadable_namesake_is_the_end_of_the_one_before(self, mirror, kind):
        obj = KINDS[kind]
        mirror.observe(first := obj("first", 5))

        assert told(mirror, invalid(kind, "x", "second", 6, first.namespace)) == [("first@5", None)]
        assert len(mirror.invalid) == 1

    def test_objects_without_versions_are_taken_as_they_come(self, mirror, kind):
        obj = KINDS[kind]
        mirror.observe(obj("u", ""))

        assert told(mirror, obj("u", "")) == [("u@", "u@")]

    @pytest.mark.parametrize("version", ["9" * 5000, "-1", "new", "٣x"])
    def test_a_version_that_is_no_number_is_no_version(self, mirror, kind, version):
        obj = KINDS[kind]
        mirror.observe(obj("u", 5))

        assert len(told(mirror, obj("u", version))) == 1


# ── pods and their room ──────────────────────────────────────────────────────────────────────────────────────


def test_a_bound_pod_holds_room_on_its_node(mirror):
    mirror.observe(pod("a", cpu=1, on="n1"))

    assert cpu(mirror, "n1") == 1000


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_is_as_good_as_gone(mirror, phase):
    mirror.observe(pod("a", cpu=1, on="n1", version=5))

    assert told(mirror, pod("a", cpu=1, on="n1", version=6, phase=phase)) == [("uid-of-a@5", None)]
    assert cpu(mirror, "n1") == 0


def test_a_finished_pod_nobody_saw_is_nothing(mirror):
    assert told(mirror, pod("a", cpu=1, on="n1", phase="Failed")) == []


def test_a_finished_namesake_ends_the_pod_before_it(mirror):
    mirror.observe(pod("a", cpu=1, on="n1", version=5))

    assert told(mirror, pod("a", uid="later", on="n1", version=6, phase="Failed")) == [("uid-of-a@5", None)]
    assert cpu(mirror, "n1") == 0


def test_a_resized_pod_holds_its_new_size(mirror):
    mirror.observe(pod("a", cpu=1, on="n1", version=5))
    mirror.observe(pod("a", cpu=3, on="n1", version=6))

    assert cpu(mirror, "n1") == 3000


def test_a_pod_with_an_amount_nobody_can_read_is_invalid(mirror):
    assert told(mirror, pod("a", cpu="some", on="n1")) == []
    assert "some" in mirror.invalid["Pod", "default/a"].error
    assert cpu(mirror, "n1") == 0


def test_a_pod_that_asks_for_less_than_nothing_is_invalid_and_makes_no_room(mirror):
    mirror.observe(pod("a", cpu="-5"))
    assert "less than nothing" in mirror.invalid["Pod", "default/a"].error
    assert not mirror.pods


def test_a_pod_whose_containers_together_ask_for_more_than_anybody_can_count_is_invalid(mirror):
    huge = {"name": "c", "resources": {"requests": {"memory": "9e18"}}}

    mirror.observe(pod("a", on="n1", containers=[huge, huge]))

    assert "memory" in mirror.invalid["Pod", "default/a"].error


def test_a_pod_without_a_uid_is_invalid(mirror):
    assert told(mirror, pod("a", uid="")) == []
    assert mirror.invalid["Pod", "default/a"].error == (
        "Pod 'default/a': metadata.uid: an object of the API server has one"
    )


def test_a_node_with_an_amount_nobody_can_read_is_invalid_and_its_last_version_counts(mirror):
    mirror.observe(changed(node("n1", version=9), status={"allocatable": {"cpu": "lots"}}))

    assert "Node 'n1': status.allocatable" in mirror.invalid["Node", "n1"].error
    assert mirror.table.allocatable[mirror.table.row_of["n1"], 0] == 4000


def test_a_pod_on_a_node_nobody_told_of_waits_for_it(mirror):
    mirror.observe(pod("a", cpu=1, on="n9"))
    mirror.observe(node("n9", cpu=4))

    assert cpu(mirror, "n9") == 1000


def test_a_node_that_goes_and_comes_back_finds_its_pods(mirror):
    mirror.observe(pod("a", cpu=1, on="n1"))
    mirror.observe(node("n1", cpu=4, uid="new", version=9))

    assert cpu(mirror, "n1") == 1000


# ── assuming ─────────────────────────────────────────────────────────────────────────────────────────────────


def assumed(mirror: Mirror, name: str = "a", on: str = "n1") -> PodInfo:
    waiting = pod(name, cpu=1, version=5)
    [delta] = mirror.observe(waiting)
    assert delta.info is not None
    mirror.assume(delta.info, on)
    return delta.info


def test_an_assumed_pod_holds_room_until_it_is_forgotten(mirror):
    info = assumed(mirror)
    assert cpu(mirror, "n1") == 1000

    assert mirror.forget(info.uid) is True
    assert cpu(mirror, "n1") == 0
    assert mirror.forget(info.uid) is False


def test_the_echo_confirms_an_assumed_pod(mirror):
    info = assumed(mirror)
    mirror.observe(bound(info.pod, "n1", version=6))

    assert not mirror.is_assumed(info.uid)
    assert mirror.forget(info.uid) is False
    assert cpu(mirror, "n1") == 1000


def test_a_pod_bound_elsewhere_holds_room_there_alone(mirror):
    info = assumed(mirror)
    mirror.observe(bound(info.pod, "n2", version=6))

    assert (cpu(mirror, "n1"), cpu(mirror, "n2")) == (0, 1000)


def test_news_of_an_assumed_pod_that_is_not_bound_leave_it_where_it_is(mirror):
    info = assumed(mirror)
    mirror.observe(changed(info.pod, metadata={"resourceVersion": "6", "labels": {"x": "y"}}))

    assert mirror.is_assumed(info.uid)
    assert cpu(mirror, "n1") == 1000


def test_nobody_is_assumed_twice(mirror):
    info = assumed(mirror)

    with pytest.raises(ValueError, match="pod default/a already holds room on n1"):
        mirror.assume(info, "n2")


def test_an_assumed_claim_is_believed_until_a_newer_one_is_told(mirror):
    claim = make("PersistentVolumeClaim", "data", namespace="default", version=5)
    mirror.observe(claim)
    mirror.objects.assume(changed(claim, spec={"volumeName": "assumed"}))

    def volume() -> str:
        found = mirror.objects.get(PersistentVolumeClaim, "default/data")
        assert found is not None
        return found.spec.volume_name

    mirror.observe(claim)
    assert volume() == "assumed"
    mirror.observe(changed(claim, spec={"volumeName": "told"}, metadata={"resourceVersion": "6"}))
    assert volume() == "told"


def test_deltas_carry_the_pod_worked_out_once(mirror):
    [delta] = mirror.observe(pod("a", cpu=1, on="n1"))

    assert isinstance(delta, Delta)
    assert delta.info is mirror.placed["uid-of-a"].info
