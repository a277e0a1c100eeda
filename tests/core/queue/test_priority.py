"""The queue as a whole: pods come, change, are tried, come back, sleep and are woken."""

import pytest
from tests.core.queue.bench import (
    NODE_ADD,
    NODE_ALLOCATABLE,
    NODE_LABEL,
    POD_DELETE,
    POD_LABEL,
    POD_UPDATE,
    PVC_ADD,
    Bench,
    Gate,
    Rejector,
    at,
    node,
    pod,
)

from kubesched.api.time import seconds
from kubesched.core.queue import PriorityQueue
from kubesched.framework.errors import InternalError
from kubesched.framework.events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, QueueingHint
from kubesched.framework.profile import Profile
from kubesched.framework.records import State

FIT = Rejector("Fit", NODE_ADD, POD_DELETE)
NEVER = Rejector("Never", NODE_ADD, POD_LABEL, answer=QueueingHint.SKIP)


def bench(*plugins, **queue) -> Bench:
    return Bench(*(plugins or (FIT, NEVER)), queue=PriorityQueue(**queue))


def parked(name: str = "a", *rejectors: str, **queue) -> Bench:
    """A pod that was turned down at 0 s."""
    world = bench(**queue)
    world.park(pod(name), *(rejectors or ("Fit",)))
    return world


# ── coming and going ─────────────────────────────────────────────────────────────────────────────────────────


def test_before_anything_has_happened_it_is_empty_and_can_be_asked():
    queue = PriorityQueue()
    assert set(queue.counts().values()) == {0}
    assert not queue.ready
    assert (len(queue), list(queue), queue.rejected(), queue.deadline) == (0, [], {}, None)


def test_a_new_pod_is_ready_at_once():
    world = bench()
    assert world.queue.pop(at(0)) is None
    world.add(pod("a"), 1.5)
    assert world.queue.ready
    assert world.queue.alarm("uid-a") == "active"
    assert world.queue.deadline is None
    assert world.pop(2) == "a"
    taken = world.taken["a"]
    assert (taken.added, taken.attempts, taken.first_attempt) == (at(1.5), 1, at(1.5))
    assert "uid-a" not in world.queue


def test_attempts_are_counted_and_the_first_is_remembered():
    world = parked()
    world.notify(NODE_ADD, 5)
    assert world.pop(6) == "a"
    taken = world.taken["a"]
    assert taken.rejectors == frozenset()  # what follows says nothing about the attempt before
    assert (taken.attempts, taken.first_attempt, taken.added) == (2, at(0), at(0))


def test_pods_of_one_name_and_two_uids_are_two_pods():
    world = bench()
    world.add(pod("a", uid="old"))
    assert world.pop() == "a"
    world.queue.delete("old", at(1))
    world.add(pod("a", uid="new"), 1)
    assert len(world.queue) == 1
    world.queue.done("old")
    assert world.pop(1) == "a"
    assert world.taken["a"].uid == "new"
    world.back("a", "Fit", seconds=2)
    assert "new" in world.queue
    assert "old" not in world.queue


def test_a_pod_seen_twice_is_one_pod():
    world = bench()
    world.add(pod("a", priority=1))
    world.add(pod("b", priority=2))
    world.add(pod("a", priority=3))
    assert world.drain() == ["a", "b"]
    world.add(pod("a", priority=4))
    assert len(world.queue) == 0
    world.back("a", "Fit")
    assert world.waiting("a").priority == 4


@pytest.mark.parametrize("place", ["active", "backoff", "errors", "parked", "gated", "in flight"])
def test_a_pod_is_deleted_wherever_it_is(place):
    world = bench(FIT, Gate("Gate", *("a" if place == "gated" else "")))
    world.add(pod("a", nominated="n1"))
    if place not in ("active", "gated"):
        world.pop()
    if place in ("backoff", "errors", "parked"):
        if place == "backoff":
            world.notify(NODE_ADD)
        world.back("a", *(() if place == "errors" else ("Fit",)))
    world.queue.delete("uid-a", at(1))
    assert "uid-a" not in world.queue
    assert len(world.queue) == 0
    assert world.queue.nominated() == {}
    assert len(world.kube.in_flight) == 0
    assert world.queue.deadline is None
    assert world.queue.alarm("uid-a") is None
    world.tick(1_000)
    assert world.drain(1_000) == []


