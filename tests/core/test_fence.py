"""Nobody knows whether a bind was carried out: the pod keeps its room until that is settled, and it is settled once.

The facts these rules stand on are measured in tests/realserver/test_binding_facts.py.
"""

from __future__ import annotations

import pytest
from tests.core.little import Fit, Ledger

from kubesched.api.time import seconds
from kubesched.apiserver.status import ApiError
from kubesched.core.core import Core
from kubesched.core.messages import Bind, Evict, PatchPod, Publish, ReadPod
from kubesched.framework.profile import Profile
from kubesched.framework.records import State
from kubesched.sim import Simulation
from kubesched.sim.cluster import Cluster
from kubesched.sim.faults import Fault
from kubesched.testing import answer, bound, changed, fail, node, observe, pod, tick, vanish

POD = pod("a", cpu=1, version=5)


def ambiguous(cluster, *plugins):
    """A core whose bind of pod a, version 5, to n1 got no answer; and the read it asks for."""
    core = cluster(node("n1", cpu=1), POD, plugins=(Fit(), *plugins))
    [bind] = tick(core)
    [read] = fail(core, bind, "Timeout", "no answer in time", unknown=True)
    return core, read


def newer(obj, version, **changes):
    return changed(obj, metadata={"resourceVersion": str(version)}, **changes)


def test_an_unknown_outcome_keeps_the_room_and_reads_the_pod(cluster):
    core, read = ambiguous(cluster)

    assert read == ReadPod.match(pod="default/a", uid="uid-of-a")
    assert core.state("default/a") is State.AMBIGUOUS
    assert core.free("n1")["cpu"] == 0


def test_a_pod_that_turns_out_to_be_bound_is_bound(cluster):
    core, read = ambiguous(cluster)

    effects = answer(core, read, bound(POD, "n1", version=6))

    assert core.state("default/a") is State.BOUND
    assert effects == [Publish.match(reason="Scheduled", note="Successfully assigned default/a to n1")]
    assert core.free("n1")["cpu"] == 0


def test_a_pod_that_looks_unbound_is_fenced_with_the_version_that_was_read(cluster):
    core, read = ambiguous(cluster)

    [fence] = answer(core, read, POD)

    assert fence == PatchPod.match(pod="default/a", uid="uid-of-a", resource_version="5", nominated_node_name=None)
    assert fence.condition.type == "PodScheduled"
    assert fence.condition.status == "False"
    assert fence.condition.reason == "BindOutcomeUnknown"
    assert core.state("default/a") is State.AMBIGUOUS


def test_after_the_fence_the_pod_is_bound_again_from_the_same_reservation(cluster):
    ledger = Ledger()
    core, read = ambiguous(cluster, ledger)
    [fence] = answer(core, read, POD)

    [bind] = answer(core, fence, newer(POD, 6))

    assert bind == Bind.match(pod="default/a", node="n1", resource_version="6")
    assert core.state("default/a") is State.BINDING
    answer(core, bind)
    assert core.state("default/a") is State.BOUND
    assert ledger.lines == ["reserve a n1", "post_bind a n1"]


def test_a_fence_that_meets_a_newer_pod_reads_again_at_once(cluster):
    core, read = ambiguous(cluster)
    [fence] = answer(core, read, POD)

    [again] = fail(core, fence, "Conflict", "the object has been modified")
    answer(core, again, bound(POD, "n1", version=6))

    assert again == ReadPod.match(pod="default/a")
    assert core.state("default/a") is State.BOUND


def test_a_pod_that_has_moved_on_by_itself_needs_no_fence(cluster):
    core, read = ambiguous(cluster)

    [bind] = answer(core, read, newer(POD, 9))

    assert bind == Bind.match(resource_version="9")


def test_a_fence_that_changed_nothing_is_none(cluster):
    core, read = ambiguous(cluster)
    [first] = answer(core, read, POD)

    assert answer(core, first, POD) == []  # the version the bind carries is still the pod's
    assert core.state("default/a") is State.AMBIGUOUS
    [read] = tick(core, at=seconds(1))
    [second] = answer(core, read, POD)

    assert first.condition.message != second.condition.message
    [bind] = answer(core, second, newer(POD, 6))
    assert bind == Bind.match(resource_version="6")


