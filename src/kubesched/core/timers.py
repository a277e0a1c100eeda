"""One heap of (due, seq, what): everything the core wants to be reminded of.

Equal moments fire in the order they were set.  A cancelled timer stays in the heap until it surfaces, and the
heap is swept when more than half of it is cancelled, so that memory follows what is alive.
"""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

from kubesched.api.time import Instant

W = TypeVar("W")


class Timers(Generic[W]):
    """Reminders by due time."""

    def __init__(self) -> None:
        self._heap: list[tuple[Instant, int]] = []
        self._what: dict[int, W] = {}
        self._seq = 0

    def __len__(self) -> int:
        return len(self._what)

    def add(self, due: Instant, what: W) -> int:
        """Set a timer; returns its number, to cancel it by."""
        self._seq += 1
        self._what[self._seq] = what
        heapq.heappush(self._heap, (due, self._seq))
        return self._seq

    def cancel(self, number: int) -> None:
        """Nothing happens if it has fired or was cancelled already."""
        self._what.pop(number, None)
        if len(self._heap) > 2 * len(self._what) + 16:
            self._heap = [entry for entry in self._heap if entry[1] in self._what]
            heapq.heapify(self._heap)

    @property
    def deadline(self) -> Instant | None:
        """When the next one is due."""
        self._drop_cancelled()
        return self._heap[0][0] if self._heap else None

    def pop(self, now: Instant) -> W | None:
        """The next one that is due, or None."""
        if not self._heap:
            return None
        self._drop_cancelled()
        if not self._heap or self._heap[0][0] > now:
            return None
        return self._what.pop(heapq.heappop(self._heap)[1])

    def pending(self) -> list[W]:
        """What is still to come, in no particular order of time."""
        return list(self._what.values())

    def _drop_cancelled(self) -> None:
        while self._heap and self._heap[0][1] not in self._what:
            heapq.heappop(self._heap)
