"""A whole cluster in this process: an API server, everything that acts in it, and the wall clock.

The scheduler is driven by the same loop as everywhere.  What is different from virtual time is who says what time it
is, and that clients come in from outside: whenever the scheduler has nothing to take, the event loop of the HTTP
server has its turn, and when it has nothing to do at all, that loop runs until something happens.  So one thread does
everything, each request and each decision is over before the next begins, and nothing needs a lock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from kubesched.actors.company import Actor, Company
from kubesched.api.kinds import KNOWN, Kind
from kubesched.api.time import Duration, Instant
from kubesched.apiserver.follow import Follower, News
from kubesched.apiserver.inprocess import InProcess
from kubesched.apiserver.server import ApiServer
from kubesched.core.messages import AnyEffect, Completed, Event, Observed, Synced
from kubesched.drive.agenda import Action, Agenda
from kubesched.drive.requests import Requests
from kubesched.live.events import Events
from kubesched.live.pace import Pace

T = TypeVar("T")
Json = dict[str, Any]


class EmbeddedWorld:
    """The world of one scheduler beside an API server in this process.

    Args:
        pace: what time it is; the API server's own.
        loop: the event loop clients are served in.
        actors: who else acts here.
        kinds: what the scheduler is told of.
    """

    def __init__(
        self,
        server: ApiServer,
        pace: Pace,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        actors: Iterable[Actor] = (),
        kinds: Mapping[str, Kind] = KNOWN,
    ) -> None:
        self.server, self.pace = server, pace
        self.loop = loop or asyncio.new_event_loop()
        self.agenda = Agenda()
        self.cluster = InProcess(server, "kube-scheduler", kinds)
        self.requests = Requests(self.cluster, pace.now, Events(self.cluster, pace.now).publish)
        self.company = Company(
            server.store,
            InProcess(server, "kube-controller-manager"),
            actors,
            resources=self._resources,
            roused=self._rouse,
        )
        self.kinds = tuple(sorted(kinds, key=lambda kind: (kind == "Pod", kind)))  # pods last: they need the others
        self._followers: dict[str, Follower] = {}
        self._changed: dict[str, None] = {}  # kinds there is news of
        self._inbox: deque[Event] = deque()
        self._stored: tuple[int, list[str]] = (-1, [])
        self._company_called = True
        self._begun = self._asleep = self._over = False

    # ── the World protocol ───────────────────────────────────────────────────────────────────────────────────

    @property
    def now(self) -> Instant:
        return self.pace.now()

    def perform(self, effects: Iterable[AnyEffect]) -> None:
        for effect in effects:
            self._inbox.append(Completed(effect.id, self.requests.carry_out(effect)))

    def take(self) -> Event | None:
        if not self._inbox:
            if not self._begun:
                self._begun = True
                self._begin()
            else:
                self._let_others_work()
                self._deliver()
        return self._inbox.popleft() if self._inbox else None

    def sleep(self, until: Instant | None) -> bool:
        if self._over:
            return False
        if self._inbox or self._changed or self._company_called:
            return True
        due = min((m for m in (until, self.agenda.next, self.company.deadline) if m is not None), default=None)
        alarm = None
        if due is not None:
            span = self.pace.wait(Duration(max(0, due - self.now)))
            alarm = self.loop.call_later(span, self._wake)
        self._asleep = True
        self.loop.run_forever()
        self._asleep = False
        if alarm is not None:
            alarm.cancel()
        return not self._over

    # ── from outside ─────────────────────────────────────────────────────────────────────────────────────────

    def stop(self) -> None:
        """End the run, from this thread or from a signal handler of its loop."""
        self._over = True
        self._wake()

    def call(self, function: Callable[[], T]) -> T:
        """Run a function between two events, from another thread; returns what it returns."""
        answer: Future[T] = Future()

        def run() -> None:
            try:
                answer.set_result(function())
            except BaseException as error:
                answer.set_exception(error)
            self._wake()

        self.loop.call_soon_threadsafe(run)
        return answer.result()

    def later(self, delay: Duration, action: Action) -> None:
        """Plan something."""
        self.agenda.at(Instant(self.now + delay), action)
        self._wake()

    def tell(self, event: Event) -> None:
        """Tell the scheduler something: an operator's word, say."""
        self._inbox.append(event)
        self._wake()

    # ── inside ───────────────────────────────────────────────────────────────────────────────────────────────

    def _wake(self) -> None:
        if self._asleep:
            self.loop.stop()

    def _begin(self) -> None:
        """What is there before the run begins is the first view."""
        for kind in self.kinds:
            self._changed[kind] = None
            self._followers[kind] = Follower(
                self.server.store, self.cluster.resource_of(kind), partial(self._hear, kind)
            )
        self._deliver()
        self._inbox.append(Synced(self.kinds))

    def _hear(self, kind: str) -> None:
        self._changed[kind] = None
        self._wake()

    def _rouse(self) -> None:
        self._company_called = True
        self._wake()

    def _let_others_work(self) -> None:
        """Clients, what is planned, and the actors, each for a moment."""
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()
        now = self.now
        while (action := self.agenda.pop(now)) is not None:
            action()
        deadline = self.company.deadline
        if self._company_called or (deadline is not None and deadline <= now):
            self._company_called = False
            if self.company.act(now):
                self._company_called = True

    def _deliver(self) -> None:
        changed, self._changed = self._changed, {}
        for kind in sorted(changed, key=self.kinds.index) if len(changed) > 1 else changed:
            for news in self._followers[kind].take():
                self._inbox.extend(self._told(kind, news))

    def _told(self, kind: str, news: News) -> Iterable[Observed]:
        if news.new is None:
            assert news.old is not None, "what is gone was there"
            yield Observed(self.requests.view(kind, news.old), gone=True)
            return
        yield Observed(self.requests.view(kind, news.new))

    def _resources(self) -> list[str]:
        """Everything that is stored here, for actors that watch it all."""
        registry = self.server.registry
        if self._stored[0] != registry.generation:
            stored = [row.storage for row in registry if row.conversion is None and "watch" in row.verbs]
            self._stored = (registry.generation, stored)
        return self._stored[1]
