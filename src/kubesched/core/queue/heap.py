"""A heap of queued pods whose members can be changed and taken out.

What a plugin calls an order need not be one: keys of different types do not compare, a comparison may raise.
The heap survives that.  Once a comparison has failed it goes on warily: keys that do not compare are equal.

Rule: pods that compare equal come out in order of arrival.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from kubesched.framework.queued import QueuedPod

Key: TypeAlias = Any  # whatever the order makes of a pod; only compared
Entry: TypeAlias = "tuple[Key, int, int, QueuedPod]"  # the count makes sure that two pods are never compared


class Heap:
    """Pods by a key that is worked out when they come in.

    Args:
        order: the key of a pod; smaller comes out first.
    """

    def __init__(self, order: Callable[[QueuedPod], Key]) -> None:
        self._order = order
        self._heap: list[Entry] = []  # entries that were taken out or replaced stay until they come up
        self._live: dict[str, Entry] = {}
        self._count = 0
        self._wary = False

    def __contains__(self, uid: str) -> bool:
        return uid in self._live

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[QueuedPod]:
        return (entry[3] for entry in self._live.values())

    def get(self, uid: str) -> QueuedPod | None:
        entry = self._live.get(uid)
        return entry[3] if entry is not None else None

    def push(self, pod: QueuedPod) -> None:
        """Put a pod in, or in its right place if it is in already."""
        self._count += 1
        key = self._order(pod)
        entry = (_Wary(key) if self._wary else key, pod.seq, self._count, pod)
        self._live[pod.uid] = entry
        try:
            heapq.heappush(self._heap, entry)
        except Exception:  # a comparison that a plugin is responsible for
            self._rebuild(wary=True)
        if len(self._heap) > 2 * len(self._live) + 16:
            self._rebuild(wary=self._wary)

    def remove(self, uid: str) -> QueuedPod | None:
        entry = self._live.pop(uid, None)
        if not self._live:
            self._heap.clear()
        return entry[3] if entry is not None else None

    def peek(self) -> QueuedPod | None:
        """The pod that comes out next."""
        while self._heap:
            entry = self._heap[0]
            if self._live.get(entry[3].uid) is entry:
                return entry[3]
            self._drop()
        return None

    def pop(self) -> QueuedPod | None:
        pod = self.peek()
        if pod is not None:
            del self._live[pod.uid]
            self._drop()
        return pod

    def _drop(self) -> None:
        try:
            heapq.heappop(self._heap)
        except Exception:  # as above
            self._rebuild(wary=True)

    def _rebuild(self, *, wary: bool) -> None:
        if wary and not self._wary:
            self._wary = True
            self._live = {uid: (_Wary(key), seq, count, pod) for uid, (key, seq, count, pod) in self._live.items()}
        self._heap = list(self._live.values())
        heapq.heapify(self._heap)


class _Wary:
    """A key whose comparisons never raise.  Being equal makes no two of them the same: there is no hash."""

    __slots__ = ("_key",)

    def __init__(self, key: Key) -> None:
        self._key = key

    def __lt__(self, other: _Wary) -> bool:
        try:
            return bool(self._key < other._key)
        except Exception:  # whatever it is, it says that there is no order
            return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Wary) and not self < other and not other < self
