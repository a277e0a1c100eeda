"""Drawn objects of every other kind that a scheduler reads, and the table of all kinds."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.realserver.drawn_pods import (
    LABEL_EDITS,
    NODE_EDITS,
    NODE_STATUSES,
    POD_EDITS,
    POD_SELECTORS,
    POD_STATUSES,
    TOLERATIONS,
    ZONE,
    Kind,
    meta,
    node,
    pod,
    pod_spec,
    selector,
    to,
)

Json = dict[str, Any]


def priority_class(luck: Random, name: str) -> Json:
    made: Json = {"metadata": meta(luck, name), "value": luck.choice([1000, -5, 0, 1_000_000_001])}
    if luck.random() < 0.2:
        made["globalDefault"] = luck.choice([True, False])
    if luck.random() < 0.3:
        made["preemptionPolicy"] = luck.choice(["Never", "PreemptLowerPriority", "Sometimes"])
    return made


def budget(luck: Random, name: str) -> Json:
    spec: Json = luck.choice(
        [
            {"minAvailable": 1},
            {"maxUnavailable": "50%"},
            {"maxUnavailable": -1},
            {"minAvailable": "x"},
            {"minAvailable": 1, "maxUnavailable": 1},
            {},
        ]
    )
    return {"metadata": meta(luck, name), "spec": {**spec, "selector": selector(luck)}}


def claim(luck: Random, name: str) -> Json:
    spec: Json = {
        "accessModes": luck.choice([["ReadWriteOnce"], ["ReadWriteMany", "ReadOnlyMany"], ["Other"], []]),
        "resources": {"requests": {"storage": luck.choice(["1Gi", "1024Mi", "0.5Gi", "-1", "0"])}},
    }
    if luck.random() < 0.5:
        spec["storageClassName"] = luck.choice(["slow", "", "fast"])
    if luck.random() < 0.1:
        spec["volumeName"] = "a"
    if luck.random() < 0.1:
        spec["volumeMode"] = luck.choice(["Block", "Other"])
    if luck.random() < 0.05:
        spec.pop("resources")
    return {"metadata": meta(luck, name), "spec": spec}


def volume(luck: Random, name: str) -> Json:
    spec: Json = {"capacity": {"storage": luck.choice(["1Gi", "2048Mi", "-1"])}, "accessModes": ["ReadWriteOnce"]}
    spec |= luck.choice(
        [
            {"hostPath": {"path": "/x"}},
            {"csi": {"driver": "example.com", "volumeHandle": "h"}},
            {},
            {"local": {"path": "/x"}},
            {"nfs": {"server": "s", "path": "/x"}},
        ]
    )
    if luck.random() < 0.4:
        terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["za"]}]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    if luck.random() < 0.3:
        spec["storageClassName"] = "slow"
    if luck.random() < 0.2:
        spec["persistentVolumeReclaimPolicy"] = luck.choice(["Delete", "Recycle", "Other"])
    return {"metadata": meta(luck, name), "spec": spec}


def storage_class(luck: Random, name: str) -> Json:
    made: Json = {"metadata": meta(luck, name), "provisioner": luck.choice(["example.com/disk", ""])}
    if luck.random() < 0.6:
        made["volumeBindingMode"] = luck.choice(["WaitForFirstConsumer", "Immediate", "Later"])
    if luck.random() < 0.1:
        made["metadata"].setdefault("annotations", {})["storageclass.kubernetes.io/is-default-class"] = "true"
    if luck.random() < 0.2:
        made["allowedTopologies"] = [{"matchLabelExpressions": [{"key": ZONE, "values": luck.choice([["za"], []])}]}]
    return made


def csi_node(luck: Random, name: str) -> Json:
    driver: Json = {"name": "example.com", "nodeID": name, "topologyKeys": [ZONE]}
    if luck.random() < 0.5:
        driver["allocatable"] = {"count": luck.choice([3, -1])}
    return {"metadata": {"name": name}, "spec": {"drivers": luck.choice([[driver], [driver, driver], []])}}


def csi_driver(luck: Random, name: str) -> Json:
    return {
        "metadata": meta(luck, name),
        "spec": luck.choice([{}, {"storageCapacity": True}, {"attachRequired": False}]),
    }


def csi_capacity(luck: Random, name: str) -> Json:
    return {
        "metadata": meta(luck, name),
        "storageClassName": luck.choice(["slow", ""]),
        "capacity": luck.choice(["10Gi", "-1", "0.5Gi"]),
        "nodeTopology": selector(luck),
    }


def runtime_class(luck: Random, name: str) -> Json:
    made: Json = {"metadata": meta(luck, name), "handler": luck.choice(["runsc", "Not_A_Handler"])}
    if luck.random() < 0.6:
        made["overhead"] = {"podFixed": {"cpu": luck.choice(["10m", "0.5"])}}
    if luck.random() < 0.4:
        made["scheduling"] = {"nodeSelector": {"sandbox": "yes"}, "tolerations": [dict(luck.choice(TOLERATIONS))]}
    return made


def template(luck: Random, labels: Json) -> Json:
    spec = pod_spec(luck)
    spec.pop("activeDeadlineSeconds", None)
    return {"metadata": {"labels": labels}, "spec": spec}


def workload(luck: Random, name: str) -> Json:
    app = luck.choice("ab")
    spec: Json = {
        "selector": {"matchLabels": {"app": app}},
        "template": template(luck, {"app": luck.choice([app] * 9 + ["z"])}),
    }
    if luck.random() < 0.6:
        spec["replicas"] = luck.choice([0, 1, 3, -1])
    if luck.random() < 0.1:
        spec["minReadySeconds"] = luck.choice([5, -1])
    return {"metadata": meta(luck, name), "spec": spec}


def stateful(luck: Random, name: str) -> Json:
    made = workload(luck, name)
    made["spec"]["serviceName"] = "s"
    return made


def daemon(luck: Random, name: str) -> Json:
    made = workload(luck, name)
    made["spec"].pop("replicas", None)
    return made


def job(luck: Random, name: str) -> Json:
    spec: Json = {"template": template(luck, {})}
    spec["template"]["spec"]["restartPolicy"] = luck.choice(["Never", "OnFailure", "Always"])
    for field_name, of in (
        ("parallelism", [2, -1]),
        ("completions", [3, 0]),
        ("backoffLimit", [1]),
        ("suspend", [True]),
    ):
        if luck.random() < 0.3:
            spec[field_name] = luck.choice(of)
    if luck.random() < 0.2:
        spec["completionMode"] = luck.choice(["Indexed", "Other"])
    return {"metadata": meta(luck, name), "spec": spec}


def config_map(luck: Random, name: str) -> Json:
    made: Json = {"metadata": meta(luck, name), "data": luck.choice([{"a": "1"}, {}, {"bad key!": "x"}])}
    if luck.random() < 0.2:
        made["immutable"] = True
    return made


def lease(luck: Random, name: str) -> Json:
    spec = {"holderIdentity": luck.choice(["me", "you"]), "leaseDurationSeconds": luck.choice([15, 0])}
    return {"metadata": meta(luck, name), "spec": spec}


def device_class(luck: Random, name: str) -> Json:
    cel = {"cel": {"expression": 'device.driver == "gpu.example.com"'}}
    return {"metadata": meta(luck, name), "spec": {"selectors": luck.choice([[cel], []])}}


def resource_claim(luck: Random, name: str) -> Json:
    exactly: Json = {"deviceClassName": luck.choice(["a", "b", ""])}
    if luck.random() < 0.4:
        exactly["allocationMode"] = luck.choice(["ExactCount", "All", "Some"])
    if luck.random() < 0.3:
        exactly["count"] = luck.choice([1, 2, 0])
    request: Json = {"name": luck.choice(["gpu", "gpu", "Not_A_Name"]), "exactly": exactly}
    return {"metadata": meta(luck, name), "spec": {"devices": {"requests": [request]}}}


def resource_slice(luck: Random, name: str) -> Json:
    spec: Json = {"driver": "gpu.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}
    spec |= luck.choice([{"nodeName": "n0"}, {"allNodes": True}, {}, {"nodeName": "n0", "allNodes": True}])
    spec["devices"] = luck.choice([[], [{"name": "d0"}], [{"name": "d0"}, {"name": "d0"}]])
    return {"metadata": meta(luck, name), "spec": spec}


def service(luck: Random, name: str) -> Json:
    port: Json = {"port": luck.choice([80, 0, 70000]), **luck.choice([{}, {"targetPort": "web"}])}
    return {
        "metadata": meta(luck, name),
        "spec": {"selector": {"app": "a"}, "ports": [port], **luck.choice([{}, {"clusterIP": "None"}])},
    }


WORKLOAD_EDITS = (
    *LABEL_EDITS,
    to("spec", "replicas", of=[0, 2, -1, None]),
    to("spec", "selector", of=[{"matchLabels": {"app": "other"}}]),
    to("spec", "template", "spec", "schedulerName", of=["mine"]),
    to("spec", "template", "metadata", "labels", "app", of=["z"]),
    to("spec", "template", "spec", "containers", 0, "image", of=["nginx:2"]),
)
CLAIM_EDITS = (
    *LABEL_EDITS,
    to("spec", "resources", "requests", "storage", of=["2Gi", "1Mi"]),
    to("spec", "volumeName", of=["a"]),
    to("spec", "storageClassName", of=["other"]),
    to("metadata", "annotations", "volume.kubernetes.io/selected-node", of=["n0"]),
)
CLAIM_STATUSES = (
    {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1024Mi"}},
    {"phase": "Odd"},
)
BUDGET_STATUSES = (
    {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2},
    {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
)

BATCH, APPS, STORAGE, DEVICES = "batch/v1", "apps/v1", "storage.k8s.io/v1", "resource.k8s.io/v1"
NODE_NAMES = ("n0", "n1", "n2")
CLASS_EDITS = (*LABEL_EDITS, to("value", of=[7, 1000]), to("description", of=["x"]), to("globalDefault", of=[True]))
PLAIN = LABEL_EDITS

KINDS = [
    Kind(
        "v1",
        "Pod",
        "pods",
        60,
        pod,
        POD_EDITS,
        names=("p0", "p1", "p2", "p3", "p4", "p5"),
        statuses=POD_STATUSES,
        selectors=POD_SELECTORS,
    ),
    Kind(
        "v1",
        "Node",
        "nodes",
        20,
        node,
        NODE_EDITS,
        namespaced=False,
        names=NODE_NAMES,
        statuses=NODE_STATUSES,
        selectors=("spec.unschedulable=true", "spec.unschedulable=false"),
    ),
    Kind(
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "priorityclasses",
        6,
        priority_class,
        CLASS_EDITS,
        namespaced=False,
        names=("high", "low", "system-x"),
    ),
    Kind(
        "policy/v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        6,
        budget,
        (*LABEL_EDITS, to("spec", "minAvailable", of=[2, None]), to("spec", "maxUnavailable", of=[1])),
        statuses=BUDGET_STATUSES,
    ),
    Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims", 8, claim, CLAIM_EDITS, statuses=CLAIM_STATUSES),
    Kind(
        "v1",
        "PersistentVolume",
        "persistentvolumes",
        6,
        volume,
        (
            *LABEL_EDITS,
            to("spec", "capacity", "storage", of=["5Gi"]),
            to("spec", "hostPath", "path", of=["/y"]),
            to("spec", "claimRef", of=[{"namespace": "here", "name": "a"}]),
        ),
        namespaced=False,
        statuses=({"phase": "Available"}, {"phase": "Odd"}),
    ),
    Kind(
        STORAGE,
        "StorageClass",
        "storageclasses",
        6,
        storage_class,
        (*LABEL_EDITS, to("provisioner", of=["other"]), to("allowVolumeExpansion", of=[True])),
        namespaced=False,
        names=("slow", "fast"),
    ),
    Kind(STORAGE, "CSINode", "csinodes", 4, csi_node, PLAIN, namespaced=False, names=NODE_NAMES),
    Kind(
        STORAGE,
        "CSIDriver",
        "csidrivers",
        3,
        csi_driver,
        (*LABEL_EDITS, to("spec", "storageCapacity", of=[True, False])),
        namespaced=False,
        names=("example.com", "other.example.com"),
    ),
    Kind(
        STORAGE,
        "CSIStorageCapacity",
        "csistoragecapacities",
        3,
        csi_capacity,
        (*LABEL_EDITS, to("capacity", of=["20Gi"]), to("storageClassName", of=["other"])),
    ),
    Kind(
        "node.k8s.io/v1",
        "RuntimeClass",
        "runtimeclasses",
        4,
        runtime_class,
        (*LABEL_EDITS, to("handler", of=["other"])),
        namespaced=False,
        names=("sandbox", "b"),
    ),
    Kind(
        APPS, "Deployment", "deployments", 8, workload, WORKLOAD_EDITS, statuses=({"replicas": 1, "readyReplicas": 1},)
    ),
    Kind(APPS, "ReplicaSet", "replicasets", 6, workload, WORKLOAD_EDITS, statuses=({"replicas": 2},)),
    Kind(APPS, "StatefulSet", "statefulsets", 4, stateful, WORKLOAD_EDITS, statuses=({"replicas": 2},)),
    Kind(APPS, "DaemonSet", "daemonsets", 4, daemon, (*WORKLOAD_EDITS[:2], *WORKLOAD_EDITS[3:])),
    Kind(
        BATCH,
        "Job",
        "jobs",
        4,
        job,
        (
            *LABEL_EDITS,
            to("spec", "parallelism", of=[3]),
            to("spec", "completions", of=[5]),
            to("spec", "suspend", of=[True, False]),
        ),
    ),
    Kind("v1", "ConfigMap", "configmaps", 4, config_map, (*LABEL_EDITS, to("data", of=[{"b": "2"}]))),
    Kind(
        "coordination.k8s.io/v1",
        "Lease",
        "leases",
        4,
        lease,
        (*LABEL_EDITS, to("spec", "holderIdentity", of=["x", ""])),
    ),
    Kind(DEVICES, "DeviceClass", "deviceclasses", 3, device_class, PLAIN, namespaced=False),
    Kind(
        DEVICES,
        "ResourceClaim",
        "resourceclaims",
        5,
        resource_claim,
        (*LABEL_EDITS, to("spec", "devices", "requests", of=[[]])),
    ),
    Kind(
        DEVICES,
        "ResourceSlice",
        "resourceslices",
        4,
        resource_slice,
        (*LABEL_EDITS, to("spec", "devices", of=[[{"name": "d1"}]])),
        namespaced=False,
        selectors=("spec.nodeName=n0", "spec.driver=gpu.example.com"),
    ),
    Kind("v1", "Service", "services", 4, service, (*LABEL_EDITS, to("spec", "selector", of=[{"app": "z"}]))),
]
