"""A scheduler's connection as it is in production: the wire's client, and an API server that answers bytes.

Nothing here stands in for what runs against a real cluster.  The reflectors list and watch, resume and list again, the
elector holds a Lease, the performer writes; what they ask is answered by the embedded API server, through the door
clients on the network use.  Between the two the network does what networks do: requests get lost, are carried out and
not answered, late or twice; streams hang, break, repeat themselves, or begin after history was forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from kubesched.api.time import Duration, Instant, milliseconds, seconds
from kubesched.apiserver.requests import Response as Answered
from kubesched.apiserver.requests import User, WatchStream
from kubesched.core.messages import AnyEffect, Bind, Completed, Event, Observed
from kubesched.framework.steps import Answer, Failure
from kubesched.fuzz.connection import Connection, News, Sent
from kubesched.fuzz.plan import Json
from kubesched.wire.client import Client
from kubesched.wire.elector import LeaseOptions
from kubesched.wire.exchange import Actions, Chunk, Closed, Number, Reply, Request, Response, Unanswered

if TYPE_CHECKING:
    from kubesched.fuzz.stage import Stage

LEASE = LeaseOptions()
STALE: Duration = seconds(5)  # how old what a replica has may be
RELEASE_WITHIN: Duration = seconds(1)  # as in production
DEAD_FROM: Duration = seconds(5)  # a silence as long as this may be for ever
_WRITES = {"Bind", "PatchPod", "Evict", "Call"}
_REFUSALS = ((409, "Conflict"), (403, "Forbidden"), (422, "Invalid"), (429, "TooManyRequests"))
_FAILURES = ((500, "InternalError"), (503, "ServiceUnavailable"), (504, "Timeout"))
_NOS = {"refused": _REFUSALS, "failed": _FAILURES}
_WATCH_REFUSALS = ((410, "Expired"), (403, "Forbidden"), (429, "TooManyRequests"))


class Wired(Connection):
    """One process's connection, from its start to its death.

    Args:
        life: how often it has begun; every life is another candidate for the Lease.
    """

    def __init__(self, stage: Stage, owner: str, life: int, elected: bool) -> None:
        super().__init__(stage, owner)
        self.identity = f"{owner}-{life}"
        self.over = False
        self._client = Client(
            [stage.cluster.kinds[name] for name in stage.kinds],
            Random(f"{stage.plan.seed}/{self.identity}/wire"),
            identity=self.identity,
            lease=LEASE if elected else None,
        )
        self._user = User(f"system:{owner}", ("system:masters", "system:authenticated"))
        self._lines = {self._client.reflectors[kind].kind.path(): _Line(self) for kind in stage.kinds}
        self._lease_line = _Line(self)
        self._under_way: dict[Number, Request] = {}  # sent, and not at the server yet
        self._flows: dict[Number, _Flow] = {}
        self._alarm: Instant | None = None
        self._reached: dict[str, int] = {}

    # ── for the process and the judge ────────────────────────────────────────────────────────────────────────

    @property
    def waits_for(self) -> tuple[str, ...]:
        return self._client.waits_for

    @property
    def leading(self) -> bool:
        return self._client.leading

    def open(self) -> None:
        self._do(self._client.start(self.stage.now))

    def close(self) -> None:
        """The process is dead.  What it sent last is carried out now, or never."""
        for number, request in list(self._under_way.items()):
            if not request.streams and self.stage.tape.part("last words", self.identity, number) < 0.5:
                self._serve(number, request, answering=False)
        self.closed = True
        for flow in self._flows.values():
            flow.stream.close()
        self._flows.clear()

    @property
    def idle(self) -> bool:
        return self._client.performer.idle

    def fall_quiet(self) -> None:
        self._do(self._client.hush(self.stage.now))
        self.stage.rouse(self.owner)

    def let_go(self) -> None:
        """Let go of the Lease, and end: when that has been answered, or after a while."""
        self._do(self._client.stop(self.stage.now))
        self.stage.later(RELEASE_WITHIN, partial(self.stage.exit, self))

    def calm(self) -> None:
        for line in (*self._lines.values(), self._lease_line):
            line.heal()

    def stream(self, kind: str) -> _Line:
        return self._lease_line if kind == "Lease" else self._lines[self._client.reflectors[kind].kind.path()]

    def send(self, effect: AnyEffect) -> None:
        sent = self.sent[effect.id] = Sent(effect, None, self.stage.now)
        self.stage.judge.sent(self, sent)
        self._do(self._client.perform([effect], self.stage.now))

    # ── what the client wants done ───────────────────────────────────────────────────────────────────────────

    def _do(self, actions: Actions) -> None:
        if self.closed:
            return
        for event in actions.events:
            self._pass_on(event)
        for number in actions.abandoned:
            flow = self._flows.pop(number, None)
            if flow is not None:
                flow.stream.close()
        for number, request in actions.requests:
            self._ask(number, request)
        self._look_back()
        due = self._client.deadline
        if due is not None and due != self._alarm:
            self._alarm = due
            self.stage.at(max(due, self.stage.now), self._tick)
        if self._client.over and not self.over:
            self.over = True
            self.stage.soon(partial(self.stage.exit, self))

    def _tick(self) -> None:
        due = self._client.deadline
        if not self.closed and due is not None and due <= self.stage.now:
            self._alarm = None
            self._do(self._client.tick(self.stage.now))

    def _look_back(self) -> None:
        for name, reflector in self._client.reflectors.items():
            if reflector.reached < self._reached.get(name, 0):
                text = f"the view of {name} was at {self._reached[name]}, and is at {reflector.reached}"
                self.stage.judge.blame("S15", text)
            self._reached[name] = reflector.reached

    def _pass_on(self, event: Event) -> None:
        """Hand an event to the core, and the same object, as it was stored, to the second opinion."""
        judge = self.stage.judge
        if judge.dirty:
            judge.look()
        if isinstance(event, Observed):
            obj = event.obj
            kind = getattr(obj, "of", "") or obj.kind
            self.tell(News(event, kind, judge.history.get(obj.metadata.resource_version), event.gone))
        elif isinstance(event, Completed):
            sent = self.sent.pop(event.effect, None)
            if sent is not None:
                sent.open = sent.alive = False
                judge.answered(self, sent, event.answer)
            answered = event.answer.obj
            raw = None if answered is None else judge.history.get(answered.metadata.resource_version)
            self.tell(News(event, "" if answered is None else answered.kind, raw))
        else:
            self.tell(News(event))

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────

    def _ask(self, number: Number, request: Request) -> None:
        stage = self.stage
        what, about = sort_of(request)
        if what in _WRITES:
            stage.judge.writes(self, what, about)
        mishap = stage.mishap_of(what, about)
        wait, timeout = stage.request_takes(self.identity, number), request.timeout
        after = milliseconds(mishap.after) if mishap is not None else Duration(0)
        line = self._line_of(request)
        if line is not None:
            if request.streams:
                stage.judge.asked(self, request.path)
            trouble = line.trouble(request)
            if trouble is not None:
                stage.later(wait, partial(self._say, number, trouble))
                return
        execute = partial(self._serve, number, request)
        self._under_way[number] = request
        match None if mishap is None else mishap.outcome:
            case None:
                stage.later(wait, execute)
            case "twice":
                stage.later(wait, execute)
                if not request.streams:
                    stage.later(Duration(wait + milliseconds(1)), partial(execute, answering=False))
            case "slow" if after < timeout:
                stage.later(Duration(wait + after), execute)
            case "slow" | "lost":
                self._under_way.pop(number)
                stage.later(timeout, partial(self._reply, number, Unanswered("timed out")))
            case "timeout-after-apply":
                stage.later(wait, partial(execute, answering=False))
                stage.later(timeout, partial(self._reply, number, Unanswered("timed out")))
            case "late":
                stage.later(timeout, partial(self._reply, number, Unanswered("timed out")))
                if not request.streams:
                    stage.later(after, partial(self._serve_late, number, request))
            case "refused" | "failed" as how:
                self._under_way.pop(number)
                choices = _WATCH_REFUSALS if how == "refused" and request.streams else _NOS[how]
                stage.later(wait, partial(self._refuse, number, *stage.tape.choice(choices, how, mishap)))

    def _line_of(self, request: Request) -> _Line | None:
        """What harms a request: streams have a line for each kind, and all requests about the Lease share one."""
        if request.streams:
            return self._lines.get(request.path, self._lease_line)
        return self._lease_line if sort_of(request)[0] == "Lease" else None

    def _serve_late(self, number: Number, request: Request) -> None:
        if not self.closed and not self.stage.calm:
            self._serve(number, request, answering=False)

    def _serve(self, number: Number, request: Request, answering: bool = True) -> None:
        """The request reaches the server."""
        if self.closed:
            return
        self._under_way.pop(number, None)
        sent = self._bind_in(request)
        if sent is not None:
            self.stage.judge.arriving(self, sent)
        headers = {"user-agent": self.identity, "content-type": request.content_type, "accept": request.accept}
        query = self._as_replicas_read(request)
        answer = self.stage.server.handle(request.method, request.path, query, headers, request.body, self._user)
        if sent is not None:
            done = isinstance(answer, Answered) and answer.status < 300
            self.stage.judge.arrived(self, sent, Answer() if done else _NO)
        if isinstance(answer, WatchStream):
            self._begin_flow(number, request, answer)
        elif answering:
            headers = {name.lower(): value for name, value in answer.headers.items()}
            self._reply(number, Response(answer.status, headers, answer.body))

    def _as_replicas_read(self, request: Request) -> str:
        """Whoever asks for version 0 takes whatever some replica has: the truth of a while ago."""
        if ("resourceVersion", "0") not in request.query or request.streams:
            return urlencode(request.query)
        at = self.stage.judge.revision_before(Instant(self.stage.now - STALE))
        kept = [(name, value) for name, value in request.query if name not in ("resourceVersion", "limit")]
        exact = [("resourceVersion", str(at)), ("resourceVersionMatch", "Exact")] if at else []
        return urlencode([*kept, *exact])

    def _bind_in(self, request: Request) -> Sent | None:
        what, about = sort_of(request)
        if what != "Bind":
            return None
        for sent in reversed(list(self.sent.values())):
            if isinstance(sent.effect, Bind) and sent.effect.pod == about:
                return sent
        return None

    def _refuse(self, number: Number, code: int, reason: str) -> None:
        self._reply(number, _no(code, reason))

    def _say(self, number: Number, replies: tuple[Reply, ...]) -> None:
        for reply in replies:
            self._reply(number, reply)

    def _reply(self, number: Number, reply: Reply) -> None:
        if not self.closed:
            self._do(self._client.receive(number, reply, self.stage.now))

    # ── streams ──────────────────────────────────────────────────────────────────────────────────────────────

    def _begin_flow(self, number: Number, request: Request, stream: WatchStream) -> None:
        line = self._line_of(request) or self._lease_line
        flow = self._flows[number] = _Flow(number, stream, line)
        kind = next((name for name, one in self._client.reflectors.items() if one.kind.path() == request.path), "Lease")
        flow.lag = partial(self.stage.lag, kind)
        self._reply(number, Response(200, {"content-type": "application/json"}))
        stream.set_on_ready(partial(self._ready, flow))
        self._ready(flow)
        if stream.timeout is not None:
            self.stage.later(seconds(stream.timeout), partial(self._end_flow, flow, "the server has closed the watch"))

    def _ready(self, flow: _Flow) -> None:
        """Called from inside a write: take note only."""
        if not flow.looking:
            flow.looking = True
            self.stage.soon(partial(self._collect, flow))

    def _collect(self, flow: _Flow) -> None:
        flow.looking = False
        if self._flows.get(flow.number) is not flow:
            return
        line = flow.line
        for data in flow.stream.take():
            self._plan(flow, partial(self._deliver, flow, data))
            if line.echoes:
                line.echoes -= 1
                self._plan(flow, partial(self._deliver, flow, data))
        if flow.stream.closed:
            self._plan(flow, partial(self._end_flow, flow, "the server has closed the watch"))

    def _plan(self, flow: _Flow, action: Callable[[], None]) -> None:
        stage = self.stage
        flow.queue_end = max(Instant(stage.now + flow.lag()), flow.line.held_until, flow.queue_end)
        stage.at(flow.queue_end, action)

    def _deliver(self, flow: _Flow, data: bytes) -> None:
        """The bytes come in, cut somewhere; or never, and nobody says so."""
        if flow.dead:
            return
        if self._flows.get(flow.number) is not flow:
            self.stage.judge.lost += 1
            return
        at = self.stage.tape.below(len(data), "cut", flow.number, flow.pieces)
        flow.pieces += 1
        for piece in (data[:at], data[at:]):
            if piece and self._flows.get(flow.number) is flow:
                self._reply(flow.number, Chunk(piece))

    def _end_flow(self, flow: _Flow, why: str) -> None:
        if not flow.dead and self._flows.get(flow.number) is flow:
            del self._flows[flow.number]
            flow.stream.close()
            self._reply(flow.number, Closed(why))

    def fall_silent(self, line: _Line) -> None:
        """The connections of a line die, and nobody is told."""
        for flow in self._flows.values():
            flow.dead |= flow.line is line

    def break_off(self, line: _Line) -> None:
        """The connections of a line break, and what was on its way is lost."""
        for flow in [flow for flow in self._flows.values() if flow.line is line]:
            self._end_flow(flow, "connection reset by peer")


_NO = Answer(failure=Failure("Refused", "the server has not done it"))
_EMPTY: tuple[Reply, ...] = (Response(200, {"content-type": "application/json"}), Closed("the watch is over"))
_NO_ROUTE: tuple[Reply, ...] = (Unanswered("no route to host", applied="no"),)


class _Line:
    """What the network does to the streams of one kind."""

    def __init__(self, connection: Wired) -> None:
        self._connection = connection
        self.held_until = Instant(0)
        self.echoes = 0
        self._cut_until: Instant | None = None
        self._manner = ""
        self._behind = False  # whoever answers now has not seen what we have, until somebody asks without a version

    def hush(self, until: Instant) -> None:
        """Nothing is heard for a while; or ever again, of the streams that are open."""
        stage = self._connection.stage
        self.held_until = max(self.held_until, until)
        if until - stage.now >= DEAD_FROM and stage.tape.part("dies", stage.now) < 0.5:
            self._connection.fall_silent(self)

    def echo(self, times: int) -> None:
        self.echoes += times

    def gap(self, until: Instant) -> None:
        """Nothing gets through for a while; afterwards the server has forgotten, or another one is behind."""
        stage = self._connection.stage
        if until > stage.now:
            self._cut_until = max(self._cut_until or until, until)
            self._manner = stage.tape.choice(("cut", "empty", "behind"), "gap", stage.now)
            self._connection.break_off(self)
            stage.at(until, self._mend)

    def trouble(self, request: Request) -> tuple[Reply, ...] | None:
        """What becomes of a new stream while all is not well."""
        if self._cut_until is not None:
            return _EMPTY if self._manner == "empty" and request.streams else _NO_ROUTE
        version = dict(request.query).get("resourceVersion")
        if self._behind and version:
            return (_no(504, "Timeout", "ResourceVersionTooLarge"),)
        self._behind = False
        return None

    def _mend(self) -> None:
        stage = self._connection.stage
        if self._cut_until is not None and stage.now >= self._cut_until:
            self._cut_until = None
            if self._manner == "behind":
                self._behind = True
            else:
                stage.judge.look()
                stage.cluster.store.compact()

    def heal(self) -> None:
        """All is well from now on, but for what has happened already."""
        now = self._connection.stage.now
        self.held_until, self.echoes = min(self.held_until, now), 0
        if self._cut_until is not None:
            self._cut_until = now
            self._mend()


class _Flow:
    """One watch under way."""

    __slots__ = ("dead", "lag", "line", "looking", "number", "pieces", "queue_end", "stream")

    def __init__(self, number: Number, stream: WatchStream, line: _Line) -> None:
        self.number, self.stream, self.line = number, stream, line
        self.lag: Callable[[], Duration] = lambda: Duration(0)
        self.queue_end = Instant(0)
        self.looking = self.dead = False
        self.pieces = 0


def _no(code: int, reason: str, cause: str = "") -> Response:
    """A Status that says no."""
    status: Json = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}
    if cause:
        status["details"] = {"causes": [{"reason": cause, "message": "Too large resource version"}]}
    headers = {"content-type": "application/json", **({"retry-after": "1"} if code == 429 else {})}
    return Response(code, headers, msgspec.json.encode(status))


def sort_of(request: Request) -> tuple[str, str]:
    """What a request is, in the words of a plan, and what it is about."""
    parts = request.path.strip("/").split("/")
    if "leases" in parts:
        return ("Watch" if request.streams else "Lease"), ""
    if request.method == "GET" and "namespaces" not in parts[:-1]:
        return ("Watch" if request.streams else "List"), parts[-1]
    about = parts[-1]
    if "namespaces" in parts:
        at = parts.index("namespaces")
        about = "/".join((*parts[at + 1 : at + 2], *parts[at + 3 : at + 4]))
    if parts[-1] == "binding":
        return "Bind", about
    if "events" in parts:
        return "Publish", ""
    if "pods" in parts:
        return {"GET": "ReadPod", "DELETE": "Evict"}.get(request.method, "PatchPod"), about
    return "Call", about


def for_server(obj: Json) -> Json:
    """A drawn object as an API server takes it: priorities are classes there."""
    spec = obj.get("spec")
    if obj.get("kind") != "Pod" or not isinstance(spec, dict) or not isinstance(spec.get("priority"), int):
        return obj
    policy = spec.get("preemptionPolicy", "")
    kept = {key: value for key, value in spec.items() if key not in ("priority", "preemptionPolicy")}
    return {**obj, "spec": {**kept, "priorityClassName": class_of(spec["priority"], policy)}}


def class_of(priority: int, policy: str) -> str:
    return f"p{priority}-never" if policy == "Never" else f"p{priority}"


def classes() -> list[Json]:
    """Every priority that is drawn, as a class."""
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": class_of(priority, policy)},
            "value": priority,
            "preemptionPolicy": policy or "PreemptLowerPriority",
        }
        for priority in (0, 10, 100, 1000, 2000)
        for policy in ("", "Never")
    ]