def test_deleting_a_stranger_changes_nothing():
    world = parked()
    world.queue.delete("stranger", at(1))
    world.queue.done("stranger")
    assert len(world.queue) == 1


# ── failing ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_pod_that_does_not_fit_sleeps():
    world = parked()
    assert world.state("a") is State.PARKED
    assert not world.queue.ready
    assert world.queue.alarm("uid-a") == "NodeAdd, PodDelete, NodeUpdateNodeTaint"
    waiting = world.waiting("a")
    assert (waiting.unschedulable_count, waiting.errors_in_a_row) == (1, 0)
    assert waiting.rejectors == {"Fit"}


def test_a_pod_that_breaks_backs_off_and_is_not_tried_early():
    world = bench()
    world.add(pod("a"), 0.3)
    world.pop(0.31)
    world.back("a", seconds=0.32, note="connection refused")
    assert world.state("a") is State.BACKOFF
    assert not world.queue.ready
    assert world.pop(0.5) is None
    assert world.deadline() == 2
    world.tick(1.999999999)
    assert world.state("a") is State.BACKOFF
    world.tick(2)
    assert world.pop(2) == "a"
    assert [(r.cause, r.note) for r in world.life.story("default/a")][2:4] == [
        ("broke", "connection refused"),
        ("expired", "BackoffComplete"),
    ]


def test_an_error_after_a_rejection_is_an_error():
    world = parked()
    world.notify(NODE_ADD, 3)
    world.pop(3)
    world.back("a", seconds=3)
    waiting = world.waiting("a")
    assert (waiting.unschedulable_count, waiting.errors_in_a_row, waiting.rejectors) == (1, 1, frozenset())
    assert world.state("a") is State.BACKOFF
    assert not world.queue.ready


def test_a_rejection_ends_a_row_of_errors():
    world = bench()
    world.add(pod("a"))
    for turn, rejectors in enumerate(((), (), ("Fit",))):
        now = turn * 20
        world.tick(now)
        world.pop(now)
        world.back("a", *rejectors, seconds=now)
    waiting = world.waiting("a")
    assert (waiting.unschedulable_count, waiting.errors_in_a_row) == (1, 0)


def test_a_failed_bind_backs_off_though_nothing_happened():
    world = bench()
    world.add(pod("a"))
    world.pop()
    world.queue.done("uid-a")
    world.back("a", "Fit", seconds=0.5)
    assert world.state("a") is State.BACKOFF
    assert world.causes("a")[-1] == "unfit_woken"


def test_a_pod_that_comes_back_twice_is_a_bug_that_is_named():
    world = parked()
    with pytest.raises(InternalError, match="default/a came back and is queued"):
        world.queue.put_back(world.waiting("a"), at(1), rejectors=["Fit"])


def test_a_pod_tried_lately_goes_behind_its_equals():
    world = bench()
    for name in ("a", "b"):
        world.add(pod(name))
    assert world.pop(1) == "a"
    world.back("a", pending=["Fit"], seconds=1)
    world.notify(NODE_ADD, 1)
    assert world.state("a") is State.ACTIVE
    assert world.drain(1) == ["b", "a"]


def test_equals_tried_at_the_same_instant_go_in_the_order_they_came_back():
    world = bench()
    for name in ("a", "b", "c"):
        world.add(pod(name))
    assert world.drain() == ["a", "b", "c"]
    for name in ("c", "a", "b"):
        world.back(name, pending=["Fit"])
    world.notify(NODE_ADD)
    assert world.drain() == ["c", "a", "b"]


