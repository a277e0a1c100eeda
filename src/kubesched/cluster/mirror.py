"""Folds what the API server tells into the table and the indexes, and what we assume before it tells.

A watch may repeat itself, skip, or collapse the end of one object and the birth of its namesake into one
message.  The mirror answers each message with the differences that really happened: a delta has an old side,
a new side or both, and both sides always are the same object by uid.

A pod is assumed when it has been placed and the API server does not know yet.  It holds its room on the node
until its echo confirms it or `forget` gives it back.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import structs

from kubesched.api.objects import KINDS, Invalid, KubeObject, Node, Pod
from kubesched.api.quantity import resource_amount
from kubesched.cluster.objects import Objects, version
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.sharing import Sharing
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
        self._sharing = Sharing()

    # ── observing ────────────────────────────────────────────────────────────────────────────────────────────

    def observe(self, obj: KubeObject, gone: bool = False) -> list[Delta]:
        """Fold one message in; returns what changed, in order."""
        kind = obj.of if isinstance(obj, Invalid) else obj.kind
        gone = gone or (isinstance(obj, Pod) and obj.finished)
        seen, unread = self._seen(kind, obj.key), self.invalid.get((kind, obj.key))
        if gone:
            if unread is not None and _ends(obj, unread):
                del self.invalid[kind, obj.key]
            return [self._remove(seen)] if seen is not None and _ends(obj, seen) else []
        if _is_old(obj, seen) or _is_old(obj, unread):
            self.duplicates += 1
            return []
        info = None
        if isinstance(obj, Pod):
            obj = self._sharing.pod(obj)
            info = PodInfo(obj)
        problem = obj if isinstance(obj, Invalid) else _problem(obj, info)
        before = [self._remove(seen)] if seen is not None and seen.uid != obj.uid else []
        if problem is not None:
            # It is not scheduled and stays visible; the last version of it we could read still counts.
            self.invalid[kind, obj.key] = _told_apart(problem)
            return before
        self.invalid.pop((kind, obj.key), None)
        return [*before, self._take_in(None if before else seen, obj, info)]

    def _seen(self, kind: str, key: str) -> KubeObject | None:
        """The last version of an object that we could read."""
        if kind == "Pod":
            return self.pods.get(key)
        if kind == "Node":
            row = self.table.row_of.get(key)
            return None if row is None else self.table.nodes[row]
        view = KINDS.get(kind) or self.objects.named(kind)
        return None if view is None else self.objects.observed(view, key)

    def _remove(self, old: KubeObject) -> Delta:
        delta = Delta(old, None)
        if isinstance(old, Pod):
            del self.pods[old.key]
            self._settle(delta)
        elif isinstance(old, Node):
            self.table.remove_node(old.name)
        else:
            self.objects.observe(old, gone=True)
        return delta

    def _take_in(self, old: KubeObject | None, new: KubeObject, info: PodInfo | None) -> Delta:
        """A version of an object, both sides being the same object by uid."""
        if isinstance(new, Pod):
            self.pods[new.key] = new
            return self._settle(Delta(old, new, info))
        if isinstance(new, Node):
            (self.table.add_node if old is None else self.table.update_node)(new)
        else:
            self.objects.observe(new)
        return Delta(old, new)

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
    scheduler = obj.spec.scheduler_name if isinstance(obj, Pod) and not obj.spec.node_name else ""
    return Invalid(obj.metadata, of=obj.kind, error=f"{obj.kind} {obj.key!r}: {error}", scheduler=scheduler)


def _told_apart(obj: Invalid) -> Invalid:
    """An object that says not even which one it is goes by its name."""
    if obj.uid:
        return obj
    return structs.replace(obj, metadata=structs.replace(obj.metadata, uid=f"without a uid: {obj.key}"))


def _problem(obj: KubeObject, info: PodInfo | None) -> Invalid | None:
    """What makes an object unusable although it has the right shape."""
    try:
        if info is not None:
            if not info.uid:
                return unusable(obj, "metadata.uid: an object of the API server has one")
            info.measure()
        elif isinstance(obj, Node):
            for name, quantity in obj.status.allocatable.items():
                resource_amount(name, quantity)
    except ValueError as error:
        return unusable(obj, f"status.allocatable: {error}" if isinstance(obj, Node) else str(error))
    return None


def _is_old(obj: KubeObject, seen: KubeObject | None) -> bool:
    """Whether a message tells no more than was told already, of this object or of its namesake after it."""
    return seen is not None and 0 < version(obj) <= version(seen)


def _ends(obj: KubeObject, seen: KubeObject) -> bool:
    """Whether the end of one object is the end of another of its name: it is the same one, or came after it."""
    same = obj.uid == seen.uid or not (obj.uid and seen.uid)
    return same or 0 < version(seen) < version(obj)
