"""What a plugin may reach besides the arguments of its hooks.

A plugin is given its Tools once, as `tools` of its constructor or as an attribute of that name.  It reads the
cluster through them, and leaves requests: allow that waiting pod, do so in three seconds, wake these.  Requests
are carried out by the core after the hook has returned, so a hook never finds the world changed under it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from kubesched.api.objects import KubeObject
from kubesched.api.time import Duration, Instant
from kubesched.cluster.columns import Nodes
from kubesched.cluster.objects import Objects
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.errors import shown
from kubesched.framework.features import Features
from kubesched.framework.steps import is_duration


class Judge(Struct, frozen=True):
    """Allow or reject a pod that waits on permit, now or after a while."""

    verb: Literal["allow", "reject"]
    plugin: str
    uid: str
    message: str = ""
    after: Duration = Duration(0)


class Activate(Struct, frozen=True):
    """Try these pods as soon as possible."""

    uids: tuple[str, ...]


class Note(Struct, frozen=True):
    """A plugin's remark, for the log and the Decision."""

    plugin: str
    text: str
    values: tuple[tuple[str, str], ...] = ()
    verbosity: int = 4

    def __str__(self) -> str:
        told = ", ".join(f"{name}={value}" for name, value in self.values)
        return f"{self.plugin}: {self.text}" + (f" ({told})" if told else "")


Wish: TypeAlias = Judge | Activate | Note


class WaitingPod(Struct, frozen=True):
    """A pod held back by permit, and who still holds it."""

    pod: PodInfo
    node: str
    plugins: tuple[str, ...]


class Desk(Protocol):
    """Where wishes are left and the cluster is read; the core is one."""

    @property
    def now(self) -> Instant: ...
    @property
    def nodes(self) -> Nodes: ...
    @property
    def objects(self) -> Objects: ...
    @property
    def features(self) -> Features: ...
    @property
    def verbosity(self) -> int: ...
    def waiting(self) -> Sequence[WaitingPod]: ...
    def wish(self, wish: Wish) -> None: ...
    def pods(self, namespace: str | None = None) -> Iterable[PodInfo]: ...
    def preempting(self, uid: str) -> bool: ...
    @property
    def leaving(self) -> Set[str]: ...
    def promised(self, uid: str) -> str | None: ...


class Tools:
    """One plugin's tools.  Usable from its first hook on; before that there is no cluster to see."""

    def __init__(self, plugin: str, features: Features | None = None) -> None:
        self.plugin = plugin
        self._features = features or Features()
        self._desk: Desk | None = None

    def attach(self, desk: Desk) -> None:
        """For the core: from now on, this is the cluster."""
        self._desk = desk

    @property
    def attached(self) -> bool:
        """Whether there is a cluster to see."""
        return self._desk is not None

    @property
    def desk(self) -> Desk:
        assert self._desk is not None, f"{self.plugin} used its tools before the scheduler was assembled"
        return self._desk

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def features(self) -> Features:
        return self._features

    @property
    def now(self) -> Instant:
        """The time of the event being handled."""
        return self.desk.now

    @property
    def nodes(self) -> Nodes:
        """All nodes, assumed pods included."""
        return self.desk.nodes

    @property
    def objects(self) -> Objects:
        """All other objects: `tools.objects.get(PersistentVolumeClaim, "default/data")`."""
        return self.desk.objects

    def get(self, kind: type[KubeObject], key: str) -> KubeObject | None:
        return self.desk.objects.get(kind, key)

    def pods(self, namespace: str | None = None) -> Iterable[PodInfo]:
        """The pods that hold room on a node."""
        return self.desk.pods(namespace)

    @property
    def waiting(self) -> Sequence[WaitingPod]:
        """The pods that wait on permit, whoever holds them."""
        return self.desk.waiting()

    def preempting(self, pod: PodInfo) -> bool:
        """Whether evictions on behalf of this pod are under way and not yet answered."""
        return self.desk.preempting(_uid(pod))

    @property
    def leaving(self) -> Set[str]:
        """Pods that were evicted for others and have not gone yet, by uid, whatever our view shows of that."""
        return self.desk.leaving

    def promised(self, pod: PodInfo) -> str | None:
        """The node it was promised room on, or "", ahead of what its status says; None for one that is not queued."""
        return self.desk.promised(_uid(pod))

    # ── wishing ──────────────────────────────────────────────────────────────────────────────────────────────

    def allow(self, pod: PodInfo) -> None:
        """This plugin no longer holds the pod; it goes on when no other plugin does."""
        self.desk.wish(Judge("allow", self.plugin, _uid(pod)))

    def allow_after(self, pod: PodInfo, delay: Duration) -> None:
        """As allow, later.  Nothing happens if the pod does not wait any more by then."""
        self.desk.wish(Judge("allow", self.plugin, _uid(pod), after=_checked(delay)))

    def reject(self, pod: PodInfo, message: str) -> None:
        """Turn a waiting pod down."""
        self.desk.wish(Judge("reject", self.plugin, _uid(pod), str(message)))

    def reject_after(self, pod: PodInfo, delay: Duration, message: str) -> None:
        self.desk.wish(Judge("reject", self.plugin, _uid(pod), str(message), _checked(delay)))

    def activate(self, *pods: PodInfo) -> None:
        """Try these pods as soon as possible, wherever they sleep."""
        self.desk.wish(Activate(tuple(_uid(pod) for pod in pods)))

    def heard(self, verbosity: int) -> bool:
        """Whether anybody reads remarks of this verbosity; ask before one that is dear to make."""
        return verbosity <= self.desk.verbosity

    def note(self, text: str, *, verbosity: int = 4, **values: object) -> None:
        """Leave a log line: a constant text, and values beside it.

        What is noted while a pod is decided about, or on its way, is also in its Decision.
        """
        pairs = tuple((name, str(value)) for name, value in values.items())
        self.desk.wish(Note(self.plugin, str(text), pairs, int(verbosity)))


# A wish is granted after its hook has returned, when no plugin is there to blame: so it is looked at when it is made.


def _uid(pod: PodInfo) -> str:
    if not isinstance(pod, PodInfo):
        raise TypeError(f"a wish is about a pod, not {shown(pod)}")
    return pod.uid


def _checked(delay: Duration) -> Duration:
    if not is_duration(delay):
        raise TypeError(f"a delay is whole nanoseconds from now on, such as seconds(3), not {shown(delay)}")
    return delay