def test_a_pod_that_keeps_failing_does_not_stand_before_a_newer_one():
    world = parked()
    world.add(pod("newer"), 10)
    world.notify(NODE_ADD, 20)
    assert world.drain(20) == ["a", "newer"]
    world.back("a", "Fit", seconds=30)
    world.back("newer", "Fit", seconds=31)
    world.notify(NODE_ADD, 60)
    assert world.drain(60) == ["a", "newer"]


@pytest.mark.parametrize("errors", [False, True])
def test_the_backoff_of_each_failure_is_twice_the_last(errors):
    world = bench()
    world.add(pod("a"))
    now, waits = 0.0, []
    for _ in range(6):
        world.pop(now)
        if not errors:
            world.add(pod("busy", priority=-1), now)  # so that nothing is taken early
            world.notify(NODE_ADD, now)
        world.back("a", *(() if errors else ("Fit",)), seconds=now)
        deadline = world.deadline()
        assert deadline is not None
        waits.append(deadline - 1 - now)
        now = deadline
        world.tick(now)
        assert world.state("a") is State.ACTIVE
    assert waits == [1, 2, 4, 8, 10, 10]


# ── events ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "pending", "now", "expected", "cause"),
    [
        (None, False, 0.5, "Backoff", "hinted"),
        (None, False, 1.999999999, "Backoff", "hinted"),
        (None, False, 2.0, "Active", "hinted_ready"),
        (None, True, 0.5, "Active", "hinted_ready"),
        (QueueingHint.QUEUE, False, 0.5, "Backoff", "hinted"),
        (QueueingHint.QUEUE, True, 0.5, "Active", "hinted_ready"),
        (QueueingHint.SKIP, False, 9, "Parked", "unfit"),
        (QueueingHint.SKIP, True, 9, "Parked", "unfit"),
        (ValueError("hint"), False, 9, "Active", "hinted_ready"),
    ],
)
def test_an_event_takes_a_pod_where_its_hint_says(answer, pending, now, expected, cause):
    world = bench(Rejector("R", NODE_ADD, answer=answer))
    world.add(pod("a"))
    world.pop()
    world.back("a", "R", pending=["R"] if pending else [])
    world.notify(NODE_ADD, now, None, node())
    assert world.states() == {"a": expected}
    assert world.causes("a")[-1] == cause


def test_an_event_nobody_registered_is_neither_acted_on_nor_written_down():
    world = parked()
    world.add(pod("tried"), 1)
    assert world.pop(1) == "tried"
    world.notify(PVC_ADD, 5)
    assert world.state("a") is State.PARKED
    assert world.kube.in_flight.events == ()


def test_an_event_disturbs_only_those_whose_rejectors_listen():
    listener = Rejector("Ports", NODE_LABEL, answer=QueueingHint.QUEUE)
    world = bench(FIT, listener)
    world.park(pod("a"), "Fit")
    world.park(pod("b"), "Ports")
    world.notify(NODE_LABEL, 5)
    assert listener.heard == ["b"]
    assert world.states() == {"a": "Parked", "b": "Active"}


def test_an_event_may_be_meant_for_some_pods_only():
    world = bench()
    for name, priority in (("low", 1), ("high", 9)):
        world.park(pod(name, priority=priority), "Fit")
    world.notify(POD_DELETE, 5, only=lambda info: info.priority <= 5)
    assert world.states() == {"low": "Active", "high": "Parked"}


def test_a_wildcard_wakes_everyone():
    world = bench()
    world.park(pod("a"), "Fit")
    world.park(pod("b"), "Never")
    world.notify(UNSCHEDULABLE_TIMEOUT, 5)
    assert world.states() == {"a": "Active", "b": "Active"}
    assert world.causes("a")[-1] == "flushed_ready"


def test_each_profile_has_its_own_plugins():
    profiles = [Profile(Rejector("R", NODE_ADD), name="one"), Profile(Rejector("R", PVC_ADD), name="two")]
    world = Bench(profiles=profiles)
    world.park(pod("a", profile="one"), "R")
    world.park(pod("b", profile="two"), "R")
    world.notify(PVC_ADD, 5)
    assert world.states() == {"a": "Parked", "b": "Active"}


