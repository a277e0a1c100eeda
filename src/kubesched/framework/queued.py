"""A pod in the queue: the pod, and how its attempts have gone so far."""

from __future__ import annotations

from kubesched.api.time import Instant
from kubesched.cluster.podinfo import PodInfo


class QueuedPod:
    """What the queue remembers of a pod between attempts.  Plugins read it to sort."""

    __slots__ = (
        "added",
        "attempts",
        "backoff_until",
        "errors_in_a_row",
        "first_attempt",
        "flushed",
        "gate",
        "info",
        "late",
        "pending",
        "rejectors",
        "seq",
        "strikes",
        "unschedulable_count",
    )

    def __init__(self, info: PodInfo, added: Instant, seq: int) -> None:
        self.info = info
        self.added = added  # when it came into the queue, or came back
        self.seq = seq  # order of arrival, the last tie-break
        self.attempts = 0
        self.unschedulable_count = 0
        self.errors_in_a_row = 0
        self.first_attempt: Instant | None = None
        self.backoff_until: Instant | None = None
        self.rejectors: frozenset[str] = frozenset()  # who turned it down, pending ones included
        self.pending: frozenset[str] = frozenset()
        self.gate = ""  # the pre_enqueue plugin that holds it back
        self.flushed: Instant | None = None
        self.strikes = 0  # attempts in a row that ended in a plugin's accident
        self.late = False  # its last attempt failed after the decision: when it was being bound, or its victims evicted

    @property
    def uid(self) -> str:
        return self.info.uid

    @property
    def priority(self) -> int:
        return self.info.priority

    def __repr__(self) -> str:
        return f"QueuedPod({self.info.key!r}, attempts={self.attempts})"
