"""TaintToleration: nodes that keep pods off, and pods that come all the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from kubesched.api.objects import KubeObject, Node, Taint, Toleration
from kubesched.api.selectors import tolerates, untolerated
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.types import Mask, Scores
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, POD, Action, Hint, QueueingHint
from kubesched.framework.hooks import Signature
from kubesched.framework.status import SUCCESS, Status, unresolvable
from kubesched.framework.tools import Tools
from kubesched.framework.vector import Verdict
from kubesched.plugins.normalize import default_normalize

REASON = "node(s) had untolerated taint(s)"
_REFUSED = unresolvable(REASON)
_SOFT = "PreferNoSchedule"


class _SoftTolerations(Struct, frozen=True):
    """The tolerations that count where a taint only asks to stay away."""

    tolerations: tuple[Toleration, ...]


class TaintToleration:
    """Keep pods off nodes with taints they do not tolerate, and away from those that would rather not have them.

    What it does:  rejects a node with a NoSchedule or NoExecute taint that no toleration of the pod matches;
                   scores a node the lower, the more PreferNoSchedule taints are not tolerated.
    Answers:       UnschedulableAndUnresolvable — evicting pods takes no taint away.
    Wakes on:      Node added or its taints changed, if the pod now tolerates them; the pod gains a toleration.
    Tiers:         filter, filter_all, score, score_all.
    Same as:       kube-scheduler TaintToleration, v1.36.
    """

    name = "TaintToleration"
    board: Literal["node", "row"] = "node"

    def __init__(self, tools: Tools | None = None) -> None:
        self.tools = tools
        self._comparisons = tools is not None and tools.features.taint_toleration_comparison_operators

    # ── filter ───────────────────────────────────────────────────────────────────────────────────────────────

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return _REFUSED if self._refuses(node.taints, pod) else SUCCESS

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        refused: Mask = nodes.by_taints(lambda taints: self._refuses(taints, pod)) != 0
        verdict.reject(refused, REASON, unresolvable=True)
        return verdict

    def _refuses(self, taints: tuple[Taint, ...], pod: PodInfo) -> bool:
        return untolerated(taints, pod.pod.spec.tolerations, comparisons=self._comparisons) is not None

    # ── score ────────────────────────────────────────────────────────────────────────────────────────────────

    def pre_score(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        cycle.put(_soft(pod))
        return SUCCESS

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        return self._count(node.taints, cycle.find(_SoftTolerations) or _soft(pod))

    def score_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Scores:
        soft = cycle.find(_SoftTolerations) or _soft(pod)
        return nodes.by_taints(lambda taints: self._count(taints, soft))

    def normalize_score(self, cycle: Cycle, pod: PodInfo, scores: Scores) -> Scores:
        return default_normalize(scores, reverse=True)

    def by_value(self, cycle: Cycle, pod: PodInfo) -> bool:
        return True

    def _count(self, taints: tuple[Taint, ...], soft: _SoftTolerations) -> int:
        """How many taints ask this pod to stay away."""
        return sum(
            taint.effect == _SOFT and not tolerates(soft.tolerations, taint, comparisons=self._comparisons)
            for taint in taints
        )

    # ── hints ────────────────────────────────────────────────────────────────────────────────────────────────

    def events_to_register(self) -> Sequence[Hint]:
        return (
            Hint(NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._after_node_change),
            Hint(POD, Action.UPDATE_POD_TOLERATION, self._after_toleration),
        )

    def _after_node_change(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        was_refused = not isinstance(old, Node) or self._refuses(old.spec.taints, pod)
        is_refused = isinstance(new, Node) and self._refuses(new.spec.taints, pod)
        return QueueingHint.QUEUE if was_refused and not is_refused else QueueingHint.SKIP

    def _after_toleration(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        return QueueingHint.QUEUE if new is not None and new.uid == pod.uid else QueueingHint.SKIP

    def sign_pod(self, pod: PodInfo) -> Signature:
        return (signed_tolerations(pod),)


def signed_tolerations(pod: PodInfo) -> tuple[str, Any]:
    """What pods must have in common to be tolerated alike: their tolerations, in whatever order."""
    tolerations = {(one.key, one.operator, one.value, one.effect): None for one in pod.pod.spec.tolerations}
    return "v1.Pod.Spec.Tolerations", tuple(sorted(tolerations))


def _soft(pod: PodInfo) -> _SoftTolerations:
    return _SoftTolerations(tuple(one for one in pod.pod.spec.tolerations if one.effect in ("", _SOFT)))
