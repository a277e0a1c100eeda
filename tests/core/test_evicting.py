"""Preemption after the decision: one eviction per victim, one wake-up when the room is there, whatever comes when.

The search for victims is tested with the plugin; here it is about what the core does with its nomination, against
kube-scheduler's whole default profile.
"""

from __future__ import annotations

import itertools

import pytest
from tests.core.little import Fit, Patience

from kubesched.api.time import minutes, seconds
from kubesched.core.messages import Bind, Commanded, Evict, PatchPod, Publish
from kubesched.framework.records import State
from kubesched.framework.status import SUCCESS, Wait
from kubesched.plugins.preemption import DefaultPreemption
from kubesched.testing import answer, changed, fail, node, observe, pod, run, scheduler, vanish

N1 = node("n1", cpu=2)
LOW = pod("low", cpu=2, on="n1", priority=1)
HIGH = pod("high", cpu=2, priority=9)

ON_ITS_WAY_OUT = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


def of(kind, effects):
    return [effect for effect in effects if type(effect) is kind]


class Moody:
    """Asks for patience with `low`, once told to."""

    patient = False

    def permit(self, cycle, pod, node):
        return Wait(minutes(10)) if self.patient and pod.name == "low" else SUCCESS


def going(obj):
    """The pod as the API server shows it once its eviction was accepted."""
    changes = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"conditions": [ON_ITS_WAY_OUT]}}
    return changed(obj, **changes)


def preempting(cluster, *more):
    """A core in which `high` has just chosen `low`; the eviction."""
    core = cluster(N1, LOW, *more, HIGH)
    effects = run(core)
    [evict] = of(Evict, effects)
    return core, evict


# ── one eviction, one wake-up ────────────────────────────────────────────────────────────────────────────────


def test_a_victim_is_asked_to_go_with_its_identity_and_a_reason(cluster):
    core, evict = preempting(cluster)

    assert evict == Evict.match(
        pod="default/low",
        uid="uid-of-low",
        message="default-scheduler: preempting to accommodate a higher priority pod",
    )
    assert core.state("default/high") is State.PARKED


def test_the_promise_is_written_and_the_eviction_told(cluster):
    core = cluster(N1, LOW, HIGH)
    effects = run(core)
    [evict] = of(Evict, effects)

    told = answer(core, evict)

    assert PatchPod.match(pod="default/high", nominated_node_name="n1") in effects
    assert (
        Publish.match(
            regarding="default/low",
            reason="Preempted",
            action="Preempting",
            note="Preempted by pod uid-of-high on node n1",
            related="default/high",
        )
        in told
    )


