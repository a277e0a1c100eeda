"""The wall clock, or one that runs faster or slower: `speed` 60 makes a minute of the cluster a second of yours."""

from __future__ import annotations

import time
from collections.abc import Callable

from kubesched.api.time import Duration, Instant


class Pace:
    """What time it is in a cluster that lives in real time.

    Args:
        speed: how many seconds pass in the cluster while one passes here.
        wall, steady: the time of day, and a clock that never goes back, in nanoseconds.
    """

    def __init__(
        self,
        speed: float = 1.0,
        wall: Callable[[], int] = time.time_ns,
        steady: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.speed = speed
        self._steady = steady
        self._start, self._began = wall(), steady()

    def now(self) -> Instant:
        """The time in the cluster; it never goes back, whatever happens to the time of day."""
        passed = self._steady() - self._began
        return Instant(self._start + (passed if self.speed == 1.0 else int(passed * self.speed)))

    def wait(self, span: Duration) -> float:
        """How many real seconds a duration of the cluster is."""
        return span / 1e9 / self.speed
