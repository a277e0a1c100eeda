"""What happened while a pod was being tried.

An event that could have helped a pod may arrive when the pod is neither asleep nor free to listen: it is in
flight, judged by an older view of the cluster.  So events are written down as long as anything is in flight, and
a pod that comes back is asked about those that came after it had left.

Rule: nothing is kept that no pod in flight will ask about; with none in flight the log is empty.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from itertools import islice
from typing import NamedTuple

from kubesched.api.objects import KubeObject
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.errors import InternalError
from kubesched.framework.events import ClusterEvent


class Happening(NamedTuple):
    event: ClusterEvent
    old: KubeObject | None
    new: KubeObject | None


class InFlight:
    """The pods in flight, in the order they left, and the events since the first of them did."""

    def __init__(self) -> None:
        self._left_at: OrderedDict[str, int] = OrderedDict()  # uid → how many events there had been
        self._pods: dict[str, PodInfo] = {}  # as they are by now
        self._events: deque[Happening] = deque()
        self._forgotten = 0  # how many events are no longer in the deque

    def __contains__(self, uid: str) -> bool:
        return uid in self._left_at

    def __len__(self) -> int:
        return len(self._left_at)

    @property
    def events(self) -> tuple[Happening, ...]:
        return tuple(self._events)

    def counts(self) -> dict[str, int]:
        """How much is kept, by kube-scheduler's label of what happened; the departures themselves are `PodPopped`."""
        counted = Counter(happening.event.label for happening in self._events)
        return {"PodPopped": len(self._left_at), **counted}

    def get(self, uid: str) -> PodInfo | None:
        """A pod in flight, as it is by now."""
        return self._pods.get(uid)

    def start(self, info: PodInfo) -> None:
        if info.uid in self._left_at:
            raise InternalError(f"pod {info.key} was taken out of the queue while it is in flight")
        self._left_at[info.uid] = self._forgotten + len(self._events)
        self._pods[info.uid] = info

    def replace(self, info: PodInfo) -> None:
        """A pod in flight has changed."""
        self._pods[info.uid] = info

    def record(self, event: ClusterEvent, old: KubeObject | None, new: KubeObject | None) -> None:
        if self._left_at:
            self._events.append(Happening(event, old, new))

    def since(self, uid: str) -> list[Happening]:
        """What happened since a pod left."""
        return list(islice(self._events, self._left_at[uid] - self._forgotten, None))

    def end(self, uid: str) -> None:
        """The pod is no longer in flight, if it was; events that only it could ask about are forgotten."""
        if self._left_at.pop(uid, None) is None:
            return
        del self._pods[uid]
        if not self._left_at:
            self._forgotten += len(self._events)
            self._events.clear()
            return
        needed = next(iter(self._left_at.values()))
        while self._forgotten < needed:
            self._events.popleft()
            self._forgotten += 1
