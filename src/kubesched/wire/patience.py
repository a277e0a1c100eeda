"""How long to wait: after failures, and for a turn.

Both are values of numbers, not sleepers: they are asked with the time in hand and answer with a time.
"""

from __future__ import annotations

from kubesched.api.time import Duration, Instant, milliseconds, minutes, seconds
from kubesched.wire.exchange import Luck

BACKOFF_FIRST: Duration = milliseconds(800)
BACKOFF_MAX: Duration = seconds(30)
FORGOTTEN_AFTER: Duration = minutes(2)
NO_TIME = Duration(0)


class Backoff:
    """Waits that double from 0.8 s, with up to as much again by luck, and never more than 30 s.

    As client-go's reflector has them, except that its jitter comes on top of the 30 s.
    """

    def __init__(self, luck: Luck) -> None:
        self._luck = luck
        self.failures = 0
        self._last = Instant(0)

    def next(self, now: Instant, at_least: Duration = NO_TIME) -> Duration:
        """One more failure: how long to wait."""
        if now - self._last > FORGOTTEN_AFTER:
            self.failures = 0
        self._last = now
        base = min(BACKOFF_FIRST << min(self.failures, 16), BACKOFF_MAX // 2)
        self.failures += 1
        return Duration(max(at_least, base + int(base * self._luck.random())))

    def reset(self) -> None:
        self.failures = 0


class Bucket:
    """So many a second, and so many at once after a pause; `qps` below 0 sets no limit."""

    def __init__(self, qps: float, burst: int) -> None:
        self._nanos = 0 if qps < 0 else int(1_000_000_000 / (qps or 5.0))  # client-go: 0 means its default, 5 and 10
        self._burst = max(1, burst or 10)
        self._full_at = Instant(0)  # when it will be full again

    @property
    def free_at(self) -> Instant:
        """When the next may go; what is past is now."""
        return Instant(self._full_at - (self._burst - 1) * self._nanos if self._nanos else 0)

    def take(self, now: Instant) -> None:
        self._full_at = Instant(max(now, self._full_at) + self._nanos)
