"""One version of one object, and its JSON, made once however many ask for it."""

from __future__ import annotations

from typing import Any

import msgspec

Json = dict[str, Any]

_encode = msgspec.json.Encoder().encode


class Stored:
    """One version of one object, with its encoding made once and shared.

    obj:       the whole object, kind and apiVersion included.  Immutable.
    key:       "namespace/name", or "name" for cluster-scoped objects; etcd sorts by it.
    revision:  the revision of the write that made it (0 for the result of a dry run).
    """

    __slots__ = ("_encoded", "key", "name", "namespace", "obj", "revision")

    def __init__(self, obj: Json, namespace: str, name: str, revision: int, encoded: bytes | None = None) -> None:
        self.obj = obj
        self.namespace = namespace
        self.name = name
        self.key = object_key(namespace, name)
        self.revision = revision
        self._encoded = encoded

    @property
    def uid(self) -> str:
        uid: str = self.obj["metadata"]["uid"]
        return uid

    @property
    def resource_version(self) -> str:
        """The resourceVersion as the object carries it ("" for one that never was stored)."""
        version: str = self.obj["metadata"].get("resourceVersion", "")
        return version

    def encoded(self) -> bytes:
        """Return its JSON."""
        encoded = self._encoded
        if encoded is None:
            encoded = self._encoded = _encode(self.obj)
        return encoded

    def item(self) -> bytes:
        """Return its JSON without kind and apiVersion, as items of built-in lists are sent."""
        obj = self.obj
        head = _encode({"kind": obj.get("kind", ""), "apiVersion": obj.get("apiVersion", "")})[:-1] + b","
        encoded = self.encoded()
        if encoded.startswith(head):
            return b"{" + encoded[len(head) :]
        return _encode({field: value for field, value in obj.items() if field not in ("kind", "apiVersion")})

    def __repr__(self) -> str:
        return f"Stored({self.obj.get('kind', '?')} {self.key} @{self.revision})"


def object_key(namespace: str, name: str) -> str:
    """Return the key of an object within its resource; comparing keys sorts as etcd does."""
    return f"{namespace}/{name}" if namespace else name
