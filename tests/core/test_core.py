"""The switchboard: what each kind of event does, what a core answers when asked, and what it never does."""

from typing import Any

import pytest
from tests.core.little import Fit, Patience

from kubesched.api.time import Instant, seconds
from kubesched.core.core import Core
from kubesched.core.messages import Bind, Commanded, Completed, EffectId, Observed, Publish, Synced, Tick
from kubesched.core.queue import SimpleQueue
from kubesched.framework.decision import Outcome
from kubesched.framework.errors import IllegalMove
from kubesched.framework.profile import Profile
from kubesched.framework.records import State
from kubesched.framework.status import unschedulable
from kubesched.framework.steps import Answer, Failure
from kubesched.testing import answer, changed, fail, node, observe, pod, run, scheduler, tick, vanish

# ── events ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_news_change_what_we_believe_and_nothing_is_tried_before_a_tick(cluster: Any):
    core = cluster(plugins=[Fit()])
    assert observe(core, node("n1"), pod("a"), pod("b")) == []
    assert core.ready
    assert core.state("default/a") is State.ACTIVE
    [bind] = tick(core)
    assert isinstance(bind, Bind)
    assert core.state("default/b") is State.ACTIVE, "one pod for each tick"


def test_a_tick_with_nothing_to_do_does_nothing(cluster: Any):
    core = cluster(node("n1"), plugins=[Fit()])
    assert not core.ready
    assert core.deadline is None
    assert tick(core) == []


def test_nothing_is_tried_before_the_first_view_is_complete(cluster: Any):
    core = cluster(node("n1"), pod("a"), plugins=[Fit()], wait_for=("Node", "Pod"))
    assert not core.ready
    assert tick(core) == []
    core.handle(Synced(("Node",)), core.now)
    assert tick(core) == []
    core.handle(Synced(("Pod", "Service")), core.now)
    assert core.ready
    assert len(tick(core)) == 1


def test_an_answer_counts_once(cluster: Any):
    core = cluster(node("n1"), pod("a"), plugins=[Fit()])
    [bind] = tick(core)
    assert len(answer(core, bind)) == 1
    assert answer(core, bind) == []
    assert fail(core, bind) == []
    assert core.state("default/a") is State.BOUND


def test_an_answer_to_something_nobody_asked_changes_nothing(cluster: Any):
    core = cluster(node("n1"), pod("a"), plugins=[Fit()])
    assert core.handle(Completed(EffectId(99), Answer(failure=Failure("Timeout"))), core.now) == []
    assert core.state("default/a") is State.ACTIVE


def test_effects_are_numbered_and_say_what_led_to_them(cluster: Any):
    core = cluster(node("n1"), pod("a"), pod("b", cpu=99), plugins=[Fit()])
    effects = run(core)
    assert [effect.id for effect in effects] == [1, 2, 3]
    assert [effect.cause for effect in effects] == [4, 5, 5]
    assert core.story("default/a")[-1].because == 4


def test_a_clock_that_steps_back_undoes_nothing(cluster: Any):
    core = cluster(node("n1"), pod("a"), plugins=[Fit(), Patience(seconds(10))])
    for effect in tick(core, at=seconds(100)):
        answer(core, effect)
    assert core.deadline == seconds(110)
    core.handle(Tick(), Instant(seconds(3)))
    assert core.now == seconds(100)
    assert core.deadline == seconds(110)


def test_timers_that_are_due_fire_whatever_the_event(cluster: Any):
    core = cluster(node("n1"), pod("a"), plugins=[Fit(), Patience(seconds(10))])
    for effect in tick(core):
        answer(core, effect)
    core.handle(Observed(node("n2")), Instant(seconds(11)))
    assert core.state("default/a") is not State.WAITING


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────


def parked(cluster: Any) -> Core:
    core = cluster(node("n1", cpu=1), pod("a", cpu=2), pod("b", cpu=2), plugins=[Fit()])
    run(core)
    assert [core.state(f"default/{name}") for name in "ab"] == [State.PARKED] * 2
    return core


def test_one_sleeper_is_activated(cluster: Any):
    core = parked(cluster)
    core.handle(Commanded("activate", "default/a"), core.now)
    assert [core.state(f"default/{name}") for name in "ab"] == [State.ACTIVE, State.PARKED]


def test_all_sleepers_are_flushed(cluster: Any):
    core = parked(cluster)
    core.handle(Commanded("flush"), core.now)
    assert [core.state(f"default/{name}") for name in "ab"] == [State.ACTIVE] * 2


def test_a_drained_core_finishes_and_begins_nothing(cluster: Any):
    core = cluster(node("n1"), pod("a"), plugins=[Fit()])
    [bind] = tick(core)
    core.handle(Commanded("drain"), core.now)
    observe(core, pod("b"))
    assert not core.ready
    assert tick(core) == []
    [said] = answer(core, bind)
    assert said == Publish.match(reason="Scheduled")
    assert core.state("default/b") is State.ACTIVE


