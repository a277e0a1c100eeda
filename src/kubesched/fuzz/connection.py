"""What stands between one scheduler and the cluster, and everything that may go wrong there.

Requests reach the server late, twice, long after their caller gave up, or not at all; answers get lost.  News of
each kind have a lag of their own, stay away, are told twice, or have a gap that ends with the list being read again.
The connection also keeps the view of a second opinion: what this scheduler has been told, read without its code.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kubesched.api.time import Duration, Instant, milliseconds, seconds
from kubesched.apiserver.store import Watch, WatchEvent
from kubesched.core.messages import AnyEffect, Call, Completed, Event, Observed, Synced
from kubesched.drive.requests import Requests
from kubesched.framework.steps import Answer, Failure, HttpPost
from kubesched.fuzz.oracle import View, is_poison, node_facts, pod_facts
from kubesched.fuzz.plan import Json, Mishap
from kubesched.sim.cluster import WATCHED

if TYPE_CHECKING:
    from kubesched.fuzz.stage import Stage

_UNKNOWN = Answer(failure=Failure("Timeout", "no answer in time", applied="unknown"))
_REFUSALS = (
    Failure("Conflict", "the object has been modified; please apply your changes to the latest version", 409),
    Failure("Forbidden", "admission webhook said no", 403),
    Failure("Invalid", "admission webhook said no", 422),
    Failure("TooManyRequests", "please try again later", 429, retry_after=seconds(1)),
)
_FAILURES = (
    Failure("InternalError", "etcdserver: request timed out", 500, "unknown"),
    Failure("ServiceUnavailable", "apiserver is shutting down", 503, "unknown"),
    Failure("Timeout", "request did not complete within the allowed duration", 504, "unknown"),
    Failure("Unreachable", "connection reset by peer", 0, "unknown"),
)
_NOS = {"refused": _REFUSALS, "failed": _FAILURES}


class Sent:
    """A request on its way.  `open`: nobody has answered yet; `alive`: it may still be carried out."""

    __slots__ = ("alive", "at", "effect", "mishap", "open", "times")

    def __init__(self, effect: AnyEffect, mishap: Mishap | None, at: Instant) -> None:
        self.effect, self.mishap, self.at = effect, mishap, at
        self.open = self.alive = True
        self.times = 2 if mishap is not None and mishap.outcome == "twice" else 1


class News(NamedTuple):
    """Something to be told, and the raw object behind it."""

    event: Event
    kind: str = ""
    obj: Json | None = None
    gone: bool = False


class Line(Protocol):
    """What may go wrong with news of one kind."""

    def hush(self, until: Instant) -> None: ...

    def gap(self, until: Instant) -> None: ...

    def echo(self, times: int) -> None: ...


class Connection:
    """One scheduler's connection, from its start to its death."""

    def __init__(self, stage: Stage, owner: str) -> None:
        self.stage, self.owner = stage, owner
        self.requests = Requests(stage.cluster, lambda: stage.now)
        self.view = View()  # what has been told
        self.sent: dict[int, Sent] = {}  # by effect, unanswered or still to be carried out
        self.closed = False
        self.news = 0
        self._inbox: deque[News] = deque()
        self._known: dict[str, dict[str, Json]] = {}  # what has been put into the inbox, by kind and key
        self._streams: dict[str, _Stream] = {}

    @property
    def waits_for(self) -> tuple[str, ...]:
        """What the core must have been told of before it schedules."""
        return WATCHED

    @property
    def leading(self) -> bool:
        """Whether its scheduler may schedule."""
        return True

    # ── the beginning and the end ────────────────────────────────────────────────────────────────────────────

    def open(self) -> None:
        """Read every list, follow every watch, and say when the first view is complete."""
        for kind in sorted(WATCHED, key=lambda kind: (kind == "Pod", kind)):  # pods last: they need the others
            stream = self._streams[kind] = _Stream(self, kind)
            for event in stream.watch.take():
                self.push(kind, event.obj, gone=False)
        self.tell(News(Synced(tuple(self._streams))))

    def close(self) -> None:
        """The process is dead.  What it sent last is carried out now, or never."""
        self.closed = True
        for stream in self._streams.values():
            stream.watch.close()
        for sent in list(self.sent.values()):
            if sent.alive and self.stage.tape.part("last words", sent.effect.id) < 0.5:
                self._carry_out(sent)
            sent.alive = False

    @property
    def idle(self) -> bool:
        """Whether everything that was asked for has been answered."""
        return not any(sent.open for sent in self.sent.values())

    def fall_quiet(self) -> None:
        """Its scheduler is about to end, and says no more than it must."""

    def let_go(self) -> None:
        """Its scheduler has nothing left to do, and ends."""
        self.stage.soon(partial(self.stage.exit, self))

    def calm(self) -> None:
        """Faults stop: what is late is carried out now or never, and news flow again."""
        for sent in list(self.sent.values()):
            if sent.alive and sent.mishap is not None and sent.mishap.outcome == "late":
                if self.stage.tape.part("late at the end", sent.effect.id) < 0.5:
                    self._carry_out(sent)
                sent.alive = False
        for stream in self._streams.values():
            stream.heal()

    # ── news ─────────────────────────────────────────────────────────────────────────────────────────────────

    def stream(self, kind: str) -> Line:
        """Where news of a kind come in, and can be harmed."""
        return self._streams[kind]

    def known(self, kind: str) -> dict[str, Json]:
        return self._known.setdefault(kind, {})

    def push(self, kind: str, obj: Json, gone: bool) -> None:
        """Put news of an object into the inbox."""
        known, key = self.known(kind), key_of(obj)
        if gone:
            known.pop(key, None)
        else:
            known[key] = obj
        self.tell(News(Observed(self.requests.view(kind, obj), gone=gone), kind, obj, gone))

    def tell(self, news: News) -> None:
        if not self.closed:
            self._inbox.append(news)
            self.stage.rouse(self.owner)

    @property
    def waiting(self) -> bool:
        return bool(self._inbox)

    def take(self) -> Event | None:
        if not self._inbox:
            return None
        news = self._inbox.popleft()
        self.news += 1
        if news.obj is not None:
            remember(self.view, news.kind, news.obj, news.gone, answer=isinstance(news.event, Completed))
        return news.event

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, effect: AnyEffect) -> None:
        """Start a request.  Its answer comes as news."""
        stage = self.stage
        if isinstance(effect, Call) and isinstance(effect.step, HttpPost):
            self._ask_extender(effect, effect.step)
            return
        mishap = stage.mishap(effect)
        sent = self.sent[effect.id] = Sent(effect, mishap, stage.now)
        stage.judge.sent(self, sent)
        wait = stage.write_takes(effect)
        after = milliseconds(mishap.after) if mishap is not None else Duration(0)
        match None if mishap is None else mishap.outcome:
            case None | "twice":
                stage.later(wait, partial(self._carry_out, sent, True))
                if sent.times == 2:
                    stage.later(Duration(wait + milliseconds(1)), partial(self._carry_out, sent))
            case "slow":
                stage.later(Duration(wait + after), partial(self._carry_out, sent, True))
            case "lost":
                sent.alive = False
                stage.later(after, partial(self._answer, sent, _UNKNOWN))
            case "timeout-after-apply":
                stage.later(wait, partial(self._carry_out, sent))
                stage.later(Duration(max(after, wait + 1)), partial(self._answer, sent, _UNKNOWN))
            case "late":
                stage.later(milliseconds(stage.plan.weather.patience), partial(self._answer, sent, _UNKNOWN))
                stage.later(after, partial(self._carry_out, sent))
            case "refused" | "failed" as how:
                sent.alive = False
                which = stage.tape.choice(_NOS[how], how, mishap)
                stage.later(wait, partial(self._answer, sent, Answer(failure=which)))

    def _carry_out(self, sent: Sent, answering: bool = False) -> None:
        if not sent.alive:
            return
        sent.times -= 1
        sent.alive = sent.times > 0
        self.stage.judge.arriving(self, sent)
        answer = self.requests.carry_out(sent.effect)
        raw: Json | None = None
        if answer.ok and answer.obj is not None:
            name = answer.obj.metadata
            raw = self.stage.cluster.find(answer.obj.kind, name.namespace, name.name)
        self.stage.judge.arrived(self, sent, answer)
        if answering:
            self._answer(sent, answer, raw)
        elif not sent.open:
            self.sent.pop(sent.effect.id, None)

    def _answer(self, sent: Sent, answer: Answer, raw: Json | None = None) -> None:
        if not sent.open or self.closed:
            return
        sent.open = False
        if not sent.alive:
            self.sent.pop(sent.effect.id, None)
        self.stage.judge.answered(self, sent, answer)
        kind = "" if answer.obj is None else answer.obj.kind
        self.tell(News(Completed(sent.effect.id, answer), kind, raw))

    def _ask_extender(self, effect: Call, step: HttpPost) -> None:
        delay, answer = self.stage.extender.answer(step)
        sent = self.sent[effect.id] = Sent(effect, None, self.stage.now)
        sent.alive = False
        self.stage.later(delay, partial(self._answer, sent, answer))


