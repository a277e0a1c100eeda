"""The pods that sleep: turned down, or held back by a gate.

Ten thousand pods may sleep here while every bind is an event.  They are therefore filed by who turned them down,
so that an event disturbs only those whose rejectors listen to it, and by when they will have slept too long.

Kept from kube-scheduler: who has slept too long is looked for every thirty seconds, counted from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubesched.api.time import Duration, Instant, seconds
from kubesched.core.queue.heap import Heap
from kubesched.framework.queued import QueuedPod

LOOK_EVERY = seconds(30)


class Parked:
    """Sleeping pods, in the order they were put here.

    Args:
        longest: how long a pod may sleep.
        start: from when on the thirty seconds are counted.
    """

    def __init__(self, longest: Duration, start: Instant) -> None:
        self._longest = longest
        self._start = start
        self._pods: dict[str, QueuedPod] = {}
        self._places: dict[str, int] = {}
        self._filed: dict[str, tuple[str, ...]] = {}  # uid → the files it is in
        self._files: dict[str, dict[str, QueuedPod]] = {}  # rejector → uid → pod
        self._gated: dict[str, None] = {}
        self._alarms = Heap(self.due)
        self._count = 0

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(tuple(self._pods.values()))

    @property
    def gated(self) -> int:
        """How many of them are held back by a gate."""
        return len(self._gated)

    @property
    def deadline(self) -> Instant | None:
        """When the next of them will have slept too long."""
        first = self._alarms.peek()
        return self.due(first) if first is not None else None

    def due(self, pod: QueuedPod) -> Instant:
        """The first look after a pod has slept too long."""
        since = pod.added if pod.flushed is None else max(pod.added, pod.flushed)
        looks = (since + self._longest - self._start) // LOOK_EVERY + 1
        return Instant(self._start + looks * LOOK_EVERY)

    def get(self, uid: str) -> QueuedPod | None:
        return self._pods.get(uid)

    def put(self, pod: QueuedPod) -> None:
        """Put a pod here; or file it afresh, if it is here already and its rejectors or its times have changed."""
        uid = pod.uid
        if uid in self._pods:
            self._unfile(uid)
        else:
            self._count += 1
            self._places[uid] = self._count
            self._pods[uid] = pod
        files = tuple(sorted(pod.rejectors))
        self._filed[uid] = files
        for name in files:
            self._files.setdefault(name, {})[uid] = pod
        if pod.gate:
            self._gated[uid] = None
        else:
            self._gated.pop(uid, None)
        self._alarms.push(pod)

    def remove(self, uid: str) -> QueuedPod | None:
        pod = self._pods.pop(uid, None)
        if pod is not None:
            self._unfile(uid)
            del self._places[uid]
            self._gated.pop(uid, None)
            self._alarms.remove(uid)
        return pod

    def rejected_by(self, plugins: Iterable[str]) -> list[QueuedPod]:
        """The pods that any of these plugins turned down."""
        found: dict[str, QueuedPod] = {}
        for name in plugins:
            found.update(self._files.get(name, ()))
        return sorted(found.values(), key=lambda pod: self._places[pod.uid])

    def overdue(self, now: Instant) -> list[QueuedPod]:
        """The pods that have slept too long."""
        deadline = self.deadline
        if deadline is None or deadline > now:
            return []
        return [pod for pod in self._pods.values() if self.due(pod) <= now]

    def _unfile(self, uid: str) -> None:
        for name in self._filed.pop(uid):
            file = self._files[name]
            del file[uid]
            if not file:
                del self._files[name]
