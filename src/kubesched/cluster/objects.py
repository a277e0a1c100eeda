"""Everything that is neither a node nor a pod on one: claims, volumes, budgets, namespaces, services.

Plain dictionaries by key, one per kind.  A plugin may assume a version of an object that the API server has
not told us yet (a claim it is about to bind); the assumption holds until a newer version is observed or it is
given up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from kubesched.api.objects import KubeObject, Namespace

T = TypeVar("T", bound=KubeObject)

_DIGITS_AT_MOST = 20  # of a resource version: they are 64-bit numbers


class Objects:
    """Typed indexes of all other kinds.  Read freely; only the mirror observes."""

    def __init__(self, objects: Iterable[KubeObject] = ()) -> None:
        self._observed: dict[type[KubeObject], dict[str, KubeObject]] = {}
        self._assumed: dict[type[KubeObject], dict[str, KubeObject]] = {}
        self.clock = 0  # grows with every change, assumed ones included
        self._clocks: dict[type[KubeObject], int] = {}  # the clock at the latest change of each kind
        for obj in objects:
            self.observe(obj)

    def get(self, kind: type[T], key: str) -> T | None:
        """The object of a key (`namespace/name`, or `name`), as assumed if it is, else as observed."""
        found = self._assumed.get(kind, {}).get(key) or self._observed.get(kind, {}).get(key)
        return found if found is None or isinstance(found, kind) else None

    def observed(self, kind: type[KubeObject], key: str) -> KubeObject | None:
        """The object of a key as the API server told it, whatever is assumed."""
        return self._observed.get(kind, {}).get(key)

    def named(self, name: str) -> type[KubeObject] | None:
        """The kind of a name, if any object of it was ever observed."""
        return next((kind for kind in self._observed if kind.__name__ == name), None)

    def all(self, kind: type[T]) -> Iterator[T]:
        """All objects of a kind, in the order they were first seen."""
        assumed = self._assumed.get(kind, {})
        for key, observed in self._observed.get(kind, {}).items():
            obj = assumed.get(key, observed)
            assert isinstance(obj, kind)
            yield obj

    def in_namespace(self, kind: type[T], namespace: str) -> Iterator[T]:
        return (obj for obj in self.all(kind) if obj.metadata.namespace == namespace)

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """The labels of a namespace, or None where there is none of that name."""
        namespace = self.get(Namespace, name)
        return None if namespace is None else namespace.metadata.labels

    def changed(self, *kinds: type[KubeObject]) -> int:
        """The clock at the latest change of any of these kinds: equal numbers mean that nothing about them changed."""
        return max((self._clocks.get(kind, 0) for kind in kinds), default=0)

    def any(self, *kinds: type[KubeObject]) -> bool:
        """Whether there is any object of these kinds."""
        return any(self._observed.get(kind) or self._assumed.get(kind) for kind in kinds)

    def _tick(self, kind: type[KubeObject]) -> None:
        self.clock += 1
        self._clocks[kind] = self.clock

    # ── changing ─────────────────────────────────────────────────────────────────────────────────────────────

    def observe(self, obj: KubeObject, gone: bool = False) -> KubeObject | None:
        """Take in a version the API server told us; returns the one before."""
        kind, key = type(obj), obj.key
        kept = self._observed.setdefault(kind, {})
        before = kept.pop(key, None) if gone else kept.get(key)
        if not gone:
            kept[key] = obj
        assumed = self._assumed.get(kind, {}).get(key)
        if assumed is not None and (gone or _is_newer(obj, assumed)):
            del self._assumed[kind][key]
        self._tick(kind)
        return before

    def assume(self, obj: KubeObject) -> None:
        """Believe a version nobody has told us yet."""
        self._assumed.setdefault(type(obj), {})[obj.key] = obj
        self._tick(type(obj))

    def forget(self, kind: type[KubeObject], key: str) -> None:
        """Give up an assumption; nothing happens where there is none."""
        if self._assumed.get(kind, {}).pop(key, None) is not None:
            self._tick(kind)

    def assumed(self) -> list[KubeObject]:
        return [obj for kept in self._assumed.values() for obj in kept.values()]

    def fork(self) -> Objects:
        twin = Objects()
        twin._observed = {kind: dict(kept) for kind, kept in self._observed.items()}
        twin._assumed = {kind: dict(kept) for kind, kept in self._assumed.items()}
        twin.clock, twin._clocks = self.clock, dict(self._clocks)
        return twin


def _is_newer(observed: KubeObject, assumed: KubeObject) -> bool:
    """Whether what we saw is later than the version an assumption was made on."""
    if observed.metadata.uid != assumed.metadata.uid:
        return True
    return version(observed) > version(assumed)


def version(obj: KubeObject) -> int:
    """The resource version as a number; they are comparable within a kind since Kubernetes 1.35."""
    text = obj.metadata.resource_version
    return int(text) if text.isdecimal() and len(text) <= _DIGITS_AT_MOST else 0
