"""Plugins that each answer wrongly in one way, and would be fine otherwise.

`PLANTED` says which rule the kit must name; where a plugin needs company or labels to have anything to do, `HOW`
says what the examination is given.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
from tests.testing.sound import FULL, OneByOne

from kubesched.api.objects import KubeObject
from kubesched.api.time import seconds
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, Action, Hint, QueueingHint
from kubesched.framework.hooks import Signature
from kubesched.framework.status import SUCCESS, Status, Wait, unschedulable
from kubesched.framework.steps import Patch, Steps
from kubesched.framework.vector import Verdict

BOOK: list[str] = []
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


class YieldsWords:
    """answers: a step is something that can be carried out."""

    def pre_bind(self, cycle: Cycle, pod: PodInfo, node: str) -> Any:
        yield f"please label {node}"
        return SUCCESS


class NeverGivesUp:
    """answers: as long as nobody answers it asks again, and again."""

    def pre_bind(self, cycle: Cycle, pod: PodInfo, node: str) -> Steps:
        while not (yield Patch("Node", node, {"metadata": {"labels": {"taken": "yes"}}})).ok:
            pass
        return SUCCESS


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


class NotANumberInColumns:
    """scores: nothing of nothing is nan, and nan is no integer."""

    def score_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Any:
        taken = nodes.taken("cpu").astype(float)
        with np.errstate(all="ignore"):
            return 100 * taken / taken.sum()


class NormalizedToNan:
    """scores: the best node has none, and everyone has the share of it."""

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        return node.pod_count

    def normalize_score(self, cycle: Cycle, pod: PodInfo, scores: Any) -> Any:
        with np.errstate(all="ignore"):
            return scores / scores.max() * 100


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


class KeepsABook:
    """purity: it is asked whether, and writes down that it was."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        self.asked.append(node.name)
        return SUCCESS


class KeepsABookForAll:
    """purity: the same, and every instance in one book."""

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        BOOK.append(node.name)
        return 0


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


class MarksWhatItHolds:
    """arguments: notes on the pod that it has been let in."""

    def permit(self, cycle: Cycle, pod: PodInfo, node: str) -> Status:
        pod.labels["example.com/node"] = node
        return SUCCESS


class MarksWhatItHears(OneByOne):
    """arguments: a hint notes on the node that it was heard of."""

    def events_to_register(self) -> Sequence[Hint]:
        return (Hint(NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._look),)

    def _look(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        if new is not None:
            new.labels["example.com/heard"] = "yes"
        return QueueingHint.QUEUE


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


PLANTED: dict[type, str] = {
    Stumbles: "answers",
    SaysTrue: "answers",
    SkipsInFilter: "answers",
    TooShort: "answers",
    Unhashable: "answers",
    YieldsWords: "answers",
    NeverGivesUp: "answers",
    NotANumber: "scores",
    TooHigh: "scores",
    NormalizedTooLow: "scores",
    NotANumberInColumns: "scores",
    NormalizedToNan: "scores",
    ForgetsZero: "tiers",
    OtherWords: "tiers",
    LooksAround: "tiers",
    Counts: "purity",
    Remembers: "purity",
    KeepsABook: "purity",
    KeepsABookForAll: "purity",
    Relabels: "arguments",
    Rounds: "arguments",
    Overwrites: "arguments",
    ScalesInPlace: "arguments",
    MarksWhatItHolds: "arguments",
    MarksWhatItHears: "arguments",
    SignsTooLittle: "signatures",
    NodeOnly: "boards",
    NoOutlook: "boards",
}
HOW: dict[type, dict[str, Any]] = {
    ForgetsZero: {"situations": 150},  # as many as are drawn for everyone else who does not say
}
