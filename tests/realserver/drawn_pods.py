"""Drawn pods and nodes: how they are made, changed and reported on.

What a scheduler reads is drawn in all its variety, right and wrong: quantities, affinities, spreading, tolerations,
gates, priorities, volumes.  The rest is as small as it may be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.realserver.likeness import Edit

Json = dict[str, Any]

CPU = ("100m", "0.5", "1", 2, "1e3", "0.0001", "1500m", "2k", "0.10")
MEMORY = ("64Mi", "1024Mi", "1Gi", "1000000k", "1.5Gi", 1048576, "1e6", "128974848", "0.5Gi")
WRONG_AMOUNTS = ("-1", "abc", "1.5.5", "", "1 Gi")
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
LABELS: tuple[Json, ...] = ({"app": "a"}, {"app": "b"}, {"app": "a", "tier": "x"}, {})


@dataclass(frozen=True)
class Kind:
    """One kind in drawn requests.

    edits: what may be changed in an object of it; statuses: what is reported of it; selectors: fields to select by.
    """

    version: str
    kind: str
    plural: str
    weight: int
    make: Callable[[Random, str], Json]
    edits: Sequence[Callable[[Random], Edit]]
    namespaced: bool = True
    names: Sequence[str] = ("a", "b", "c")
    statuses: Sequence[Json] = ()
    selectors: Sequence[str] = ("metadata.namespace=here",)

    @property
    def root(self) -> str:
        return f"/apis/{self.version}" if "/" in self.version else f"/api/{self.version}"


def meta(luck: Random, name: str) -> Json:
    made: Json = {"name": name}
    if luck.random() < 0.6:
        made["labels"] = dict(luck.choice(LABELS))
    if luck.random() < 0.05:
        made["annotations"] = {"example.com/note": "kept"}
    if luck.random() < 0.04:
        made["finalizers"] = ["example.com/hold"]
    if luck.random() < 0.03:
        made["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u-1", "controller": True}]
    return made


def to(*path: str | int, of: Sequence[Any]) -> Callable[[Random], Edit]:
    """An edit that puts one of these values at a path."""
    return lambda luck: Edit(path, luck.choice(of))


LABEL_EDITS = (
    to("metadata", "labels", "app", of=["a", "b", None]),
    to("metadata", "annotations", "note", of=["1", "2"]),
)


# ── pods ────────────────────────────────────────────────────────────────────────────────────────────────────


def amounts(luck: Random) -> Json:
    made: Json = {}
    if luck.random() < 0.8:
        made["cpu"] = luck.choice(CPU)
    if luck.random() < 0.7:
        made["memory"] = luck.choice(MEMORY)
    if luck.random() < 0.08:
        made[luck.choice(["example.com/gpu", "hugepages-2Mi", "ephemeral-storage", "gpu", "storage"])] = luck.choice(
            ["1", "2Mi", "0.5"]
        )
    if made and luck.random() < 0.04:
        made[luck.choice(sorted(made))] = luck.choice(WRONG_AMOUNTS)
    return made


def container(luck: Random, name: str) -> Json:
    made: Json = {"name": name, "image": luck.choice(["nginx", "nginx:1.27", "nginx:latest", "pause:3.10"])}
    resources: Json = {}
    if luck.random() < 0.7:
        resources["requests"] = amounts(luck)
    if luck.random() < 0.3:
        resources["limits"] = amounts(luck)
    if resources:
        made["resources"] = resources
    if luck.random() < 0.15:
        made["ports"] = [{"containerPort": luck.choice([80, 8080, 0, 70000]), **luck.choice([{}, {"hostPort": 80}])}]
    return made


def expressions(luck: Random) -> list[Json]:
    return [
        luck.choice(
            [
                {"key": ZONE, "operator": "In", "values": ["za", "zb"]},
                {"key": ZONE, "operator": "NotIn", "values": ["zc"]},
                {"key": "disk", "operator": "Exists"},
                {"key": "disk", "operator": "DoesNotExist"},
                {"key": "size", "operator": "Gt", "values": ["3"]},
                {"key": "size", "operator": "Lt", "values": ["x"]},
                {"key": "disk", "operator": "In", "values": []},
                {"key": "disk", "operator": "Exists", "values": ["x"]},
                {"key": "disk", "operator": "Like", "values": ["x"]},
                {"key": "bad key!", "operator": "Exists"},
            ]
        )
        for _ in range(luck.randint(0, 2))
    ]


def node_affinity(luck: Random) -> Json:
    made: Json = {}
    if luck.random() < 0.7:
        terms = [{"matchExpressions": expressions(luck)} for _ in range(luck.choice([1, 1, 1, 2, 0]))]
        if terms and luck.random() < 0.1:
            terms[0] = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}
        made["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if luck.random() < 0.4:
        weight = luck.choice([1, 50, 100, 0, 101])
        made["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": weight, "preference": {"matchExpressions": expressions(luck)}}
        ]
    return made


def selector(luck: Random) -> Json:
    return luck.choice(
        [
            {"matchLabels": {"app": "a"}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]},
            {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "app", "operator": "In"}]},
            {"matchLabels": {"app": "not a value!"}},
            {},
        ]
    )


def pod_term(luck: Random) -> Json:
    term: Json = {"labelSelector": selector(luck), "topologyKey": luck.choice([ZONE, HOST, HOST, ""])}
    if luck.random() < 0.2:
        term["matchLabelKeys"] = luck.choice([["tier"], ["missing"], ["app"]])
    if luck.random() < 0.1:
        term["namespaceSelector"] = {}
    if luck.random() < 0.1:
        term["namespaces"] = ["there"]
    return term


def pod_affinity(luck: Random) -> Json:
    if luck.random() < 0.5:
        return {"requiredDuringSchedulingIgnoredDuringExecution": [pod_term(luck)]}
    weight = luck.choice([1, 100, 0, 101])
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": pod_term(luck)}]}


def spread(luck: Random) -> Json:
    made: Json = {
        "maxSkew": luck.choice([1, 1, 5, 0]),
        "topologyKey": luck.choice([ZONE, HOST, ""]) if luck.random() < 0.3 else ZONE,
        "whenUnsatisfiable": luck.choice(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway", "Never"]),
        "labelSelector": selector(luck),
    }
    if luck.random() < 0.2:
        made["minDomains"] = luck.choice([1, 3, 0])
    if luck.random() < 0.2:
        made["nodeTaintsPolicy"] = luck.choice(["Honor", "Ignore", "Other"])
    if luck.random() < 0.2:
        made["matchLabelKeys"] = luck.choice([["tier"], ["app"]])
    return made


TOLERATIONS = (
    {"operator": "Exists"},
    {"key": "dedicated", "operator": "Equal", "value": "x", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
    {"key": "k", "operator": "Exists", "value": "v"},
    {"key": "k", "effect": "NoSchedule", "tolerationSeconds": 5},
    {"key": "k", "operator": "Near"},
    {"operator": "Equal", "value": "x"},
)
VOLUMES = (
    {"name": "v", "persistentVolumeClaim": {"claimName": "a"}},
    {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}},
    {"name": "v", "configMap": {"name": "c"}},
    {
        "name": "v",
        "ephemeral": {
            "volumeClaimTemplate": {
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            }
        },
    },
    {"name": "v", "csi": {"driver": "example.com"}},
    {"name": "v"},
    {"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}},
)

# field of the spec → how it is drawn, and how often a pod has it
POD_FIELDS: dict[str, tuple[float, Callable[[Random], Any]]] = {
    "nodeSelector": (0.15, lambda luck: luck.choice([{"disk": "ssd"}, {ZONE: "za"}, {"bad key!": "x"}])),
    "tolerations": (0.2, lambda luck: [dict(luck.choice(TOLERATIONS))]),
    "topologySpreadConstraints": (0.2, lambda luck: [spread(luck) for _ in range(luck.choice([1, 1, 2]))]),
    "priorityClassName": (0.15, lambda luck: luck.choice(["high", "low", "system-node-critical", "nope"])),
    "priority": (0.04, lambda luck: luck.choice([0, 7, 1000])),
    "preemptionPolicy": (0.04, lambda luck: luck.choice(["Never", "PreemptLowerPriority", "Sometimes"])),
    "schedulingGates": (0.12, lambda luck: [{"name": luck.choice(["example.com/g", "g", "bad gate!"])}]),
    "nodeName": (0.15, lambda luck: luck.choice(["n0", "n1", "gone"])),
    "hostNetwork": (0.05, lambda luck: True),
    "restartPolicy": (0.1, lambda luck: luck.choice(["Never", "OnFailure", "Always", "Perhaps"])),
    "terminationGracePeriodSeconds": (0.1, lambda luck: luck.choice([0, 5, -1])),
    "activeDeadlineSeconds": (0.04, lambda luck: luck.choice([60, 0])),
    "runtimeClassName": (0.06, lambda luck: luck.choice(["sandbox", "nope"])),
    "overhead": (0.02, lambda luck: {"cpu": "10m"}),
    "schedulerName": (0.1, lambda luck: luck.choice(["mine", "", "default-scheduler"])),
    "volumes": (0.15, lambda luck: [dict(luck.choice(VOLUMES))]),
    "serviceAccountName": (0.05, lambda luck: "robot"),
    "resourceClaims": (
        0.05,
        lambda luck: [
            {"name": "r", **luck.choice([{"resourceClaimName": "a"}, {"resourceClaimTemplateName": "t"}, {}])}
        ],
    ),
    "initContainers": (0.12, lambda luck: [{**container(luck, "i"), **luck.choice([{}, {"restartPolicy": "Always"}])}]),
    "os": (0.03, lambda luck: {"name": luck.choice(["linux", "windows", "beos"])}),
    "hostname": (0.03, lambda luck: luck.choice(["web", "Not_A_Host"])),
    "resources": (0.06, lambda luck: {"requests": amounts(luck)}),
}


def pod_spec(luck: Random) -> Json:
    names = luck.choice([["c"], ["c"], ["c"], ["c", "d"], ["c", "c"]])
    spec: Json = {"containers": [container(luck, name) for name in names]}
    for name, (chance, draw) in POD_FIELDS.items():
        if luck.random() < chance / 2:
            spec[name] = draw(luck)
    affinity = {}
    if luck.random() < 0.12:
        affinity["nodeAffinity"] = node_affinity(luck)
    for name in ("podAffinity", "podAntiAffinity"):
        if luck.random() < 0.08:
            affinity[name] = pod_affinity(luck)
    if affinity:
        spec["affinity"] = affinity
    return spec


def pod(luck: Random, name: str) -> Json:
    made = {"metadata": meta(luck, name), "spec": pod_spec(luck)}
    if luck.random() < 0.05:
        made["status"] = {"phase": "Running"}
    return made


POD_EDITS = (
    *LABEL_EDITS,
    to("spec", "containers", 0, "image", of=["nginx:2", "", "pause:3.10"]),
    to("spec", "containers", 0, "resources", "requests", "cpu", of=["7", "100m"]),
    to("spec", "tolerations", of=[[{"operator": "Exists"}], [], [dict(TOLERATIONS[1])]]),
    to("spec", "schedulingGates", of=[[], None, [{"name": "example.com/new"}], [{"name": "example.com/g"}]]),
    to("spec", "nodeName", of=["n0", None]),
    to("spec", "nodeSelector", of=[{"disk": "ssd"}, {"disk": "hdd", ZONE: "za"}, None]),
    to("spec", "priority", of=[7]),
    to("spec", "activeDeadlineSeconds", of=[60, 30, None]),
    to("spec", "terminationGracePeriodSeconds", of=[1, 30]),
    lambda luck: Edit(("spec", "affinity"), {"nodeAffinity": node_affinity(luck)}),
    lambda luck: Edit(("spec", "topologySpreadConstraints"), [spread(luck)]),
)
POD_STATUSES = (
    {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    {"phase": "Succeeded"},
    {"phase": "Failed", "reason": "Evicted"},
    {"phase": "Sleeping"},
    {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no"}]},
    {"conditions": [{"type": "PodScheduled", "status": "Perhaps"}]},
    {"nominatedNodeName": "n1"},
    {"podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}], "hostIP": "10.1.0.1"},
)
POD_SELECTORS = (
    "spec.nodeName=n0",
    "spec.nodeName=",
    "spec.nodeName!=n0",
    "status.phase=Running",
    "status.phase!=Pending",
    "spec.schedulerName=mine",
    "status.nominatedNodeName=n1",
)


# ── nodes ───────────────────────────────────────────────────────────────────────────────────────────────────

TAINTS = (
    {"key": "dedicated", "value": "x", "effect": "NoSchedule"},
    {"key": "dedicated", "effect": "NoExecute"},
    {"key": "dedicated", "effect": "NoGo"},
    {"key": "bad key!", "effect": "NoSchedule"},
    {"effect": "NoSchedule"},
)


def node(luck: Random, name: str) -> Json:
    labels = {HOST: name, ZONE: luck.choice(["za", "zb"]), **luck.choice([{}, {"disk": "ssd"}])}
    made: Json = {"metadata": {**meta(luck, name), "labels": labels}}
    spec: Json = {}
    if luck.random() < 0.3:
        spec["taints"] = [dict(luck.choice(TAINTS)) for _ in range(luck.choice([1, 1, 2]))]
    if luck.random() < 0.2:
        spec["unschedulable"] = True
    if luck.random() < 0.1:
        spec["podCIDR"] = luck.choice(["10.1.0.0/24", "10.1.0.0"])
    if spec:
        made["spec"] = spec
    if luck.random() < 0.7:
        room = {**amounts(luck), "pods": luck.choice(["110", 110, "0"])}
        made["status"] = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
        if luck.random() < 0.2:
            made["status"]["images"] = [{"names": ["nginx:1.27"], "sizeBytes": 1000}]
    return made


NODE_EDITS = (
    *LABEL_EDITS,
    to("spec", "unschedulable", of=[True, None]),
    to("spec", "taints", of=[[dict(TAINTS[0])], None, [dict(TAINTS[2])], [dict(TAINTS[0]), dict(TAINTS[0])]]),
    to("spec", "podCIDR", of=["10.2.0.0/24"]),
    to("spec", "providerID", of=["a://1", "a://2"]),
    to("metadata", "labels", ZONE, of=["za", "zc"]),
)
NODE_STATUSES = (
    {"conditions": [{"type": "Ready", "status": "False"}]},
    {"allocatable": {"cpu": "0.5", "memory": "1024Mi"}, "capacity": {"cpu": 1}},
    {"allocatable": {"cpu": "-1"}},
    {"addresses": [{"type": "InternalIP", "address": "10.1.0.1"}]},
)
