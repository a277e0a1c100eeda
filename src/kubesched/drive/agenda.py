"""What will happen, and when: a heap of (due, seq, action).  Equal moments happen in the order they were planned."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from kubesched.api.time import Instant

Action = Callable[[], object]


class Agenda:
    """The future of a simulated world."""

    def __init__(self) -> None:
        self._heap: list[tuple[Instant, int, Action]] = []
        self._seq = 0

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, due: Instant, action: Action) -> None:
        """Plan an action."""
        self._seq += 1
        heapq.heappush(self._heap, (due, self._seq, action))

    @property
    def next(self) -> Instant | None:
        """When the next action is due."""
        return self._heap[0][0] if self._heap else None

    def pop(self, now: Instant) -> Action | None:
        """The next action that is due, or None."""
        if self._heap and self._heap[0][0] <= now:
            return heapq.heappop(self._heap)[2]
        return None
