"""Who plays in a cluster, and how they share what they know."""

from __future__ import annotations

from kubesched.actors.controller import Controller
from kubesched.actors.deployment import Deployments
from kubesched.actors.garbage import Garbage
from kubesched.actors.kubelet import Kubelets, Stages
from kubesched.actors.namespaces import Namespaces
from kubesched.actors.node_agent import HEARTBEAT, NodeAgents
from kubesched.actors.replicaset import ReplicaSets
from kubesched.actors.view import View
from kubesched.api.time import Duration


def cast(*, stages: Stages | None = None, heartbeat: Duration | None = HEARTBEAT) -> tuple[Controller, ...]:
    """Everybody, over one view of the cluster."""
    view = View()
    return (
        NodeAgents(view, heartbeat=heartbeat),
        Kubelets(view, stages),
        ReplicaSets(view),
        Deployments(view),
        Garbage(view),
        Namespaces(view),
    )
