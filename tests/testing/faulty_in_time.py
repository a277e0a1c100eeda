"""Plugins that each do one thing wrong over time, and would be fine otherwise.

`PLANTED` says which rule the kit must name; where a plugin needs company or labels to have anything to do, `HOW`
says what the examination is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

from tests.testing.sound import FULL, Crowd, OneByOne, Tallies, Tally

from kubesched.api.objects import KubeObject, Node
from kubesched.api.time import seconds
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Rejected
from kubesched.framework.events import NODE, POD, Action, Hint, QueueingHint
from kubesched.framework.hooks import Nomination
from kubesched.framework.queued import QueuedPod
from kubesched.framework.status import SUCCESS, Status, unschedulable
from kubesched.plugins.node_resources_fit import NodeResourcesFit

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


# ── dry runs, reserve, room ──────────────────────────────────────────────────────────────────────────────────


class DoesNotRemove(Tallies):
    """dry runs: a pod thought away still counts."""

    def remove_pod(self, cycle: Cycle, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        pass


class AddsTwice(Tallies):
    """dry runs: a pod thought there counts double, so that it does not go away again."""

    def add_pod(self, cycle: Cycle, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        cycle.get(Tally).counts[node.name] += 2 * self._same(pod)(other)


class Shared(Tally):
    """A tally of which there is only one."""

    def clone(self) -> Shared:
        return self


class SharesItsTally:
    """dry runs: a dry run leaves its marks in the attempt itself."""

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        cycle.put(Shared(Counter({node.name: node.pod_count for node in nodes})))
        return SUCCESS

    def add_pod(self, cycle: Cycle, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        cycle.get(Shared).counts[node.name] += 1

    def remove_pod(self, cycle: Cycle, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        cycle.get(Shared).counts[node.name] -= 1 if node.pod_count else 2

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return FULL if cycle.get(Shared).counts[node.name] > 0 else SUCCESS


class SparesBackwards:
    """spare: brings those back first who were named last."""

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if node.pod_count < 2 else FULL

    def spare(
        self, cycle: Cycle, pod: PodInfo, node: NodeInfo, others: Sequence[PodInfo]
    ) -> Sequence[PodInfo] | Status:
        return others[:-1]


class SparesWhereItCannot:
    """spare: does not notice that the pod would not pass even alone."""

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return unschedulable("node is closed") if node.unschedulable else SUCCESS

    def spare(
        self, cycle: Cycle, pod: PodInfo, node: NodeInfo, others: Sequence[PodInfo]
    ) -> Sequence[PodInfo] | Status:
        return ()


class NeverGivesBack:
    """reserve: what is reserved stays reserved."""

    def __init__(self) -> None:
        self.held: set[str] = set()

    def reserve(self, cycle: Cycle, pod: PodInfo, node: str) -> Status:
        self.held.add(pod.uid)
        return SUCCESS

    def unreserve(self, cycle: Cycle, pod: PodInfo, node: str) -> None:
        pass


class GivesBackTwice:
    """reserve: every unreserve gives one back, whether there was one or not."""

    def __init__(self) -> None:
        self.held: dict[str, int] = {}

    def reserve(self, cycle: Cycle, pod: PodInfo, node: str) -> Status:
        self.held[node] = self.held.get(node, 0) + 1
        return SUCCESS

    def unreserve(self, cycle: Cycle, pod: PodInfo, node: str) -> None:
        self.held[node] = self.held.get(node, 0) - 1


class GivesBackOnce:
    """reserve: stumbles over what it has given back already."""

    def __init__(self) -> None:
        self.held: set[str] = set()

    def reserve(self, cycle: Cycle, pod: PodInfo, node: str) -> Status:
        self.held.add(pod.uid)
        return SUCCESS

    def unreserve(self, cycle: Cycle, pod: PodInfo, node: str) -> None:
        self.held.remove(pod.uid)


class OneBookForAll:
    """reserve: what is reserved is written down in the class, and stays there."""

    held: ClassVar[dict[str, str]] = {}

    def reserve(self, cycle: Cycle, pod: PodInfo, node: str) -> Status:
        self.held[pod.uid] = node
        return SUCCESS

    def unreserve(self, cycle: Cycle, pod: PodInfo, node: str) -> None:
        pass


class EvictsTooLittle:
    """room: one victim, whether that is enough or not."""

    def post_filter(self, cycle: Cycle, pod: PodInfo, rejected: Rejected) -> Nomination | Status:
        for node in cycle.nodes:
            if node.pods:
                return Nomination(node.name, (node.pods[0],))
        return unschedulable("nobody to evict")


class EvictsElsewhere:
    """room: the victim is not on that node."""

    def post_filter(self, cycle: Cycle, pod: PodInfo, rejected: Rejected) -> Nomination | Status:
        crowded = [node for node in cycle.nodes if node.pods]
        if not crowded or len(cycle.nodes) < 2:
            return unschedulable("nobody to evict")
        other = next(node for node in cycle.nodes if node.name != crowded[0].name)
        return Nomination(other.name, (crowded[0].pods[0],))


# ── hints, order ─────────────────────────────────────────────────────────────────────────────────────────────


class HearsNothing(OneByOne):
    """hints: nobody tells it that a node was opened."""

    def events_to_register(self) -> Sequence[Hint]:
        return ()


class HearsOnlyNewNodes(Crowd):
    """hints: pods go, and it listens to nodes."""

    def events_to_register(self) -> Sequence[Hint]:
        return (Hint(NODE, Action.ADD),)


class SkipsTheWrongOne(OneByOne):
    """hints: looks at the node as it was."""

    def events_to_register(self) -> Sequence[Hint]:
        return (Hint(NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._look),)

    def _look(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        return QUEUE if isinstance(old, Node) and not old.spec.unschedulable else SKIP


class HintThatStumbles(OneByOne):
    """answers: a node that is new has no version before this one."""

    def events_to_register(self) -> Sequence[Hint]:
        return (Hint(NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._look),)

    def _look(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        was: Any = old
        return QUEUE if was.spec.unschedulable else SKIP


class HintThatSaysTrue(OneByOne):
    """answers: a hint says QUEUE or SKIP."""

    def events_to_register(self) -> Sequence[Hint]:
        return (Hint(NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._look),)

    def _look(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> Any:
        return isinstance(new, Node) and not new.spec.unschedulable


class HearsOfNoRecovery:
    """hints: turns unwell nodes down, and does not listen to their conditions."""

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        unwell = any(one.type == "Ready" and one.status != "True" for one in node.node.status.conditions)
        return unschedulable("node is unwell") if unwell else SUCCESS

    def events_to_register(self) -> Sequence[Hint]:
        return (Hint(NODE, Action.ADD | Action.UPDATE_NODE_LABEL),)


class ForgetsTheGate:
    """hints: holds pods back in front of the queue, and is not told when that is over."""

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return unschedulable("gated") if pod.pod.spec.scheduling_gates else SUCCESS

    def events_to_register(self) -> Sequence[Hint]:
        return (Hint(POD, Action.DELETE),)


class LessOrEqual:
    """order: of two pods alike each comes before the other."""

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return a.priority >= b.priority


class NearlyEqual:
    """order: pods that came at about the same time are even, which does not add up."""

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return a.added + seconds(1) < b.added


class Circle:
    """order: after, before, and round again."""

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return (b.seq - a.seq) % 3 == 1


class NanKeys:
    """order: a share of nothing is before nobody and after nobody, and so even with everyone."""

    def key(self, pod: QueuedPod) -> tuple[Any, ...]:
        return (pod.priority / 10 if pod.priority else float("nan"),)


class MixedKeys:
    """answers: a number and a text do not compare."""

    def key(self, pod: QueuedPod) -> tuple[Any, ...]:
        return (pod.info.labels.get("app", pod.priority),)


PLANTED: dict[type, str] = {
    MixedKeys: "answers",
    HintThatStumbles: "answers",
    HintThatSaysTrue: "answers",
    DoesNotRemove: "dry runs",
    AddsTwice: "dry runs",
    SharesItsTally: "dry runs",
    SparesBackwards: "spare",
    SparesWhereItCannot: "spare",
    NeverGivesBack: "reserve",
    GivesBackTwice: "reserve",
    GivesBackOnce: "reserve",
    OneBookForAll: "reserve",
    EvictsTooLittle: "room",
    EvictsElsewhere: "room",
    HearsNothing: "hints",
    HearsOnlyNewNodes: "hints",
    SkipsTheWrongOne: "hints",
    ForgetsTheGate: "hints",
    HearsOfNoRecovery: "hints",
    LessOrEqual: "order",
    NearlyEqual: "order",
    Circle: "order",
    NanKeys: "order",
}
HOW: dict[type, dict[str, Any]] = {
    EvictsTooLittle: {"beside": (NodeResourcesFit,), "about": ("priority",)},
    EvictsElsewhere: {"beside": (NodeResourcesFit,), "about": ("priority",)},
}
