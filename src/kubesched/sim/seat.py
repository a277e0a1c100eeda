"""Where one scheduler sits: the news it is told, the effects it has performed, and what goes wrong with both.

Everything takes its time: a request reaches the API server a moment after it was made, and news of a change reach
the scheduler a moment after it happened.  Two schedulers in one cluster have a seat each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import NamedTuple

from msgspec import Struct

from kubesched.api.time import Duration, Instant, milliseconds
from kubesched.apiserver.store import Watch
from kubesched.core.messages import AnyEffect, Completed, Event, Synced
from kubesched.drive.agenda import Action
from kubesched.drive.requests import Requests
from kubesched.framework.steps import Answer, Failure
from kubesched.sim.cluster import WATCHED, Cluster
from kubesched.sim.faults import Fault, Faults


class Latency(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long things take: a request to the API server, and its news to those who watch."""

    write: Duration = milliseconds(2)
    watch: Duration = milliseconds(1)
    jitter: Duration = Duration(0)  # up to this much more, drawn for each


class Clock(NamedTuple):
    """The time of a simulated world, and how to plan something."""

    now: Callable[[], Instant]
    at: Callable[[Instant, Action], None]


class Seat:
    """One scheduler's connection to a cluster.

    Args:
        luck: what jitter is drawn from.
        kinds: what it watches.
        told: called when there is news to take.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        luck: Random,
        latency: Latency,
        kinds: Iterable[str] = WATCHED,
        told: Callable[[], None] = lambda: None,
    ) -> None:
        self.cluster, self.clock, self.latency = cluster, clock, latency
        self.luck = luck
        self.faults = Faults(luck)
        self.requests = Requests(cluster, clock.now)
        self.told = told
        self._inbox: deque[Event] = deque()
        self._watches: dict[str, Watch] = {}
        self._held: dict[str, Instant] = {}  # kinds whose news are held back, and until when
        self._begun = False
        for kind in sorted(kinds, key=lambda kind: (kind == "Pod", kind)):  # pods last: they need the others
            self._watches[kind] = cluster.watch(kind, partial(self._expect, kind))
            self._watches[kind].take()

    # ── what the scheduler is told ───────────────────────────────────────────────────────────────────────────

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds whose objects the scheduler is told of."""
        return tuple(self._watches)

    def tell(self, event: Event) -> None:
        """Tell the scheduler something: an operator's word, say."""
        self._inbox.append(event)
        self.told()

    def take(self) -> Event | None:
        """The next piece of news, or None."""
        return self._inbox.popleft() if self._inbox else None

    def begin(self) -> None:
        """What is there before the run begins is the first view, complete and at once."""
        if not self._begun:
            self._begun = True
            for kind in self._watches:
                self._deliver(kind)
            self.tell(Synced(self.kinds))

    def hold_news(self, kind: str, until: Instant) -> None:
        """Nobody here hears of this kind before that moment."""
        self._held[kind] = until

    def _expect(self, kind: str) -> None:
        """Something happened to this kind; whoever sits here hears of it in a moment."""
        if self._begun:
            self._later(Duration(self.latency.watch + self._jitter()), partial(self._deliver, kind))

    def _deliver(self, kind: str) -> None:
        held = self._held.get(kind)
        if held is not None and held > self.clock.now():
            self.clock.at(held, partial(self._deliver, kind))
            return
        for event in self._watches[kind].take():
            self.tell(self.requests.observed(kind, event))

    def _later(self, delay: Duration, action: Action) -> None:
        self.clock.at(Instant(self.clock.now() + delay), action)

    def _jitter(self) -> int:
        return self.luck.randrange(self.latency.jitter + 1) if self.latency.jitter else 0

    def _write_takes(self) -> Duration:
        return Duration(self.latency.write + self._jitter())

    # ── effects ──────────────────────────────────────────────────────────────────────────────────────────────

    def perform(self, effects: Iterable[AnyEffect]) -> None:
        """Start them; their answers arrive as news."""
        for effect in effects:
            fault = self.faults.meet(type(effect).__name__, getattr(effect, "pod", ""), self.clock.now())
            if fault is None:
                self._later(self._write_takes(), partial(self._carry_out, effect))
            else:
                self._go_wrong(effect, fault)

    def _carry_out(self, effect: AnyEffect) -> None:
        self.tell(Completed(effect.id, self.requests.carry_out(effect)))

    def _go_wrong(self, effect: AnyEffect, fault: Fault) -> None:
        unknown = Completed(effect.id, Answer(failure=Failure("Timeout", "no answer in time", applied="unknown")))
        match fault.outcome:
            case "lost":
                self._later(fault.after, partial(self.tell, unknown))
            case "timeout-after-apply":
                self._later(self._write_takes(), partial(self.requests.carry_out, effect))
                self._later(fault.after, partial(self.tell, unknown))
            case "late":
                self._later(self._write_takes(), partial(self.tell, unknown))
                self._later(fault.after, partial(self.requests.carry_out, effect))
            case "refused":
                refusal = Answer(failure=Failure(fault.reason, fault.message, fault.code))
                self._later(self._write_takes(), partial(self.tell, Completed(effect.id, refusal)))
