"""Plugins that each break one rule of the contract, and would be fine otherwise.

`PLANTED` says which rule the kit must name.  Where a plugin needs company or labels to have anything to do, `HOW`
says what the examination is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from tests.testing.sound import FULL, Crowd, OneByOne, Tallies, Tally

from kubesched.api.objects import KubeObject, Node
from kubesched.api.time import seconds
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Rejected
from kubesched.framework.events import NODE, POD, Action, Hint, QueueingHint
from kubesched.framework.hooks import Nomination, Signature
from kubesched.framework.queued import QueuedPod
from kubesched.framework.status import SUCCESS, Status, Wait, unschedulable
from kubesched.framework.vector import Verdict
from kubesched.plugins.node_resources_fit import NodeResourcesFit

QUEUE, SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


# ── answers, scores ──────────────────────────────────────────────────────────────────────────────────────────


class Stumbles:
    """answers: looks up a label that need not be there."""

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if node.labels["disk"] == "ssd" else unschedulable("slow disk")


class SaysTrue:
    """answers: a bool is no Status."""

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Any:
        return not node.unschedulable


class SkipsInFilter:
    """answers: only pre_filter and pre_score may say SKIP."""

    def pre_enqueue(self, pod: PodInfo) -> Any:
        return Wait(seconds(1))


class TooShort:
    """answers: one answer is missing."""

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        return Verdict(max(0, len(nodes) - 1))


class Unhashable:
    """answers: a signature is kept in a dictionary."""

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS

    def sign_pod(self, pod: PodInfo) -> Any:
        return [pod.labels]


class NotANumber:
    """scores: no pods on the node, and the share is nan."""

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Any:
        return 100.0 if node.pod_count else float("nan")


class TooHigh:
    """scores: a hundred per pod."""

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        return 100 * node.pod_count


class NormalizedTooLow:
    """scores: the worst node ends below nothing."""

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        return node.pod_count

    def normalize_score(self, cycle: Cycle, pod: PodInfo, scores: Any) -> Any:
        return 50 - 30 * scores


# ── tiers ────────────────────────────────────────────────────────────────────────────────────────────────────


class ForgetsZero:
    """tiers: in columns, a pod that asks for nothing is turned down by a full node too."""

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        wants = pod.requests.get("cpu", 0)
        short = wants > 0 and wants > node.allocatable("cpu") - node.requested("cpu")
        return unschedulable("Insufficient cpu") if short else SUCCESS

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        verdict.reject(pod.requests.get("cpu", 0) > nodes.capacity("cpu") - nodes.taken("cpu"), "Insufficient cpu")
        return verdict


class OtherWords:
    """tiers: the same no, for another reason."""

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return unschedulable("node is closed") if node.unschedulable else SUCCESS

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        verdict.reject(nodes.unschedulable, "node was closed")
        return verdict


class LooksAround:
    """tiers: the first of those asked about has a bonus, whoever that is."""

    def score_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Any:
        scores = np.zeros(len(nodes), dtype=np.int64)
        scores[:1] = 10
        return scores


# ── purity, arguments, signatures, boards ────────────────────────────────────────────────────────────────────


class Counts:
    """purity: every third node is refused, by a count of its own."""

    def __init__(self) -> None:
        self.asked = 0

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        self.asked += 1
        return unschedulable("not again") if self.asked % 3 == 0 else SUCCESS


class Remembers:
    """purity: what it once learned of a node it believes for ever."""

    def __init__(self) -> None:
        self.closed: dict[str, bool] = {}

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        closed = self.closed.setdefault(node.name, node.unschedulable)
        return unschedulable("node is closed") if closed else SUCCESS


class Relabels:
    """arguments: notes on the node that it was there."""

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        node.node.metadata.labels["example.com/seen"] = "yes"
        return SUCCESS


class Rounds:
    """arguments: rounds what the pod asks for up, for everyone who comes after."""

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        pod.requests["cpu"] = -(-pod.requests.get("cpu", 1) // 1000) * 1000
        return SUCCESS


class Overwrites:
    """arguments: works in a column that others read."""

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        free = nodes.allocatable
        free -= nodes.requested
        return Verdict(len(nodes))


class ScalesInPlace:
    """arguments: the scores it is given are not its own."""

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        return 1 + node.pod_count

    def normalize_score(self, cycle: Cycle, pod: PodInfo, scores: Any) -> Any:
        scores *= 10
        return scores


class SignsTooLittle:
    """signatures: reads the labels of the pod and signs its name space."""

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return FULL if any(other.labels.get("app") == pod.labels.get("app") for other in node.pods) else SUCCESS

    def sign_pod(self, pod: PodInfo) -> Signature:
        return (("namespace", pod.namespace),)


class NodeOnly:
    """boards: says its answer hangs on the node alone, and counts the pods there."""

    board: Literal["node", "row"] = "node"

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return unschedulable("two are enough") if node.pod_count > 1 else SUCCESS

    def sign_pod(self, pod: PodInfo) -> Signature:
        return ()


class NoOutlook:
    """boards: looks at every node and does not say so."""

    board: Literal["node", "row"] = "row"

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        fewest = min(other.pod_count for other in cycle.nodes)
        return unschedulable("others have fewer") if node.pod_count > fewest else SUCCESS

    def alike(self, cycle: Cycle, pod: PodInfo) -> Hashable:
        return ()


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


class MixedKeys:
    """answers: a number and a text do not compare."""

    def key(self, pod: QueuedPod) -> tuple[Any, ...]:
        return (pod.info.labels.get("app", pod.priority),)


PLANTED: dict[type, str] = {
    Stumbles: "answers",
    SaysTrue: "answers",
    SkipsInFilter: "answers",
    TooShort: "answers",
    Unhashable: "answers",
    MixedKeys: "answers",
    NotANumber: "scores",
    TooHigh: "scores",
    NormalizedTooLow: "scores",
    ForgetsZero: "tiers",
    OtherWords: "tiers",
    LooksAround: "tiers",
    Counts: "purity",
    Remembers: "purity",
    Relabels: "arguments",
    Rounds: "arguments",
    Overwrites: "arguments",
    ScalesInPlace: "arguments",
    SignsTooLittle: "signatures",
    NodeOnly: "boards",
    NoOutlook: "boards",
    DoesNotRemove: "dry runs",
    AddsTwice: "dry runs",
    SharesItsTally: "dry runs",
    NeverGivesBack: "reserve",
    GivesBackTwice: "reserve",
    EvictsTooLittle: "room",
    EvictsElsewhere: "room",
    HearsNothing: "hints",
    HearsOnlyNewNodes: "hints",
    SkipsTheWrongOne: "hints",
    ForgetsTheGate: "hints",
    LessOrEqual: "order",
    NearlyEqual: "order",
    Circle: "order",
}
HOW: dict[type, dict[str, Any]] = {
    ForgetsZero: {"situations": 150},  # as many as are drawn for everyone else who does not say
    EvictsTooLittle: {"beside": (NodeResourcesFit,), "about": ("priority",)},
    EvictsElsewhere: {"beside": (NodeResourcesFit,), "about": ("priority",)},
}


def size(obj: Any) -> int:
    """How much there is to read of a situation."""
    return len(msgspec.json.encode(obj))
