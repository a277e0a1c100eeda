"""NodePorts: two pods cannot listen on the same port of the same node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from kubesched.api.objects import KubeObject, Pod
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import HostPort, PodInfo
from kubesched.cluster.types import Mask
from kubesched.framework.cycle import Cycle
from kubesched.framework.events import NODE, POD, Action, Hint, QueueingHint
from kubesched.framework.hooks import Signature
from kubesched.framework.status import SKIP, SUCCESS, Status, unschedulable
from kubesched.framework.vector import Verdict

REASON = "node(s) didn't have free ports for the requested pod ports"
_TAKEN = unschedulable(REASON)
_ANY_ADDRESS = "0.0.0.0"


class NodePorts:
    """Keep pods off nodes where a host port they want is taken.

    What it does:  rejects a node on which some pod uses the same host port and protocol on the same address;
                   0.0.0.0 is every address.
    Answers:       Unschedulable — the pod that has the port may be evicted.
    Wakes on:      a placed pod with one of the ports is deleted; Node added.
    Tiers:         filter, filter_all.
    Same as:       kube-scheduler NodePorts, v1.36.
    """

    name = "NodePorts"
    board: Literal["node", "row"] = "row"

    def pre_filter(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Status:
        return SUCCESS if pod.host_ports else SKIP

    def filter(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> Status:
        return _TAKEN if conflict(pod.host_ports, node.ports) else SUCCESS

    def filter_all(self, cycle: Cycle, pod: PodInfo, nodes: Nodes) -> Verdict:
        verdict = Verdict(len(nodes))
        wanted, ports = pod.host_ports, nodes.table.ports
        taken = (bool(ports[row]) and conflict(wanted, ports[row]) for row in nodes.rows.tolist())
        mask: Mask = np.fromiter(taken, dtype=np.bool_, count=len(nodes))
        verdict.reject(mask, REASON)
        return verdict

    def events_to_register(self) -> Sequence[Hint]:
        return (Hint(POD, Action.DELETE, self._after_pod_deleted), Hint(NODE, Action.ADD))

    def _after_pod_deleted(self, pod: PodInfo, old: KubeObject | None, new: KubeObject | None) -> QueueingHint:
        if not isinstance(old, Pod) or not (old.spec.node_name or old.status.nominated_node_name):
            return QueueingHint.SKIP
        freed = dict.fromkeys(PodInfo(old).host_ports, 1)
        return QueueingHint.QUEUE if conflict(pod.host_ports, freed) else QueueingHint.SKIP

    def sign_pod(self, pod: PodInfo) -> Signature:
        return (("v1.Pod.Spec.HostPorts()", tuple(sorted(set(pod.host_ports)))),)


def conflict(wanted: Iterable[HostPort], used: Mapping[HostPort, int]) -> bool:
    """Whether any wanted port is in use."""
    return any(_is_taken(port, used) for port in wanted)


def _is_taken(port: HostPort, used: Mapping[HostPort, int]) -> bool:
    if port.ip != _ANY_ADDRESS:
        return port in used or port._replace(ip=_ANY_ADDRESS) in used
    return any(port.protocol == other.protocol and port.port == other.port for other in used)
