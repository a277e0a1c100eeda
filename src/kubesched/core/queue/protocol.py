"""What the core asks of a queue.  Two queues answer: PriorityQueue, Kubernetes' own, and the tutorial's SimpleQueue.

A queue moves pods between states (through the Lifecycle it is given) and never looks at a clock: every call says
what time it is.  It knows a pod by its uid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from kubesched.api.objects import KubeObject, Pod
from kubesched.api.time import Instant
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.lifecycle import Lifecycle
from kubesched.framework.events import ClusterEvent
from kubesched.framework.profile import Profile
from kubesched.framework.queued import QueuedPod


class Queue(Protocol):
    def attach(self, life: Lifecycle, profiles: Mapping[str, Profile], now: Instant) -> None:
        """For the core, once, before anything else: whose states to move, and whose hooks and hints to ask."""
        ...

    def __contains__(self, uid: str) -> bool:
        """Whether the pod is queued (gated, active, backing off or parked)."""
        ...

    def __len__(self) -> int: ...

    @property
    def ready(self) -> bool:
        """Would pop() give a pod right now?"""
        ...

    @property
    def deadline(self) -> Instant | None:
        """When tick() has something to do by itself."""
        ...

    def add(self, info: PodInfo, now: Instant) -> None:
        """A pod that waits to be scheduled has appeared."""
        ...

    def update(self, old: Pod, info: PodInfo, events: Sequence[ClusterEvent], now: Instant) -> None:
        """A waiting pod has changed (the same uid); `events` say what about it."""
        ...

    def delete(self, uid: str, now: Instant) -> None:
        """The pod no longer waits: it is gone, or someone bound it.  The caller moves its state.

        Ends its attempt as well, as done() does.
        """
        ...

    def pop(self, now: Instant) -> QueuedPod | None:
        """Take the next pod out; it is in flight until done() or put_back()."""
        ...

    def put_back(
        self, pod: QueuedPod, now: Instant, *, rejectors: Iterable[str], pending: Iterable[str] = (), note: str = ""
    ) -> None:
        """An attempt failed.  No rejectors means that something broke, rather than that the pod did not fit.

        If update() has seen the pod change since it was popped, it comes back as it is by now; after done() the
        caller sees to that.
        """
        ...

    def done(self, uid: str) -> None:
        """The pod's attempt needs no more events: it will be bound, or is gone."""
        ...

    def notify(
        self,
        event: ClusterEvent,
        old: KubeObject | None,
        new: KubeObject | None,
        now: Instant,
        only: Callable[[PodInfo], bool] | None = None,
    ) -> None:
        """Something happened: wake the pods it may help."""
        ...

    def activate(self, uids: Iterable[str], now: Instant, *, patiently: bool = False) -> None:
        """Try these pods as soon as possible; `patiently`: when their backoff is over, however little there is else."""
        ...

    def tick(self, now: Instant) -> None:
        """Do what is due: end backoffs, flush what has been parked for too long."""
        ...

    def nominate(self, info: PodInfo, node: str | None) -> None:
        """Promise room on a node to a waiting pod; "" takes a promise back.

        None keeps what it was promised, or else what its status says.
        """
        ...

    def promised(self, uid: str) -> str:
        """The node on which a waiting pod was promised room, or ""."""
        ...

    def nominated(self) -> Mapping[str, Sequence[PodInfo]]:
        """Node name → the pods that were promised room there."""
        ...

    def counts(self) -> Mapping[str, int]:
        """How many pods are active, in backoff, unschedulable and gated."""
        ...

    @property
    def events_kept(self) -> int:
        """How many events are remembered for pods in flight."""
        ...

    def alarm(self, uid: str) -> str | None:
        """What will wake a queued pod: `active`, a timer, or the events its rejectors listen to.  None: nothing."""
        ...
