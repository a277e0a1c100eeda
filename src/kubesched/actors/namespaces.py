"""Namespaces that are being deleted: everything in them goes first, and then they do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kubesched.actors.controller import Controller
from kubesched.actors.messages import Effect, Finalize, Seen, delete
from kubesched.actors.view import Key, key_of
from kubesched.api.time import Instant

Json = dict[str, Any]

BURST = 500  # what is deleted in one go; the rest follows as soon as that is seen


class Namespaces(Controller):
    """Watches everything."""

    def concerned(self, seen: Seen) -> Iterable[Key]:
        if seen.resource == "namespaces":
            return [key_of(seen.resource, seen.last)] if seen.new is not None else []
        namespace = seen.last["metadata"].get("namespace", "")
        found = self.view.get("namespaces", "", namespace) if namespace else None
        if found is None or "deletionTimestamp" not in found["metadata"]:
            return []
        return [Key("namespaces", "", namespace)]

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        namespace = self.view.at(key)
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            return
        left = self.view.within(key.name)
        for one in left[:BURST]:
            obj = self.view.at(one)
            if obj is not None and "deletionTimestamp" not in obj["metadata"]:
                yield delete(one.resource, obj, propagation="Background")
        if not left and (namespace.get("spec") or {}).get("finalizers"):
            yield Finalize(key.name)
