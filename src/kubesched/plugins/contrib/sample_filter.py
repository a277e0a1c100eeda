"""SampleFilter: pods only go where a label invites them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kubesched.api.objects import KubeObject, Node
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, Action, Hint, QueueingHint
from kubesched.framework.hooks import Signature
from kubesched.framework.status import SUCCESS, Status, unresolvable
from kubesched.framework.tools import Tools

LABEL, INVITES = "cpu", "true"


class SampleFilter:
    """Keep pods off nodes that are not labelled cpu=true.

    What it does:  filter rejects a node without the label; pre_score remarks how many nodes are left.
    Answers:       UnschedulableAndUnresolvable, `Node: <name>`: evicting pods gives a node no label.
    Wakes on:      Node added with the label, Node labelled.
    Tiers:         filter, pre_score.
    """

    name = "SampleFilter"
    board: Literal["node", "row"] = "node"

    def __init__(self, tools: Tools) -> None:
        self.tools = tools

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if node.labels.get(LABEL) == INVITES else unresolvable(f"Node: {node.name}")

    def pre_score(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        self.tools.note("Nodes that are labelled for the pod", pod=pod.key, nodes=len(nodes))
        return SUCCESS

    def events_to_register(self) -> Sequence[Hint]:
        return (Hint(NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._after_node_change),)

    def _after_node_change(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        invited = isinstance(new, Node) and new.labels.get(LABEL) == INVITES
        return QueueingHint.QUEUE if invited else QueueingHint.SKIP

    def sign_pod(self, pod: PodInfo) -> Signature:
        return ()
