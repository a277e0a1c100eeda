"""The objects of one resource: found by key, listed in etcd's order, and seen as they were a while ago.

A list that is read page by page must show one moment although writes go on.  No copy is kept for that:
the state at an earlier revision is today's state with the changes since then undone, and the history
that serves watches knows them.  A page therefore costs its own length plus what changed since the first
page, and a snapshot expires exactly when watches from that moment do.
"""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubesched.apiserver.status import EXPIRED_CONTINUE, EXPIRED_LIST, ApiError, bad_request, expired
from kubesched.apiserver.stored import Stored
from kubesched.apiserver.watch import ADDED, DELETED, MODIFIED, Change, History, under_revision

Matches = Callable[[dict[str, Any]], bool]


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a list; every page of one list reports the same resource_version."""

    items: list[Stored]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


class Table:
    """The objects of one resource and their history."""

    __slots__ = ("_added", "_gone", "_order", "history", "objects")

    def __init__(self, history: History) -> None:
        self.history = history
        self.objects: dict[str, Stored] = {}
        self._order: list[str] = []  # sorted keys, as of the last list
        self._added: list[str] = []  # keys that came since
        self._gone: set[str] = set()  # keys that went since; they may still stand in the two lists

    # writing ---------------------------------------------------------------------------------------

    def load(self, stored: Stored) -> None:
        """Take an object from the journal: it was there before this history began."""
        self.objects[stored.key] = stored
        self._added.append(stored.key)

    def add(self, stored: Stored) -> None:
        key = stored.key
        self.objects[key] = stored
        if key in self._gone:
            self._gone.discard(key)
        else:
            self._added.append(key)
        self.history.append(Change(ADDED, stored, stored.revision, None))

    def replace(self, stored: Stored, prev: Stored) -> None:
        self.objects[stored.key] = stored
        self.history.append(Change(MODIFIED, stored, stored.revision, prev))

    def remove(self, prev: Stored, revision: int) -> Stored:
        """Remove an object; return its last state under the revision of its removal."""
        del self.objects[prev.key]
        self._gone.add(prev.key)
        last = under_revision(prev, revision)
        self.history.append(Change(DELETED, last, revision, prev))
        return last

    # reading ---------------------------------------------------------------------------------------

    def keys(self) -> list[str]:
        """Return all keys, sorted; do not change the list."""
        if self._gone:
            self._order = [key for key in self._order + self._added if key in self.objects]
        elif self._added:
            self._order += self._added
        else:
            return self._order
        self._order.sort()  # nearly sorted: close to linear
        self._added, self._gone = [], set()
        return self._order

    def span(self, keys: list[str], namespace: str | None, start: str = "") -> range:
        """Where the keys of a namespace (None: of all) stand, from start on."""
        if namespace is None:
            return range(bisect_left(keys, start), len(keys))
        low = bisect_left(keys, max(start, namespace + "/"))
        return range(low, bisect_left(keys, namespace + "0", low))  # "0" comes right after "/"

    def count(self, namespace: str | None) -> int:
        return len(self.objects) if namespace is None else len(self.span(self.keys(), namespace))

    def all(self, namespace: str | None) -> list[Stored]:
        keys, objects = self.keys(), self.objects
        if namespace is None:
            return [objects[key] for key in keys]
        return [objects[keys[index]] for index in self.span(keys, namespace)]

    def at(self, revision: int) -> dict[str, Stored] | None:
        """Return the objects as they were at a revision; None when the history does not reach back."""
        history = self.history
        if revision < history.floor:
            return None
        since = history.changes[history.index_after(revision) :]
        if not since:
            return self.objects
        then = dict(self.objects)
        for change in reversed(since):
            if change.prev is None:
                del then[change.stored.key]
            else:
                then[change.stored.key] = change.prev
        return then

    def page(
        self,
        namespace: str | None,
        matches: Matches | None,
        limit: int,
        start: str,
        revision: int,
        *,
        paging: bool,
    ) -> Listing:
        """Return up to limit objects (0: all) as of revision, from key start on."""
        objects = self.at(revision)
        if objects is None:
            raise _expired(namespace, start) if paging else expired(EXPIRED_LIST)
        keys = self.keys() if objects is self.objects else sorted(objects)
        span = self.span(keys, namespace, start)
        items: list[Stored] = []
        last = span.stop - 1
        for index in span:
            stored = objects[keys[index]]
            if matches is not None and not matches(stored.obj):
                continue
            items.append(stored)
            if limit and len(items) >= limit:
                last = index
                break
        left = span.stop - 1 - last
        if left <= 0:
            return Listing(items, str(revision))
        token = encode_continue(keys[last] + "\0", namespace, revision)
        return Listing(items, str(revision), token, left if matches is None else None)


# Continue tokens ---------------------------------------------------------------------------------------------


def encode_continue(start: str, namespace: str | None, revision: int) -> str:
    """Return the token that continues at key start; -1 for "wherever the list is by then"."""
    relative = start if namespace is None else start.removeprefix(namespace)
    token = {"v": "meta.k8s.io/v1", "rv": revision, "start": "/" + relative.removeprefix("/")}
    text = json.dumps(token, separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_continue(token: str, namespace: str | None) -> tuple[str, int]:
    """Return (start key, revision) of a token; 400 with the real server's words for a broken one."""
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        fields = json.loads(raw)
    except (binascii.Error, ValueError) as error:
        raise _bad_token(f"continue key is not valid: {error}") from None
    if not isinstance(fields, dict) or not isinstance(fields.get("rv", 0), int):
        raise _bad_token("continue key is not valid")
    if fields.get("v") != "meta.k8s.io/v1":
        version = fields.get("v", "")
        raise _bad_token(f"continue key is not valid: server does not recognize this encoded version {version}")
    revision, start = fields.get("rv", 0), fields.get("start", "")
    if revision == 0:
        raise _bad_token("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise _bad_token("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
    path = start if start.startswith("/") else "/" + start
    if posixpath.normpath(path) != path:
        raise _bad_token(f"continue key is not valid: {start}")
    return (path[1:] if namespace is None else namespace + path), revision


def _bad_token(why: str) -> ApiError:
    return bad_request(f"invalid continue token: {why}")


def _expired(namespace: str | None, start: str) -> ApiError:
    return expired(EXPIRED_CONTINUE, encode_continue(start, namespace, -1))
