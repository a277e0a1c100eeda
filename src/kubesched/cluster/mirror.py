"""Folds what the API server tells into the table and the indexes, and what we assume before it tells.

A watch may repeat itself, skip, or collapse the end of one object and the birth of its namesake into one
message.  The mirror answers each message with the differences that really happened: a delta has an old side,
a new side or both, and both sides always are the same object by uid.

A pod is assumed when it has been placed and the API server does not know yet.  It holds its room on the node
until its echo confirms it or `forget` gives it back.
"""

from __future__ import annotations

from typing import NamedTuple

from kubesched.api.objects import Invalid, KubeObject, Node, Pod
from kubesched.api.quantity import resource_amount
from kubesched.cluster.objects import Objects, version
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.table import NodeTable


class Delta(NamedTuple):
    """One difference: appeared (old is None), changed, or gone (new is None).  `info` goes with a new pod."""

    old: KubeObject | None
    new: KubeObject | None
    info: PodInfo | None = None


class Tracked(NamedTuple):
    """A pod that holds room on a node."""

    info: PodInfo
    node: str
    assumed: bool


class Mirror:
    """What we believe the cluster looks like: seen, plus assumed."""

    def __init__(self) -> None:
        self.table = NodeTable()
        self.objects = Objects()
        self.pods: dict[str, Pod] = {}  # every unfinished pod as last seen, by namespace/name
        self.invalid: dict[tuple[str, str], Invalid] = {}  # by (kind, key)
        self.placed: dict[str, Tracked] = {}  # by uid
        self.duplicates = 0  # messages that told nothing new

    # ── observing ────────────────────────────────────────────────────────────────────────────────────────────

    def observe(self, obj: KubeObject, gone: bool = False) -> list[Delta]:
        """Fold one message in; returns what changed, in order."""
        if isinstance(obj, Invalid):
            return self._observe_invalid(obj, gone)
        self.invalid.pop((obj.kind, obj.key), None)
        if isinstance(obj, Pod):
            return self._observe_pod(obj, gone or obj.finished)
        if isinstance(obj, Node):
            return self._observe_node(obj, gone)
        old = self.objects.get(type(obj), obj.key)
        if old is not None and not gone and old.uid == obj.uid and version(obj) < version(old):
            self.duplicates += 1
            return []
        before = self.objects.observe(obj, gone)
        return [] if gone and before is None else _split(before, None if gone else obj)

    def _observe_pod(self, pod: Pod, gone: bool) -> list[Delta]:
        old = self.pods.get(pod.key)
        if old is not None and old.uid == pod.uid and not gone and 0 < version(pod) <= version(old):
            self.duplicates += 1
            return []
        if gone:
            if old is None or old.uid != pod.uid:
                return []  # the end of a pod we never saw, or saw replaced already
            del self.pods[pod.key]
            return [self._settle(Delta(old, None))]
        info = PodInfo(pod)
        try:
            info.measure()
        except ValueError as error:
            return self._observe_invalid(unusable(pod, str(error)), gone)
        self.pods[pod.key] = pod
        if old is not None and old.uid != pod.uid:
            return [self._settle(Delta(old, None)), self._settle(Delta(None, pod, info))]
        return [self._settle(Delta(old, pod, info))]

    def _settle(self, delta: Delta) -> Delta:
        """Let the pod of a delta hold room where the API server says it is, and nowhere else."""
        old, new, info = delta
        if isinstance(new, Pod) and info is not None and new.spec.node_name:
            self._release(new.uid)
            self.table.place(info, new.spec.node_name)
            self.placed[new.uid] = Tracked(info, new.spec.node_name, assumed=False)
        elif isinstance(old, Pod) and new is None and not self.is_assumed(old.uid):
            self._release(old.uid)
        return delta

    def _release(self, uid: str) -> None:
        tracked = self.placed.pop(uid, None)
        if tracked is not None:
            self.table.remove(tracked.info, tracked.node)

    def _observe_node(self, node: Node, gone: bool) -> list[Delta]:
        row = self.table.row_of.get(node.name)
        old = None if row is None else self.table.nodes[row]
        if gone:
            if old is None or (node.uid and old.uid and node.uid != old.uid):
                return []
            self.table.remove_node(node.name)
            return [Delta(old, None)]
        if old is not None and old.uid == node.uid and 0 < version(node) <= version(old):
            self.duplicates += 1
            return []
        try:
            for name, quantity in node.status.allocatable.items():
                resource_amount(name, quantity)
        except ValueError as error:
            return self._observe_invalid(unusable(node, f"status.allocatable: {error}"), gone)
        if old is not None and old.uid == node.uid:
            self.table.update_node(node)
            return [Delta(old, node)]
        if old is not None:
            self.table.remove_node(node.name)
        self.table.add_node(node)
        return [Delta(None, node)] if old is None else [Delta(old, None), Delta(None, node)]

    def _observe_invalid(self, obj: Invalid, gone: bool) -> list[Delta]:
        """An unreadable object is not scheduled and stays visible; the last version we could read still counts."""
        key = (obj.of, obj.key)
        if gone:
            self.invalid.pop(key, None)
        else:
            self.invalid[key] = obj
        return []

    # ── assuming ─────────────────────────────────────────────────────────────────────────────────────────────

    def assume(self, info: PodInfo, node: str) -> None:
        """Let a pod hold room on a node before the API server knows."""
        if info.uid in self.placed:
            raise ValueError(f"pod {info.key} already holds room on {self.placed[info.uid].node}")
        self.table.place(info, node)
        self.placed[info.uid] = Tracked(info, node, assumed=True)

    def forget(self, uid: str) -> bool:
        """Give an assumed pod's room back; False if it was not assumed (any more)."""
        tracked = self.placed.get(uid)
        if tracked is None or not tracked.assumed:
            return False
        self._release(uid)
        return True

    def is_assumed(self, uid: str) -> bool:
        tracked = self.placed.get(uid)
        return tracked is not None and tracked.assumed

    def assumed(self) -> list[Tracked]:
        return [tracked for tracked in self.placed.values() if tracked.assumed]


def unusable(obj: KubeObject, error: str) -> Invalid:
    """An object with a readable shape and a value nobody can use."""
    return Invalid(metadata=obj.metadata, of=obj.kind, error=f"{obj.kind} {obj.key!r}: {error}")


def _split(old: KubeObject | None, new: KubeObject | None) -> list[Delta]:
    """One delta, or two where a namesake with another uid has taken an object's place."""
    if old is not None and new is not None and old.uid != new.uid:
        return [Delta(old, None), Delta(None, new)]
    return [Delta(old, new)]
