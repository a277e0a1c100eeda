"""Schedulers as they run on a real cluster, in a time that passes only when nobody has anything left to do.

The world is the live one, to its last line: the wire's client, the event loop's turns, draining, the Lease.  What is
played is the clock, the loop that waits for it, and the network to an API server of our own: every request and every
piece of an answer is on its way for as long as the test says.  So how long a handover takes is a sum of waits and round
trips, the same on every machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, cast
from urllib.parse import urlencode

from kubesched.api.kinds import KNOWN
from kubesched.api.time import Duration, Instant, parse_rfc3339, seconds
from kubesched.apiserver.requests import User, WatchStream
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.store import Store
from kubesched.assemble import build
from kubesched.drive.loop import turn
from kubesched.live.pace import Pace
from kubesched.live.remote import RemoteWorld
from kubesched.live.transport import Tell
from kubesched.wire.elector import LeaseOptions
from kubesched.wire.exchange import Chunk, Closed, Number, Reply, Request, Response

START = parse_rfc3339("2026-01-01T00:00:00Z")
USER = User("system:kube-scheduler", ("system:masters",))
A_MINUTE = BOOKMARK_EVERY = seconds(60)
Action = Callable[[], object]


class Stage:
    """A clock, an API server, and what is going to happen.

    Args:
        one_way: how long a request, an answer or a piece of news is on its way.
    """

    def __init__(self, one_way: Duration) -> None:
        self.now: Instant = START
        self.one_way = one_way
        self._numbers = count()
        self._agenda: list[tuple[Instant, int, Action]] = []
        self.server = ApiServer(Store(now=lambda: self.now, luck=Random(1)), now=lambda: self.now)
        self.server.bootstrap()
        self.asked: list[tuple[Instant, str, Request]] = []  # when it reached the server, who, what
        self.candidates: list[Candidate] = []

    def later(self, delay: Duration, action: Action) -> None:
        heappush(self._agenda, (Instant(self.now + delay), next(self._numbers), action))

    def create(self, path: str, body: Any) -> None:
        answer = self.server.handle("POST", path, "", {"content-type": "application/json"}, body, USER)
        assert answer.status == 201, answer

    def candidate(self, name: str, **how: Any) -> Candidate:
        one = Candidate(self, name, **how)
        self.candidates.append(one)
        return one

    def run(self, until: Callable[[], bool], at_most: Duration = A_MINUTE) -> Stage:
        """Let happen what happens, until something holds."""
        end = Instant(self.now + at_most)
        while True:
            for one in self.candidates:
                one.act()
            if until():
                return self
            due = [one.loop.due for one in self.candidates if one.alive and one.loop.due is not None]
            due += [self._agenda[0][0]] if self._agenda else []
            assert min(due, default=end + 1) <= end, "it did not happen"
            self.now = max(self.now, min(due))
            while self._agenda and self._agenda[0][0] <= self.now:
                heappop(self._agenda)[2]()

    def run_for(self, span: Duration) -> Stage:
        end = self.now + span
        self.later(span, lambda: None)
        return self.run(lambda: self.now >= end, Duration(span + 1))

    def get(self, path: str) -> Any:
        return self.server.handle("GET", path, "", {}, b"", USER).json()

    def renewed(self, who: str) -> Instant:
        """When the last renewal of the Lease by one candidate reached the server."""
        return max(at for at, name, one in self.asked if name == who and "/leases" in one.path and one.method == "PUT")

    def bindings(self, who: str, since: Instant = START) -> list[Instant]:
        """When bindings of one scheduler reached the server."""
        return [at for at, name, one in self.asked if name == who and one.path.endswith("/binding") and at >= since]


class Candidate:
    """One process that stands for the Lease."""

    def __init__(self, stage: Stage, name: str, **how: Any) -> None:
        self.name, self.alive, self._stage = name, True, stage
        self.loop = Loop(stage)
        self.transport = Network(stage, self)
        self.world = RemoteWorld(
            self.transport,
            kinds=[KNOWN["Node"], KNOWN["Pod"]],
            identity=name,
            lease=LeaseOptions(),
            pace=Pace(wall=lambda: stage.now, steady=lambda: stage.now),
            **how,
        )
        self.core = build(wait_for=self.world.client.waits_for)

    def act(self) -> None:
        """Everything there is to do, as `drive` does it, until it would wait."""
        self.loop.waits = False
        while self.alive and not self.loop.waits:
            if not turn(self.core, self.world):
                self.alive = self.world.sleep(self.core.deadline) and self.alive

    def stop(self) -> None:
        """SIGTERM."""
        self.world.drain(lambda: not self.core.flights)

    def kill(self) -> None:
        self.alive = False


class Loop:
    """The part of an event loop a world needs; where it would wait, it says until when and returns."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._soon: list[Action] = []
        self._alarms: list[Alarm] = []
        self._stopped = self.waits = False
        self.due: Instant | None = None

    def call_soon(self, action: Action) -> None:
        self._soon.append(action)

    def call_later(self, delay: float, action: Action) -> Alarm:
        alarm = Alarm(Instant(self._stage.now + round(delay * 1e9)), action)
        self._alarms.append(alarm)
        return alarm

    def stop(self) -> None:
        self._stopped = True

    def run_forever(self) -> None:
        self._stopped = False
        soon, self._soon = self._soon, []
        for action in soon:
            action()
        if not self._stopped:
            self._alarms = [one for one in self._alarms if not one.cancelled]
            self.due = min((one.at for one in self._alarms), default=None)
            self.waits = True