DELETED = changed(LOW, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

EVENTS = {
    "answered": lambda core, evict: answer(core, evict),
    "seen to go": lambda core, evict: observe(core, going(LOW)),
    "gone": lambda core, evict: vanish(core, going(LOW)),
}


@pytest.mark.parametrize(
    "order",
    [order for order in itertools.permutations(EVENTS) if order.index("seen to go") < order.index("gone")],
    ids=" → ".join,
)
def test_in_whatever_order_the_news_come_the_preemptor_is_bound_at_once(cluster, order):
    core, evict = preempting(cluster)
    effects = []
    for what in order:
        effects += EVENTS[what](core, evict)
        effects += run(core, at=core.now)

    assert of(Evict, effects) == []
    assert of(Bind, effects) == [Bind.match(pod="default/high", node="n1")]
    assert core.evictions.under_way == {}


def test_a_victim_that_was_gone_already_is_no_news_for_anybody(cluster):
    core, evict = preempting(cluster)

    told = fail(core, evict, "NotFound")
    told += vanish(core, LOW)
    told += run(core, at=core.now)

    assert of(Publish, told) == []
    assert of(Bind, told) == [Bind.match(pod="default/high", node="n1")]


def test_several_victims_all_have_to_go(cluster):
    victims = [pod(f"low{i}", cpu=1, on="n1", priority=1) for i in range(2)]
    core = cluster(N1, *victims, HIGH)
    first, second = of(Evict, run(core))

    answer(core, first)
    vanish(core, victims[0])
    assert run(core, at=core.now) == []
    assert core.state("default/high") is State.GATED

    answer(core, second)
    assert of(Bind, run(core, at=core.now) + vanish(core, victims[1]) + run(core, at=core.now)) == [
        Bind.match(pod="default/high")
    ]


# ── no second round ──────────────────────────────────────────────────────────────────────────────────────────


def test_before_the_answer_nothing_gets_the_preemptor_past_its_gate(cluster):
    core, _ = preempting(cluster)

    effects = [
        *core.handle(Commanded("activate", "default/high"), core.now),
        *observe(core, node("n2", cpu=1)),
        *run(core, at=minutes(6)),
    ]

    assert of(Evict, effects) == []
    assert core.state("default/high") is State.GATED
    assert "waiting for the preemption for this pod to be finished" in core.story("default/high")[-1].note


@pytest.mark.parametrize("before", [None, DELETED], ids=["staying", "deleted by somebody else"])
@pytest.mark.parametrize("after", [None, DELETED, going(LOW)], ids=["no news", "old news", "seen to go"])
def test_while_its_victim_goes_the_preemptor_chooses_no_other(cluster, before, after):
    """Another node becomes possible meanwhile, with a victim that would be cheaper still."""
    core, evict = preempting(cluster)
    observe(core, *[news for news in (before,) if news is not None])
    answer(core, evict)
    observe(core, *[news for news in (after,) if news is not None])

    effects = observe(core, node("n2", cpu=2), pod("lower", cpu=2, on="n2", priority=0))
    effects += run(core, at=seconds(20))

    assert core.why("default/high").number > 1, "the preemptor was not even tried again"
    assert of(Evict, effects) == []
    assert "not eligible due to a terminating pod on the nominated node" in core.why("default/high").message


def test_a_node_that_fits_by_itself_is_taken_meanwhile(cluster):
    core, evict = preempting(cluster)
    answer(core, evict)
    observe(core, going(LOW))

    effects = observe(core, node("n2", cpu=2)) + run(core, at=seconds(20))

    assert of(Bind, effects) == [Bind.match(pod="default/high", node="n2")]


def test_when_the_promised_node_is_worth_nothing_any_more_the_preemptor_looks_elsewhere(cluster):
    core, evict = preempting(cluster)
    answer(core, evict)
    observe(core, going(LOW))

    effects = observe(core, changed(N1, spec={"unschedulable": True}))
    effects += observe(core, node("n2", cpu=2), pod("lower", cpu=2, on="n2", priority=0))
    effects += run(core, at=seconds(20))

    assert [one.pod for one in of(Evict, effects)] == ["default/lower"]


@pytest.mark.parametrize("how", ["it is placed elsewhere", "somebody else binds it", "it is deleted"])
def test_room_that_was_promised_and_is_not_taken_is_news_for_those_who_minded_the_promise(cluster, how):
    """None of it can be read from the preemptor's status: the promise had not been written yet."""
    big = pod("big", cpu=3, on="n1", priority=0)
    waiting = pod("waiting", cpu=1, memory=2, priority=1, preemptionPolicy="Never")
    core = cluster(node("n1", cpu=4, memory=2), big, HIGH)
    [evict] = of(Evict, run(core))
    observe(core, waiting)
    run(core, at=core.now)
    assert core.state("default/waiting") is State.PARKED, "it is to mind the promise"

    observe(core, node("n2", cpu=2, memory=1))
    if how == "it is placed elsewhere":
        fail(core, evict, "Forbidden", "no")
    elif how == "somebody else binds it":
        observe(core, changed(HIGH, spec={"nodeName": "n2"}))
    else:
        vanish(core, HIGH)

    assert Bind.match(pod="default/waiting", node="n1") in run(core, at=seconds(5))


def test_a_promise_is_not_undone_by_news_from_before_it_was_written(cluster):
    before = pod("high", cpu=2, priority=9, nominated="n2")
    core = cluster(N1, LOW, before)
    [write] = of(PatchPod, run(core))
    assert write.nominated_node_name == "n1"

    observe(core, HIGH)
    assert core.queue.promised(HIGH.uid) == "n1"

    answer(core, write, pod("high", cpu=2, priority=9, nominated="n1"))
    observe(core, HIGH)
    assert core.queue.promised(HIGH.uid) == "", "somebody has taken it back"


def test_two_preemptors_do_not_choose_the_same_victim(cluster):
    core = cluster(N1, node("n2", cpu=2), LOW, pod("low2", cpu=2, on="n2", priority=2), HIGH, changed_name(HIGH))

    evicted = [one.pod for one in of(Evict, run(core))]

    assert sorted(evicted) == ["default/low", "default/low2"]


def changed_name(obj):
    return pod("higher", cpu=2, priority=obj.spec.priority)


def test_a_victim_of_two_is_evicted_once_and_both_hear_of_it(cluster):
    core, evict = preempting(cluster)
    higher = pod("higher", cpu=2, priority=10)

    assert of(Evict, observe(core, higher) + run(core, at=core.now)) == []

    effects = fail(core, evict, "Forbidden", "no") + run(core, at=seconds(20))
    assert [one.pod for one in of(Evict, effects)] == ["default/low"]
    answer(core, of(Evict, effects)[0])
    assert of(Bind, vanish(core, LOW) + run(core, at=core.now)) == [Bind.match(pod="default/higher")]


def test_a_pod_that_was_evicted_while_it_was_bound_is_not_tried_again(cluster):
    core = cluster(N1, pod("low", cpu=2, priority=1))
    [bind] = of(Bind, run(core))
    [evict] = of(Evict, observe(core, HIGH) + run(core, at=core.now))
    answer(core, evict)

    effects = fail(core, bind, "Forbidden", "no") + observe(core, node("n2", cpu=2)) + run(core, at=minutes(1))

    assert of(Bind, effects) == [Bind.match(pod="default/high")]
    assert core.state("default/low") is State.GONE
    vanish(core, LOW)
    assert not core.leaving


def test_a_pod_whose_eviction_is_promised_after_it_was_placed_anew_is_called_back(cluster):
    core = scheduler(
        N1,
        pod("low", cpu=2, priority=1),
        plugins=[Fit(), moody := Moody(), DefaultPreemption()],
    )
    [bind] = of(Bind, run(core))
    [evict] = of(Evict, observe(core, HIGH) + run(core, at=core.now))
    moody.patient = True
    fail(core, bind, "Forbidden", "no")
    observe(core, node("n2", cpu=2))
    run(core, at=minutes(1))
    assert core.state("default/low") is State.WAITING

    answer(core, evict)

    assert core.state("default/low") is State.GONE
    assert not core.flights.keys() & {"uid-of-low"}


# ── evictions that fail, victims that need none, preemptors that go ──────────────────────────────────────────


def test_an_eviction_that_is_refused_makes_the_preemptor_look_again(cluster):
    core, evict = preempting(cluster)

    effects = fail(core, evict, "Forbidden", "no") + run(core, at=seconds(20))

    [again] = of(Evict, effects)
    assert again.pod == "default/low"
    assert of(Publish, effects)[0].reason == "FailedScheduling"


def test_evictions_that_are_refused_again_and_again_leave_time_between_them(cluster):
    """Nobody else waits, and kube-scheduler would try as fast as it is refused."""
    core, evict = preempting(cluster)
    refused = []
    for second in range(12):
        while evict is not None and len(refused) < 20:
            refused.append(second)
            effects = fail(core, evict, "Forbidden", "no") + run(core, at=core.now)
            evict = next(iter(of(Evict, effects)), None)
        evict = next(iter(of(Evict, run(core, at=seconds(second + 1)))), None)

    assert refused == [0, 2, 5, 10]


def test_a_victim_that_waits_for_permission_is_called_back_without_a_deletion():
    core = scheduler(
        N1,
        pod("low", cpu=2, priority=1),
        plugins=[Fit(), Patience(minutes(1), "low"), DefaultPreemption()],
    )
    run(core)
    assert core.state("default/low") is State.WAITING

    effects = observe(core, HIGH) + run(core, at=core.now)

    assert of(Evict, effects) == []
    assert of(Bind, effects) == [Bind.match(pod="default/high")]
    assert "in kube-scheduler memory" in next(e.note for e in of(Publish, effects) if e.reason == "Preempted")


def test_a_victim_that_is_going_already_is_not_evicted_but_waited_for(cluster):
    core = cluster(N1, DELETED, HIGH)

    effects = run(core)
    assert of(Evict, effects) == []
    assert PatchPod.match(pod="default/high", nominated_node_name="n1") in effects

    assert of(Bind, vanish(core, DELETED) + run(core, at=core.now)) == [Bind.match(pod="default/high", node="n1")]


def test_a_preemptor_that_goes_leaves_nothing_behind(cluster):
    core, evict = preempting(cluster)

    vanish(core, HIGH)
    answer(core, evict)
    effects = vanish(core, LOW) + run(core, at=core.now)

    assert of(Bind, effects) == []
    assert core.evictions.under_way == {}


def test_lower_pods_that_were_promised_the_node_are_told_to_look_elsewhere(cluster):
    middle = pod("middle", cpu=2, priority=5, nominated="n1")
    core = cluster(N1, LOW, middle)
    run(core)
    observe(core, HIGH)

    effects = run(core, at=core.now)

    assert PatchPod.match(pod="default/middle", nominated_node_name="") in effects
    assert [info.name for info in core.queue.nominated().get("n1", ())] == ["high"]
