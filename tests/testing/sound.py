"""Plugins without a fault, of every shape: the kit must find nothing wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from kubesched.api.objects import KubeObject, Node
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, Action, Hint, QueueingHint
from kubesched.framework.queued import QueuedPod
from kubesched.framework.status import SUCCESS, Status, unschedulable
from kubesched.framework.vector import Verdict

FULL = unschedulable("node has a pod for that already")


class Crowd:
    """No more than one pod of an app per node."""

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return FULL if any(other.labels.get("app") == pod.labels.get("app") for other in node.pods) else SUCCESS


class OneByOne:
    """Scalar only: turns down cordoned nodes."""

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return unschedulable("node is closed") if node.unschedulable else SUCCESS


class AllAtOnce:
    """In columns only: turns down cordoned nodes."""

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        verdict.reject(nodes.unschedulable, "node is closed")
        return verdict


class Tally:
    """How many pods of an app each node has."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts

    def clone(self) -> Tally:
        return Tally(Counter(self.counts))


class Tallies:
    """Crowd, with the counting done once."""

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        counts = Counter({node.name: sum(map(self._same(pod), node.pods)) for node in nodes})
        cycle.put(self._kept(counts))
        return SUCCESS

    def _kept(self, counts: Counter[str]) -> Any:
        return Tally(counts)

    def _same(self, pod: PodInfo) -> Any:
        return lambda other: other.labels.get("app") == pod.labels.get("app")

    def add_pod(self, cycle: Cycle, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        cycle.get(Tally).counts[node.name] += self._same(pod)(other)

    def remove_pod(self, cycle: Cycle, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        cycle.get(Tally).counts[node.name] -= self._same(pod)(other)

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return FULL if cycle.get(Tally).counts[node.name] > 0 else SUCCESS


class Reserves:
    """Reserves by pod, and counts its calls."""

    def __init__(self) -> None:
        self.held: dict[str, set[str]] = {}

    def reserve(self, cycle: Cycle, pod: PodInfo, node: str) -> Status:
        self.held.setdefault(node, set()).add(pod.uid)
        return SUCCESS

    def unreserve(self, cycle: Cycle, pod: PodInfo, node: str) -> None:
        self.held.get(node, set()).discard(pod.uid)


class HearsEnough(OneByOne):
    """A node that opens, or comes open, may help."""

    def events_to_register(self) -> Sequence[Hint]:
        return (Hint(NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._look),)

    def _look(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        return QueueingHint.QUEUE if isinstance(new, Node) and not new.spec.unschedulable else QueueingHint.SKIP


class ByAge:
    """Whoever has waited longest."""

    def key(self, pod: QueuedPod) -> tuple[Any, ...]:
        return (pod.added, pod.info.key)


SOUND = (Crowd, OneByOne, AllAtOnce, Tallies, Reserves, HearsEnough, ByAge)
