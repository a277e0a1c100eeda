"""What an actor knows of the cluster: the latest version of every object it was told of, and who belongs to whom.

The objects are the store's own and are never changed here.  Folding the same event in twice changes nothing, so
several actors may share a view, each telling it of what it is told itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kubesched.actors.messages import Seen

Json = dict[str, Any]


class Key(NamedTuple):
    """Where an object is."""

    resource: str
    namespace: str
    name: str


def key_of(resource: str, obj: Json) -> Key:
    meta = obj["metadata"]
    return Key(resource, meta.get("namespace", ""), meta["name"])


def controller_of(obj: Json) -> Json | None:
    """The ownerReference of the controller that manages an object."""
    return next((ref for ref in obj["metadata"].get("ownerReferences") or () if ref.get("controller")), None)


def orphaned(obj: Json) -> bool:
    """Whether an object has no controller, and so may be adopted."""
    return controller_of(obj) is None


def owners_of(obj: Json) -> list[Json]:
    found: list[Json] = obj["metadata"].get("ownerReferences") or []
    return found


class View:
    """Objects by key, by owner, by namespace; pods by node."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[tuple[str, str], Json]] = {}
        self._owned: dict[str, dict[Key, None]] = {}
        self._orphans: dict[tuple[str, str], dict[Key, None]] = {}
        self._places: dict[str, dict[Key, None]] = {}
        self._nodes: dict[str, dict[Key, None]] = {}
        self._uids: dict[str, Key] = {}

    # reading ---------------------------------------------------------------------------------------

    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        return self._objects.get(resource, {}).get((namespace, name))

    def at(self, key: Key) -> Json | None:
        return self.get(*key)

    def all(self, resource: str) -> list[Json]:
        return list(self._objects.get(resource, {}).values())

    def count(self, resource: str) -> int:
        return len(self._objects.get(resource, {}))

    def within(self, namespace: str) -> list[Key]:
        """Everything that is in a namespace."""
        return list(self._places.get(namespace, ()))

    def owned(self, uid: str) -> list[Key]:
        """Everything that names this owner, whether it is controlled by it or not."""
        return list(self._owned.get(uid, ()))

    def controlled(self, resource: str, uid: str) -> list[Json]:
        """The objects of one resource that this object is the controller of."""
        return [obj for obj in self._known(self._owned.get(uid, ()), resource) if _is_controlled_by(obj, uid)]

    def orphans(self, resource: str, namespace: str) -> list[Json]:
        """The objects of one resource and namespace that nobody controls."""
        return list(self._known(self._orphans.get((resource, namespace), ()), resource))

    def pods_on(self, node: str) -> list[Json]:
        return list(self._known(self._nodes.get(node, ()), "pods"))

    def by_uid(self, uid: str) -> Key | None:
        return self._uids.get(uid)

    def _known(self, keys: dict[Key, None] | tuple[()], resource: str) -> Iterator[Json]:
        for key in list(keys):
            if key.resource == resource:
                found = self.at(key)
                if found is not None:
                    yield found

    # folding ---------------------------------------------------------------------------------------

    def fold(self, seen: Seen) -> None:
        """Take note of what was seen."""
        key = key_of(seen.resource, seen.last)
        objects = self._objects.setdefault(seen.resource, {})
        place = key[1:]
        before = objects.get(place)
        if before is seen.new:
            return
        if before is not None:
            self._forget(key, before)
        if seen.new is None:
            objects.pop(place, None)
        else:
            objects[place] = seen.new
            self._remember(key, seen.new)

    def _indexes(self, key: Key, obj: Json) -> Iterator[tuple[dict[Any, dict[Key, None]], Any]]:
        if key.namespace:
            yield self._places, key.namespace
        for ref in owners_of(obj):
            yield self._owned, ref.get("uid")
        if controller_of(obj) is None and key.namespace:
            yield self._orphans, (key.resource, key.namespace)
        if key.resource == "pods":
            node = (obj.get("spec") or {}).get("nodeName")
            if node:
                yield self._nodes, node

    def _remember(self, key: Key, obj: Json) -> None:
        self._uids[obj["metadata"]["uid"]] = key
        for index, at in self._indexes(key, obj):
            index.setdefault(at, {})[key] = None

    def _forget(self, key: Key, obj: Json) -> None:
        self._uids.pop(obj["metadata"]["uid"], None)
        for index, at in self._indexes(key, obj):
            found = index.get(at)
            if found is not None:
                found.pop(key, None)
                if not found:
                    del index[at]


def _is_controlled_by(obj: Json, uid: str) -> bool:
    ref = controller_of(obj)
    return ref is not None and ref.get("uid") == uid
