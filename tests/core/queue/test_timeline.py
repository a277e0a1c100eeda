"""Whole stories: one pod from failure to failure, and the consequences that are easily got wrong."""

import pytest
from tests.core.queue.bench import NODE_ADD, POD_DELETE, PVC_ADD, Bench, Gate, Rejector, pod

from kubesched.core.queue import PriorityQueue
from kubesched.framework.events import QueueingHint
from kubesched.framework.records import State

FIT = Rejector("NodeResourcesFit", POD_DELETE, NODE_ADD)


def rejected_and_woken(*, busy: bool) -> Bench:
    """Pod a is turned down at 0.32 s, and a deleted pod wakes it at 0.5 s."""
    world = Bench(FIT)
    world.add(pod("a"), 0.30)
    assert world.pop(0.31) == "a"
    world.back("a", "NodeResourcesFit", seconds=0.32)
    if busy:
        world.add(pod("busy", priority=-1), 0.4)
    world.notify(POD_DELETE, 0.50)
    return world


def test_the_story_of_one_pod_on_an_idle_scheduler():
    world = rejected_and_woken(busy=False)
    assert world.state("a") is State.BACKOFF
    assert world.queue.ready
    assert world.pop(0.50) == "a"
    taken = world.taken["a"]
    assert (taken.attempts, taken.unschedulable_count) == (2, 1)
    assert world.causes("a") == ["admitted", "popped", "unfit", "hinted", "popped"]


def test_the_story_of_one_pod_on_a_busy_scheduler():
    world = rejected_and_woken(busy=True)
    assert world.deadline() == 2
    world.tick(1.00)
    assert world.state("a") is State.BACKOFF
    world.tick(2.00)
    assert world.causes("a") == ["admitted", "popped", "unfit", "hinted", "expired"]
    assert world.drain(2.00) == ["a", "busy"]


def test_the_second_failure_backs_off_twice_as_long():
    world = rejected_and_woken(busy=False)
    world.pop(0.50)
    world.back("a", "NodeResourcesFit", seconds=0.51)
    world.add(pod("busy", priority=-1), 0.6)
    world.notify(POD_DELETE, 0.7)
    assert world.deadline() == 3  # 2.51 is cut to 2, and the second after that is 3


def test_the_same_story_with_an_error_cannot_be_cut_short():
    world = Bench(FIT)
    world.add(pod("a"), 0.30)
    world.pop(0.31)
    world.back("a", seconds=0.32)
    world.notify(POD_DELETE, 0.50)
    assert not world.queue.ready
    assert world.deadline() == 2


def test_an_error_never_sleeps_until_an_event():
    world = Bench(FIT)
    world.add(pod("a"))
    for now in (0, 2, 5, 10, 19):
        world.tick(now)
        assert world.pop(now) == "a"
        world.back("a", seconds=now)
        assert world.state("a") is State.BACKOFF
        assert str(world.queue.alarm("uid-a")).startswith("backoff until ")


def test_an_idle_scheduler_does_not_wake_those_nothing_has_happened_for():
    world = Bench(FIT)
    world.add(pod("a"))
    world.pop()
    world.back("a", "NodeResourcesFit")
    world.notify(PVC_ADD, 3)
    world.tick(299)
    assert not world.queue.ready
    assert world.pop(299) is None


def test_whoever_was_pending_passes_by_its_backoff_however_long():
    world = Bench(Rejector("Claims", PVC_ADD))
    world.add(pod("a"))
    for now in range(8):
        world.pop(now)
        world.back("a", pending=["Claims"], seconds=now)
        assert world.state("a") is State.PARKED
        world.notify(PVC_ADD, now + 0.001)
        assert world.state("a") is State.ACTIVE
    assert world.waiting("a").unschedulable_count == 8


def test_a_preemptor_is_woken_by_its_victims_deletion_and_let_in_by_its_gate():
    """The plugin that evicts holds its pod back until the last victim has gone; it wakes nobody itself."""
    preemption = Gate("DefaultPreemption", "a")
    world = Bench(preemption, FIT)
    preemption.closed.clear()
    world.add(pod("a", priority=9))
    world.pop()
    preemption.closed.add("a")
    world.back("a", "NodeResourcesFit")
    world.notify(POD_DELETE, 3)
    assert world.state("a") is State.GATED  # the first victim; another is still there
    preemption.closed.clear()
    world.notify(POD_DELETE, 4)
    assert world.queue.alarm("uid-a") == "only the flush: no event can help, say DefaultPreemption"
    assert world.state("a") is State.GATED


@pytest.mark.parametrize("hears", [True, False])
def test_a_preemptor_held_by_its_gate_is_asked_about_at_each_event_the_gate_registered(hears):
    class Preemption(Gate):
        """Like DefaultPreemption: it registers deleted pods, and its own hint never helps."""

        def events_to_register(self):
            hints = Rejector("x", POD_DELETE, answer=QueueingHint.SKIP).events_to_register()
            return hints if hears else []

    preemption = Preemption("DefaultPreemption")
    world = Bench(preemption, FIT)
    world.add(pod("a", priority=9))
    world.pop()
    world.back("a", "NodeResourcesFit")
    preemption.closed.add("a")
    world.notify(POD_DELETE, 3)
    preemption.closed.clear()
    world.notify(POD_DELETE, 4)
    assert world.state("a") is (State.ACTIVE if hears else State.GATED)


def test_a_failed_preemption_asks_for_its_pod_by_name():
    world = Bench(FIT)
    world.add(pod("a", priority=9))
    world.pop()
    world.back("a", "NodeResourcesFit")
    world.activate("a", seconds=0.1)
    assert world.pop(0.1) == "a"


def test_pods_that_cannot_be_placed_do_not_starve_one_that_can():
    world = Bench(FIT, queue=PriorityQueue())
    for number in range(100):
        world.add(pod(f"big{number}", priority=1_000))
    world.add(pod("small", priority=1), 0.5)
    for turn in range(200):
        now = 0.5 + turn / 1_000
        name = world.pop(now)
        assert name is not None
        if name == "small":
            return
        world.notify(POD_DELETE, now)  # the cluster is never quiet
        world.back(name, "NodeResourcesFit", seconds=now)
    raise AssertionError("the small pod was never tried")
