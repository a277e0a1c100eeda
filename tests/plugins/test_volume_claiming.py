"""From a chosen node to bound claims: what is assumed, written and waited for."""

from typing import Any

import pytest
from msgspec import structs
from tests.plugins.small_cluster import Cluster, node
from tests.plugins.storage import BIND_COMPLETED, LOCAL, SELECTED_NODE, ZONE, claim, pod, storage_class, volume

from kubesched.api.objects import KubeObject, ObjectReference, PersistentVolume, PersistentVolumeClaim
from kubesched.api.time import Instant, seconds
from kubesched.core.core import Core
from kubesched.core.messages import AnyEffect, Bind, Call, Completed, Observed, Tick
from kubesched.framework.profile import Profile
from kubesched.framework.records import State
from kubesched.framework.status import SUCCESS, Code, Status
from kubesched.framework.steps import Answer, Failure, Patch, Steps, WaitFor
from kubesched.plugins.volume_binding import VolumeBinding, VolumeBindingArgs

A, B = node("a", labels={ZONE: "za"}), node("b", labels={ZONE: "zb"})
BOUND_BY_US = {"pv.kubernetes.io/bound-by-controller": "yes"}
WAIT = storage_class()


class Placed:
    """A pod of one claim for which a node was chosen."""

    def __init__(self, *objects: KubeObject, on: str = "a", args: VolumeBindingArgs | None = None) -> None:
        self.cluster = Cluster(A, B, *objects)
        self.objects = self.cluster.mirror.objects
        self.plugin = VolumeBinding(args)
        self.cycle = self.cluster.cycle(pod("p", "data"))
        self.node = on
        assert self.plugin.pre_filter(self.cycle, self.cycle.pod, self.cycle.nodes).ok
        self.reserved = self.plugin.reserve(self.cycle, self.cycle.pod, on)

    @property
    def assumed(self) -> list[KubeObject]:
        return self.objects.assumed()

    def unreserve(self) -> None:
        self.plugin.unreserve(self.cycle, self.cycle.pod, self.node)

    def steps(self) -> Steps:
        steps = self.plugin.pre_bind(self.cycle, self.cycle.pod, self.node)
        assert not isinstance(steps, Status), steps
        return steps

    def until_waiting(self, version: str = "20") -> tuple[Steps, WaitFor]:
        """Write everything; every write is answered with the next version of its object."""
        steps = self.steps()
        step = next(steps)
        while isinstance(step, Patch):
            obj: PersistentVolume | PersistentVolumeClaim | None
            if step.kind == "PersistentVolume":
                obj = self.objects.get(PersistentVolume, step.key)
            else:
                obj = self.objects.get(PersistentVolumeClaim, step.key)
            assert obj is not None
            metadata = structs.replace(obj.metadata, resource_version=version)
            step = steps.send(Answer(obj=structs.replace(obj, metadata=metadata)))
        assert isinstance(step, WaitFor)
        return steps, step


def end_of(steps: Steps, answer: Answer) -> Status:
    with pytest.raises(StopIteration) as done:
        steps.send(answer)
    status = done.value.value
    assert isinstance(status, Status)
    return status


# ── reserve, and the way back ────────────────────────────────────────────────────────────────────────────────


def test_a_chosen_volume_is_assumed_to_be_the_claims() -> None:
    placed = Placed(claim(), LOCAL, volume())
    assert placed.reserved is SUCCESS
    [assumed] = placed.assumed
    assert isinstance(assumed, PersistentVolume)
    assert assumed.spec.claim_ref == ObjectReference(namespace="default", name="data", uid="uid-of-data")
    assert assumed.annotations == BOUND_BY_US


def test_a_volume_that_was_the_claims_by_name_gets_its_uid_and_no_mark() -> None:
    placed = Placed(claim(), LOCAL, volume(claimRef={"namespace": "default", "name": "data"}))
    [assumed] = placed.assumed
    assert isinstance(assumed, PersistentVolume)
    assert assumed.spec.claim_ref is not None
    assert (assumed.spec.claim_ref.uid, assumed.annotations) == ("uid-of-data", {})


def test_a_volume_that_is_the_claims_in_everything_need_not_be_assumed() -> None:
    assert Placed(claim(), LOCAL, volume(of=claim())).assumed == []


