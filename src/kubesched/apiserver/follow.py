"""Follow a resource for as long as the store lives: every change, with what was there before.

A watch that lags too far behind is cut off, and its client lists again.  A Follower does that by itself and says
what is different from what it had told, so whoever listens sees one unbroken story.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kubesched.apiserver.store import Store, Stored, Watch
from kubesched.apiserver.watch import DELETED, ERROR

Json = dict[str, Any]


class News(NamedTuple):
    """An object came (old is None), changed, or went (new is None)."""

    resource: str
    old: Json | None
    new: Json | None
    revision: int


class Follower:
    """What happens to one resource.

    Args:
        on_ready: called when there is something to take, as of `Store.watch`.
    """

    def __init__(self, store: Store, resource: str, on_ready: Callable[[], None] = lambda: None) -> None:
        self.resource = resource
        self._store, self._on_ready = store, on_ready
        self._known: dict[str, Stored] = {}
        self._watch = self._open()

    def _open(self) -> Watch:
        return self._store.watch(self.resource, on_ready=self._on_ready)

    def take(self) -> list[News]:
        """What has happened since the last time."""
        told: list[News] = []
        for event in self._watch.take():
            if event.type == ERROR:
                told += self._again()
                break
            stored = event.stored
            assert stored is not None, "nobody asked for bookmarks"
            told.append(self._note(stored, event.revision, gone=event.type == DELETED))
        return told

    def _note(self, stored: Stored, revision: int, *, gone: bool) -> News:
        before = self._known.pop(stored.key, None) if gone else self._known.get(stored.key)
        if gone:
            return News(self.resource, before.obj if before is not None else stored.obj, None, revision)
        self._known[stored.key] = stored
        return News(self.resource, before.obj if before is not None else None, stored.obj, revision)

    def _again(self) -> list[News]:
        """List again, and say what is different."""
        self._watch = self._open()
        found = {event.stored.key: event.stored for event in self._watch.take() if event.stored is not None}
        revision = self._store.revision
        told = [
            self._note(old, revision, gone=True)
            for key, old in list(self._known.items())
            if key not in found or found[key].uid != old.uid
        ]
        for key, stored in found.items():
            known = self._known.get(key)
            if known is None or known.revision != stored.revision:
                told.append(self._note(stored, stored.revision, gone=False))
        return told

    def close(self) -> None:
        self._watch.close()
