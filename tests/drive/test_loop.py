"""One loop: events first, but not without end; then work; then sleep.  And a tap that hears everything."""

from collections import deque
from collections.abc import Iterable
from pathlib import Path

from kubesched.api.time import Instant
from kubesched.assemble import default_profile
from kubesched.core.core import Core
from kubesched.core.messages import AnyEffect, Bind, Event, Observed, Tick
from kubesched.drive import Head, Journal, Moment, Tap, drive
from kubesched.drive.journal import VERSION, Reading
from kubesched.testing.builders import node, pod


class Script:
    """A world that hands out what it was given and performs nothing."""

    def __init__(self, *events: Event) -> None:
        self.now = Instant(0)
        self.events = deque(events)
        self.performed: list[AnyEffect] = []
        self.slept: list[Instant | None] = []

    def perform(self, effects: Iterable[AnyEffect]) -> None:
        self.performed += effects

    def take(self) -> Event | None:
        return self.events.popleft() if self.events else None

    def sleep(self, until: Instant | None) -> bool:
        self.slept.append(until)
        return False


class Busy:
    """An actor that always has work, and notes what it is given."""

    def __init__(self, work: int) -> None:
        self.work = work
        self.seen: list[str] = []

    @property
    def deadline(self) -> Instant | None:
        return None

    @property
    def ready(self) -> bool:
        return self.work > 0

    def handle(self, event: Event, now: Instant) -> list[AnyEffect]:
        self.seen.append(type(event).__name__)
        self.work -= isinstance(event, Tick)
        return []


def test_a_storm_of_news_does_not_keep_the_queue_from_working():
    actor = Busy(work=3)
    drive(actor, Script(*[Observed(pod())] * 10), burst=4)
    assert actor.seen == [*["Observed"] * 4, "Tick", *["Observed"] * 4, "Tick", *["Observed"] * 2, "Tick"]


def test_with_nothing_to_do_it_sleeps_until_the_deadline():
    world, actor = Script(), Busy(work=0)
    drive(actor, world)
    assert world.slept == [None]
    assert actor.seen == []


def test_a_core_that_has_heard_nothing_yet_sleeps():
    world = Script()
    drive(Core(default_profile()), world)
    assert world.slept == [None]


def test_a_due_deadline_is_worked_on_before_sleeping():
    class Due(Busy):
        @property
        def deadline(self) -> Instant | None:
            return Instant(5) if "Tick" in self.seen else Instant(0)

    world, actor = Script(), Due(work=0)
    drive(actor, world)
    assert actor.seen == ["Tick"]
    assert world.slept == [5]


def test_what_happens_is_written_down_and_performed(tmp_path: Path):
    world = Script(Observed(node("n1")), Observed(pod("a")))
    with Journal(tmp_path / "j", Head(VERSION)) as journal:
        drive(Core(default_profile()), world, journal)
    assert [entry.event for entry in Reading(tmp_path / "j")] == [Observed(node("n1")), Observed(pod("a")), Tick()]
    assert [type(effect) for effect in world.performed] == [Bind]


def test_a_tap_hears_every_event_and_what_came_of_it():
    heard: list[Moment] = []
    core = Core(default_profile())
    drive(Tap(core, heard.append), Script(Observed(node("n1")), Observed(pod("a"))))
    assert [moment.position for moment in heard] == [1, 2, 3]
    assert [record.cause for record in heard[1].records] == ["admitted"]
    [decision] = heard[2].decisions
    assert decision.node == "n1"
    assert [record.cause for record in heard[2].records] == ["popped", "placed", "permitted", "ready"]
    assert [type(effect) for effect in heard[2].effects] == [Bind]


def test_what_a_tap_told_is_not_changed_by_later_events():
    heard: list[Moment] = []
    tap = Tap(Core(default_profile()), heard.append)
    tap.handle(Observed(node("n1")), Instant(0))
    tap.handle(Observed(pod("a")), Instant(0))
    before = list(heard[1].records)
    tap.handle(Tick(), Instant(1))
    assert heard[1].records == before
