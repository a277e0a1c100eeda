"""Keep one kind in view: list it, watch it, and never lose an event without noticing.

A watch ends all the time: the server closes it after some minutes, a proxy drops it, a network dies without a word,
history is compacted away.  After each of these the view must go on from where it was, or be made anew and compared
with the old one, so that what vanished in between is told.  The rules, each with a test in tests/wire:

- The first view is streamed (WatchList) where the server can, else listed in pages.  It is consistent: version 0,
  "whatever you have", is never asked for.
- A watch goes on from the last version heard of, whoever ended it.  410, wherever it is met, means: list again.
- A list older than what was told already is refused: a server that lags must not turn time back.
- No byte for 70 s is a dead connection: a living server sends a bookmark every minute.
- Failures are waited out for 0.8 s to 30 s, doubling, with jitter; 429 as long as the server says.
- An object that cannot be read is told as Invalid.  A line that cannot be read ends the stream; met twice, it means
  a new list.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from kubesched.api.kinds import Kind
from kubesched.api.objects import Invalid, KubeObject
from kubesched.api.time import Duration, Instant, minutes, seconds
from kubesched.cluster.objects import version
from kubesched.core.messages import Observed, Synced
from kubesched.wire.decoding import Bookmark, Change, Foreign, Garbled, Line, Reader, Trouble
from kubesched.wire.exchange import Chunk, Closed, Exchange, Level, Luck, Number, Reply, Request, Response, Unanswered
from kubesched.wire.frames import Lines, LineTooLong
from kubesched.wire.known import Known
from kubesched.wire.patience import NO_TIME, Backoff
from kubesched.wire.status import Status, retry_after, status_of

QUIET_MAX: Duration = seconds(70)
WATCH_FOR: Duration = minutes(5)  # and up to as much again, by luck
GLANCE_FOR = 3  # seconds: the server sends a bookmark two seconds before the end it was given
SHORT: Duration = seconds(1)  # a watch that ends sooner without an event is a failure
SMALL = 2000  # objects that are sent again sooner than a bookmark comes
PAGE = 500
PAGE_BYTES_MAX = 256 << 20
LIST_BYTES_MAX = 2 << 30
HEAD_WITHIN: Duration = seconds(30)
STREAMS_TRIED = 2  # times a first view is streamed before it is listed in pages
FAILED_TIMES = 3  # that a server may fail at a watch, until the view is made anew
GARBLED_TIMES = 2  # in a row, and the view is made anew

SELECTED = {"Pod": "status.phase!=Succeeded,status.phase!=Failed"}  # what has ended holds no room


class Phase(Enum):
    IDLE = "idle"
    GATHERING = "gathering"  # a new view is on its way
    FOLLOWING = "following"  # the view is complete, and changes are told as they come


class _Stream:
    """One watch under way."""

    __slots__ = ("events", "heard", "lines", "number", "opened")

    def __init__(self, number: Number, now: Instant) -> None:
        self.number = number
        self.opened = self.heard = now
        self.lines = Lines()
        self.events = 0


class Reflector:
    """One kind, from the first list to the last event.

    Args:
        streams: whether to try WatchList; it is not tried again once the server has refused it.
    """

    def __init__(self, kind: Kind, exchange: Exchange, luck: Luck, *, streams: bool = True) -> None:
        self.kind = kind
        self.known = Known()
        self.synced = False
        self.reached = 0  # everything up to this version has been told
        self.phase = Phase.IDLE
        self.reader = Reader(kind)
        self._exchange, self._luck = exchange, luck
        self._backoff = Backoff(luck)
        self._streams, self._streams_failed = streams, 0
        self._garbled = 0
        self._gathered: dict[str, KubeObject] = {}
        self._proceed, self._page_size = "", PAGE
        self._stream: _Stream | None = None
        self._relisted_at: Instant | None = None
        self._later: tuple[Instant, Callable[[Instant], None]] | None = None
        self._must_reach = self._renewed_for = 0

    # ── what a host calls ────────────────────────────────────────────────────────────────────────────────────

    def start(self, now: Instant) -> None:
        self._gather(now)

    def tick(self, now: Instant) -> None:
        """Do what is due."""
        if self._later is not None and self._later[0] <= now:
            action, self._later = self._later[1], None
            action(now)
        if self._stream is not None and self._stream.heard + QUIET_MAX <= now:
            self._remark("warning", "quiet", f"no byte for {QUIET_MAX // 1_000_000_000} s: connecting anew")
            self._broken_off(now)

    @property
    def deadline(self) -> Instant | None:
        """When `tick` is needed by itself."""
        due = [self._later[0]] if self._later is not None else []
        due += [Instant(self._stream.heard + QUIET_MAX)] if self._stream is not None else []
        return min(due, default=None)

    def hurry(self, version: int, now: Instant) -> None:
        """Reach a version soon, although nothing may have happened to this kind and bookmarks are rare.

        A small view is soonest made anew.  For a large one the watch is asked for again, with an end so near that
        a bookmark comes within two seconds.
        """
        self._must_reach = max(self._must_reach, version)
        if self._hurried and self.phase is Phase.FOLLOWING and self._stream is not None:
            self._hurry_on(now)

    def _hurry_on(self, now: Instant) -> None:
        anew = len(self.known) <= SMALL and self._renewed_for != self._must_reach
        self._renewed_for = self._must_reach
        (self._gather if anew else self._watch)(now)

    # ── a view, complete and new ─────────────────────────────────────────────────────────────────────────────

    def _gather(self, now: Instant) -> None:
        """Begin a new view; what was told stays until it is complete."""
        self._drop_stream()
        self._later = None
        self.phase = Phase.GATHERING
        self._gathered, self._proceed = {}, ""
        if self._streams and self._streams_failed < STREAMS_TRIED:
            initial = (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))
            self._open(now, initial, self._watch_seconds())
        else:
            self._list(now)

    def _list(self, now: Instant) -> None:
        query = self._selection()
        if self._page_size:
            query += (("limit", str(self._page_size)),)
        if self._proceed:
            query += (("continue", self._proceed),)
        bytes_max = PAGE_BYTES_MAX if self._page_size else LIST_BYTES_MAX
        request = Request(method="GET", path=self.kind.path(), query=query, timeout=minutes(1), bytes_max=bytes_max)
        self._exchange.send(request, self._hear_list)

    def _hear_list(self, reply: Reply, now: Instant) -> None:
        if not isinstance(reply, Response):
            # Perhaps it was too much at once; a smaller page may get through.
            self._page_size = max(1, self._page_size // 2) if self._page_size else 0
            self._fail(now, "unreachable", _why(reply), self._list)
        elif reply.status != 200:
            self._refused(status_of(reply), retry_after(reply, status_of(reply)), now, self._list)
        else:
            self._take_page(reply.body, now)

    def _take_page(self, body: bytes, now: Instant) -> None:
        try:
            page = self.reader.page(body)
        except Garbled as garbled:
            self._fail(now, "garbled", str(garbled), self._list)
            return
        for obj in page.objects:
            self._gathered[obj.key] = self.known.same(obj)
        self._proceed = page.proceed
        if page.proceed:
            self._list(now)
        elif self._complete(page.version, now):
            self._page_size = PAGE
            (self._hurry_on if self._hurried else self._watch)(now)

    def _complete(self, at: int, now: Instant) -> bool:
        """The new view is whole: tell what is different.  False where it is older than what was told."""
        if at < self.reached:
            text = f"a list of version {at} is refused: {self.reached} was seen already (another server, or a restore?)"
            self._fail(now, "stale", text, self._gather)
            return False
        self._tell(self.known.replace(self._gathered))
        self._gathered = {}
        self.reached = at
        self.phase = Phase.FOLLOWING
        self._backoff.reset()
        self._streams_failed = 0
        if not self.synced:
            self.synced = True
            self._exchange.tell(Synced((self.kind.name,)))
        return True

    # ── a watch ──────────────────────────────────────────────────────────────────────────────────────────────

    def _watch(self, now: Instant) -> None:
        """Go on from the last version heard of."""
        self._drop_stream()
        self._later = None
        wanted = GLANCE_FOR if self._hurried else self._watch_seconds()
        self._open(now, (("resourceVersion", str(self.reached)),), wanted)

    def _open(self, now: Instant, start: tuple[tuple[str, str], ...], wanted: int) -> None:
        common = (("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(wanted)))
        query = (*common, *start, *self._selection())
        request = Request(method="GET", path=self.kind.path(), query=query, streams=True, timeout=HEAD_WITHIN)
        self._stream = _Stream(self._exchange.send(request, self._hear_stream), now)

    def _hear_stream(self, reply: Reply, now: Instant) -> None:
        stream = self._stream
        assert stream is not None, "what was dropped is not heard of"
        stream.heard = now
        match reply:
            case Response(200):
                pass
            case Response():
                self._stream = None
                status = status_of(reply)
                if self.phase is Phase.GATHERING and status.code in (400, 405, 422):
                    self._remark("info", "unstreamed", f"no WatchList here ({status.message}): listing in pages")
                    self._streams = False
                    self._gather(now)
                else:
                    again = self._gather if self.phase is Phase.GATHERING else self._watch
                    self._refused(status, retry_after(reply, status), now, again)
            case Chunk(data):
                self._hear_lines(stream, data, now)
            case Closed() | Unanswered():
                self._stream = None
                self._ended(stream, reply, now)

    def _hear_lines(self, stream: _Stream, data: bytes, now: Instant) -> None:
        try:
            for line in stream.lines.feed(data):
                self._hear_line(stream, self.reader.line(line), now)
                if self._stream is not stream:
                    return
        except (Garbled, LineTooLong) as problem:
            self._drop_stream()
            self._garbled += 1
            again = self._watch if self.phase is Phase.FOLLOWING and self._garbled < GARBLED_TIMES else self._gather
            self._fail(now, "garbled", str(problem), again)

    def _hear_line(self, stream: _Stream, line: Line, now: Instant) -> None:
        stream.events += 1
        match line:
            case Change(obj, gone):
                if self.phase is Phase.GATHERING:
                    self._gather_one(obj, gone)
                else:
                    self._follow(obj, gone, now)
            case Bookmark(at, ends_initial):
                self._mark(at, ends_initial, now)
            case Trouble(status):
                self._drop_stream()
                again = self._gather if self.phase is Phase.GATHERING else self._watch
                asked = 0 if status.details is None else status.details.retry_after_seconds
                self._refused(status, seconds(max(0, min(asked, 60))), now, again)
            case Foreign(kind):
                self._remark("warning", "foreign", f"a {kind} among {self.kind.plural} is left aside")

    def _gather_one(self, obj: KubeObject, gone: bool) -> None:
        if gone:
            self._gathered.pop(obj.key, None)
        else:
            self._gathered[obj.key] = self.known.same(obj)
        if not self.synced:  # there is no older view to keep, so the core may hear at once
            self._tell(self.known.fold(obj, gone))

    def _follow(self, obj: KubeObject, gone: bool, now: Instant) -> None:
        at = version(obj)
        self._backoff.reset()
        self._garbled = 0
        if at <= self.reached and not gone and obj.key not in self.known.objects:
            # It is news of something that has ended since, or of something we should have heard of before.
            self._remark("warning", "travelled", f"the watch goes back to version {at} from {self.reached}")
            self._relist(now)
            return
        changes = self.known.fold(obj, gone)
        if not changes:
            self._remark("info", "duplicate")
        self._tell(changes)
        self.reached = max(self.reached, at)

    def _mark(self, at: int, ends_initial: bool, now: Instant) -> None:
        if self.phase is Phase.FOLLOWING:
            self.reached = max(self.reached, at)
            self._backoff.reset()
        elif ends_initial:
            if not self._complete(at, now):
                self._drop_stream()
            elif self._hurried:
                self._hurry_on(now)
        else:  # a server that does not know of initial events watches from somewhere, and never says they are all
            self._remark("info", "unstreamed", "the server ignores sendInitialEvents: listing in pages")
            self._streams = False
            self._gather(now)

    # ── ends and failures ────────────────────────────────────────────────────────────────────────────────────

    def _ended(self, stream: _Stream, reply: Reply, now: Instant) -> None:
        if self.phase is Phase.GATHERING:
            self._streams_failed += 1
            self._fail(now, "cut", f"the first view was cut off: {_why(reply)}", self._gather)
        elif isinstance(reply, Unanswered):
            self._fail(now, "unreachable", _why(reply), self._watch)
        elif stream.events == 0 and now - stream.opened < SHORT:
            self._fail(now, "short", "a watch ended at once, without an event", self._watch)
        else:
            self._watch(now)

    def _broken_off(self, now: Instant) -> None:
        stream = self._stream
        assert stream is not None
        self._drop_stream()
        self._ended(stream, Closed("silence"), now)

    def _refused(self, status: Status, leave_alone: Duration, now: Instant, again: Callable[[Instant], None]) -> None:
        """The server said no; wherever it did, this is what it means."""
        if status.expired or status.ahead:
            what = "expired" if status.expired else "ahead"
            self._remark("info", what, status.message)
            if self._proceed:
                self._page_size = 0  # the pages take longer than history is kept: all at once
            self._relist(now)
        elif status.code == 404 and self.kind.group:
            # Nobody serves this kind, so there are no objects of it; it may be installed later.
            if not self.synced or self.known.objects:
                self._remark("warning", "unserved", f"the server does not serve {self.kind.resource}: taken as none")
                self._gathered = {}
                self._complete(self.reached, now)
            self.phase = Phase.GATHERING
            self._wait(now, Duration(max(leave_alone, seconds(30))), self._gather)
        else:
            if again == self._watch and status.code >= 500 and self._backoff.failures >= FAILED_TIMES:
                again = self._gather
            what = {401: "unauthorized", 403: "forbidden", 404: "unserved", 429: "throttled"}.get(status.code, "failed")
            self._fail(now, what, _mended(status, self.kind), again, leave_alone)

    def _relist(self, now: Instant) -> None:
        """Make the view anew: at once, unless that was done just now and did not help."""
        self._drop_stream()
        again = self._relisted_at is not None and now - self._relisted_at < seconds(10)
        self._relisted_at = now
        if again:
            self._wait(now, self._backoff.next(now), self._gather)
        else:
            self._gather(now)

    def _fail(
        self,
        now: Instant,
        what: str,
        text: str,
        again: Callable[[Instant], None],
        leave_alone: Duration = NO_TIME,
    ) -> None:
        self._drop_stream()
        delay = self._backoff.next(now, leave_alone)
        self._remark("warning", what, f"{text}; trying again in {delay / 1e9:.1f} s")
        self._wait(now, delay, again)

    def _wait(self, now: Instant, delay: Duration, action: Callable[[Instant], None]) -> None:
        self._later = (Instant(now + delay), action)

    def _drop_stream(self) -> None:
        if self._stream is not None:
            self._exchange.abandon(self._stream.number)
            self._stream = None

    # ── small things ─────────────────────────────────────────────────────────────────────────────────────────

    def _tell(self, changes: list[Observed]) -> None:
        for change in changes:
            if isinstance(change.obj, Invalid) and not change.gone:
                self._remark("warning", "unreadable", change.obj.error)
            self._exchange.tell(change)

    def _remark(self, level: Level, what: str, text: str = "") -> None:
        self._exchange.remark(level, self.kind.name, what, text)

    def _selection(self) -> tuple[tuple[str, str], ...]:
        selector = SELECTED.get(self.kind.name)
        return () if selector is None else (("fieldSelector", selector),)

    def _watch_seconds(self) -> int:
        return int(WATCH_FOR * (1 + self._luck.random())) // 1_000_000_000

    @property
    def _hurried(self) -> bool:
        return self.reached < self._must_reach


def _why(reply: Reply) -> str:
    return reply.why if isinstance(reply, (Closed, Unanswered)) else "the answer makes no sense"


def _mended(status: Status, kind: Kind) -> str:
    """What the server said, and what a person can do about it."""
    match status.code:
        case 401:
            return f"the API server does not know us ({status.message}): check the token or certificate"
        case 403:
            return f"{status.message}: grant get, list and watch of {kind.resource}"
        case 404:
            return f"{status.message}: is this the address of a Kubernetes API server?"
    return status.message or f"the server answered {status.code}"
