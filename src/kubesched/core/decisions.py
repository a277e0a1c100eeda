"""The decisions that are remembered: the latest of every pod that still waits, and the last few hundred of all."""

from __future__ import annotations

from collections import deque

from kubesched.framework.decision import Decision


class Decisions:
    """A ring of recent decisions, and the latest per pod name."""

    def __init__(self, keep: int = 256) -> None:
        self._keep = keep
        self.recent: deque[Decision] = deque()
        self.fresh: list[Decision] = []  # since `begin`, for whoever renders them
        self._latest: dict[str, Decision] = {}

    def begin(self) -> None:
        self.fresh = []

    def add(self, decision: Decision) -> None:
        self.fresh.append(decision)
        self.recent.append(decision)
        self._latest[decision.pod] = decision
        if len(self.recent) > self._keep:
            oldest = self.recent.popleft()
            if oldest.placed and self._latest.get(oldest.pod) is oldest:
                del self._latest[oldest.pod]

    def latest(self, pod: str) -> Decision | None:
        return self._latest.get(pod)

    def drop(self, pod: str) -> None:
        """The pod is gone; its decisions stay only in the ring."""
        self._latest.pop(pod, None)