# ── events in flight ─────────────────────────────────────────────────────────────────────────────────────────


def in_flight(*names: str) -> Bench:
    world = bench(FIT, NEVER, Rejector("Claims", PVC_ADD))
    for name in names or ("a",):
        world.add(pod(name))
        assert world.pop() == name
    return world


def logged(world: Bench) -> list[str]:
    return [happening.event.label for happening in world.kube.in_flight.events]


@pytest.mark.parametrize(
    ("events", "rejectors", "pending", "expected"),
    [
        ([], ("Fit",), (), "Parked"),
        ([NODE_ADD], ("Fit",), (), "Backoff"),
        ([NODE_ADD], ("Claims",), (), "Parked"),  # it registered something else
        ([NODE_LABEL], ("Fit",), (), "Parked"),  # nobody registered it
        ([NODE_ADD], ("Never",), (), "Parked"),  # its hint says no
        ([NODE_ADD, PVC_ADD], ("Claims",), (), "Backoff"),  # the second one counts too
        ([NODE_ADD], (), ("Fit",), "Active"),
        ([NODE_ADD], ("Claims",), ("Fit",), "Active"),
        ([PVC_ADD], ("Claims",), ("Fit",), "Backoff"),
        ([PVC_ADD, NODE_ADD], ("Claims",), ("Fit",), "Active"),  # a later event says more
        ([NODE_ADD], ("Unheard",), (), "Parked"),
        ([NODE_ADD], (), (), "Backoff"),  # it broke: events do not matter
        ([], (), (), "Backoff"),
        ([UNSCHEDULABLE_TIMEOUT], ("Unheard",), (), "Backoff"),
    ],
)
def test_what_happens_while_a_pod_is_tried_decides_where_it_goes(events, rejectors, pending, expected):
    world = in_flight()
    for event in events:
        world.notify(event)
    world.back("a", *rejectors, pending=pending)
    assert world.states() == {"a": expected}
    assert len(world.kube.in_flight) == 0
    assert logged(world) == []


def test_what_happened_before_the_attempt_does_not_count():
    world = bench()
    world.add(pod("a"))
    world.add(pod("b"))
    assert world.pop() == "a"
    world.notify(NODE_ADD)
    assert world.pop() == "b"
    world.back("b", "Fit")
    world.back("a", "Fit")
    assert world.states() == {"a": "Backoff", "b": "Parked"}


def test_the_record_names_the_event_that_woke_the_pod():
    world = in_flight()
    world.notify(POD_DELETE)
    world.back("a", "Fit", note="0/3 nodes are available")
    assert world.life.story("default/a")[-1].note == "0/3 nodes are available; AssignedPodDelete"


def test_the_log_keeps_what_a_pod_in_flight_may_still_ask_about():
    world = in_flight("a", "b")
    world.notify(NODE_ADD)
    world.add(pod("c"))
    world.pop()
    world.notify(POD_DELETE)
    world.queue.done("uid-a")
    assert logged(world) == ["NodeAdd", "AssignedPodDelete"]
    world.back("b", "Fit")
    assert logged(world) == ["AssignedPodDelete"]
    world.queue.delete("uid-c", at(1))
    assert logged(world) == []


def test_ten_thousand_pods_deleted_in_mid_air_leave_nothing_behind():
    world = bench()
    for number in range(10_000):
        world.add(pod(f"p{number}"))
        world.pop()
        world.notify(NODE_ADD)
        world.queue.delete(f"uid-p{number}", at(0))
    assert logged(world) == []
    assert len(world.kube.in_flight) == 0
    assert len(world.queue) == 0


