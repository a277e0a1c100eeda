"""The timers against a list that is sorted whenever it is asked."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kubesched.api.time import Instant
from kubesched.core.timers import Timers


@dataclass(order=True)
class Set:
    due: int
    order: int
    number: int
    what: str


class TimersAgainstList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.timers: Timers[str] = Timers()
        self.model: list[Set] = []
        self.spent: list[int] = []
        self.count = 0

    def deadline(self) -> int | None:
        return min(self.model).due if self.model else None

    @rule(due=st.integers(0, 9))
    def one_is_set(self, due: int) -> None:
        self.count += 1
        number = self.timers.add(Instant(due), f"timer {self.count}")
        self.model.append(Set(due, self.count, number, f"timer {self.count}"))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def one_is_cancelled(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from(self.model))
        self.timers.cancel(entry.number)
        self.model.remove(entry)
        self.spent.append(entry.number)

    @rule(now=st.integers(0, 9))
    def time_comes(self, now: int) -> None:
        due = min(self.model) if self.model and min(self.model).due <= now else None
        assert self.timers.pop(Instant(now)) == (None if due is None else due.what)
        if due is not None:
            self.model.remove(due)
            self.spent.append(due.number)

    @precondition(lambda self: self.spent)
    @rule(data=st.data())
    def one_that_has_fired_is_cancelled(self, data: st.DataObject) -> None:
        self.timers.cancel(data.draw(st.sampled_from(self.spent)))

    @invariant()
    def what_is_to_come_is_what_was_set_and_neither_fired_nor_cancelled(self) -> None:
        assert self.timers.deadline == self.deadline()
        assert len(self.timers) == len(self.model)
        assert sorted(self.timers.pending()) == sorted(entry.what for entry in self.model)


TestTimersAgainstList = TimersAgainstList.TestCase


def test_equal_moments_fire_in_the_order_they_were_set():
    timers: Timers[int] = Timers()
    for number in (3, 1, 2):
        timers.add(Instant(5), number)

    assert [timers.pop(Instant(5)) for _ in range(4)] == [3, 1, 2, None]


def test_cancelled_timers_take_no_room_for_long():
    timers: Timers[int] = Timers()
    kept = timers.add(Instant(10**6), -1)
    for number in range(10_000):
        timers.cancel(timers.add(Instant(number), number))

    assert len(timers._heap) < 100
    assert timers.deadline == 10**6
    timers.cancel(kept)
    assert timers.deadline is None
