"""What varies in a cluster, theme by theme: how a node may be, how a pod, what else there is, and what changes.

Everything is in Kubernetes' spelling, as plain JSON.  Every function draws few values from few options, so that a
taint often meets its toleration and a claim its volume.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from kubesched.testing.builders import HOSTNAME, ZONE
from kubesched.testing.kit.dice import Dice

Json = dict[str, Any]

NAMES = ("n1", "n2", "n3", "n4")
RESOURCES = ("cpu", "memory", "example.com/gpu", "ephemeral-storage", "hugepages-2Mi")
FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")
APPS = ("web", "db")
_VALUES: Mapping[str, tuple[str, ...]] = {"disk": ("ssd", "hdd"), ZONE: ("za", "zb"), "size": ("1", "3")}
_DEVICES = ("example.com/gpu", "example.com/other")
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


class Words(Struct, frozen=True):
    """Labels of the plugin's own that nodes and pods may carry, each with the values it may have."""

    labels: Mapping[str, tuple[str, ...]] = {}


# ── labels, names ────────────────────────────────────────────────────────────────────────────────────────────


def _labels(dice: Dice) -> Json:
    return {key: dice.pick(values) for key, values in _VALUES.items() if dice.pick((True, True, False))}


def labelled_node(dice: Dice, words: Words) -> Json:
    return {"metadata": {"labels": _labels(dice)}}


def _requirement(dice: Dice) -> Json:
    key = dice.pick(("disk", ZONE, "size"))
    operator = dice.pick(("In", "In", "Exists", "NotIn", "DoesNotExist", "Gt"))
    if operator == "Gt":
        return {"key": "size", "operator": "Gt", "values": [dice.pick(("0", "2"))]}
    values = [dice.pick(_VALUES[key])] if operator.endswith("In") else []
    return {"key": key, "operator": operator, "values": values}


def _term(dice: Dice) -> Json:
    term: Json = {"matchExpressions": [_requirement(dice) for _ in range(dice.pick((1, 1, 2, 0)))]}
    if dice.chance(5):
        field = {"key": "metadata.name", "operator": dice.pick(("In", "NotIn")), "values": [dice.pick(NAMES)]}
        term["matchFields"] = [field]
    return term


def choosy_pod(dice: Dice, words: Words) -> Json:
    spec: Json = {}
    if dice.chance(3):
        labels = _labels(dice)
        spec["nodeSelector"] = {key: labels[key] for key in dice.some(list(labels), 1)}
    affinity: Json = {}
    if dice.chance(2):
        terms = [_term(dice) for _ in range(dice.count(2, least=1))]
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if dice.chance(2):
        liked = [{"weight": dice.pick((1, 50)), "preference": _term(dice)} for _ in range(dice.count(2))]
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = liked
    if affinity:
        spec["affinity"] = {"nodeAffinity": affinity}
    return {"spec": spec}


def relabelled(dice: Dice, words: Words, raw: Json) -> Json:
    if raw["kind"] != "Node":
        return {}
    key = dice.pick(tuple(_VALUES))
    return {"metadata": {"labels": {key: dice.pick((*_VALUES[key], None))}}}


def worded(dice: Dice, words: Words) -> Json:
    """A node or a pod with labels and annotations that the plugin itself may be looking for."""
    labels, notes = (
        {key: dice.pick(values) for key, values in words.labels.items() if dice.chance(rarely)} for rarely in (2, 4)
    )
    return {"metadata": {"labels": labels, **({"annotations": notes} if notes else {})}}


def reworded(dice: Dice, words: Words, raw: Json) -> Json:
    if raw["kind"] not in ("Node", "Pod") or not words.labels:
        return {}
    key = dice.pick(tuple(words.labels))
    return {"metadata": {dice.pick(("labels", "labels", "annotations")): {key: dice.pick((*words.labels[key], None))}}}


def named_pod(dice: Dice, words: Words) -> Json:
    """A pod that names its node itself."""
    return {"spec": {"nodeName": dice.pick((*NAMES, "elsewhere"))}} if dice.chance(3) else {}


# ── taints ───────────────────────────────────────────────────────────────────────────────────────────────────