def test_a_claim_to_be_provisioned_is_assumed_to_know_its_node() -> None:
    placed = Placed(claim(), WAIT, on="b")
    [assumed] = placed.assumed
    assert isinstance(assumed, PersistentVolumeClaim)
    assert assumed.annotations == {SELECTED_NODE: "b"}


def test_the_next_pod_does_not_get_the_same_volume() -> None:
    placed = Placed(claim(), claim("other"), LOCAL, volume())
    other = pod("q", "other")
    assert len(placed.cluster.rejects(VolumeBinding(), other)) == 2
    placed.unreserve()
    assert placed.cluster.rejects(VolumeBinding(), other) == {}


def test_unreserve_may_be_called_twice_and_without_a_reserve() -> None:
    placed = Placed(claim(), LOCAL, volume())
    placed.unreserve()
    placed.unreserve()
    assert placed.assumed == []

    cycle = Cluster(A).cycle(pod())
    VolumeBinding().unreserve(cycle, cycle.pod, "a")


def test_unreserve_leaves_alone_what_another_pod_has_assumed_since() -> None:
    placed = Placed(claim(), WAIT)
    later = structs.replace(claim(annotations={SELECTED_NODE: "b"}))
    placed.objects.assume(later)
    placed.unreserve()
    assert placed.assumed == [later]


def test_a_node_that_does_not_fit_cannot_be_reserved() -> None:
    placed = Placed(claim(), LOCAL, volume(zone="zb"), on="a")
    assert (placed.reserved.code, placed.assumed) == (Code.UNRESOLVABLE, [])


def test_what_is_bound_already_needs_nothing() -> None:
    placed = Placed(claim("data", "vol"), volume())
    assert (placed.reserved, placed.assumed) == (SUCCESS, [])
    assert placed.plugin.pre_bind(placed.cycle, placed.cycle.pod, "a") is SUCCESS


def test_another_node_than_the_reserved_one_is_an_error() -> None:
    placed = Placed(claim(), LOCAL, volume(), on="a")
    status = placed.plugin.pre_bind(placed.cycle, placed.cycle.pod, "b")
    assert isinstance(status, Status)
    assert (status.code, status.message) == (Code.ERROR, 'no pod volume found for node "b"')


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_volume_is_given_to_its_claim_on_condition_that_nobody_changed_it() -> None:
    placed = Placed(claim(version="7"), LOCAL, volume(version="12"))
    ref = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": "default",
        "name": "data",
        "uid": "uid-of-data",
        "resourceVersion": "7",
    }
    body = {"spec": {"claimRef": ref}, "metadata": {"annotations": BOUND_BY_US}}
    assert next(placed.steps()) == Patch("PersistentVolume", "vol", body, "12")


def test_a_provisioner_is_told_the_node() -> None:
    placed = Placed(claim(version="7"), WAIT)
    body = {"metadata": {"annotations": {SELECTED_NODE: "a"}}}
    assert next(placed.steps()) == Patch("PersistentVolumeClaim", "default/data", body, "7")


def test_a_refused_write_is_an_error_in_the_api_servers_words() -> None:
    steps = Placed(claim(), WAIT).steps()
    next(steps)
    status = end_of(steps, Answer(failure=Failure("Conflict", "the object has been modified")))
    assert (status.code, status.message) == (Code.ERROR, "the object has been modified")


def test_a_wait_that_takes_too_long_is_an_error() -> None:
    placed = Placed(claim(), WAIT, args=VolumeBindingArgs(bind_timeout_seconds=5))
    steps, wait = placed.until_waiting()
    assert wait.timeout == seconds(5)
    status = end_of(steps, Answer(failure=Failure("Timeout")))
    assert (status.code, status.message) == (Code.ERROR, "binding volumes: context deadline exceeded")


# ── waiting for a volume that was chosen ─────────────────────────────────────────────────────────────────────