@pytest.mark.parametrize("verb", ["activate", "allow", "reject"])
@pytest.mark.parametrize("name", ["default/nobody", "default/a", ""])
def test_a_command_about_nobody_it_could_concern_changes_nothing(cluster: Any, verb: Any, name: str):
    core = cluster(node("n1"), pod("a"), plugins=[Fit()])
    [bind] = tick(core)
    answer(core, bind)
    assert core.handle(Commanded(verb, name), core.now) == []
    assert core.state("default/a") is State.BOUND


# ── questions ────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_if_answers_without_trying(cluster: Any):
    core = cluster(node("n1", cpu=1), node("n2", cpu=4), pod("a", cpu=1), plugins=[Fit()])
    position, cycles = core.position, core.cycles
    assert core.what_if(pod("x", cpu=3)).node == "n2"
    refused = core.what_if(pod("x", cpu=9))
    assert refused.outcome is Outcome.UNSCHEDULABLE
    assert refused.message == "0/2 nodes are available: 2 Insufficient cpu."
    assert (core.position, core.cycles) == (position, cycles)
    assert core.state("default/x") is None
    assert core.why("default/x") is None


def test_what_if_may_ask_every_filter_about_every_node(cluster: Any):
    class Name:
        def filter(self, cycle, pod, node):
            return Fit().filter(cycle, pod, node) if node.name == "n1" else None

    core = cluster(node("n1", cpu=1), node("n2", unschedulable=True), plugins=[Fit(), Name()])
    decision = core.what_if(pod("x", cpu=3), exhaustive=True)
    assert set(decision.verdicts) == {"Fit", "Name"}
    assert [len(verdict) for verdict in decision.verdicts.values()] == [2, 2]


def test_why_is_the_last_attempt_and_the_story_every_move(cluster: Any):
    core = parked(cluster)
    assert core.why("default/a").message == "0/1 nodes are available: 1 Insufficient cpu."
    assert [record.cause for record in core.story("default/a")] == ["admitted", "popped", "unfit"]
    assert core.why("default/nobody") is None
    assert core.story("default/nobody") == ()
    assert core.state("default/nobody") is None


def test_what_is_left_of_a_node(cluster: Any):
    core = cluster(node("n1", cpu=4, memory="8Gi", pods=10), pod("a", cpu=1, memory="1Gi", on="n1"), plugins=[Fit()])
    assert core.free("n1")["cpu"] == 3000
    assert core.free("n1")["memory"] == 7 << 30
    assert core.free("n1")["pods"] == 9


def test_what_is_remembered_follows_what_is_there(cluster: Any):
    core = cluster(node("n1", cpu=1, pods=9999), plugins=[Fit()])
    for i in range(300):
        observe(core, pod(f"p{i}", cpu=2))
        run(core)
        vanish(core, pod(f"p{i}", cpu=2))
    assert len(core.decisions.recent) == 256
    assert len(core.decisions._latest) == 0
    assert dict(core.life.each()) == {}
    assert core.failing._said == {}
    assert len(core.timers) == 0


# ── profiles ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_pod_is_tried_by_its_own_profile(cluster: Any):
    class Never:
        def filter(self, cycle, pod, node):
            return unschedulable("never")

    profiles = {"default-scheduler": Profile(Fit()), "strict": Profile(Never(), name="strict")}
    core = scheduler(node("n1"), pod("a"), pod("b", scheduler="strict"), profile=profiles)
    effects = run(core)
    assert [effect.pod for effect in effects if isinstance(effect, Bind)] == ["default/a"]
    [said] = [effect for effect in effects if isinstance(effect, Publish)]
    assert (said.regarding, said.reporter) == ("default/b", "strict")


def test_a_simple_queue_does_as_well(cluster: Any):
    core = cluster(node("n1", cpu=1), pod("a", cpu=1), pod("b", cpu=1), plugins=[Fit()], queue=SimpleQueue())
    effects = run(core)
    assert [type(effect).__name__ for effect in effects].count("Bind") == 1
    observe(core, node("n2", cpu=1))
    assert run(core) == [], "it forgets what does not fit"


# ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_illegal_move_stops_the_core_with_the_pods_story(cluster: Any):
    core = parked(cluster)
    info = core.queue.find("uid-of-a").info
    with pytest.raises(IllegalMove) as caught:
        core.life.move(info, "bound", "n1")
    assert str(caught.value).startswith("pod default/a cannot be 'bound': it is Parked (this is a bug in kubesched)\n")
    assert [record.cause for record in caught.value.story] == ["admitted", "popped", "unfit"]


def test_a_pod_that_changes_its_mind_about_who_shall_place_it(cluster: Any):
    """schedulerName cannot change in Kubernetes; a namesake may have another."""
    core = cluster(node("n1"), pod("a", cpu=1), plugins=[Fit()])
    observe(core, pod("a", scheduler="other", uid="another"))
    assert core.state("default/a") is None
    assert tick(core) == []


def test_a_pod_is_tried_as_it_is_by_now(cluster: Any):
    core = cluster(node("n1", cpu=1), pod("a", cpu=9, version=1), plugins=[Fit()])
    observe(core, changed(pod("a", cpu=1), metadata={"resourceVersion": "2"}))
    [bind] = tick(core)
    assert bind.resource_version == "2"
