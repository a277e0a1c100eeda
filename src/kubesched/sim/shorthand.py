"""Nodes and pods in one line: the short forms of a scenario, made into Kubernetes objects.

    {node: n1, cpu: 4, memory: 8Gi, zone: za, taints: ["gpu=true:NoSchedule"]}
    {pod: web, cpu: 500m, labels: {app: web}, nodeSelector: {disk: ssd}, priority: 100}

What is not named has a value that never gets in the way: a node has eight CPUs, 32Gi and room for a hundred and ten
pods, a pod asks for nothing.  Fields of a pod's or a node's spec may be given in Kubernetes' own spelling beside the
short ones, and anything at all as a full object with its `kind`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from kubesched.api.kinds import KNOWN
from kubesched.api.objects import KINDS, NodeSpec, NodeStatus, PodSpec, UnreadableObject, read
from kubesched.api.time import Duration
from kubesched.config.faults import did_you_mean, shown
from kubesched.sim.fields import Fields, Json, described
from kubesched.sim.troupe import PLAYED

COUNT_MAX = 100_000
PRIORITY_MIN, PRIORITY_MAX = -(1 << 31), (1 << 31) - 1
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
HOSTNAME, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
NODE_HAS: Mapping[str, str] = {"cpu": "8", "memory": "32Gi", "pods": "110"}
POD_FIELDS = tuple(
    name
    for name in PodSpec.__struct_encode_fields__
    if name not in ("priority", "containers", "resources", "tolerations")
)
_PLAYED = {kind.name for kind in PLAYED}
IMAGE = "registry.k8s.io/pause:3.10"


class Made(Struct, frozen=True):
    """An object of a scenario; a pod may have a lifetime, counted from when it is bound."""

    obj: Json
    lifetime: Duration | None = None


def objects_of(fields: Fields) -> list[Made]:
    """The objects one entry describes.  Faults are left with the fields."""
    if "kind" in fields:
        return _full(fields)
    for verb, make in (("pod", _pods), ("node", _nodes), ("pdb", _budgets), ("namespace", _namespaces)):
        if verb in fields:
            return make(fields)
    fields.fault("", "is no object", "begin with node: NAME, pod: NAME, pdb: NAME, namespace: NAME or kind: KIND")
    return []


# ── full objects ─────────────────────────────────────────────────────────────────────────────────────────────


def _full(fields: Fields) -> list[Made]:
    """An object in Kubernetes' spelling.  Only what makes it an object is checked: a scheduler must bear the rest."""
    kind = fields.raw("kind")
    if kind not in KINDS and kind not in _PLAYED and not _is_custom(fields):
        remedy = did_you_mean(str(kind), KINDS) or f"kinds a scheduler reads: {', '.join(sorted(KINDS))}"
        fields.fault("kind", f"must be a kind a scheduler reads, not {described(kind)}", remedy)
        return []
    fields.inner("metadata").name("name")
    obj = {key: fields.raw(key) for key in fields.present if key != "lifetime"}
    return [Made(obj, fields.duration("lifetime", least=1))]


def _is_custom(fields: Fields) -> bool:
    """Whether it may be a resource of one's own: which of those anybody reads, the plugins will say."""
    group, slash, _ = str(fields.raw("apiVersion") or "").partition("/")
    return bool(slash) and "." in group and group not in {kind.group for kind in KNOWN.values()}


# ── pods ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _pods(fields: Fields) -> list[Made]:
    name, count = fields.name("pod"), fields.integer("count", 0, 1, COUNT_MAX)
    made, requests = pod_template(fields), requests_of(fields)
    priority = fields.integer("priority", 0, PRIORITY_MIN, PRIORITY_MAX)
    lifetime = fields.duration("lifetime", least=1)
    fields.done("at", *POD_FIELDS)
    pods = [pod_of(made, each, requests, priority if "priority" in fields else None) for each in _each(name, count)]
    return _readable(fields, [Made(pod, lifetime) for pod in pods])


def pod_template(fields: Fields) -> Json:
    """A pod without its name, requests and priority."""
    namespace = fields.text("namespace") or "default"
    meta = {"namespace": namespace, "labels": fields.texts("labels"), "annotations": fields.texts("annotations")}
    tolerations = [_toleration(fields, i, words) for i, words in enumerate(fields.items("tolerations"))]
    ports = [_port(fields, i, port) for i, port in enumerate(fields.items("ports"))]
    nominated = fields.text("nominated")
    short: Json = {
        "nodeName": fields.text("node"),
        "schedulerName": fields.text("scheduler"),
        "schedulingGates": [{"name": name} for name in fields.names("gates")],
        "tolerations": tolerations,
    }
    written = {key: fields.raw(key) for key in POD_FIELDS if key in fields}
    container = {"name": "main", "image": fields.text("image") or IMAGE, **({"ports": ports} if ports else {})}
    spec = {**written, **{key: value for key, value in short.items() if value}, "containers": [container]}
    status = {"nominatedNodeName": nominated} if nominated else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def requests_of(fields: Fields) -> dict[str, str]:
    """What a pod asks for."""
    named = {"cpu": fields.amount("cpu"), "memory": fields.amount("memory")}
    named["ephemeral-storage"] = fields.amount("storage", "ephemeral-storage")
    return {name: amount for name, amount in {**named, **fields.amounts("resources")}.items() if amount}


