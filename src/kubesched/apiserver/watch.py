"""Follow the changes of one resource, without ever holding up the writer or growing without bound.

A Watch is a cursor into the history of a resource, not a queue of its own: a write costs the same
whether nobody watches or a hundred do, and a watcher that lags behind the kept history is cut off
with 410 Expired, upon which clients list again.  Whoever drives it calls `take` when told to by
`on_ready`: an HTTP handler sets an event in it, a simulated world puts the watcher on its agenda.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from kubesched.apiserver.status import ApiError, expired
from kubesched.apiserver.stored import Stored

Json = dict[str, Any]
Matches = Callable[[Json], bool]

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"

_encode = msgspec.json.Encoder().encode


class WatchEvent:
    """One line of a watch; shared by everyone who is told the same.

    type:      ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, as this watcher sees it.
    obj:       the object (of a DELETED: its last state under the deletion's resourceVersion),
               a Status for ERROR.
    stored:    the Stored behind it, None for BOOKMARK and ERROR.
    revision:  the revision of the change.
    """

    __slots__ = ("_obj", "revision", "stored", "type")

    def __init__(self, type: str, stored: Stored | None, revision: int, obj: Json | None = None) -> None:
        self.type = type
        self.stored = stored
        self.revision = revision
        self._obj = obj

    @property
    def obj(self) -> Json:
        if self.stored is not None:
            return self.stored.obj
        return self._obj or {}

    def line(self) -> bytes:
        """Return the event as a line of a JSON watch stream; the object in it is encoded once for all."""
        body = self.stored.encoded() if self.stored is not None else _encode(self._obj)
        return b'{"type":"%b","object":%b}\n' % (self.type.encode(), body)

    def __repr__(self) -> str:
        return f"WatchEvent({self.type} {self.stored or self._obj} @{self.revision})"


class Change(WatchEvent):
    """An entry of the history: what happened, and the version it happened to."""

    __slots__ = ("_as_added", "_as_deleted", "prev")

    stored: Stored

    def __init__(self, type: str, stored: Stored, revision: int, prev: Stored | None) -> None:
        super().__init__(type, stored, revision)
        self.prev = prev
        self._as_added: WatchEvent | None = None
        self._as_deleted: WatchEvent | None = None

    def as_added(self) -> WatchEvent:
        """The change as those see it who did not see the object before."""
        if self._as_added is None:
            self._as_added = WatchEvent(ADDED, self.stored, self.revision)
        return self._as_added

    def as_deleted(self) -> WatchEvent:
        """The change as those see it who will not see the object any more: its last state under the new revision."""
        if self._as_deleted is None:
            assert self.prev is not None
            self._as_deleted = WatchEvent(DELETED, under_revision(self.prev, self.revision), self.revision)
        return self._as_deleted


def under_revision(stored: Stored, revision: int) -> Stored:
    """Return the same content carrying another resourceVersion, as DELETED events show it."""
    obj = {**stored.obj, "metadata": {**stored.obj["metadata"], "resourceVersion": str(revision)}}
    return Stored(obj, stored.namespace, stored.name, revision)


class History:
    """The latest changes of one resource, oldest first, and those who follow them.

    floor: watches and snapshots can start at this revision or later.
    base:  the number of the first kept change; changes are numbered without end.
    """

    __slots__ = ("base", "capacity", "changes", "floor", "watches")

    def __init__(self, capacity: int, floor: int) -> None:
        self.capacity = capacity
        self.floor = floor
        self.base = 0
        self.changes: list[Change] = []
        self.watches: dict[Watch, None] = {}

    @property
    def end(self) -> int:
        """The number the next change will get."""
        return self.base + len(self.changes)

    def append(self, change: Change) -> None:
        """Record a change and tell whoever waits for one."""
        changes = self.changes
        changes.append(change)
        # Dropped a quarter at a time, so that keeping the bound costs O(1) a write.
        if len(changes) > self.capacity + (self.capacity >> 2):
            self.drop(len(changes) - self.capacity)
        for watch in list(self.watches):
            if watch.waiting:
                watch.offer(change)

    def drop(self, count: int) -> None:
        """Forget the oldest changes."""
        if count:
            self.floor = max(self.floor, self.changes[count - 1].revision)
            del self.changes[:count]
            self.base += count

    def compact(self, revision: int) -> None:
        """Forget all changes up to a revision, and that there ever were any."""
        self.drop(self.index_after(revision))
        self.floor = max(self.floor, revision)

    def index_after(self, revision: int) -> int:
        """The index, among the kept changes, of the first one after a revision."""
        return bisect_right(self.changes, revision, key=_revision_of)


def _revision_of(change: Change) -> int:
    return change.revision


class Watch:
    """A subscription to one resource; made by Store.watch.

    on_ready is called, from inside the write, when events became available after `take` had returned
    all there were: once, until the next `take`.  It must only take note, never call back into the store.
    Until `take` has been called for the first time there is no call: take first, then wait.

    closed: no event will follow those still to be taken.
    waiting: everything has been taken; on_ready will be called for the next event.
    """

    __slots__ = (
        "_after",
        "_bookmark_due",
        "_capacity",
        "_current",
        "_cursor",
        "_failure",
        "_history",
        "_initial",
        "_initial_end",
        "_kind",
        "_matches",
        "_name",
        "_namespace",
        "_ready",
        "_wants_bookmarks",
        "closed",
        "on_ready",
        "waiting",
    )

    def __init__(
        self,
        history: History,
        *,
        current: Callable[[], int],
        namespace: str | None,
        name: str | None,
        matches: Matches | None,
        kind: tuple[str, str],
        bookmarks: bool,
        capacity: int | None,
        on_ready: Callable[[], None] | None,
    ) -> None:
        self._history = history
        self._current = current
        self._namespace = namespace
        self._name = name
        self._matches = matches
        self._kind = kind
        self._wants_bookmarks = bookmarks
        self._capacity = capacity
        self._initial: deque[Stored] = deque()
        self._initial_end: int | None = None
        self._cursor = history.end
        self._after = 0
        self._ready: WatchEvent | None = None
        self._bookmark_due = False
        self._failure: ApiError | None = None
        self.on_ready = on_ready
        self.waiting = False
        self.closed = False
        history.watches[self] = None

    # starting (called by the store) ----------------------------------------------------------------

    def begin_with(self, objects: Iterable[Stored], end_bookmark_at: int | None) -> None:
        """Show these objects first, then (where asked for) the bookmark that says they were all."""
        self._initial.extend(stored for stored in objects if self._selects(stored))
        self._initial_end = end_bookmark_at if self._wants_bookmarks else None

    def begin_after(self, revision: int) -> None:
        """Show what changed after a revision; it may lie in the future."""
        history = self._history
        self._cursor = history.base + history.index_after(revision)
        self._after = revision

    def fail(self, error: ApiError) -> None:
        """End with an ERROR event."""
        self._failure = error
        self._retire()
        self._tell()

    # driving ---------------------------------------------------------------------------------------

    def take(self, limit: int | None = None) -> list[WatchEvent]:
        """Return the events that are ready (at most limit), oldest first; [] when there are none."""
        if self.closed:
            return self._last_words()
        room = limit if limit is not None else 1 << 62
        events: list[WatchEvent] = []
        initial = self._initial
        while initial and len(events) < room:
            stored = initial.popleft()
            events.append(WatchEvent(ADDED, stored, stored.revision))
        if self._initial_end is not None and not initial and len(events) < room:
            events.append(self._bookmark_event(self._initial_end, {"k8s.io/initial-events-end": "true"}))
            self._initial_end = None
        if initial or self._initial_end is not None:
            return events
        self._catch_up(events, room)
        return events

    def _catch_up(self, events: list[WatchEvent], room: int) -> None:
        history = self._history
        behind = history.end - self._cursor + (self._ready is not None)
        if self._cursor < history.base or (self._capacity is not None and behind > self._capacity):
            self._cut_off(events, room)
            return
        if self._ready is not None and len(events) < room:
            events.append(self._ready)
            self._ready = None
        changes = history.changes
        index = self._cursor - history.base
        while index < len(changes) and len(events) < room:
            event = self._translate(changes[index])
            index += 1
            if event is not None:
                events.append(event)
        self._cursor = history.base + index
        if index < len(changes) or self._ready is not None:
            return
        if self._bookmark_due:
            if len(events) >= room:
                return
            self._bookmark_due = False
            events.append(self._bookmark_event(max(self._current(), self._after), None))
        self.waiting = True

    def _cut_off(self, events: list[WatchEvent], room: int) -> None:
        """Lagging too far behind: the stream ends, and the client lists again."""
        history = self._history
        self._failure = expired(f"too old resource version: {self._reached()} ({history.floor})")
        self._retire()
        if len(events) < room:
            events += self._last_words()

    def _reached(self) -> int:
        """A revision up to which everything has surely been shown."""
        history = self._history
        index = self._cursor - history.base
        return (history.changes[index].revision if index >= 0 else history.floor) - 1

    def _last_words(self) -> list[WatchEvent]:
        if self._failure is None:
            return []
        status, self._failure = self._failure.to_status(), None
        return [WatchEvent(ERROR, None, 0, status)]

    @property
    def ready(self) -> bool:
        """Whether take() may return something now."""
        if self.closed:
            return self._failure is not None
        return not self.waiting or self._bookmark_due or self._ready is not None

    def bookmark(self) -> None:
        """Queue a BOOKMARK at the revision this watch has reached, if it asked for bookmarks."""
        if self._wants_bookmarks and not self.closed:
            self._bookmark_due = True
            if self.waiting:
                self._tell()

    def close(self) -> None:
        """Stop; take() returns nothing more."""
        self._failure = None
        self._retire()

    # following (called by the history) --------------------------------------------------------------

    def offer(self, change: Change) -> None:
        """Look at a change as it happens, everything before it having been taken."""
        if self._cursor != self._history.end - 1:
            return
        self._cursor += 1
        event = self._translate(change)
        if event is not None:
            self._ready = event
            self._tell()

    def _tell(self) -> None:
        self.waiting = False
        if self.on_ready is not None:
            self.on_ready()

    def _retire(self) -> None:
        self.closed = True
        self.waiting = False
        self._initial.clear()
        self._ready = None
        self._history.watches.pop(self, None)

    def _translate(self, change: Change) -> WatchEvent | None:
        """What a change means to this watcher: a selection turns changes into appearing and vanishing."""
        stored = change.stored
        if self._namespace is not None and stored.namespace != self._namespace:
            return None
        if self._name is not None and stored.name != self._name:
            return None
        if change.revision <= self._after:
            return None
        matches = self._matches
        if matches is None:
            return change
        prev = change.prev
        before = prev is not None and matches(prev.obj)
        if change.type != DELETED and matches(stored.obj):
            return change if before or prev is None else change.as_added()
        return change.as_deleted() if before else None

    def _selects(self, stored: Stored) -> bool:
        return (
            (self._namespace is None or stored.namespace == self._namespace)
            and (self._name is None or stored.name == self._name)
            and (self._matches is None or self._matches(stored.obj))
        )

    def _bookmark_event(self, revision: int, annotations: Json | None) -> WatchEvent:
        version, kind = self._kind
        metadata: Json = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        return WatchEvent(BOOKMARK, None, revision, {"kind": kind, "apiVersion": version, "metadata": metadata})