def test_an_update_in_flight_is_asked_about_on_return_and_the_pod_comes_back_as_it_is_now():
    world = bench(Rejector("Labels", POD_LABEL))
    world.add(pod("a"))
    world.pop()
    world.update(changed := pod("a", labels={"x": "y"}), POD_LABEL)
    assert "uid-a" not in world.queue
    assert world.taken["a"].info is not changed  # the attempt goes on with what it was given
    assert logged(world) == ["UnschedulablePodUpdatePodLabel"]
    world.back("a", "Labels")
    assert world.state("a") is State.BACKOFF
    assert world.waiting("a").info is changed


def test_an_update_of_a_pod_being_bound_is_none_of_the_queues_business():
    world = in_flight()
    world.life.move(world.pods["a"], "placed")
    world.queue.done("uid-a")
    world.update(pod("a", labels={"x": "y"}), POD_LABEL)
    assert len(world.queue) == 0
    assert world.state("a") is State.RESERVED


# ── updates ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_update_of_an_unknown_pod_adds_it():
    world = bench()
    world.update(pod("a", nominated="n1"), POD_LABEL)
    assert world.pop() == "a"
    assert list(world.queue.nominated()) == ["n1"]
    assert world.kube.incoming == {("active", "UnschedulablePodUpdate"): 1}


def test_an_update_of_a_ready_pod_gives_it_its_new_place():
    world = bench()
    for name, priority in (("a", 1), ("b", 2)):
        world.add(pod(name, priority=priority))
    world.update(pod("a", priority=3, nominated="n1"), POD_UPDATE)
    assert list(world.queue.nominated()) == ["n1"]
    assert world.drain() == ["a", "b"]


@pytest.mark.parametrize("rejectors", [("Fit",), ()])
def test_an_update_of_a_pod_that_backs_off_does_not_cut_it_short(rejectors):
    world = in_flight()
    world.notify(NODE_ADD)
    world.back("a", *rejectors)
    world.update(changed := pod("a", priority=3), POD_LABEL, seconds=0.5)
    assert world.state("a") is State.BACKOFF
    assert world.waiting("a").info is changed
    assert world.deadline() == 2


@pytest.mark.parametrize(
    ("events", "now", "expected"),
    [
        ([], 5, "Parked"),
        ([POD_UPDATE], 5, "Parked"),
        ([POD_LABEL], 5, "Active"),
        ([POD_LABEL], 0.5, "Backoff"),
        ([POD_UPDATE, POD_LABEL], 5, "Active"),
    ],
)
def test_an_update_of_a_sleeping_pod_wakes_it_where_a_rejector_asked_for_that(events, now, expected):
    world = bench(Rejector("Labels", POD_LABEL))
    world.park(pod("a"), "Labels")
    world.update(changed := pod("a", labels={"x": "y"}), *events, seconds=now)
    assert world.states() == {"a": expected}
    assert world.waiting("a").info is changed


def test_an_update_whose_hint_says_no_leaves_the_pod_asleep():
    world = parked("a", "Never")
    world.update(pod("a", labels={"x": "y"}, nominated="n1"), POD_LABEL, seconds=5)
    assert world.states() == {"a": "Parked"}
    assert list(world.queue.nominated()) == ["n1"]  # though its new status counts


def test_an_update_stops_asking_once_the_pod_is_awake():
    listener = Rejector("Labels", POD_LABEL, POD_UPDATE, answer=QueueingHint.QUEUE)
    world = bench(listener)
    world.park(pod("a"), "Labels")
    world.update(pod("a"), POD_LABEL, POD_UPDATE, seconds=5)
    assert listener.heard == ["a"]


# ── activation ───────────────────────────────────────────────────────────────────────────────────────────────


def test_activating_a_sleeping_pod_makes_it_ready_whatever_its_backoff():
    world = parked(backoff_initial=seconds(100), backoff_max=seconds(100))
    world.activate("a", seconds=0.1)
    assert world.state("a") is State.ACTIVE
    assert world.causes("a")[-1] == "activated"


@pytest.mark.parametrize("rejectors", [("Fit",), ()])
def test_activating_a_pod_cuts_its_backoff_short(rejectors):
    world = in_flight()
    world.notify(NODE_ADD)
    world.back("a", *rejectors)
    world.activate("a")
    assert world.pop() == "a"
    assert world.queue.deadline is None