def _taint(dice: Dice) -> Json:
    effect = dice.pick(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    return {"key": dice.pick(("gpu", "team")), "value": dice.pick(("", "a")), "effect": effect}


def _taints(dice: Dice) -> list[Json]:
    return [_taint(dice) for _ in range(dice.count(2))]


def tainted_node(dice: Dice, words: Words) -> Json:
    return {"spec": {"taints": _taints(dice), **({"unschedulable": True} if dice.chance(3) else {})}}


def _toleration(dice: Dice) -> Json:
    toleration: Json = {"key": dice.pick(("gpu", "team", UNSCHEDULABLE, "")), "operator": "Exists"}
    if toleration["key"] and dice.chance(2):
        toleration |= {"operator": "Equal", "value": dice.pick(("", "a"))}
    if dice.chance(2):
        toleration["effect"] = dice.pick(("NoSchedule", "NoExecute", "PreferNoSchedule"))
    return toleration


def tolerant_pod(dice: Dice, words: Words) -> Json:
    return {"spec": {"tolerations": [_toleration(dice) for _ in range(dice.count(2))]}}


def retainted(dice: Dice, words: Words, raw: Json) -> Json:
    """A node's taints change, or it is opened; a pod tolerates more."""
    if raw["kind"] == "Node":
        return dice.pick(({"spec": {"taints": _taints(dice)}}, {"spec": {"unschedulable": dice.chance(4)}}))
    if raw["kind"] == "Pod":
        return {"spec": {"tolerations": [*raw["spec"].get("tolerations", ()), _toleration(dice)]}}
    return {}


# ── resources ────────────────────────────────────────────────────────────────────────────────────────────────


def _amounts(dice: Dice, options: Sequence[str | int]) -> Json:
    return {name: str(dice.pick(options)) for name in dice.some(RESOURCES, 3)}


def sized_node(dice: Dice, words: Words) -> Json:
    few = {"pods": dice.pick(("110", "1", "3")), "cpu": dice.pick(("8", "2", "1"))}
    return {"status": {"allocatable": {**few, **_amounts(dice, (2, 4, 0, 8))}}}


def _requests(dice: Dice) -> Json:
    cpu = {"cpu": dice.pick(("1", "3"))} if dice.chance(4) else {}
    return {"requests": {**cpu, **_amounts(dice, (1, 2, 0, "1500m", 6))}}


def sized_pod(dice: Dice, words: Words) -> Json:
    spec: Json = {"containers": [{"name": "c", "resources": _requests(dice)}]}
    if dice.chance(4):
        sidecar = {"restartPolicy": "Always"} if dice.chance(2) else {}
        spec["initContainers"] = [{"name": "i", "resources": _requests(dice), **sidecar}]
    if dice.chance(6):
        spec["overhead"] = {"cpu": "1"}
    if dice.chance(6):
        spec["resources"] = {"requests": {"cpu": dice.pick(("1", "4"))}}
    return {"spec": spec}


def resized(dice: Dice, words: Words, raw: Json) -> Json:
    """A node grows or shrinks; a pod asks for less."""
    if raw["kind"] == "Node":
        return {"status": {"allocatable": {dice.pick((*RESOURCES, "pods")): dice.pick(("8", "3", "0"))}}}
    if raw["kind"] == "Pod":
        first, *rest = raw["spec"]["containers"]
        requests = first.get("resources", {}).get("requests", {})
        resizable = [name for name in ("cpu", "memory") if name in requests]
        if resizable:
            less = {**requests, dice.pick(resizable): "0"}
            return {"spec": {"containers": [{**first, "resources": {"requests": less}}, *rest]}}
    if raw["kind"] == "DeviceClass":
        return {"spec": {"extendedResourceName": dice.pick((*_DEVICES, None))}}
    return {}


def device_classes(dice: Dice, words: Words, names: Sequence[str]) -> list[Json]:
    if not dice.chance(3):
        return []
    spec = {"extendedResourceName": dice.pick(_DEVICES)}
    return [{"kind": "DeviceClass", "metadata": {"name": "gpus", "uid": "uid-of-gpus"}, "spec": spec}]


def claiming_pod(dice: Dice, words: Words) -> Json:
    if not dice.chance(3):
        return {}
    return {"spec": {"resourceClaims": [{"name": "device", "resourceClaimName": dice.pick(("gpu-a", "gpu-b"))}]}}


# ── ports, images, features, gates ───────────────────────────────────────────────────────────────────────────


def listening_pod(dice: Dice, words: Words) -> Json:
    ports = [
        {
            "containerPort": 80,
            "hostPort": dice.pick((80, 81, 0)),
            "hostIP": dice.pick(("", "10.0.0.1", "10.0.0.2")),
            "protocol": dice.pick(("TCP", "UDP")),
        }
        for _ in range(dice.count(2))
    ]
    return {"spec": {"containers": [{"name": "c", "ports": ports}]}} if ports else {}


def _images(dice: Dice) -> Json:
    sizes = (50 << 20, 900 << 20, 1)
    stock = dice.some(("web:1", "web:latest", "db:2"))
    return {"images": [{"names": [image], "sizeBytes": dice.pick(sizes)} for image in stock]}


def stocked_node(dice: Dice, words: Words) -> Json:
    return {"status": _images(dice)}


def imaged_pod(dice: Dice, words: Words) -> Json:
    return {"spec": {"containers": [{"name": "c", "image": dice.pick(("web:1", "web", "db:2", "other"))}]}}


def restocked(dice: Dice, words: Words, raw: Json) -> Json:
    return {"status": _images(dice)} if raw["kind"] == "Node" else {}


def able_node(dice: Dice, words: Words) -> Json:
    return {"status": {"declaredFeatures": dice.some(FEATURES)}}


def demanding_pod(dice: Dice, words: Words) -> Json:
    spec: Json = {}
    if dice.chance(2):
        spec["containers"] = [{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]
    if dice.chance(2):
        spec |= {"hostNetwork": True, "hostUsers": False}
    return {"spec": spec}


def enabled(dice: Dice, words: Words, raw: Json) -> Json:
    return {"status": {"declaredFeatures": dice.some(FEATURES)}} if raw["kind"] == "Node" else {}


def gated_pod(dice: Dice, words: Words) -> Json:
    return {"spec": {"schedulingGates": [{"name": "example.com/quota"}]}} if dice.chance(2) else {}


def ungated(dice: Dice, words: Words, raw: Json) -> Json:
    return {"spec": {"schedulingGates": None}} if raw.get("spec", {}).get("schedulingGates") else {}


# ── who it belongs to, whether it is well, and whether it is going ───────────────────────────────────────────


def _conditions(dice: Dice) -> Json:
    kinds = (("Ready", ("True", "False", "Unknown")), ("DiskPressure", ("False", "True")))
    conditions = [{"type": kind, "status": dice.pick(states)} for kind, states in kinds if not dice.chance(4)]
    return {"status": {"conditions": conditions}}


def unwell_node(dice: Dice, words: Words) -> Json:
    return _conditions(dice)


def recovered(dice: Dice, words: Words, raw: Json) -> Json:
    return _conditions(dice) if raw["kind"] == "Node" else {}


def aged_node(dice: Dice, words: Words) -> Json:
    return {"metadata": {"creationTimestamp": f"2026-01-0{dice.count(3, least=1)}T00:00:00Z"}}


def owned_pod(dice: Dice, words: Words) -> Json:
    """A pod of some age, that belongs to somebody, in one of two name spaces."""
    metadata: Json = {"creationTimestamp": f"2026-01-0{dice.count(3, least=1)}T00:00:00Z"}
    if dice.chance(2):
        kind, name = dice.pick((("ReplicaSet", "web"), ("ReplicaSet", "db"), ("DaemonSet", "agent"), ("Job", "once")))
        owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-of-{name}", "controller": True}
        metadata["ownerReferences"] = [owner]
    if dice.chance(3):
        metadata["namespace"] = "other"
    return {"metadata": metadata}


def going_pod(dice: Dice, words: Words) -> Json:
    return {"metadata": {"deletionTimestamp": "2026-01-02T00:00:00Z"}} if dice.chance(3) else {}


def gone(dice: Dice, words: Words, raw: Json) -> Json:
    """A pod on a node is told to go, or has done its work."""
    if raw["kind"] != "Pod" or not raw["spec"].get("nodeName"):
        return {}
    done = {"status": {"phase": dice.pick(("Succeeded", "Failed"))}}
    return dice.pick((done, {"metadata": {"deletionTimestamp": "2026-01-02T00:00:00Z"}}))


# ── neighbours ───────────────────────────────────────────────────────────────────────────────────────────────


def zoned_node(dice: Dice, words: Words) -> Json:
    zone = dice.pick(("za", "zb", "zc", ""))
    return {"metadata": {"labels": {ZONE: zone}}} if zone else {}


def _selector(dice: Dice) -> Json:
    app = dice.pick(APPS)
    if dice.chance(5):
        operator = dice.pick(("In", "NotIn", "Exists"))
        values = [app] if operator != "Exists" else []
        return {"matchExpressions": [{"key": "app", "operator": operator, "values": values}]}
    return {"matchLabels": {"app": app}}


def _key(dice: Dice) -> str:
    return dice.pick((ZONE, HOSTNAME))


def spreading_pod(dice: Dice, words: Words) -> Json:
    constraints = []
    for _ in range(dice.count(2)):
        constraint = {
            "topologyKey": _key(dice),
            "maxSkew": dice.pick((1, 2)),
            "whenUnsatisfiable": dice.pick(("DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": _selector(dice),
        }
        if constraint["whenUnsatisfiable"] == "DoNotSchedule" and dice.chance(4):
            constraint["minDomains"] = 2
        if dice.chance(4):
            constraint["nodeTaintsPolicy"] = "Honor"
        constraints.append(constraint)
    return {
        "metadata": {"labels": {"app": dice.pick(APPS)}},
        "spec": {"topologySpreadConstraints": constraints} if constraints else {},
    }


def services(dice: Dice, words: Words, names: Sequence[str]) -> list[Json]:
    if not dice.chance(4):
        return []
    metadata = {"name": "front", "namespace": "default", "uid": "uid-of-front"}
    return [{"kind": "Service", "metadata": metadata, "spec": {"selector": {"app": dice.pick(APPS)}}}]


def _near(dice: Dice) -> Json:
    term: Json = {"topologyKey": _key(dice), "labelSelector": _selector(dice)}
    if dice.chance(4):
        term["namespaceSelector"] = dice.pick(({}, {"matchLabels": {"team": "a"}}))
    elif dice.chance(6):
        term["namespaces"] = ["default", "other"]
    return term


def sociable_pod(dice: Dice, words: Words) -> Json:
    affinity: Json = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        if dice.chance(3):
            terms = [_near(dice) for _ in range(dice.count(2, least=1))]
            affinity.setdefault(kind, {})["requiredDuringSchedulingIgnoredDuringExecution"] = terms
        if dice.chance(2):
            liked = [{"weight": dice.pick((1, 50)), "podAffinityTerm": _near(dice)}]
            affinity.setdefault(kind, {})["preferredDuringSchedulingIgnoredDuringExecution"] = liked
    return {
        "metadata": {"labels": {"app": dice.pick(APPS)}},
        "spec": {"affinity": affinity} if affinity else {},
    }


def namespaces(dice: Dice, words: Words, names: Sequence[str]) -> list[Json]:
    labels = {"team": dice.pick(("a", "b"))} if dice.chance(2) else {}
    return [{"kind": "Namespace", "metadata": {"name": "default", "uid": "uid-of-default", "labels": labels}}]


def moved(dice: Dice, words: Words, raw: Json) -> Json:
    """A node moves to another zone; a pod becomes another app."""
    if raw["kind"] == "Node":
        return {"metadata": {"labels": {ZONE: dice.pick(("za", "zb", "zc", None))}}}
    if raw["kind"] == "Pod":
        return {"metadata": {"labels": {"app": dice.pick((*APPS, None))}}}
    if raw["kind"] == "Namespace":
        return {"metadata": {"labels": {"team": dice.pick(("a", "b", None))}}}
    return {}


# ── ranks ────────────────────────────────────────────────────────────────────────────────────────────────────


def small_node(dice: Dice, words: Words) -> Json:
    return {"status": {"allocatable": {"cpu": dice.pick(("4", "2", "6"))}}}


def ranked_pod(dice: Dice, words: Words) -> Json:
    spec: Json = {
        "priority": dice.pick((0, 0, 10, 1000, -5)),
        "containers": [{"name": "c", "resources": {"requests": {"cpu": dice.pick(("1", "2", "3"))}}}],
    }
    if dice.chance(6):
        spec["preemptionPolicy"] = "Never"
    return {
        "metadata": {"labels": {"app": dice.pick(APPS)}},
        "spec": spec,
        "status": {"startTime": f"2026-01-01T0{dice.count(3)}:00:00Z"},
    }


def budgets(dice: Dice, words: Words, names: Sequence[str]) -> list[Json]:
    if not dice.chance(2):
        return []
    app = dice.pick(APPS)
    return [
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": app, "namespace": "default", "uid": f"uid-of-{app}"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": dice.count(1)},
        }
    ]
