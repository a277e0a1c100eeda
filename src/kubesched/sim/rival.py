"""Another scheduler in the same cluster: it watches the same objects, and binds as it sees fit.

The loop drives one core.  A Rival is played by the agenda instead: whenever there is news for it, or its own time
has come, it does all the work there is at that moment.  The scheduler under test sees of it what any scheduler sees
of another: pods that are suddenly on a node, and bindings that are refused.
"""

from __future__ import annotations

from kubesched.api.time import Instant
from kubesched.core.messages import Event, Tick
from kubesched.drive.tap import Tap
from kubesched.sim.seat import Seat
from kubesched.sim.world import SimWorld


class Rival:
    """A scheduler with a seat of its own."""

    def __init__(self, tap: Tap, seat: Seat, world: SimWorld) -> None:
        self.tap, self.seat, self._world = tap, seat, world
        self._roused = False
        self._alarm: Instant | None = None
        seat.told = self._rouse
        if not tap.core.position:
            tap.core.unsynced.update(seat.kinds)
        world.beginners.append(seat.begin)

    def _rouse(self) -> None:
        if not self._roused:
            self._roused = True
            self._world.soon(self._act)

    def _act(self) -> None:
        """Everything there is to do at this moment."""
        self._roused = False
        while (event := self._next()) is not None:
            self.seat.perform(self.tap.handle(event, self._world.now))
        due = self.tap.deadline
        if due is not None and due != self._alarm:
            self._alarm = due
            self._world.agenda.at(due, self._rouse)

    def _next(self) -> Event | None:
        news = self.seat.take()
        if news is not None:
            return news
        deadline = self.tap.deadline
        due = self.tap.ready or (deadline is not None and deadline <= self._world.now)
        return Tick() if due else None
