"""What is heard of a running scheduler: its moments as log lines and metrics, its requests as figures.

Everything here only listens.  The one thing it adds is a stopwatch, which the core cannot have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from time import perf_counter_ns
from typing import TextIO

from kubesched.api.objects import Invalid, Pod
from kubesched.api.time import Instant
from kubesched.core.core import Core
from kubesched.core.messages import AnyEffect, Event, Observed
from kubesched.drive.tap import Listener, Moment, Tap
from kubesched.framework.events import ASSIGNED_POD, UNSCHEDULED_POD, Action, ClusterEvent, resource_name
from kubesched.live.transport import Tell, Transport
from kubesched.telemetry.logs import REMARKS, Log, Message, Writing, json_line, line
from kubesched.telemetry.metrics import Metrics
from kubesched.wire.exchange import Number, Remark, Reply, Request, Response, Unanswered

Before = Callable[[Event], None]

_FAILED = "<error>"  # what client-go counts where there is no status code


class LiveTap(Tap):
    """A core with listeners, some of them heard before the event, and a stopwatch that runs while it is folded in."""

    def __init__(self, core: Core, *listeners: Listener, before: Iterable[Before] = ()) -> None:
        super().__init__(core, *listeners)
        self.before = list(before)
        self._start = 0

    def handle(self, event: Event, now: Instant) -> list[AnyEffect]:
        for listener in self.before:
            listener(event)
        self._start = perf_counter_ns()
        return super().handle(event, now)

    @property
    def took(self) -> int:
        """Nanoseconds since the core was told; for listeners."""
        return perf_counter_ns() - self._start


class Counting:
    """Makes metrics of moments."""

    def __init__(self, metrics: Metrics, tap: LiveTap) -> None:
        self._metrics, self._tap = metrics, tap
        self._news = ""
        tap.before.append(self._look)
        tap.listeners.insert(0, self._count)  # first, or others would be timed too

    def _look(self, event: Event) -> None:
        """What an observation is news of, as kube-scheduler names it; only the core's old view can tell."""
        self._news = news_of(event, self._tap.core) if isinstance(event, Observed) else ""

    def _count(self, moment: Moment) -> None:
        self._metrics.tell(moment, self._tap.took, self._news)


def news_of(event: Observed, core: Core) -> str:
    """`NodeAdd`, `AssignedPodDelete`: kube-scheduler's label for what is observed."""
    obj = event.obj
    if isinstance(obj, Invalid):
        return f"{resource_name(obj.of)}Unreadable"
    if isinstance(obj, Pod):
        before = core.mirror.pods.get(obj.key)
        resource = ASSIGNED_POD if obj.spec.node_name else UNSCHEDULED_POD
        seen = before is not None and bool(before.spec.node_name) is bool(obj.spec.node_name)  # else it is new there
    else:
        kind = resource_name(obj.kind)
        known = core.mirror.table.row_of if kind == "Node" else None
        seen = obj.key in known if known is not None else core.mirror.objects.observed(type(obj), obj.key) is not None
        resource = kind
    action = Action.DELETE if event.gone else Action.UPDATE if seen else Action.ADD
    return ClusterEvent(resource, action).label


class Writer:
    """Writes log lines, of moments and of whoever runs the scheduler."""

    def __init__(
        self, stream: TextIO, now: Callable[[], Instant], *, verbosity: int = 0, as_json: bool = False
    ) -> None:
        self._stream, self._now = stream, now
        self._line: Writing = json_line if as_json else line
        self.verbosity = verbosity
        self._log = Log(verbosity, self._line)

    def moment(self, moment: Moment) -> None:
        if moment.records or moment.notes:
            written = self._log.lines(moment.at, moment.position, moment.records, moment.decisions, moment.notes)
            if written:
                self._write("\n".join(written))

    def say(self, message: Message, **fields: object) -> None:
        if message.severity != "I" or message.verbosity <= self.verbosity:
            self._write(self._line(self._now(), message, fields))

    def remark(self, remark: Remark) -> None:
        """Something the wire thinks worth a word."""
        if remark.text:
            self.say(REMARKS[remark.level], about=remark.about, what=remark.what, note=remark.text)

    def _write(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


class Metered:
    """A transport whose requests are counted and timed; a watch counts when its answer begins."""

    def __init__(self, transport: Transport, metrics: Metrics, host: str) -> None:
        self.loop = transport.loop
        self._transport, self._metrics, self._host = transport, metrics, host

    def send(self, number: Number, request: Request, tell: Tell) -> None:
        start = perf_counter_ns()
        if request.waited is not None and request.extender is None:
            self._metrics.throttled(request.method, self._host, request.waited / 1e9)

        def heard(number: Number, reply: Reply) -> None:
            if isinstance(reply, (Response, Unanswered)) and request.extender is None:
                code, back = (str(reply.status), len(reply.body)) if isinstance(reply, Response) else (_FAILED, 0)
                seconds, sizes = (perf_counter_ns() - start) / 1e9, (len(request.body), back)
                self._metrics.requested(request.method, self._host, code, seconds, sizes)
            tell(number, reply)

        self._transport.send(number, request, heard)

    def abandon(self, number: Number) -> None:
        self._transport.abandon(number)

    async def close(self) -> None:
        await self._transport.close()


def as_fields(counts: Mapping[str, int]) -> str:
    """Counts on one line: `active=3, gated=1`."""
    return ", ".join(f"{name}={count}" for name, count in counts.items())