def test_activating_a_pod_in_flight_is_remembered_for_its_return_and_for_nobody_elses():
    world = in_flight("a", "b")
    world.activate("a")
    world.back("a", "Unheard")
    world.back("b", "Unheard")
    assert world.states() == {"a": "Backoff", "b": "Parked"}


def test_activating_a_ready_or_unknown_pod_changes_nothing():
    world = bench()
    world.add(pod("a"))
    world.queue.activate(["uid-a", "stranger"], at(0))
    assert world.causes("a") == ["admitted"]
    assert len(world.queue) == 1


def test_activating_a_pod_does_not_let_it_past_its_gate():
    world = bench(Gate("Gate", "a"))
    world.add(pod("a"))
    world.activate("a")
    assert world.state("a") is State.GATED
    assert not world.queue.ready


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_with_nothing_else_to_do_a_pod_is_taken_before_its_backoff_ends():
    world = in_flight()
    world.notify(NODE_ADD)
    world.back("a", "Fit")
    world.add(pod("busy", priority=-5))
    assert world.pop(0.1) == "busy"
    assert world.queue.ready
    assert world.pop(0.1) == "a"
    assert world.life.story("default/a")[-1].note == "PopFromBackoffQ"


def test_switched_off_no_backoff_is_cut_short_and_ends_are_exact():
    world = bench(FIT, pop_from_backoff=False)
    world.add(pod("a"), 0.25)
    world.pop(0.25)
    world.notify(NODE_ADD, 0.25)
    world.back("a", "Fit", seconds=0.25)
    assert not world.queue.ready
    assert world.pop(0.5) is None
    assert world.deadline() == 2  # 1.25 has passed at the second look
    world.tick(2)
    assert world.pop(2) == "a"


def turned_down_together(*pods: tuple[str, int, float], **queue) -> Bench:
    """Pods that back off, each from its own time on; ready ones keep the queue busy."""
    world = bench(FIT, **queue)
    for name, priority, _ in pods:
        world.add(pod(name, priority=priority))
    assert len(world.drain()) == len(pods)
    world.notify(NODE_ADD)
    for name, _, when in pods:
        world.back(name, "Fit", seconds=when)
    return world


def test_within_one_second_the_higher_priority_is_first():
    world = turned_down_together(("early-low", 1, 0.1), ("late-high", 9, 0.9), ("next", 99, 1.0))
    assert world.drain(1) == ["late-high", "early-low", "next"]


def test_without_cutting_the_earlier_end_is_first():
    world = turned_down_together(("early-low", 1, 0.1), ("late-high", 9, 0.9), pop_from_backoff=False)
    world.tick(1)
    assert world.states() == {"early-low": "Backoff", "late-high": "Backoff"}
    world.tick(2)  # both have ended by now; the end that came first went first
    expired = [r.pod.removeprefix("default/") for r in world.life.recent if r.cause == "expired"]
    assert expired == ["early-low", "late-high"]


def test_errors_end_in_the_order_of_their_ends_alone():
    world = bench()
    for name, priority in (("low", 1), ("high", 9)):
        world.add(pod(name, priority=priority))
    world.drain()
    world.back("low", seconds=0.1)
    world.back("high", seconds=0.9)
    world.tick(2)
    assert world.causes("low")[-1] == world.causes("high")[-1] == "expired"
    expired = [r.pod for r in world.life.recent if r.cause == "expired"]
    assert expired == ["default/low", "default/high"]
    assert world.drain(2) == ["high", "low"]


@pytest.mark.parametrize(
    ("now", "released"),
    [(0.9, []), (1.0, []), (1.999999999, []), (2.0, ["b", "a"]), (3.0, ["b", "a", "d"]), (9, ["b", "a", "d", "c"])],
)
def test_a_tick_releases_those_whose_second_has_passed(now, released):
    world = turned_down_together(("a", 1, 0.1), ("b", 2, 0.9), ("c", 3, 2.5), ("d", 4, 1.0))
    world.tick(now)
    assert [r.pod.removeprefix("default/") for r in world.life.recent if r.cause == "expired"] == released


