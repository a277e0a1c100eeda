"""A world on virtual time: effects take a moment, news take a moment, and nothing else passes the time.

When there is nothing to do the clock jumps to the next thing on the agenda.  Every draw of luck comes from the
seed, so the same core in the same world always plays the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from kubesched.actors.company import Actor
from kubesched.api.kinds import Kind
from kubesched.api.time import Duration, Instant, parse_rfc3339
from kubesched.core.messages import AnyEffect, Event
from kubesched.drive.agenda import Action, Agenda
from kubesched.sim.cluster import WATCHED, Cluster, die_gracefully
from kubesched.sim.seat import Clock, Latency, Seat
from kubesched.sim.troupe import PLAYED, Troupe

START: Instant = parse_rfc3339("2026-01-01T00:00:00Z")


class SimWorld:
    """A cluster in this process, and the seat of the scheduler the loop drives.

    Args:
        kinds: what the scheduler watches.
        custom: kinds of one's own that the cluster keeps, and the scheduler watches too.
        actors: who else acts in it: kubelets, controllers.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        start: Instant = START,
        latency: Latency | None = None,
        kinds: Iterable[str] = WATCHED,
        custom: Iterable[Kind] = (),
        actors: Iterable[Actor] = (),
    ) -> None:
        self.start = start
        self._now = start
        self.latency = latency or Latency()
        self.agenda = Agenda()
        self.clock = Clock(lambda: self._now, self.agenda.at)
        own, played = tuple(custom), tuple(actors)
        kept = (*own, *PLAYED) if played else own
        self.cluster = Cluster(lambda: self._now, Random(f"{seed}/store"), kept)
        watched = (*kinds, *(kind.name for kind in own))
        self.seat = Seat(self.cluster, self.clock, Random(f"{seed}/world"), self.latency, watched)
        self.horizon: Instant | None = None  # nothing happens after it
        self.enough: Callable[[], bool] | None = None  # when true, the run is over
        self.beginners: list[Callable[[], None]] = [self.seat.begin]  # called once, when the run begins
        if played:
            die_gracefully(self.cluster)
            self.beginners.append(Troupe(self.cluster.store, self.clock, played, self.latency.watch).begin)

    # ── the World protocol ───────────────────────────────────────────────────────────────────────────────────

    @property
    def now(self) -> Instant:
        return self._now

    def perform(self, effects: Iterable[AnyEffect]) -> None:
        self.seat.perform(effects)

    def take(self) -> Event | None:
        while self.beginners:
            self.beginners.pop(0)()
        while (event := self.seat.take()) is None:
            action = self.agenda.pop(self._now)
            if action is None:
                return None
            action()
        return event

    def sleep(self, until: Instant | None) -> bool:
        """Jump to whatever comes next: the only place time moves."""
        if self.enough is not None and self.enough():
            return False
        due = [moment for moment in (until, self.agenda.next) if moment is not None]
        moment = min(due, default=None)
        if self.horizon is not None and (moment is None or moment > self.horizon):
            self._now = max(self._now, self.horizon)
            return False
        if moment is None:
            return False
        self._now = max(self._now, moment)
        return True

    # ── planning ─────────────────────────────────────────────────────────────────────────────────────────────

    def later(self, delay: Duration, action: Action) -> None:
        self.agenda.at(Instant(self._now + delay), action)

    def soon(self, action: Action) -> None:
        """At this moment, but after whatever is under way."""
        self.later(Duration(0), action)