def key_of(obj: Json) -> str:
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def remember(seen: View, kind: str, obj: Json, gone: bool, answer: bool = False) -> None:
    """Fold one piece of news into a view, as an informer must: nothing older than what is known already."""
    seen.heard += not answer
    seen.latest = obj["metadata"].get("uid", "")
    if kind == "Node":
        node = node_facts(obj)
        _fold(seen.nodes, node.name, node, gone)
    elif kind == "Pod":
        pod = pod_facts(obj)
        before = seen.pods.get(pod.key)
        if answer and (before is None or before.uid != pod.uid or pod.finished):  # its end is for the watch to tell
            return
        if answer and before is not None and pod.node and not before.node:
            seen.heard += 1  # that a pod is bound is news to those who wait, whoever tells of it
        if is_poison(pod.key) and not gone:
            seen.strange[pod.key] = pod.node
        if not is_poison(pod.key):
            _fold(seen.pods, pod.key, pod, gone or pod.finished)
    else:
        others, key = seen.others.setdefault(kind, {}), key_of(obj)
        if gone:
            others.pop(key, None)
        else:
            others[key] = obj


def _fold(known: dict[str, Any], key: str, facts: Any, gone: bool) -> None:
    before = known.get(key)
    if gone:
        if before is not None and (before.uid == facts.uid or before.version < facts.version):
            del known[key]
    elif before is None or facts.version > before.version:
        known[key] = facts


