"""The simplest queue a scheduler can have: first in, first out, and what does not fit is forgotten.

It is where one begins, and it shows what the other queue is for.  A pod that was turned down stays where it is
for ever, whatever happens to the cluster, unless someone asks for it by name; no gate holds a pod back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kubesched.api.objects import KubeObject, Pod
from kubesched.api.time import Instant
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.lifecycle import TERMINAL, Lifecycle
from kubesched.core.queue.nominator import Nominator
from kubesched.framework.events import ClusterEvent
from kubesched.framework.profile import Profile
from kubesched.framework.queued import QueuedPod
from kubesched.framework.records import IN_FLIGHT

FORGOTTEN = "never: SimpleQueue forgets what does not fit"


class SimpleQueue:
    """First in, first out."""

    def __init__(self) -> None:
        self._line: dict[str, QueuedPod] = {}  # in order of arrival
        self._forgotten: dict[str, QueuedPod] = {}
        self._in_flight: dict[str, PodInfo] = {}  # as they are by now
        self._nominator = Nominator()
        self._seq = 0

    def attach(self, life: Lifecycle, profiles: Mapping[str, Profile], now: Instant) -> None:
        self._life = life

    def __contains__(self, uid: str) -> bool:
        return uid in self._line or uid in self._forgotten

    def __len__(self) -> int:
        return len(self._line) + len(self._forgotten)

    @property
    def ready(self) -> bool:
        return bool(self._line)

    @property
    def deadline(self) -> Instant | None:
        return None

    @property
    def events_kept(self) -> int:
        return 0

    def add(self, info: PodInfo, now: Instant) -> None:
        known = self._line.get(info.uid) or self._forgotten.get(info.uid)
        if known is not None:
            known.info = info
            return
        if self._life.state(info.uid) in IN_FLIGHT:
            if info.uid in self._in_flight:
                self._in_flight[info.uid] = info
            return
        self._seq += 1
        pod = QueuedPod(info, now, self._seq)
        pod.first_attempt = now
        self._line[info.uid] = pod
        self._life.move(info, "admitted")

    def update(self, old: Pod, info: PodInfo, events: Sequence[ClusterEvent], now: Instant) -> None:
        self.add(info, now)
        if info.uid in self:
            self._nominator.update(old, info)

    def delete(self, uid: str, now: Instant) -> None:
        self._nominator.discard(uid)
        self._line.pop(uid, None)
        self._forgotten.pop(uid, None)
        self._in_flight.pop(uid, None)

    def pop(self, now: Instant) -> QueuedPod | None:
        if not self._line:
            return None
        pod = self._line.pop(next(iter(self._line)))
        pod.attempts += 1
        self._in_flight[pod.uid] = pod.info
        self._life.move(pod.info, "popped")
        return pod

    def put_back(
        self, pod: QueuedPod, now: Instant, *, rejectors: Iterable[str], pending: Iterable[str] = (), note: str = ""
    ) -> None:
        pod.info = self._in_flight.pop(pod.uid, pod.info)
        pod.pending = frozenset(pending)
        pod.rejectors = frozenset(rejectors) | pod.pending
        pod.added = now
        self._forgotten[pod.uid] = pod
        self._life.move(pod.info, "unfit", note)

    def done(self, uid: str) -> None:
        self._in_flight.pop(uid, None)

    def notify(
        self,
        event: ClusterEvent,
        old: KubeObject | None,
        new: KubeObject | None,
        now: Instant,
        only: Callable[[PodInfo], bool] | None = None,
    ) -> None:
        """Nothing: nobody listens."""

    def activate(self, uids: Iterable[str], now: Instant, *, patiently: bool = False) -> None:
        for uid in uids:
            pod = self._forgotten.pop(uid, None)
            if pod is not None:
                self._line[uid] = pod
                self._life.move(pod.info, "activated")

    def tick(self, now: Instant) -> None:
        """Nothing: no pod waits for a time."""

    def nominate(self, info: PodInfo, node: str | None) -> None:
        waits = self._life.state(info.uid) not in (None, *TERMINAL)
        self._nominator.nominate(info, node if waits else "")

    def promised(self, uid: str) -> str:
        return self._nominator.node_of(uid)

    def nominated(self) -> Mapping[str, Sequence[PodInfo]]:
        return self._nominator.by_node

    def counts(self) -> Mapping[str, int]:
        return {"active": len(self._line), "backoff": 0, "unschedulable": len(self._forgotten), "gated": 0}

    def alarm(self, uid: str) -> str | None:
        if uid in self._line:
            return "active"
        return FORGOTTEN if uid in self._forgotten else None