def pod_of(template: Json, name: str, requests: Mapping[str, str], priority: int | None) -> Json:
    """A pod made after a template."""
    [container] = template["spec"]["containers"]
    spec = {**template["spec"], "containers": [{**container, "resources": {"requests": dict(requests)}}]}
    if priority is not None:
        spec["priority"] = priority
    meta = {key: value for key, value in template["metadata"].items() if value}
    return {**template, "metadata": {"name": name, **meta}, "spec": spec}


def _toleration(fields: Fields, at: int, words: Any) -> Any:
    """`key=value:Effect`, `key:Effect`, `key` or `*`; or a toleration in Kubernetes' spelling."""
    if not isinstance(words, str):
        return words
    text, _, effect = words.partition(":")
    key, equals, value = text.partition("=")
    if effect and effect not in EFFECTS:
        hint = did_you_mean(effect, EFFECTS) or f"effects are {', '.join(EFFECTS)}"
        fields.fault(f"tolerations[{at}]", f"{shown(words)} has the unknown effect {shown(effect)}", hint)
    told: Json = {"operator": "Equal", "value": value} if equals else {"operator": "Exists"}
    return {**told, **({} if key == "*" else {"key": key}), **({"effect": effect} if effect else {})}


def _port(fields: Fields, at: int, port: Any) -> Any:
    """A host port by its number, or a port in Kubernetes' spelling."""
    if isinstance(port, Mapping):
        return port
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65_536:
        fields.fault(f"ports[{at}]", f"must be a port from 1 to 65535, not {described(port)}")
        return {}
    return {"containerPort": port, "hostPort": port}


# ── nodes ────────────────────────────────────────────────────────────────────────────────────────────────────


def _nodes(fields: Fields) -> list[Made]:
    name, count = fields.name("node"), fields.integer("count", 0, 1, COUNT_MAX)
    zones, regions = fields.names("zone") or [""], fields.names("region") or [""]
    labels, annotations = fields.texts("labels"), fields.texts("annotations")
    has = {resource: fields.amount(resource) or default for resource, default in NODE_HAS.items()}
    storage = fields.amount("storage", "ephemeral-storage")
    has |= {**({"ephemeral-storage": storage} if storage else {}), **fields.amounts("resources")}
    taints = [_taint(fields, i, words) for i, words in enumerate(fields.items("taints"))]
    spec: Json = {key: fields.raw(key) for key in NodeSpec.__struct_encode_fields__ if key in fields}
    spec |= {"taints": taints, "unschedulable": fields.truth("unschedulable")}
    status = {key: fields.raw(key) for key in NodeStatus.__struct_encode_fields__ if key in fields}
    status.setdefault("allocatable", has)
    status.setdefault("capacity", has)
    fields.done("at", *NodeSpec.__struct_encode_fields__, *NodeStatus.__struct_encode_fields__)
    made = []
    for i, each in enumerate(_each(name, count)):
        known = {HOSTNAME: each, ZONE: zones[i % len(zones)], REGION: regions[i % len(regions)]}
        marked = {**{key: value for key, value in known.items() if value}, **labels}
        meta = {"name": each, "labels": marked, **({"annotations": annotations} if annotations else {})}
        kept = {key: value for key, value in spec.items() if value}
        made.append(Made({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": kept, "status": status}))
    return _readable(fields, made)


def _taint(fields: Fields, at: int, words: Any) -> Any:
    """`key=value:Effect` or `key:Effect`, or a taint in Kubernetes' spelling."""
    if not isinstance(words, str):
        return words
    text, _, effect = words.partition(":")
    key, _, value = text.partition("=")
    if effect not in EFFECTS:
        hint = did_you_mean(effect, EFFECTS) or "write key=value:NoSchedule"
        fields.fault(f"taints[{at}]", f"{shown(words)} has no effect out of {', '.join(EFFECTS)}", hint)
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


# ── the others ───────────────────────────────────────────────────────────────────────────────────────────────


def _budgets(fields: Fields) -> list[Made]:
    """A disruption budget: so many pods with these labels may still be evicted."""
    meta = {"name": fields.name("pdb"), "namespace": fields.text("namespace") or "default"}
    spec = {"selector": {"matchLabels": fields.texts("selector")}}
    status = {"disruptionsAllowed": fields.integer("allowed", 0, 0, PRIORITY_MAX)}
    fields.done("at")
    return [Made({"kind": "PodDisruptionBudget", "metadata": meta, "spec": spec, "status": status})]


def _namespaces(fields: Fields) -> list[Made]:
    meta = {"name": fields.name("namespace"), "labels": fields.texts("labels")}
    fields.done("at")
    return [Made({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})]


def _readable(fields: Fields, made: list[Made]) -> list[Made]:
    """What the short form took from Kubernetes' own must have its shape; one of many alike is looked at."""
    for one in made[:1]:
        try:
            read(one.obj, KINDS[one.obj["kind"]])
        except UnreadableObject as error:
            fields.fault("", str(error))
    return made


def _each(name: str, count: int) -> Iterable[str]:
    """The name itself, or with `count` that many with a number behind it."""
    return [f"{name}-{i}" for i in range(count)] if count else [name]