def test_no_two_fences_of_a_pod_say_the_same(cluster):
    core, read = ambiguous(cluster)
    said = []
    for at in range(1, 5):
        [fence] = answer(core, read, POD)
        said.append(fence.condition.message)
        fail(core, fence, "Timeout", unknown=True)
        [read] = tick(core, at=seconds(10 * at))

    assert len(set(said)) == 4


def test_reading_is_tried_again_with_growing_pauses_for_as_long_as_it_takes(cluster):
    core, read = ambiguous(cluster)
    paused = []
    at = 0
    for _ in range(8):
        assert fail(core, read, "Unreachable", unknown=True, at=at) == []
        paused.append((core.deadline - core.now) // seconds(1))
        at = core.deadline
        [read] = tick(core, at=at)

    assert paused == [1, 2, 4, 8, 16, 30, 30, 30]
    assert core.state("default/a") is State.AMBIGUOUS
    assert core.free("n1")["cpu"] == 0


def test_a_fence_nobody_answered_for_is_read_after_and_may_have_held(cluster):
    core, read = ambiguous(cluster)
    [fence] = answer(core, read, POD)
    fail(core, fence, "Timeout", unknown=True)

    [read] = tick(core, at=seconds(1))
    [bind] = answer(core, read, newer(POD, 6))  # it had been carried out

    assert bind == Bind.match(resource_version="6")


@pytest.mark.parametrize("asked", ["read", "fence"])
def test_a_pod_that_is_not_there_any_more_gives_its_room_back(cluster, asked):
    ledger = Ledger()
    core, step = ambiguous(cluster, ledger)
    if asked == "fence":
        [step] = answer(core, step, POD)

    fail(core, step, "NotFound", 'pods "a" not found')
    vanish(core, POD)

    assert core.free("n1")["cpu"] == 1000
    assert core.state("default/a") is None
    assert ledger.lines == ["reserve a n1", "unreserve a n1"]


def test_a_namesake_is_not_taken_for_the_pod(cluster):
    core, read = ambiguous(cluster)

    effects = answer(core, read, pod("a", cpu=1, uid="another", version=8))

    assert Bind.match() not in effects
    assert core.free("n1")["cpu"] == 1000
    assert core.state("default/a") is State.BACKOFF  # until the watch tells of its end


def test_a_pod_bound_elsewhere_meanwhile_keeps_no_room_here(cluster):
    core, read = ambiguous(cluster)
    observe(core, node("n2", cpu=1))

    answer(core, read, bound(POD, "n2", version=6))

    assert core.state("default/a") is State.BOUND
    assert core.free("n1")["cpu"] == 1000
    assert core.free("n2")["cpu"] == 0


def test_while_nobody_knows_the_room_is_not_sold_twice(cluster):
    core, _ = ambiguous(cluster)
    observe(core, pod("b", cpu=1))

    effects = tick(core)

    assert Bind.match() not in effects
    assert core.why("default/b").message == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_pod_deleted_while_nobody_knows_is_unreserved_once(cluster):
    ledger = Ledger()
    core, read = ambiguous(cluster, ledger)

    vanish(core, POD)
    answer(core, read, POD)

    assert ledger.lines == ["reserve a n1", "unreserve a n1"]
    assert core.free("n1")["cpu"] == 1000


def test_what_the_fence_said_is_said_anew_by_the_next_failure(cluster):
    """The pod's status says BindOutcomeUnknown; the same no as before the fence must be written again."""
    core = cluster(node("n1", cpu=1, unschedulable=True), POD, plugins=(Fit(),))
    [_, first] = tick(core)
    observe(core, node("n1", cpu=1), newer(POD, 6))
    [bind] = tick(core, at=seconds(2))
    [read] = fail(core, bind, "Timeout", unknown=True)
    [fence] = answer(core, read, newer(POD, 6))
    observe(core, node("n1", cpu=1, unschedulable=True))
    fenced = newer(POD, 7, status={"conditions": [fence.condition]})
    [bind] = answer(core, fence, fenced)
    fail(core, bind, "Forbidden", "no")

    effects = tick(core, at=seconds(20))

    assert first.condition.message == "0/1 nodes are available: 1 node(s) were closed."
    assert [e.condition.message for e in effects if isinstance(e, PatchPod)] == [first.condition.message]


# ── against a server ─────────────────────────────────────────────────────────────────────────────────────────


def simulation(**settings) -> Simulation:
    sim = Simulation(Core(Profile(Fit(), tie="name"), **settings))
    sim.client.create({"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": 1}}})
    container = {"name": "c", "resources": {"requests": {"cpu": 1}}}
    sim.client.create({"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [container]}})
    return sim


def scheduled(sim: Simulation) -> dict:
    conditions = sim.client.get("Pod", "a")["status"]["conditions"]
    return next(condition for condition in conditions if condition["type"] == "PodScheduled")


def test_a_bind_carried_out_late_meets_the_fence_and_fails():
    """The first node goes away meanwhile: without a fence the late bind would put the pod on a node that is gone."""
    sim = simulation()
    sim.world.seat.faults.add(Fault(effect="Bind", outcome="late", after=seconds(30)), sim.world.now)
    sim.at(seconds(0.002), lambda: sim.client.delete("Node", "n1"))

    sim.run(until=seconds(60))

    assert sim.client.node_of("a") == ""
    assert "default/a" in sim.core.life._uids
    assert "AMBIGUOUS" in {record.was.name for record in sim.core.story("default/a")}


def test_without_the_fence_the_late_bind_would_have_been_carried_out():
    sim = simulation()
    sim.world.seat.faults.add(Fault(effect="Bind", outcome="late", after=seconds(30)), sim.world.now)
    sim.world.seat.faults.add(Fault(effect="PatchPod", outcome="lost", times=1000), sim.world.now)
    sim.at(seconds(0.002), lambda: sim.client.delete("Node", "n1"))

    sim.run(until=seconds(60))

    assert sim.client.node_of("a") == "n1"


def test_a_pod_bound_between_read_and_fence_stays_scheduled():
    sim = simulation()
    late = seconds(0.0075)  # read at 5 to 7 ms, fenced at 7 to 9 ms
    sim.world.seat.faults.add(Fault(effect="Bind", outcome="late", after=late), sim.world.now)

    sim.run(until=seconds(60))

    assert sim.client.node_of("a") == "n1"
    assert scheduled(sim)["status"] == "True"
    assert sim.core.state("default/a") is State.BOUND
    assert sim.core.free("n1")["cpu"] == 0


@pytest.fixture
def server(luck) -> Cluster:
    return Cluster(lambda: 0, luck)


@pytest.fixture
def luck():
    from random import Random

    return Random(1)


BLAMED = {"type": "PodScheduled", "status": "False", "reason": "BindOutcomeUnknown"}


def test_a_fence_with_a_stale_version_does_not_touch_a_bound_pod(server):
    seen = server.create({"kind": "Pod", "metadata": {"name": "a"}, "spec": {}})["metadata"]
    server.bind("default", "a", "n1", seen["uid"])

    with pytest.raises(ApiError) as refused:
        server.say("default", "a", seen["uid"], BLAMED, resource_version=seen["resourceVersion"])

    assert refused.value.reason == "Conflict"
    assert server.get("Pod", "default", "a")["status"]["conditions"][0]["status"] == "True"


def test_a_fence_without_a_version_would_unsay_that_the_pod_is_scheduled(server):
    seen = server.create({"kind": "Pod", "metadata": {"name": "a"}, "spec": {}})["metadata"]
    server.bind("default", "a", "n1", seen["uid"])

    server.say("default", "a", seen["uid"], BLAMED)

    assert server.get("Pod", "default", "a")["status"]["conditions"][0]["status"] == "False"


def test_other_writes_to_a_status_carry_no_version(cluster):
    """They say what we think of a pod, whatever else has changed about it."""
    core = cluster(node("n1", cpu=0), POD, plugins=(Fit(),))

    effects = tick(core)

    assert PatchPod.match(resource_version="") in effects
    assert Evict.match() not in effects
