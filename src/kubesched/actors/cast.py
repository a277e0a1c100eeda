"""Who plays in a cluster, and how they share what they know."""

from __future__ import annotations

from kubesched.actors.controller import Controller
from kubesched.actors.daemonset import DaemonSets
from kubesched.actors.deployment import Deployments
from kubesched.actors.disruption import Disruption
from kubesched.actors.evictions import Evictions
from kubesched.actors.garbage import Garbage
from kubesched.actors.job import Jobs
from kubesched.actors.kubelet import Kubelets, Stages
from kubesched.actors.namespaces import Namespaces
from kubesched.actors.node_agent import HEARTBEAT, NodeAgents
from kubesched.actors.node_lifecycle import NodeLifecycle
from kubesched.actors.protection import Protection
from kubesched.actors.replicaset import ReplicaSets
from kubesched.actors.statefulset import StatefulSets
from kubesched.actors.sweeper import Sweeper
from kubesched.actors.view import View
from kubesched.actors.volumes import Volumes
from kubesched.api.time import Duration


def cast(*, stages: Stages | None = None, heartbeat: Duration | None = HEARTBEAT) -> tuple[Controller, ...]:
    """Everybody, over one view of the cluster.

    Args:
        stages: how long things take on a node.
        heartbeat: how often a node's Lease is renewed; None for no Leases, as in long runs of virtual time.
    """
    view = View()
    return (
        NodeAgents(view, heartbeat=heartbeat),
        Kubelets(view, stages),
        NodeLifecycle(view),
        Evictions(view),
        ReplicaSets(view),
        Deployments(view),
        StatefulSets(view),
        DaemonSets(view),
        Jobs(view),
        Volumes(view),
        Protection(view),
        Disruption(view),
        Garbage(view),
        Namespaces(view),
        Sweeper(view),
    )
