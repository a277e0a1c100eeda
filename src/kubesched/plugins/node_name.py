"""NodeName: a pod that names its node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.types import Mask
from kubesched.cluster.vocab import ABSENT
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, Action, Hint
from kubesched.framework.hooks import Signature
from kubesched.framework.status import SUCCESS, Status, unresolvable
from kubesched.framework.vector import Verdict

REASON = "node(s) didn't match the requested node name"
_ELSEWHERE = unresolvable(REASON)


class NodeName:
    """Keep a pod to the node that spec.nodeName names.

    What it does:  rejects every other node.  A pod with a name is usually on its node already and never comes
                   here; a what-if may ask.
    Answers:       UnschedulableAndUnresolvable — evicting pods gives a node no other name.
    Wakes on:      Node added.
    Tiers:         filter, filter_all.
    Same as:       kube-scheduler NodeName, v1.36.
    """

    name = "NodeName"
    board: Literal["node", "row"] = "node"

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        wanted = pod.pod.spec.node_name
        return _ELSEWHERE if wanted and wanted != node.name else SUCCESS

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        wanted = pod.pod.spec.node_name
        if wanted:
            elsewhere: Mask = nodes.rows != nodes.table.row_of.get(wanted, ABSENT)
            verdict.reject(elsewhere, REASON, unresolvable=True)
        return verdict

    def events_to_register(self) -> Sequence[Hint]:
        return (Hint(NODE, Action.ADD),)

    def sign_pod(self, pod: PodInfo) -> Signature:
        return (("v1.Pod.Spec.NodeName", pod.pod.spec.node_name),)
