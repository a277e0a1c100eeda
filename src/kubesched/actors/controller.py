"""The shape all actors share: be told, remember whom it concerns, and put one thing right at a time.

A controller never reacts to an event itself.  An event says which keys may no longer be as they should; a Tick takes
the next key, compares what is wanted with what is there, and says what to do about the difference.  So it does not
matter which events came, how many, or in what order: what is there decides.

Like the core it has no clock, no luck and no I/O; time reaches it with every event, and `deadline` says when it wants
to be ticked by itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from msgspec import structs

from kubesched.actors.messages import Effect, Event, Refused, Seen, Tick
from kubesched.actors.view import Key, View, controller_of, key_of
from kubesched.api.time import Duration, Instant, milliseconds, seconds

Json = dict[str, Any]

BACKOFF_FIRST: Duration = milliseconds(100)
BACKOFF_MAX: Duration = seconds(30)
_DOUBLINGS_MAX = 9


class Controller:
    """A queue of keys over a view of the cluster.

    A subclass says which resources it `watches`, what is `concerned` by an event, and how to `reconcile` a key.

    Args:
        view: what it knows; several controllers may share one.
    """

    watches: ClassVar[tuple[str, ...]] = ()
    """The resources it is told of; empty: all."""

    def __init__(self, view: View | None = None) -> None:
        self.view = view if view is not None else View()
        self._queue: dict[Key, None] = {}
        self._alarms: dict[Key, Instant] = {}
        self._heap: list[tuple[Instant, int, Key]] = []
        self._seq = 0
        self._failures: dict[Key, tuple[int, Instant]] = {}

    # what a subclass says ----------------------------------------------------------------------------

    def concerned(self, seen: Seen) -> Iterable[Key]:
        """The keys that may no longer be as they should."""
        return [key_of(seen.resource, seen.last)]

    def reconcile(self, key: Key, now: Instant) -> Iterable[Effect]:
        """What to do so that a key is as it should be."""
        raise AssertionError(f"{type(self).__name__} reconciles nothing")

    # the core's shape --------------------------------------------------------------------------------

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Fold an event in; a Tick may answer with effects."""
        match event:
            case Seen():
                self.view.fold(event)
                for key in self.concerned(event):
                    self._queue[key] = None
                return []
            case Refused(effect, reason):
                if isinstance(effect.cause, Key) and reason != "NotFound":
                    self._try_again(effect.cause, now)
                return []
            case Tick():
                return self._work(now)

    @property
    def ready(self) -> bool:
        """Whether there is a key to look at."""
        return bool(self._queue)

    @property
    def deadline(self) -> Instant | None:
        """The earliest moment a Tick is needed by itself."""
        heap = self._heap
        while heap and self._alarms.get(heap[0][2]) != heap[0][0]:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def wake(self, key: Key, at: Instant) -> None:
        """Look at a key again at a moment, or earlier if that was planned already."""
        known = self._alarms.get(key)
        if known is None or at < known:
            self._alarms[key] = at
            self._seq += 1
            heapq.heappush(self._heap, (at, self._seq, key))

    def _work(self, now: Instant) -> list[Effect]:
        while (due := self.deadline) is not None and due <= now:
            key = heapq.heappop(self._heap)[2]
            del self._alarms[key]
            self._queue[key] = None
        if not self._queue:
            return []
        key = next(iter(self._queue))
        del self._queue[key]
        return [structs.replace(effect, cause=key) for effect in self.reconcile(key, now)]

    def _try_again(self, key: Key, now: Instant) -> None:
        count, latest = self._failures.get(key, (0, now))
        wait = Duration(min(BACKOFF_MAX, BACKOFF_FIRST << min(count, _DOUBLINGS_MAX)))
        if now - latest > 2 * wait:
            count, wait = 0, BACKOFF_FIRST
        self._failures[key] = (count + 1, now)
        self.wake(key, Instant(now + wait))


def owner_key(obj: Json, kinds: Mapping[str, str]) -> Iterable[Key]:
    """The key of the controller of an object, where its kind is one of these (kind → resource)."""
    ref = controller_of(obj)
    if ref is not None and ref.get("kind") in kinds:
        return [Key(kinds[ref["kind"]], obj["metadata"].get("namespace", ""), ref["name"])]
    return []