def after(*observed: KubeObject, gone: KubeObject | None = None, static: bool = True) -> Status | None:
    """What is seen once these have been observed, the pod's volume chosen (static) or on order."""
    offered = [LOCAL, volume(version="12", zone="za")] if static else [WAIT]
    placed = Placed(claim(version="7"), *offered)
    _, wait = placed.until_waiting(version="20")
    for obj in observed:
        placed.cluster.mirror.observe(obj)
    if gone is not None:
        placed.cluster.mirror.observe(gone, gone=True)
    return wait.look(placed.objects)


def ours(version: str = "20", **more: Any) -> PersistentVolume:
    """The volume as it is after our write."""
    return volume(version=version, **{"zone": "za", "of": claim(), **more})


def done(version: str = "30", **more: Any) -> PersistentVolumeClaim:
    return claim("data", "vol", version=version, **more)


def problem(status: Status | None) -> str:
    assert status is not None
    assert status.code is Code.ERROR
    return status.message


def test_both_sides_bound_is_done() -> None:
    assert after(ours(), done()) is SUCCESS


@pytest.mark.parametrize(
    "observed",
    [
        pytest.param([], id="nothing seen yet"),
        pytest.param([done()], id="our own write has not come back"),
        pytest.param([ours("19"), done()], id="an older version has"),
        pytest.param([ours()], id="the claim is not bound"),
        pytest.param([ours(), done(bound=False)], id="the claim is not fully bound"),
        pytest.param([ours(), claim(version="30", annotations=BIND_COMPLETED)], id="the claim has no volume"),
    ],
)
def test_what_is_waited_for(observed: list[KubeObject]) -> None:
    assert after(*observed) is None


def test_a_volume_that_lost_its_claim_ends_the_wait() -> None:
    assert problem(after(ours("21", of=None), done())) == 'binding volumes: ClaimRef got reset for pv "vol"'
    nameless = ours("21", of=None, claimRef={"namespace": "default", "name": "data"})
    assert problem(after(nameless)) == 'binding volumes: ClaimRef got reset for pv "vol"'


def test_a_volume_that_moved_away_ends_the_wait() -> None:
    text = 'pv "vol" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'
    assert problem(after(ours("21", zone="zb"))) == f"binding volumes: {text}"


def test_a_node_that_moved_away_or_is_gone_ends_the_wait() -> None:
    moved = structs.replace(A, metadata=structs.replace(A.metadata, labels={ZONE: "zb"}, resource_version="9"))
    text = 'pv "vol" node affinity doesn\'t match node "a": no matching NodeSelectorTerms'
    assert problem(after(ours(), done(), moved)) == f"binding volumes: {text}"
    text = 'binding volumes: failed to get node "a": node "a" not found'
    assert problem(after(ours(), done(), gone=A)) == text


def test_a_volume_or_claim_that_is_deleted_ends_the_wait() -> None:
    text = 'binding volumes: failed to check binding: could not find PersistentVolume "vol"'
    assert problem(after(gone=ours())) == text
    text = 'binding volumes: failed to check binding: could not find PersistentVolumeClaim "default/data"'
    assert problem(after(ours(), gone=claim())) == text


# ── waiting for a volume on order ────────────────────────────────────────────────────────────────────────────

ORDERED = {SELECTED_NODE: "a"}


def test_a_claim_bound_to_its_new_volume_is_done() -> None:
    assert after(done(annotations=ORDERED), ours(), static=False) is SUCCESS


@pytest.mark.parametrize(
    "observed",
    [
        pytest.param([], id="nothing seen yet"),
        pytest.param([claim(version="20", annotations=ORDERED)], id="the provisioner is at work"),
        pytest.param([done(annotations=ORDERED)], id="the new volume has not been seen"),
        pytest.param([done(annotations=ORDERED, bound=False), ours()], id="the claim is not fully bound"),
    ],
)
def test_what_is_waited_for_from_a_provisioner(observed: list[KubeObject]) -> None:
    assert after(*observed, static=False) is None