def test_the_deadline_is_the_next_moment_a_tick_does_something():
    world = turned_down_together(("a", 1, 0.1), ("b", 2, 2.5))
    world.park(pod("sleeper"), "Never")
    for expected in (2, 4, 330):
        assert world.deadline() == expected
        before = world.states()
        world.tick(expected - 1e-9)
        assert world.states() == before
        world.tick(expected)
        assert world.states() != before
    assert world.deadline() is None


def test_whoever_has_slept_for_five_minutes_is_tried_without_a_reason():
    world = parked("a", "Never")
    world.tick(329.999999999)
    assert world.state("a") is State.PARKED
    world.tick(330)
    assert world.state("a") is State.ACTIVE
    assert world.causes("a")[-1] == "flushed_ready"
    assert world.pop(331) == "a"
    assert world.taken["a"].flushed == at(330)
    world.back("a", "Never", seconds=332)
    assert world.waiting("a").flushed is None


def test_a_flushed_pod_whose_backoff_is_not_over_waits_for_that():
    world = parked("a", "Never", parked_max=seconds(0), backoff_initial=seconds(50), backoff_max=seconds(50))
    assert world.deadline() == 30
    world.tick(30)
    assert world.state("a") is State.BACKOFF
    assert world.causes("a")[-1] == "flushed"


def test_a_flush_is_an_event_for_pods_in_flight():
    world = parked("a", "Never")
    world.add(pod("b"), 1)
    world.pop(1)
    world.tick(330)
    assert logged(world) == ["UnschedulableTimeout"]
    world.back("b", "Never", seconds=331)
    assert world.state("b") is State.BACKOFF


def test_a_gated_pod_is_asked_about_once_per_flush():
    gate = Gate("Gate", "a")
    world = Bench(gate)
    world.add(pod("a"))
    for now, asked in ((330, 2), (331, 2), (600, 2), (660, 3)):
        world.tick(now)
        assert len(gate.heard) == asked
    assert world.state("a") is State.GATED
    gate.closed.clear()
    world.tick(990)
    assert world.causes("a") == ["gated", "ungated"]


def test_looks_are_counted_from_the_start():
    world = Bench(NEVER, start=7)
    world.add(pod("a"), 8)
    world.pop(8)
    world.back("a", "Never", seconds=8)
    assert world.deadline() == 7 + 330


# ── what to tell people ──────────────────────────────────────────────────────────────────────────────────────


def test_pods_are_counted_by_place():
    world = bench(FIT, Gate("Gate", "gated"))
    for name in ("backoff", "error", "parked"):
        world.add(pod(name))
    world.drain()
    world.back("parked", "Fit", seconds=50)
    world.back("error", seconds=50)
    world.queue.done("uid-backoff")
    world.back("backoff", "Fit", seconds=50)
    for name in ("gated", "ready", "tried"):
        world.add(pod(name), 50)
    assert world.pop(50) == "ready"
    assert world.queue.counts() == {"active": 1, "backoff": 2, "unschedulable": 1, "gated": 1}
    assert len(world.queue) == 5
    world.tick(52)
    assert world.queue.counts() == {"active": 3, "backoff": 0, "unschedulable": 1, "gated": 1}


def test_alarms_say_what_each_pod_waits_for():
    world = bench(FIT, Gate("Gate", "gated"), Rejector("Deaf"), NEVER)
    for name in ("backoff", "parked", "deaf", "lost"):
        world.add(pod(name))
    world.drain()
    world.back("parked", "Fit")
    world.back("deaf", "Deaf")
    world.back("lost", "Stranger")
    world.back("backoff")
    world.add(pod("gated"))
    world.add(pod("active"))
    assert {name: world.queue.alarm(f"uid-{name}") for name in (*world.pods, "stranger")} == {
        "active": "active",
        "backoff": "backoff until 1970-01-01T00:00:02Z",
        "parked": "NodeAdd, PodDelete, NodeUpdateNodeTaint",
        "deaf": "only the flush: no event can help, say Deaf",
        "gated": "only the flush: no event can help, say Gate",
        "lost": None,
        "stranger": None,
    }


