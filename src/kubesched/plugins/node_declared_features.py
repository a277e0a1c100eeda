"""NodeDeclaredFeatures: what a pod needs a kubelet to be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from kubesched.api.objects import KubeObject, Node, Pod
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.types import Mask
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, POD, Action, Hint, QueueingHint
from kubesched.framework.hooks import Signature
from kubesched.framework.status import SKIP, SUCCESS, Status, unresolvable
from kubesched.framework.tools import Tools
from kubesched.framework.vector import Verdict

REASON = "node(s) didn't match Pod's required features"
_LACKING = unresolvable(REASON)


class _Required(Struct, frozen=True):
    features: frozenset[str]


class NodeDeclaredFeatures:
    """Keep a pod off nodes whose kubelet lacks a feature the pod's spec relies on.

    What it does:  infers from the spec which features a pod needs, and rejects nodes whose
                   status.declaredFeatures does not list them all.  Off with the gate NodeDeclaredFeatures.
    Answers:       UnschedulableAndUnresolvable — evicting pods teaches a kubelet nothing.
    Wakes on:      Node added or its declared features changed; the pod's own needs changed.
    Tiers:         filter, filter_all.
    Same as:       kube-scheduler NodeDeclaredFeatures, v1.36.
    """

    name = "NodeDeclaredFeatures"
    board: Literal["node", "row"] = "node"

    def __init__(self, tools: Tools | None = None) -> None:
        self.tools = tools
        self._enabled = tools is None or tools.features.node_declared_features

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        required = self._required(pod.pod)
        if not required:
            return SKIP
        cycle.put(_Required(required))
        return SUCCESS

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return SUCCESS if self._of(cycle, pod) <= node.declared_features else _LACKING

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        required, declared = self._of(cycle, pod), nodes.table.features
        lacking = (not required <= declared[row] for row in nodes.rows.tolist())
        mask: Mask = np.fromiter(lacking, dtype=np.bool_, count=len(nodes))
        verdict.reject(mask, REASON, unresolvable=True)
        return verdict

    def events_to_register(self) -> Sequence[Hint]:
        if not self._enabled:
            return ()
        return (
            Hint(NODE, Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, self._after_node_change),
            Hint(POD, Action.UPDATE, self._after_pod_update),
        )

    def _after_node_change(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        if isinstance(old, Node) and isinstance(new, Node):
            if old.status.declared_features == new.status.declared_features:
                return QueueingHint.SKIP
        return QueueingHint.QUEUE

    def _after_pod_update(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        if not isinstance(old, Pod) or not isinstance(new, Pod) or new.uid != pod.uid:
            return QueueingHint.SKIP
        return QueueingHint.QUEUE if required_features(old) != required_features(new) else QueueingHint.SKIP

    def sign_pod(self, pod: PodInfo) -> Signature:
        return (("v1.Pod.Spec.RequiredFeatures()", tuple(sorted(self._required(pod.pod)))),)

    def _of(self, cycle: Cycle, pod: PodInfo) -> frozenset[str]:
        found = cycle.find(_Required)
        return self._required(pod.pod) if found is None else found.features

    def _required(self, pod: Pod) -> frozenset[str]:
        return required_features(pod) if self._enabled else frozenset()


def required_features(pod: Pod) -> frozenset[str]:
    """The features a pod cannot start without, of those that a node may lack."""
    spec = pod.spec
    rules = (rule for container in spec.init_containers + spec.containers for rule in container.restart_policy_rules)
    needs = {
        "RestartAllContainersOnContainerExits": any(rule.action == "RestartAllContainers" for rule in rules),
        "UserNamespacesHostNetworkSupport": spec.host_network and spec.host_users is False,
    }
    return frozenset(feature for feature, needed in needs.items() if needed)
