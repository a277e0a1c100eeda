"""What the tests of the queue share: pods in one line, plugins that say what a test wants, times in seconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesched.api.objects import Node, ObjectMeta, Pod, PodSpec, PodStatus
from kubesched.api.time import Instant
from kubesched.cluster.podinfo import PodInfo
from kubesched.core.lifecycle import Lifecycle
from kubesched.core.queue import PriorityQueue, Queue
from kubesched.framework.events import Action, ClusterEvent, Hint, QueueingHint
from kubesched.framework.profile import Profile
from kubesched.framework.queued import QueuedPod
from kubesched.framework.records import State
from kubesched.framework.status import SUCCESS, Status, unresolvable

SECOND = 1_000_000_000
NODE_ADD = ClusterEvent("Node", Action.ADD)
NODE_ALLOCATABLE = ClusterEvent("Node", Action.UPDATE_NODE_ALLOCATABLE)
NODE_TAINT = ClusterEvent("Node", Action.UPDATE_NODE_TAINT)
NODE_LABEL = ClusterEvent("Node", Action.UPDATE_NODE_LABEL)
POD_DELETE = ClusterEvent("AssignedPod", Action.DELETE)
POD_LABEL = ClusterEvent("UnschedulablePod", Action.UPDATE_POD_LABEL)
POD_UNGATED = ClusterEvent("UnschedulablePod", Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
POD_UPDATE = ClusterEvent("UnschedulablePod", Action.UPDATE)
PVC_ADD = ClusterEvent("PersistentVolumeClaim", Action.ADD)


def at(seconds: float) -> Instant:
    return Instant(round(seconds * SECOND))


def pod(
    name: str,
    *,
    uid: str = "",
    priority: int = 0,
    labels: Mapping[str, str] | None = None,
    profile: str = "default-scheduler",
    nominated: str = "",
    node: str = "",
) -> PodInfo:
    meta = ObjectMeta(name=name, namespace="default", uid=uid or f"uid-{name}", labels=dict(labels or {}))
    spec = PodSpec(priority=priority, scheduler_name=profile, node_name=node)
    return PodInfo(Pod(metadata=meta, spec=spec, status=PodStatus(nominated_node_name=nominated)))


def node(name: str = "n1") -> Node:
    return Node(metadata=ObjectMeta(name=name, uid=f"uid-{name}"))


class Rejector:
    """A filter plugin that registers what it is told to, and whose hints answer as they are told to."""

    def __init__(self, name: str, *events: ClusterEvent, answer: object = None) -> None:
        self.name = name
        self.answer = answer
        self.heard: list[str] = []
        self._events = events

    def filter(self, cycle, pod, node) -> Status:
        return SUCCESS

    def events_to_register(self) -> list[Hint]:
        look = None if self.answer is None else self._look
        return [Hint(_registrable(event.resource), event.action, look) for event in self._events]

    def _look(self, pod, old, new) -> QueueingHint:
        self.heard.append(pod.name)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # some tests want a wrong answer


class Gate:
    """A pre_enqueue plugin that holds back the pods it is told to."""

    def __init__(self, name: str, *closed: str, events: Iterable[Hint] = ()) -> None:
        self.name = name
        self.closed = set(closed)
        self.heard: list[str] = []
        self._events = tuple(events)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        self.heard.append(pod.name)
        return unresolvable(f"{pod.name} must wait") if pod.name in self.closed else SUCCESS

    def events_to_register(self) -> tuple[Hint, ...]:
        return self._events


def _registrable(resource: str) -> str:
    return "Pod" if resource in ("AssignedPod", "UnschedulablePod") else resource


class Bench:
    """A queue, the lifecycle it moves pods through, and the pods by name."""

    def __init__(
        self, *plugins: object, queue: Queue | None = None, profiles: Iterable[Profile] = (), start: float = 0
    ) -> None:
        self.life = Lifecycle()
        self.queue = queue if queue is not None else PriorityQueue()
        known = {profile.name: profile for profile in (tuple(profiles) or (Profile(*plugins),))}
        self.queue.attach(self.life, known, at(start))
        self.taken: dict[str, QueuedPod] = {}
        self.pods: dict[str, PodInfo] = {}

    @property
    def kube(self) -> PriorityQueue:
        assert isinstance(self.queue, PriorityQueue)
        return self.queue

    def add(self, info: PodInfo, seconds: float = 0) -> PodInfo:
        self.pods[info.name] = info
        self.queue.add(info, at(seconds))
        return info

    def pop(self, seconds: float = 0) -> str | None:
        """Take the next pod out; its name."""
        taken = self.queue.pop(at(seconds))
        if taken is None:
            return None
        self.taken[taken.info.name] = taken
        return taken.info.name

    def drain(self, seconds: float = 0) -> list[str]:
        """Take every ready pod out; their names in order."""
        names = []
        while (name := self.pop(seconds)) is not None:
            names.append(name)
        return names

    def back(self, name: str, *rejectors: str, pending: Iterable[str] = (), seconds: float = 0, note: str = "") -> None:
        """The attempt at a pod failed."""
        self.queue.put_back(self.taken.pop(name), at(seconds), rejectors=rejectors, pending=pending, note=note)

    def park(self, info: PodInfo, *rejectors: str, seconds: float = 0) -> None:
        """Add a pod, and have it turned down at once."""
        self.add(info, seconds)
        assert self.pop(seconds) == info.name
        self.back(info.name, *rejectors, seconds=seconds)

    def notify(self, event: ClusterEvent, seconds: float = 0, old=None, new=None, only=None) -> None:
        self.queue.notify(event, old, new, at(seconds), only)

    def update(self, info: PodInfo, *events: ClusterEvent, seconds: float = 0) -> None:
        old = self.pods.get(info.name, info)
        self.pods[info.name] = info
        self.queue.update(old.pod, info, events, at(seconds))

    def tick(self, seconds: float) -> None:
        self.queue.tick(at(seconds))

    def activate(self, *names: str, seconds: float = 0) -> None:
        self.queue.activate([self.pods[name].uid for name in names], at(seconds))

    def waiting(self, name: str) -> QueuedPod:
        """What the queue remembers of a queued pod."""
        found = self.kube.find(self.pods[name].uid)
        assert found is not None, f"{name} is not queued"
        return found

    def state(self, name: str) -> State | None:
        return self.life.state(self.pods[name].uid)

    def states(self) -> dict[str, str]:
        return {name: state.value for name in self.pods if (state := self.state(name)) is not None}

    def causes(self, name: str) -> list[str]:
        return [record.cause for record in self.life.story(f"default/{name}")]

    def deadline(self) -> float | None:
        deadline = self.queue.deadline
        return deadline / SECOND if deadline is not None else None