def test_rejected_pods_are_counted_by_plugin_and_profile_while_they_are_queued():
    world = bench(FIT, NEVER)
    world.park(pod("a"), "Fit", "Never")
    world.park(pod("b"), "Fit")
    assert world.kube.rejected() == {("Fit", "default-scheduler"): 2, ("Never", "default-scheduler"): 1}
    world.notify(NODE_ADD, 5)
    assert world.pop(5) == "a"
    assert world.kube.rejected() == {("Fit", "default-scheduler"): 1}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (["add"], {("active", "UnschedulablePodAdd"): 1}),
        (["add", "pop", "reject"], {("unschedulable", "ScheduleAttemptFailure"): 1}),
        (["add", "pop", "event", "reject"], {("backoff", "ScheduleAttemptFailure"): 1}),
        (["add", "pop", "break"], {("backoff", "ScheduleAttemptFailure"): 1}),
        (["add", "pop", "reject", "event"], {("backoff", "NodeAdd"): 1}),
        (["add", "pop", "reject", "later", "event"], {("active", "NodeAdd"): 1}),
        (["add", "pop", "break", "later"], {("active", "BackoffComplete"): 1}),
        (["add", "pop", "event", "reject", "pop"], {("active", "PopFromBackoffQ"): 1}),
        (["add", "pop", "reject", "activate"], {("active", "ForceActivate"): 1}),
        (["add", "pop", "reject", "much later"], {("active", "UnschedulableTimeout"): 1}),
        (["gate", "add"], {("unschedulable", "UnschedulablePodAdd"): 1}),
        (["gate", "add", "much later", "activate"], {}),  # it was there before
    ],
)
def test_pods_that_come_into_a_place_are_counted_by_what_brought_them(script, expected):
    gate = Gate("Gate")
    world = bench(FIT, gate)
    now, before = 0.0, dict[tuple[str, str], int]()
    steps = {
        "gate": lambda: gate.closed.add("a"),
        "add": lambda: world.add(pod("a"), now),
        "pop": lambda: world.pop(now),
        "reject": lambda: world.back("a", "Fit", seconds=now),
        "break": lambda: world.back("a", seconds=now),
        "event": lambda: world.notify(NODE_ADD, now),
        "activate": lambda: world.activate("a", seconds=now),
    }
    for step in script:
        before = dict(world.kube.incoming)
        if step.endswith("later"):
            now += 5 if step == "later" else 400
            world.tick(now)
        else:
            steps[step]()
    grown = {key: n - before.get(key, 0) for key, n in world.kube.incoming.items() if n != before.get(key, 0)}
    assert grown == expected


def test_queueing_hints_answers_are_counted():
    world = parked("a", "Never")
    world.notify(NODE_ADD, 1)
    assert world.kube.asked == {("Never", "NodeAdd", "QueueSkip"): 1}


def test_an_activation_event_of_the_cluster_wakes_only_its_pod():
    world = bench()
    world.park(a := pod("a"), "Fit")
    world.park(pod("b"), "Fit")
    world.notify(FORCE_ACTIVATE, 5, None, a.pod)
    assert world.states() == {"a": "Active", "b": "Parked"}


def test_an_event_that_no_sleepers_rejector_registered_asks_no_hint():
    counted = Rejector("Labels", NODE_LABEL, answer=QueueingHint.QUEUE)
    world = bench(counted, FIT)
    for number in range(50):
        world.park(pod(f"p{number}"), "Fit")
    world.notify(NODE_LABEL, 5)
    world.notify(NODE_ALLOCATABLE, 5)
    assert counted.heard == []
    assert world.kube.asked == {}
