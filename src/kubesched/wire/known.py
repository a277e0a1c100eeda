"""The objects of one kind as they were last told, so that a new list can be told as differences.

After a gap nobody says what vanished in it; only the difference between the old view and the new list does.  And one
message may hide an end and a beginning: the same name with another uid is one object gone and another come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubesched.api.objects import Invalid, KubeObject
from kubesched.cluster.objects import version
from kubesched.core.messages import Observed


class Known:
    """What the core has been told of one kind; it shares the objects with the core."""

    def __init__(self) -> None:
        self.objects: dict[str, KubeObject] = {}

    def __len__(self) -> int:
        return len(self.objects)

    def same(self, obj: KubeObject) -> KubeObject:
        """An object, or the one that was told if nothing has changed: then a new view costs no more than a gap did."""
        old = self.objects.get(obj.key)
        if old is None or old.uid != obj.uid or old.metadata.resource_version != obj.metadata.resource_version:
            return obj
        return old

    def fold(self, obj: KubeObject, gone: bool = False) -> list[Observed]:
        """What a message changes; nothing where it is old, or told already."""
        key = obj.key
        old = self.objects.get(key)
        if gone:
            return [] if old is None or _older(obj, old) else [self._end(key, obj)]
        if old is not None and version(obj) <= version(old):
            return []
        ended = [self._end(key, old)] if old is not None and old.uid != obj.uid else []
        self.objects[key] = obj
        return [*ended, _observed(obj)]

    def replace(self, objects: Mapping[str, KubeObject]) -> list[Observed]:
        """What a complete list changes: first what is gone, then what is new."""
        vanished = [
            self._end(key, old)
            for key, old in list(self.objects.items())
            if key not in objects or objects[key].uid != old.uid
        ]
        return [*vanished, *(observed for obj in objects.values() for observed in self.fold(obj))]

    def _end(self, key: str, last: KubeObject) -> Observed:
        """An object is gone; its last version is told, or the one before where that cannot be read."""
        old = self.objects.pop(key)
        readable = old.uid == last.uid and not isinstance(last, Invalid)
        return _observed(last if readable else old, gone=True)


def _older(obj: KubeObject, old: KubeObject) -> bool:
    """Whether an end is that of a namesake before the one we know."""
    return obj.uid != old.uid and version(obj) < version(old)


def _observed(obj: Any, gone: bool = False) -> Observed:
    return Observed(obj, gone)  # one of the kinds a core knows, by how it was read
