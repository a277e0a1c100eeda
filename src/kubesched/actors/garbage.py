"""Garbage collection: what belongs to something that is gone goes too.

An object that names owners is kept as long as one of them is there.  Deleting in the foreground waits for the
dependents, deleting as orphan sets them free; both are finalizers on the owner that only the collector takes off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kubesched.actors.controller import Controller
from kubesched.actors.messages import Effect, Seen, change, delete
from kubesched.actors.view import Key, key_of, owners_of
from kubesched.api.time import Instant
from kubesched.apiserver.deletion import FOREGROUND, ORPHAN

Json = dict[str, Any]


class Garbage(Controller):
    """Watches everything."""

    def concerned(self, seen: Seen) -> Iterable[Key]:
        keys: dict[Key, None] = {}
        if seen.new is not None and (owners_of(seen.new) or "deletionTimestamp" in seen.new["metadata"]):
            keys[key_of(seen.resource, seen.new)] = None
        if seen.new is None:
            assert seen.old is not None
            keys |= dict.fromkeys(self.view.owned(seen.old["metadata"]["uid"]))
        if seen.new is None or seen.old is not None:  # an owner that waits for its dependents
            for ref in owners_of(seen.last):
                owner = self.view.by_uid(ref.get("uid", ""))
                if owner is not None and "deletionTimestamp" in self._meta(owner):
                    keys[owner] = None
        return keys

    def _meta(self, key: Key) -> Json:
        found = self.view.at(key)
        return {} if found is None else found["metadata"]

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        obj = self.view.at(key)
        if obj is None:
            return
        meta = obj["metadata"]
        held = meta.get("finalizers") or ()
        if "deletionTimestamp" in meta:
            if ORPHAN in held:
                yield from self._set_free(key, obj)
                return
            if FOREGROUND in held:
                yield from self._wait_for_dependents(key, obj)
                return
        yield from self._collect(key, obj)

    def _collect(self, key: Key, obj: Json) -> Iterator[Effect]:
        refs = owners_of(obj)
        if not refs or "deletionTimestamp" in obj["metadata"]:
            return
        there = [ref for ref in refs if self._is_there(ref)]
        waiting = [ref for ref in there if self._waits(ref)]
        if there and len(there) < len(refs):
            yield change(key.resource, obj, {"metadata": {"ownerReferences": there}})
        elif not there:
            held = obj["metadata"].get("finalizers") or ()
            policy = "Orphan" if ORPHAN in held else "Foreground" if FOREGROUND in held else "Background"
            yield delete(key.resource, obj, propagation=policy)
        elif len(waiting) == len(there):
            has_dependents = bool(self.view.owned(obj["metadata"]["uid"]))
            yield delete(key.resource, obj, propagation="Foreground" if has_dependents else None)

    def _is_there(self, ref: Json) -> bool:
        key = self.view.by_uid(ref.get("uid", ""))
        return key is not None and key.name == ref.get("name")

    def _waits(self, ref: Json) -> bool:
        """Whether an owner is being deleted in the foreground."""
        key = self.view.by_uid(ref.get("uid", ""))
        meta = {} if key is None else self._meta(key)
        return "deletionTimestamp" in meta and FOREGROUND in (meta.get("finalizers") or ())

    def _set_free(self, key: Key, owner: Json) -> Iterator[Effect]:
        uid = owner["metadata"]["uid"]
        for dependent in self.view.owned(uid):
            obj = self.view.at(dependent)
            if obj is not None:
                kept = [ref for ref in owners_of(obj) if ref.get("uid") != uid]
                yield change(dependent.resource, obj, {"metadata": {"ownerReferences": kept}})
        yield _without(key, owner, ORPHAN)

    def _wait_for_dependents(self, key: Key, owner: Json) -> Iterator[Effect]:
        uid = owner["metadata"]["uid"]
        blocking = False
        for dependent in self.view.owned(uid):
            obj = self.view.at(dependent)
            if obj is None:
                continue
            ref = next(ref for ref in owners_of(obj) if ref.get("uid") == uid)
            blocking = blocking or bool(ref.get("blockOwnerDeletion"))
            yield from self._collect(dependent, obj)
        if not blocking:
            yield _without(key, owner, FOREGROUND)


def _without(key: Key, obj: Json, finalizer: str) -> Effect:
    kept = [name for name in obj["metadata"].get("finalizers") or () if name != finalizer]
    return change(key.resource, obj, {"metadata": {"finalizers": kept or None}})
