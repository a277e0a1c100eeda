"""Nodes and pods in one line, so that a test shows what it is about and nothing else.

    node("n1", cpu=4, memory="8Gi", zone="za", taints=["gpu=yes:NoSchedule"])
    pod("web", cpu="500m", labels={"app": "web"}, tolerations=["gpu"])

What is not named has a value that never gets in the way: a node takes a hundred and ten pods and any amount of cpu and
memory a small pod asks for, a pod asks for nothing.  A uid follows from the name; give another `uid` for a namesake.
Fields without a word of their own are given in Kubernetes' spelling: `pod("a", hostNetwork=True)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from kubesched.api.objects import KINDS, KubeObject, Namespace, Node, Pod, Quantity, read

Words: TypeAlias = str | Mapping[str, Any]  # "key=value:Effect", or a field in Kubernetes' spelling
T = TypeVar("T", bound=KubeObject)

ZONE, REGION, HOSTNAME = "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "kubernetes.io/hostname"


def node(
    name: str = "n1",
    *,
    cpu: Quantity = 8,
    memory: Quantity = "32Gi",
    pods: Quantity = 110,
    zone: str = "",
    region: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[Words] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    resources: Mapping[str, Quantity] | None = None,
    conditions: Mapping[str, str] | None = None,
    uid: str | None = None,
    version: int | str = "",
    **status: Any,
) -> Node:
    """A node.

    Args:
        resources: further allocatable resources by name: `{"example.com/gpu": 2}`.
        images: name → size in bytes.
        conditions: type → status: `{"Ready": "True"}`.
        version: its resourceVersion; none at all where not given, so that no two versions are compared.
        status: further fields of the status.
    """
    known = {HOSTNAME: name, ZONE: zone, REGION: region}
    return read(
        {
            "metadata": {
                "name": name,
                "uid": f"uid-of-{name}" if uid is None else uid,
                "resourceVersion": str(version),
                "labels": {**{key: value for key, value in known.items() if value}, **(labels or {})},
                "annotations": dict(annotations or {}),
            },
            "spec": {"unschedulable": unschedulable, "taints": [_taint(words) for words in taints]},
            "status": {
                "allocatable": {"cpu": cpu, "memory": memory, "pods": pods, **(resources or {})},
                "images": [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()],
                "conditions": [{"type": kind, "status": value} for kind, value in (conditions or {}).items()],
                **status,
            },
        },
        Node,
    )


def pod(
    name: str = "a",
    *,
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    resources: Mapping[str, Quantity] | None = None,
    on: str = "",
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    priority: int | None = None,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Iterable[Words] = (),
    gates: Iterable[str] = (),
    ports: Iterable[int | Mapping[str, Any]] = (),
    claims: Iterable[str] = (),
    image: str = "pause:3.9",
    affinity: Mapping[str, Any] | None = None,
    scheduler: str = "default-scheduler",
    nominated: str = "",
    phase: str = "",
    deleting: bool = False,
    uid: str | None = None,
    version: int | str = "",
    generation: int = 0,
    **spec: Any,
) -> Pod:
    """A pod of one container.

    Args:
        on: the node it is bound to already.
        resources: further requests by name.
        ports: host ports, by number or in Kubernetes' spelling.
        claims: names of PersistentVolumeClaims it mounts.
        nominated: the node its status says it was promised.
        deleting: whether it is on its way out.
        version: its resourceVersion; none at all where not given, so that no two versions are compared.
        spec: further fields of the spec.
    """
    wants = {"cpu": cpu, "memory": memory, **(resources or {})}
    container = {
        "name": "c",
        "image": image,
        "resources": {"requests": {key: amount for key, amount in wants.items() if amount is not None}},
        "ports": [port if isinstance(port, Mapping) else {"containerPort": port, "hostPort": port} for port in ports],
    }
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-of-{name}" if uid is None else uid,
        "resourceVersion": str(version),
        "generation": generation,
        "labels": dict(labels or {}),
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    body = {
        "nodeName": on,
        "schedulerName": scheduler,
        "priority": priority,
        "nodeSelector": None if node_selector is None else dict(node_selector),
        "tolerations": [_toleration(words) for words in tolerations],
        "schedulingGates": [{"name": gate} for gate in gates],
        "volumes": [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims],
        "containers": [container],
        "affinity": affinity,
        **spec,
    }
    return read({"metadata": metadata, "spec": body, "status": {"phase": phase, "nominatedNodeName": nominated}}, Pod)


def namespace(name: str = "default", *, labels: Mapping[str, str] | None = None, version: int | str = "") -> Namespace:
    made = make("Namespace", name, labels=labels, version=version)
    assert isinstance(made, Namespace)
    return made


def make(
    kind: str,
    name: str,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    uid: str | None = None,
    version: int | str = "",
    **fields: Any,
) -> KubeObject:
    """An object of any kind a scheduler reads; fields beside the metadata in Kubernetes' spelling."""
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-of-{name}" if uid is None else uid,
        "resourceVersion": str(version),
        "labels": dict(labels or {}),
    }
    return read({"metadata": metadata, **fields}, KINDS[kind])


def changed(obj: T, **changes: Any) -> T:
    """The same object with some fields set, named as `metadata`, `spec` or `status` nests them.

    changed(node, spec={"unschedulable": True}, metadata={"resourceVersion": "7"})
    """
    raw = msgspec.to_builtins(obj)
    for part, fields in changes.items():
        inner = raw.get(part)
        raw[part] = {**inner, **fields} if isinstance(inner, dict) and isinstance(fields, Mapping) else fields
    return read(raw, type(obj))


def bound(obj: Pod, to: str, *, version: int | str = "") -> Pod:
    """A pod as the API server tells of it after it was bound."""
    return changed(obj, spec={"nodeName": to}, metadata={"resourceVersion": str(version)})


# ── as kubectl writes them ───────────────────────────────────────────────────────────────────────────────────


def _taint(words: Words) -> dict[str, Any]:
    if isinstance(words, Mapping):
        return dict(words)
    body, _, effect = words.rpartition(":")
    if not body:
        raise ValueError(f"taint {words!r} has no effect; write key=value:NoSchedule or key:NoExecute")
    key, _, value = body.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _toleration(words: Words) -> dict[str, Any]:
    """`key`, `key:Effect`, `key=value`, `key=value:Effect`; an empty text tolerates everything."""
    if isinstance(words, Mapping):
        return dict(words)
    body, _, effect = words.partition(":")
    key, equals, value = body.partition("=")
    return {"key": key, "operator": "Equal" if equals else "Exists", "value": value, "effect": effect}
