"""PrioritySort: who is tried next."""

from __future__ import annotations

from kubesched.framework.queued import QueuedPod


class PrioritySort:
    """Try pods of higher priority first, and among equals the one that has been in the queue longest.

    What it does:  orders the queue by spec.priority (0 where unset), then by when the pod came in or came back.
    Answers:       an order, never a no.
    Wakes on:      nothing.
    Tiers:         queue_sort only.
    Same as:       kube-scheduler PrioritySort, v1.36.
    """

    name = "PrioritySort"

    def key(self, pod: QueuedPod) -> tuple[int, int]:
        return -pod.priority, pod.added