class Alarm:
    def __init__(self, at: Instant, action: Action) -> None:
        self.at, self.action, self.cancelled = at, action, False

    def cancel(self) -> None:
        self.cancelled = True


class Network:
    """A transport whose requests travel in virtual time."""

    def __init__(self, stage: Stage, candidate: Candidate) -> None:
        self.loop = cast(asyncio.AbstractEventLoop, candidate.loop)
        self._stage, self._candidate = stage, candidate
        self._open: dict[Number, Tell] = {}

    def send(self, number: Number, request: Request, tell: Tell) -> None:
        self._open[number] = tell
        self._stage.later(self._stage.one_way, partial(self._serve, number, request))

    def abandon(self, number: Number) -> None:
        self._open.pop(number, None)

    async def close(self) -> None: ...

    def _serve(self, number: Number, request: Request) -> None:
        stage = self._stage
        stage.asked.append((stage.now, self._candidate.name, request))
        headers = {"content-type": request.content_type, "accept": request.accept}
        query = urlencode(request.query)
        answer = stage.server.handle(request.method, request.path, query, headers, request.body, USER)
        if isinstance(answer, WatchStream):
            self._travels(number, Response(200))
            self._follow(number, answer)
        else:
            given = {name.lower(): value for name, value in answer.headers.items()}
            self._travels(number, Response(answer.status, given, answer.body))

    def _follow(self, number: Number, stream: WatchStream) -> None:
        def ready() -> None:
            self._stage.later(Duration(0), collect)

        def collect() -> None:
            if number not in self._open:
                stream.close()
            for data in stream.take():
                self._travels(number, Chunk(data))

        def bookmark() -> None:
            if number in self._open and stream.bookmark is not None:
                stream.bookmark()
                self._stage.later(BOOKMARK_EVERY, bookmark)

        def end() -> None:
            stream.close()
            self._travels(number, Closed("the server has closed the watch"))

        stream.set_on_ready(ready)
        ready()
        self._stage.later(BOOKMARK_EVERY, bookmark)
        if stream.timeout is not None:
            self._stage.later(seconds(max(0, stream.timeout - 2)), bookmark)  # as kube-apiserver does
            self._stage.later(seconds(stream.timeout), end)

    def _travels(self, number: Number, reply: Reply) -> None:
        self._stage.later(self._stage.one_way, partial(self._arrive, number, reply))

    def _arrive(self, number: Number, reply: Reply) -> None:
        tell = self._open.get(number)
        if tell is not None and self._candidate.alive:
            more = isinstance(reply, Chunk) or (isinstance(reply, Response) and reply.status == 200 and not reply.body)
            if not more:
                del self._open[number]
            tell(number, reply)
