"""Every invariant is watched: a core that is broken on purpose is caught, by the check that is there for it."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from tests.core.little import Fit, Patience

from kubesched.api.time import Instant, seconds
from kubesched.cluster.mirror import Mirror, Tracked
from kubesched.cluster.table import NodeTable
from kubesched.core import checks
from kubesched.core.core import Core
from kubesched.core.flying import Flying
from kubesched.core.lifecycle import Lifecycle
from kubesched.core.messages import Observed, ReadPod, Tick
from kubesched.core.queue.inflight import InFlight
from kubesched.core.queue.nominator import Nominator
from kubesched.core.queue.parked import Parked
from kubesched.core.reminders import GoOn
from kubesched.framework.errors import BrokenInvariant
from kubesched.framework.records import State
from kubesched.testing import answer, bound, fail, node, observe, pod, run, scheduler, tick, vanish, verify

ALL = checks.QUICK | checks.DEEP


def busy() -> Core:
    """A core with a pod in every kind of place: bound, in flight, waiting, parked, backing off, gated."""
    core = scheduler(
        node("n1", cpu=4),
        node("n2", cpu=4),
        pod("done", cpu=1),
        plugins=[Fit(), Patience(seconds(60), "patient")],
    )
    [bind] = tick(core)
    answer(core, bind)
    observe(core, pod("done", cpu=1, on="n1"), pod("big", cpu=9), pod("patient", cpu=1), pod("flying", cpu=1))
    run(core)
    observe(core, pod("waiting", cpu=2))
    verify(core)
    return core


def info(core: Core, name: str):
    return core.mirror.placed[f"uid-of-{name}"].info


# ── what is broken, and what must be said of it ──────────────────────────────────────────────────────────────


def a_pod_in_the_queue_that_is_bound(core: Core) -> None:
    core.life._states["uid-of-big"] = State.BOUND


def a_pod_nobody_queues(core: Core) -> None:
    core.queue.delete("uid-of-big", core.now)


def a_pod_in_flight_that_sleeps(core: Core) -> None:
    core.life._states["uid-of-flying"] = State.PARKED


def a_pod_nobody_carries(core: Core) -> None:
    del core.flying.flights["uid-of-flying"]


def an_attempt_that_never_ended(core: Core) -> None:
    core.life.tally["popped"] += 1


def an_attempt_that_ended_twice(core: Core) -> None:
    core.life.tally["landed"] += 1


def a_pod_nobody_knows(core: Core) -> None:
    core.life.drop("uid-of-big", "default/big")
    core.queue.delete("uid-of-big", core.now)


def a_state_without_a_pod(core: Core) -> None:
    del core.mirror.pods["default/big"]


def events_nobody_will_ask_for(core: Core) -> None:
    vanish(core, pod("flying", cpu=1), pod("patient", cpu=1))
    core.queue.in_flight._events.append(None)


def a_gauge_that_is_off(core: Core) -> None:
    core.queue.counts = lambda: {"active": 7, "backoff": 0, "unschedulable": 1, "gated": 0}


def a_sleeper_without_an_alarm(core: Core) -> None:
    core.queue.alarm = lambda uid: None


def room_held_for_a_sleeper(core: Core) -> None:
    core.mirror.assume(core.queue.find("uid-of-big").info, "n1")


def room_held_for_nobody(core: Core) -> None:
    del core.life._states["uid-of-flying"]


def a_flight_without_room(core: Core) -> None:
    core.mirror.forget("uid-of-flying")


def a_flight_with_room_elsewhere(core: Core) -> None:
    held = core.mirror.placed["uid-of-flying"]
    core.mirror.placed["uid-of-flying"] = Tracked(held.info, "n2" if held.node == "n1" else "n1", assumed=True)


def a_promise_to_a_bound_pod(core: Core) -> None:
    core.queue._nominator._by_node["n1"] = [info(core, "done")]


def an_amount_that_was_not_counted(core: Core) -> None:
    core.mirror.table.requested[0, core.mirror.table.resources.find("cpu")] += 1


def an_amount_for_scoring_that_was_not_counted(core: Core) -> None:
    core.mirror.table.nonzero_requested[0, 0] += 1


def a_port_nobody_uses(core: Core) -> None:
    core.mirror.table.ports[0] = {("0.0.0.0", "TCP", 80): 1}


def two_accounts_of_who_is_where(core: Core) -> None:
    core.mirror.placed.pop("uid-of-done")


def timers_without_end(core: Core) -> None:
    for _ in range(1000):
        core.timers.add(Instant(1), GoOn("nobody", 0))


def effects_nobody_answers(core: Core) -> None:
    for _ in range(2 * checks.SLOW_ANSWERS):
        core.outbox.emit(ReadPod, lambda answer: None, pod="x", uid="")


BREAKAGES: Iterable[tuple[str, Callable[[Core], None], str]] = [
    ("one place", a_pod_in_the_queue_that_is_bound, "is Bound and in the queue"),
    ("one place", a_pod_nobody_queues, "is Parked and not in the queue"),
    ("one place", a_pod_in_flight_that_sleeps, "is Parked and not in the queue"),
    ("one place", a_pod_nobody_carries, "is Binding and nobody carries it"),
    ("every attempt ends", an_attempt_that_never_ended, "5 pods were popped"),
    ("every attempt ends", an_attempt_that_ended_twice, "came out again"),
    ("none is lost", a_pod_nobody_knows, "waits to be scheduled and nobody knows it"),
    ("none is lost", a_state_without_a_pod, "has a state and does not exist"),
    ("log is empty when idle", events_nobody_will_ask_for, "events are kept and no pod is in flight"),
    ("gauges are true", a_gauge_that_is_off, "the queue counts {'active': 7"),
    ("nobody sleeps without alarm", a_sleeper_without_an_alarm, "and nothing will wake it"),
    ("assumed are in flight or bound", room_held_for_a_sleeper, "holds room on n1 and is Parked"),
    ("assumed are in flight or bound", room_held_for_nobody, "and is unknown"),
    ("flights hold room", a_flight_without_room, "and holds room on none"),
    ("flights hold room", a_flight_with_room_elsewhere, "pod default/flying flies to n"),
    ("promises are to waiting pods", a_promise_to_a_bound_pod, "was promised room on n1 and does not wait"),
    ("rows are the sum of their pods", an_amount_that_was_not_counted, "cpu requested, and its pods request"),
    ("rows are the sum of their pods", an_amount_for_scoring_that_was_not_counted, "do not add up"),
    ("rows are the sum of their pods", a_port_nobody_uses, "the host ports in use do not add up"),
    ("rows are the sum of their pods", two_accounts_of_who_is_where, "disagree on who is where"),
    ("timers have somebody", timers_without_end, "timers for"),
    ("timers have somebody", effects_nobody_answers, "effects are unanswered"),
]


@pytest.mark.parametrize(("name", "spoil", "said"), BREAKAGES, ids=lambda value: getattr(value, "__name__", None))
def test_a_broken_core_is_caught_by_the_check_for_it(name: str, spoil: Callable[[Core], None], said: str) -> None:
    core = busy()
    core.checking = False
    assert list(ALL[name](core)) == []
    spoil(core)
    assert any(said in problem for problem in ALL[name](core)), list(ALL[name](core))
    with pytest.raises(BrokenInvariant, match=r"\(after event \d+\) \(this is a bug in kubesched\)"):
        checks.check_deeply(core)


def test_no_check_is_left_out() -> None:
    assert {name for name, *_ in BREAKAGES} == set(ALL)
    written = {look for look in vars(checks).values() if getattr(look, "__annotations__", {}).get("core") == "Core"}
    no_checks = ("check", "check_deeply", "deep_every", "_run")
    assert {look for look in written if look.__name__ not in no_checks} == set(ALL.values())


# ── the checks run by themselves, and in time ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("victim", "method", "instead"),
    [
        (Mirror, "forget", lambda self, uid: True),  # room is not given back
        (Mirror, "assume", lambda self, info, node: None),  # room is not taken
        (NodeTable, "place", lambda self, info, node: None),  # the row does not know
        (Parked, "put", lambda self, pod: None),  # a pod is dropped on its way to sleep
        (Nominator, "discard", lambda self, uid: None),  # promises are never taken back
        (Lifecycle, "drop", lambda self, uid, key: None),  # departed pods are remembered
        (Flying, "_leave", lambda self, flight: None),  # flights never end
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_core_with_a_bug_stops_at_the_event_that_shows_it(
    victim: type, method: str, instead: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(victim, method, instead)
    core = scheduler(node("n1", cpu=1), plugins=[Fit()])
    with pytest.raises((BrokenInvariant, AssertionError, KeyError)):
        observe(core, pod("a", cpu=1, nominated="n1"))
        [bind] = [effect for effect in tick(core) if type(effect).__name__ == "Bind"]
        fail(core, bind, "InternalError", at=seconds(1))
        observe(core, pod("b", cpu=9))
        run(core, at=seconds(3))
        observe(core, pod("a", cpu=1, nominated="n1", on="n1"))
        vanish(core, pod("a", cpu=1, on="n1"), pod("b", cpu=9))


def test_events_kept_without_end_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InFlight, "record", lambda self, *event: self._events.append(event))
    core = scheduler(plugins=[Fit()])
    with pytest.raises(BrokenInvariant, match="log is empty when idle: 1 events are kept"):
        observe(core, node("n1"))


def test_a_violation_comes_with_the_latest_moves() -> None:
    core = busy()
    core.life.tally["popped"] += 1
    with pytest.raises(BrokenInvariant) as caught:
        core.handle(Tick(), core.now)
    assert str(caught.value).startswith("every attempt ends: ")
    assert caught.value.story == tuple(core.life.recent)[-20:]


def test_without_checks_nothing_is_looked_at() -> None:
    core = busy()
    core.checking = False
    core.life.tally["popped"] += 1
    core.handle(Tick(), core.now)


def test_in_a_big_cluster_the_deep_checks_run_every_so_often() -> None:
    core = scheduler(node("n1", pods=9999), plugins=[Fit()])
    for i in range(checks.SMALL + 1):
        core.handle(Observed(pod(f"p{i}", on="n1")), Instant(0))
    core.life.tally["popped"] += 1
    with pytest.raises(BrokenInvariant, match="every attempt ends"):
        for _ in range(checks.deep_every(core)):
            core.handle(Observed(bound(pod("p0"), "n1")), Instant(0))
    assert core.position % checks.deep_every(core) == 0


def test_the_larger_the_cluster_the_more_events_lie_between_deep_checks() -> None:
    core = scheduler(node("n1", pods=9999), plugins=[Fit()])
    for i in range(4 * checks.SMALL):
        core.handle(Observed(pod(f"p{i}", on="n1")), Instant(0))
        objects = i + 2
        assert checks.deep_every(core) == 1 or checks.deep_every(core) > checks.EVENTS_AN_OBJECT * objects


def test_the_quick_checks_always_run() -> None:
    core = scheduler(node("n1", pods=9999), plugins=[Fit()])
    for i in range(checks.SMALL + 1):
        core.handle(Observed(pod(f"p{i}", on="n1")), Instant(0))
    observe(core, pod("flying"))
    tick(core)
    with pytest.raises(BrokenInvariant, match="flights hold room"):
        core.mirror.forget("uid-of-flying")
        core.handle(Observed(node("n2")), Instant(0))
