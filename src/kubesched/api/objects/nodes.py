"""Nodes."""

from __future__ import annotations

from kubesched.api.objects.meta import KubeObject, ResourceList, View
from kubesched.api.objects.terms import Taint


class NodeSpec(View, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeCondition(View, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""


class ContainerImage(View, frozen=True):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class NodeStatus(View, frozen=True):
    allocatable: ResourceList = {}
    capacity: ResourceList = {}
    conditions: tuple[NodeCondition, ...] = ()
    images: tuple[ContainerImage, ...] = ()
    declared_features: tuple[str, ...] = ()


class Node(KubeObject, frozen=True, tag="Node"):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
