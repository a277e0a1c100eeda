"""Follow the changes of one resource, without ever holding up the writer or growing without bound.

A Watch is a cursor into the history of a resource, not a queue of its own: a write costs the same
whether nobody watches or a hundred do, and a watcher that lags behind the kept history is cut off
with 410 Expired, upon which clients list again.  Whoever drives it calls `take` when told to by
`on_ready`: an HTTP handler sets an event in it, a simulated world puts the watcher on its agenda.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubesched.apiserver.store import Stored

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"


class WatchEvent:
    """One line of a watch.

    type:      ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, as this watcher sees it.
    obj:       the object (of a DELETED: its last state under the deletion's resourceVersion),
               a Status for ERROR.
    stored:    the Stored behind it, None for BOOKMARK and ERROR.
    revision:  the revision of the change.
    line():    `{"type":…,"object":…}` and a newline, encoded once for all watchers.
    """

    __slots__ = ("_line", "obj", "revision", "stored", "type")

    type: str
    obj: dict[str, Any]
    stored: Stored | None
    revision: int

    def line(self) -> bytes:
        """Return the event as a line of a JSON watch stream."""
        raise NotImplementedError


class Watch:
    """A subscription to one resource; made by Store.watch.

    on_ready is called, from inside the write, when events became available after `take` had returned
    all there were: once, until the next `take`.  It must only take note, never call back into the store.
    """

    on_ready: Callable[[], None] | None
    closed: bool
    """No event will follow those still to be taken."""

    def take(self, limit: int | None = None) -> list[WatchEvent]:
        """Return the events that are ready (at most limit), oldest first; [] when there are none."""
        raise NotImplementedError

    @property
    def ready(self) -> bool:
        """Whether take() may return something now."""
        raise NotImplementedError

    def bookmark(self) -> None:
        """Queue a BOOKMARK at the revision this watch has reached, as if the store had asked."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop; take() returns nothing more."""
        raise NotImplementedError
