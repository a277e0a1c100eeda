"""How much a loaded core keeps: the whole process, and what every bound pod adds to it.

Pods come as an API server sends them, 6 to 8 kB of JSON, most of which a scheduler never reads.  The measurement
runs in a process of its own: what others have left in this one is not the core's.
"""

from __future__ import annotations

import gc
import json
import resource
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kubesched.api.objects import Node, Pod, read
from kubesched.assemble import build
from kubesched.bench.throughput import WrongOutcome, tell
from kubesched.bench.workload import nodes_of

GOAL_MIB = 600
GOAL_BYTES_A_POD = 5_000
_WHEN = "2026-01-01T00:00:00Z"


class Footprint(Struct, frozen=True):
    """What a loaded core keeps."""

    nodes: int
    pods: int
    node_json_bytes: int
    pod_json_bytes: int
    resident_mib: float
    bytes_a_pod: int


def measure(nodes: int = 5_000, pods: int = 50_000) -> Footprint:
    """Load a core in a fresh process and weigh it."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(weigh, (nodes, pods))


def weigh(nodes: int, pods: int) -> Footprint:
    """Load a core in this process and weigh the process.  Raises WrongOutcome."""
    core = build(checks=False, seed=1)
    node_json = pod_json = b""
    for one in nodes_of(nodes):
        node_json = json.dumps(_grown(msgspec.to_builtins(one), 10_000)).encode()
        tell(core, read(msgspec.json.decode(node_json), Node))
    before = _resident()
    for i in range(pods):
        pod_json = json.dumps(_pod(i, f"node-{i % nodes}")).encode()
        tell(core, read(msgspec.json.decode(pod_json), Pod))
    gc.collect()
    after = _resident()
    if len(core.mirror.placed) != pods:
        raise WrongOutcome(f"memory: {len(core.mirror.placed)} of {pods} bound pods are known to the core")
    return Footprint(nodes, pods, len(node_json), len(pod_json), round(after / 2**20, 1), (after - before) // pods)


def _resident() -> int:
    """Bytes of this process in memory; where the system does not tell, the most there ever were."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# ── objects as an API server sends them ──────────────────────────────────────────────────────────────────────


def _grown(raw: dict[str, Any], size: int) -> dict[str, Any]:
    """An object with the annotations and managed fields that make it as long as real ones are."""
    meta = raw["metadata"]
    meta["creationTimestamp"] = _WHEN
    meta["annotations"] = {f"example.com/note-{k}": "the quick brown fox jumps over the lazy dog" for k in range(10)}
    fields: dict[str, Any] = {}
    manager = {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": _WHEN, "fieldsV1": fields}
    meta["managedFields"] = [manager]
    missing = size - len(json.dumps(raw))
    for k in range(max(0, missing // 58)):
        fields[f"f:status-{k:04}"] = {"f:lastHeartbeatTime": {}, "f:type-0000": {}}
    return raw


def _pod(i: int, node: str) -> dict[str, Any]:
    app = f"app-{i % 500}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{app}-5d4f", "uid": f"owner-{app}"}
    raw: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-5d4f-{i}",
            "namespace": f"team-{i % 20}",
            "uid": f"00000000-0000-4000-8000-{i:012}",
            "resourceVersion": str(i + 1),
            "labels": {"app": app, "pod-template-hash": "5d4f", "tier": "backend", "team": f"team-{i % 20}"},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": _spec(app, node),
        "status": _status(app),
    }
    return _grown(raw, 7_000)


def _spec(app: str, node: str) -> dict[str, Any]:
    token = {"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
    secret = {"serviceAccountToken": {"path": "token"}}
    container = {
        "name": app,
        "image": f"registry.example.com/{app}:1.2.3",
        "env": [{"name": f"SETTING_{k}", "value": f"value of setting {k}"} for k in range(12)],
        "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}, "limits": {"memory": "1Gi"}},
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "volumeMounts": [token],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "nodeName": node,
        "containers": [container],
        "volumes": [{"name": "kube-api-access", "projected": {"sources": [secret]}}],
        "schedulerName": "default-scheduler",
        "serviceAccountName": app,
        "priority": 0,
        "restartPolicy": "Always",
        "tolerations": [
            {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for what in ("not-ready", "unreachable")
        ],
    }


def _status(app: str) -> dict[str, Any]:
    kinds = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    running = {"name": app, "ready": True, "restartCount": 0, "state": {"running": {"startedAt": _WHEN}}}
    return {
        "phase": "Running",
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": _WHEN} for kind in kinds],
        "containerStatuses": [{**running, "imageID": f"registry.example.com/{app}@sha256:{'0' * 64}"}],
        "podIP": "10.0.0.1",
        "startTime": _WHEN,
    }
