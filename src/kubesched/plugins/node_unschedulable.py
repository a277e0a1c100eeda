"""NodeUnschedulable: cordoned nodes get no new pods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kubesched.api.objects import KubeObject, Node, Pod, Taint, Toleration
from kubesched.api.selectors import tolerates
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, POD, Action, Hint, QueueingHint
from kubesched.framework.hooks import Signature
from kubesched.framework.status import SUCCESS, Status, unresolvable
from kubesched.framework.tools import Tools
from kubesched.framework.vector import Verdict
from kubesched.plugins.taint_toleration import signed_tolerations

REASON = "node(s) were unschedulable"
_CORDONED = unresolvable(REASON)

# What a cordoned node stands for: tolerating this taint, a pod may come.
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable:
    """Keep pods off cordoned nodes.

    What it does:  rejects nodes with spec.unschedulable, unless the pod tolerates
                   node.kubernetes.io/unschedulable:NoSchedule.
    Answers:       UnschedulableAndUnresolvable — evicting pods would not help.
    Wakes on:      Node added, unless cordoned; Node uncordoned; the pod gains a toleration for cordoned nodes.
    Tiers:         filter, filter_all.
    Same as:       kube-scheduler NodeUnschedulable, v1.36.
    """

    name = "NodeUnschedulable"
    board: Literal["node", "row"] = "node"

    def __init__(self, tools: Tools | None = None) -> None:
        self.tools = tools
        self._comparisons = tools is not None and tools.features.taint_toleration_comparison_operators

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        if not node.unschedulable or self._comes_all_the_same(pod.pod.spec.tolerations):
            return SUCCESS
        return _CORDONED

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        if not self._comes_all_the_same(pod.pod.spec.tolerations):
            verdict.reject(nodes.unschedulable, REASON, unresolvable=True)
        return verdict

    def _comes_all_the_same(self, tolerations: tuple[Toleration, ...]) -> bool:
        return tolerates(tolerations, CORDON, comparisons=self._comparisons)

    def events_to_register(self) -> Sequence[Hint]:
        return (
            Hint(NODE, Action.ADD | Action.UPDATE_NODE_TAINT, self._after_node_change),
            Hint(POD, Action.UPDATE_POD_TOLERATION, self._after_toleration),
        )

    def _after_node_change(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        was_open = isinstance(old, Node) and not old.spec.unschedulable
        is_open = isinstance(new, Node) and not new.spec.unschedulable
        return QueueingHint.QUEUE if is_open and not was_open else QueueingHint.SKIP

    def _after_toleration(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        helps = isinstance(new, Pod) and new.uid == pod.uid and self._comes_all_the_same(new.spec.tolerations)
        return QueueingHint.QUEUE if helps else QueueingHint.SKIP

    def sign_pod(self, pod: PodInfo) -> Signature:
        return (signed_tolerations(pod),)