class _Stream:
    """The watch of one kind."""

    def __init__(self, connection: Connection, kind: str) -> None:
        self._connection, self.kind = connection, kind
        self._queue_end = Instant(0)  # nothing overtakes what was told before
        self._held_until = Instant(0)
        self._lost_until = Instant(0)
        self._echoes = 0
        self._looking = False
        self.watch: Watch = connection.stage.cluster.watch(kind, self._look)

    # what goes wrong

    def hush(self, until: Instant) -> None:
        self._held_until = max(self._held_until, until)

    def gap(self, until: Instant) -> None:
        if self._lost_until < until:
            self._lost_until = until
            self._connection.stage.at(until, self._relist)

    def echo(self, times: int) -> None:
        self._echoes += times

    def heal(self) -> None:
        """All is well from now on."""
        now = self._connection.stage.now
        self._held_until, self._echoes = min(self._held_until, now), 0
        if self._lost_until > now:
            self._lost_until = now
            self._relist()

    # how news travel

    def _look(self) -> None:
        """Called from inside a write: take note only."""
        if not self._looking:
            self._looking = True
            self._connection.stage.soon(self._collect)

    def _collect(self) -> None:
        self._looking = False
        stage = self._connection.stage
        for event in self.watch.take():
            if stage.now < self._lost_until:
                stage.judge.lost += 1
                continue
            self._plan(partial(self._tell, event))
            if self._echoes:
                self._echoes -= 1
                self._plan(partial(self._tell, event))

    def _plan(self, action: Any) -> None:
        stage = self._connection.stage
        lag = stage.lag(self.kind)
        due = max(Instant(stage.now + lag), self._held_until, self._queue_end)
        self._queue_end = due
        stage.at(due, action)

    def _tell(self, event: WatchEvent) -> None:
        if not self._connection.closed:
            self._connection.push(self.kind, event.obj, event.type == "DELETED")

    def _relist(self) -> None:
        """410: read the list again.  What is no longer in it has gone."""
        stage = self._connection.stage
        if not self._connection.closed and stage.now >= self._lost_until:
            self.watch.take()
            self._looking = False
            self._plan(partial(self._replace, stage.cluster.list(self.kind)))

    def _replace(self, items: list[Json]) -> None:
        connection = self._connection
        if connection.closed:
            return
        known = connection.known(self.kind)
        there = {key_of(obj): obj for obj in items}
        for key in [key for key in known if key not in there]:
            connection.push(self.kind, known[key], gone=True)
        for key, obj in there.items():
            if known.get(key) is not obj:
                connection.push(self.kind, obj, gone=False)