@pytest.mark.parametrize(
    ("observed", "text"),
    [
        pytest.param(
            [claim(version="21")], 'selectedNode annotation reset for PVC "data"', id="it was sent back, nothing left"
        ),
        pytest.param(
            [claim(version="21", annotations={"x": "y"})], 'provisioning failed for PVC "data"', id="it was sent back"
        ),
        pytest.param(
            [claim(version="21", annotations={SELECTED_NODE: "b"})],
            'provisioning failed for PVC "data"',
            id="it was sent elsewhere",
        ),
        pytest.param(
            [done(annotations=ORDERED), ours(zone="zb")],
            'pv "vol" node affinity doesn\'t match node "a": no matching NodeSelectorTerms',
            id="the new volume is out of reach",
        ),
    ],
)
def test_what_ends_the_wait_for_a_provisioner(observed: list[KubeObject], text: str) -> None:
    assert problem(after(*observed, static=False)) == f"binding volumes: {text}"


def test_a_claim_that_is_deleted_ends_the_wait_for_a_provisioner() -> None:
    text = 'binding volumes: failed to check provisioning pvc: could not find PersistentVolumeClaim "default/data"'
    assert problem(after(gone=claim(), static=False)) == text


# ── with the real core ───────────────────────────────────────────────────────────────────────────────────────


class Played:
    """A core, and the API server and volume controller played by hand."""

    def __init__(self, *objects: KubeObject) -> None:
        self.core = Core(Profile(VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=30))))
        for obj in (A, B, *objects):
            self.tell(obj)

    def tell(self, obj: KubeObject, at: int = 0) -> list[AnyEffect]:
        return self.core.handle(Observed(obj), Instant(seconds(at)))  # one of the union

    def answer(self, effect: AnyEffect, answer: Answer, at: int = 0) -> list[AnyEffect]:
        return self.core.handle(Completed(effect.id, answer), Instant(seconds(at)))

    def tick(self, at: int = 0) -> list[AnyEffect]:
        return self.core.handle(Tick(), Instant(seconds(at)))

    def settle(self, effects: list[AnyEffect], kind: type[AnyEffect], at: int = 0) -> AnyEffect:
        """Answer everything with yes until an effect of this kind comes."""
        queue = list(effects)
        while queue:
            effect = queue.pop(0)
            if isinstance(effect, kind):
                return effect
            queue += self.answer(effect, Answer(), at)
        raise AssertionError(f"no {kind.__name__} came")


def test_a_pod_is_bound_only_after_its_claim() -> None:
    played = Played(claim(version="7"), LOCAL, volume(version="12", zone="zb"), pod("p", "data"))
    call = played.settle(played.tick(), Call)
    assert isinstance(call, Call)
    assert isinstance(call.step, Patch)
    assert (call.step.key, call.step.resource_version) == ("vol", "12")

    assert played.answer(call, Answer(obj=ours("20", zone="zb"))) == []
    assert played.tell(ours("20", zone="zb")) == []
    bind = played.settle(played.tell(done()), Bind)
    assert isinstance(bind, Bind)
    assert (bind.pod, bind.node) == ("default/p", "b")


def test_a_claim_that_is_never_bound_gives_everything_back() -> None:
    only_a = storage_class(allowed=[{ZONE: ["za"]}])
    played = Played(claim(version="7"), only_a, pod("p", "data"))
    call = played.settle(played.tick(), Call)
    assert played.core.mirror.objects.assumed() != []
    assert played.answer(call, Answer(obj=claim(version="20", annotations=ORDERED))) == []

    played.tick(at=31)

    assert played.core.mirror.objects.assumed() == []
    assert played.core.mirror.table.place_of == {}
    assert [record.state for record in played.core.life.story("default/p")][-1] is not State.PREBINDING
    decision = played.core.decisions.latest("default/p")
    assert decision is not None
    text = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
    assert decision.message == text


def test_the_next_attempt_goes_on_where_the_last_one_stopped() -> None:
    only_a = storage_class(allowed=[{ZONE: ["za"]}])
    played = Played(claim(version="7"), only_a, pod("p", "data"))
    ordered = claim(version="20", annotations=ORDERED)
    played.answer(played.settle(played.tick(), Call), Answer(obj=ordered))
    played.tell(ordered)
    played.tick(at=31)

    again = played.settle(played.tick(at=60), Call, at=60)
    played.answer(again, Answer(obj=ordered), at=60)
    played.tell(ours(), at=61)
    bind = played.settle(played.tell(done(annotations=ORDERED), at=61), Bind, at=61)
    assert isinstance(bind, Bind)
    assert bind.node == "a"
