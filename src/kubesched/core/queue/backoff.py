"""How long a pod that was turned down, or broke, is left alone.

Twice as long each time, up to a limit.  Kept from kube-scheduler: both the end of a backoff and the time it is
compared with are cut to whole seconds, so that pods whose backoffs end within the same second are released
together, in order of priority.  A backoff is over when the second after its end begins.

Not kept: a pod over which a plugin has stumbled three times in a row goes on doubling, up to five minutes.  The
plugin will most likely stumble again, and such an attempt costs as much as any other.
"""

from __future__ import annotations

from kubesched.api.time import Duration, Instant
from kubesched.framework.queued import QueuedPod

SECOND = 1_000_000_000
STRIKES = 3
QUARANTINE_MAX = Duration(300 * SECOND)


class Backoff:
    """The rule of doubling, and when what it says is over.

    Args:
        initial: after the first failure.
        longest: never longer than this; 0 switches backing off altogether off.
        by_the_second: cut times to whole seconds; without it, ends are exact and looked for every second from
            `start` on.
    """

    def __init__(self, initial: Duration, longest: Duration, *, by_the_second: bool = True) -> None:
        self.initial = initial
        self.longest = longest
        self.by_the_second = by_the_second
        self.start = Instant(0)

    def duration(self, failures: int, strikes: int = 0) -> Duration:
        """How long to back off after so many failures in a row, so many of them plugins' accidents."""
        if failures == 0:
            return Duration(0)
        longest = max(self.longest, QUARANTINE_MAX) if strikes >= STRIKES else self.longest
        shift = failures - 1
        if self.initial > longest >> shift:
            return longest
        return Duration(self.initial << shift)

    def until(self, pod: QueuedPod) -> Instant | None:
        """The end of a pod's backoff; None for one that has never failed."""
        failures = pod.errors_in_a_row or pod.unschedulable_count
        if self.longest == 0 or failures == 0:
            return None
        if pod.backoff_until is None:
            pod.backoff_until = self._cut(Instant(pod.added + self.duration(failures, pod.strikes)))
        return pod.backoff_until

    def holds(self, pod: QueuedPod, now: Instant) -> bool:
        """Whether the pod must be left alone yet."""
        until = self.until(pod)
        return until is not None and until >= self._cut(now)

    def release(self, pod: QueuedPod) -> Instant:
        """When a pod that backs off is let go: at the first whole second after the end of its backoff."""
        until = self.until(pod)
        assert until is not None, f"{pod} backs off and has no reason to"
        return Instant(until + SECOND - (until - self.start) % SECOND)

    def _cut(self, at: Instant) -> Instant:
        return Instant(at - at % SECOND) if self.by_the_second else at
