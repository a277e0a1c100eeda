"""Fill in what a client left out, the way kube-apiserver does before anybody else sees the object.

Schedulers read these fields (schedulerName, request copied from limits, volumeBindingMode …) and kubectl compares
them, so each kind gets exactly the fields the real server adds.  Every function changes a freshly decoded and cleaned
object (kubesched.apiserver.schema) in place and must do nothing the second time: patches pass here again.

Rules that need other objects (priority classes, storage classes) are admission, not defaulting.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

from kubesched.apiserver import crd_rules
from kubesched.apiserver.defaulting_pod import (
    VOLUME_DEFAULTS,
    fill,
    pod,
    round_to_milli,
    template,
)

Json = dict[str, Any]
Defaults = Callable[[Json], None]


def apply_defaults(shape: str, obj: Json) -> None:
    """Default an object of a struct ("core.Pod"); kinds without rules pass untouched."""
    rule = RULES.get(shape)
    if rule is not None:
        rule(obj)


# ── workloads ───────────────────────────────────────────────────────────────────────────────────────────────


def _replication_controller(obj: Json) -> None:
    spec = obj["spec"]
    labels = spec.get("template", {}).get("metadata", {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)
    fill(spec, replicas=1)
    template(spec)


def _replica_set(obj: Json) -> None:
    fill(obj["spec"], replicas=1)
    template(obj["spec"])


def _deployment(obj: Json) -> None:
    spec = obj["spec"]
    fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.setdefault("strategy", {})
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")
    template(spec)


def _stateful_set(obj: Json) -> None:
    spec = obj["spec"]
    fill(spec, podManagementPolicy="OrderedReady", replicas=1, revisionHistoryLimit=10)
    strategy = spec.setdefault("updateStrategy", {})
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        fill(strategy["rollingUpdate"], partition=0)
    fill(spec.setdefault("persistentVolumeClaimRetentionPolicy", {}), whenDeleted="Retain", whenScaled="Retain")
    for claim in spec.get("volumeClaimTemplates", ()):
        _claim(claim)
    template(spec)


def _daemon_set(obj: Json) -> None:
    spec = obj["spec"]
    fill(spec, revisionHistoryLimit=10)
    strategy = spec.setdefault("updateStrategy", {})
    fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable=1, maxSurge=0)
    template(spec)


def _job_spec(spec: Json) -> None:
    template(spec)
    for rule in spec.get("podFailurePolicy", {}).get("rules", ()):
        for pattern in rule.get("onPodConditions", ()):
            fill(pattern, status="True")


def _job(obj: Json) -> None:
    spec = obj["spec"]
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill(spec, parallelism=1, backoffLimit=2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    labels = spec["template"].get("metadata", {}).get("labels")
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = labels
    replacement = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    fill(spec, completionMode="NonIndexed", suspend=False, podReplacementPolicy=replacement, manualSelector=False)
    _job_spec(spec)


def _cron_job(obj: Json) -> None:
    spec = obj["spec"]
    fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    _job_spec(spec["jobTemplate"]["spec"])


# ── the rest of core ────────────────────────────────────────────────────────────────────────────────────────


def _service(obj: Json) -> None:
    spec = obj["spec"]
    fill(spec, sessionAffinity="None", type="ClusterIP")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        fill(spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {}), timeoutSeconds=10800)
    for port in spec.get("ports", ()):
        fill(port, protocol="TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    kind = spec["type"]
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        fill(spec, externalTrafficPolicy="Cluster")
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        fill(spec, internalTrafficPolicy="Cluster")
    if kind == "LoadBalancer":
        fill(spec, allocateLoadBalancerNodePorts=True)


def _endpoints(obj: Json) -> None:
    for subset in obj.get("subsets", ()):
        for port in subset.get("ports", ()):
            fill(port, protocol="TCP")


def _secret(obj: Json) -> None:
    """What was written as text is kept as bytes."""
    fill(obj, type="Opaque")
    text = obj.pop("stringData", None)
    if text:
        encoded = {key: b64encode(value.encode()).decode() for key, value in text.items()}
        obj["data"] = {**obj.get("data", {}), **encoded}


def _persistent_volume(obj: Json) -> None:
    fill(obj["status"], phase="Pending")
    fill(obj["spec"], persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    for source, defaults in VOLUME_DEFAULTS.items():
        if source in obj["spec"]:
            fill(obj["spec"][source], **defaults)


def _claim(obj: Json) -> None:
    fill(obj.setdefault("status", {}), phase="Pending")
    fill(obj.setdefault("spec", {}), volumeMode="Filesystem")


def _namespace(obj: Json) -> None:
    meta = obj["metadata"]
    if meta.get("name"):
        meta.setdefault("labels", {})["kubernetes.io/metadata.name"] = meta["name"]
    fill(obj["status"], phase="Active")


def _node(obj: Json) -> None:
    spec, status = obj["spec"], obj["status"]
    if spec.get("podCIDR") and (spec.get("podCIDRs") or [""])[0] != spec["podCIDR"]:
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif spec.get("podCIDRs") and not spec.get("podCIDR"):
        spec["podCIDR"] = spec["podCIDRs"][0]
    if "allocatable" not in status and "capacity" in status:
        status["allocatable"] = dict(status["capacity"])
    round_to_milli(status.get("capacity"))
    round_to_milli(status.get("allocatable"))


def _limit_range(obj: Json) -> None:
    for item in obj["spec"].get("limits") or ():
        if item.get("type") == "Container":
            limits = {**item.get("max", {}), **item.get("default", {})}
            requests = {**item.get("min", {}), **limits, **item.get("defaultRequest", {})}
            if limits:
                item["default"] = limits
            if requests:
                item["defaultRequest"] = requests


# ── other groups ────────────────────────────────────────────────────────────────────────────────────────────


def _storage_class(obj: Json) -> None:
    fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _csi_driver(obj: Json) -> None:
    fill(
        obj["spec"],
        attachRequired=True,
        podInfoOnMount=False,
        storageCapacity=False,
        fsGroupPolicy="ReadWriteOnceWithFSType",
        requiresRepublish=False,
        seLinuxMount=False,
    )
    if not obj["spec"].get("volumeLifecycleModes"):
        obj["spec"]["volumeLifecycleModes"] = ["Persistent"]


def _priority_class(obj: Json) -> None:
    fill(obj, preemptionPolicy="PreemptLowerPriority")


def _pod_group(obj: Json) -> None:
    fill(obj["spec"], disruptionMode="Pod")


def _device_claim(spec: Json) -> None:
    for request in spec.get("devices", {}).get("requests") or ():
        exact = (request["exactly"],) if "exactly" in request else ()
        for one in (*exact, *request.get("firstAvailable", ())):
            fill(one, allocationMode="ExactCount")
            if one["allocationMode"] == "ExactCount" and not one.get("count"):
                one["count"] = 1


def _resource_claim(obj: Json) -> None:
    _device_claim(obj["spec"])


def _resource_claim_template(obj: Json) -> None:
    _device_claim(obj["spec"]["spec"])


def _network_policy(obj: Json) -> None:
    spec = obj["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in (*spec.get("ingress", ()), *spec.get("egress", ())):
        for port in rule.get("ports", ()):
            fill(port, protocol="TCP")


def _ingress_class(obj: Json) -> None:
    if obj["spec"].get("parameters"):
        fill(obj["spec"]["parameters"], scope="Cluster")


def _endpoint_slice(obj: Json) -> None:
    for port in obj.get("ports") or ():
        fill(port, name="", protocol="TCP")


_RBAC_GROUP = "rbac.authorization.k8s.io"


def _role_binding(obj: Json) -> None:
    fill(obj["roleRef"], apiGroup=_RBAC_GROUP)
    if not obj["roleRef"]["apiGroup"]:
        obj["roleRef"]["apiGroup"] = _RBAC_GROUP
    for subject in obj.get("subjects", ()):
        if subject.get("kind") in ("User", "Group"):
            fill(subject, apiGroup=_RBAC_GROUP)


_UP: Json = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_DOWN: Json = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _autoscaler(obj: Json) -> None:
    spec = obj["spec"]
    fill(spec, minReplicas=1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        behavior["scaleUp"] = {**_UP, **behavior.get("scaleUp", {})}
        behavior["scaleDown"] = {**_DOWN, **behavior.get("scaleDown", {})}


def _autoscaler_v1(obj: Json) -> None:
    fill(obj["spec"], minReplicas=1)


def _pod_template(obj: Json) -> None:
    template(obj)


RULES: dict[str, Defaults] = {
    "apiextensions.CustomResourceDefinition": crd_rules.complete,
    "core.Pod": pod,
    "core.Node": _node,
    "core.Namespace": _namespace,
    "core.Service": _service,
    "core.Endpoints": _endpoints,
    "core.Secret": _secret,
    "core.PersistentVolume": _persistent_volume,
    "core.PersistentVolumeClaim": _claim,
    "core.ReplicationController": _replication_controller,
    "core.LimitRange": _limit_range,
    "core.PodTemplate": _pod_template,
    "apps.Deployment": _deployment,
    "apps.ReplicaSet": _replica_set,
    "apps.StatefulSet": _stateful_set,
    "apps.DaemonSet": _daemon_set,
    "batch.Job": _job,
    "batch.CronJob": _cron_job,
    "storage.StorageClass": _storage_class,
    "storage.CSIDriver": _csi_driver,
    "scheduling.PriorityClass": _priority_class,
    "schedulingalpha.PodGroup": _pod_group,
    "resource.ResourceClaim": _resource_claim,
    "resource.ResourceClaimTemplate": _resource_claim_template,
    "networking.NetworkPolicy": _network_policy,
    "networking.IngressClass": _ingress_class,
    "discovery.EndpointSlice": _endpoint_slice,
    "rbac.RoleBinding": _role_binding,
    "rbac.ClusterRoleBinding": _role_binding,
    "autoscaling2.HorizontalPodAutoscaler": _autoscaler,
    "autoscaling.HorizontalPodAutoscaler": _autoscaler_v1,
}
