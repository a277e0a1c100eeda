"""Fill in what a client left out, the way kube-apiserver does before anybody else sees the object.

Schedulers read these fields (schedulerName, request copied from limits, volumeBindingMode …) and kubectl compares
them, so each kind gets exactly the fields the real server adds.  Every function changes a freshly decoded and cleaned
object (kubesched.apiserver.schema) in place and must do nothing the second time: patches pass here again.

Rules that need other objects (priority classes, storage classes) are admission, not defaulting.
"""

from __future__ import annotations

import functools
import re
from base64 import b64encode
from collections.abc import Callable, Iterable
from typing import Any

from kubesched.api import quantity
from kubesched.apiserver import crd_rules

Json = dict[str, Any]
Defaults = Callable[[Json], None]


def apply_defaults(shape: str, obj: Json) -> None:
    """Default an object of a struct ("core.Pod"); kinds without rules pass untouched."""
    rule = RULES.get(shape)
    if rule is not None:
        rule(obj)


def _fill(obj: Json, **values: Any) -> None:
    for key, value in values.items():
        if obj.get(key) is None:
            obj[key] = value


# ── pods and what contains them ─────────────────────────────────────────────────────────────────────────────


_PART = "[a-z0-9]+(?:(?:[.]|__?|-+)[a-z0-9]+)*"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*(?::[0-9]+)?"
_IMAGE = re.compile(
    rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@[A-Za-z][A-Za-z0-9+.-]*:[0-9a-fA-F]{{32,}})?"
)


@functools.lru_cache(maxsize=4096)
def image_pull_policy(image: str) -> str:
    """Always for images without a tag, or tagged latest; a digest alone pins the image, and so does no image at all."""
    if not _IMAGE.fullmatch(image):
        return "IfNotPresent"
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def _probe(probe: Json) -> None:
    _fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    _handler(probe)
    grpc = probe.get("grpc")
    if grpc:
        _fill(grpc, service="")


def _handler(handler: Json) -> None:
    http = handler.get("httpGet")
    if http:
        _fill(http, path="/", scheme="HTTP")


def _container(container: Json) -> None:
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = image_pull_policy(container.get("image", ""))
    if "terminationMessagePath" not in container:
        container["terminationMessagePath"] = "/dev/termination-log"
    if "terminationMessagePolicy" not in container:
        container["terminationMessagePolicy"] = "File"
    ports = container.get("ports")
    if ports:
        for port in ports:
            _fill(port, protocol="TCP")
    for name in _PROBES:
        if name in container:
            _probe(container[name])
    lifecycle = container.get("lifecycle")
    if lifecycle:
        for hook in ("postStart", "preStop"):
            if hook in lifecycle:
                _handler(lifecycle[hook])
    for env in container.get("env", ()):
        _environment(env)
    resources = container.get("resources")
    if resources:
        _round_to_milli(resources.get("limits"))
        _round_to_milli(resources.get("requests"))


def _environment(env: Json) -> None:
    source = env.get("valueFrom")
    if source:
        if "fieldRef" in source:
            _fill(source["fieldRef"], apiVersion="v1")
        if "fileKeyRef" in source:
            _fill(source["fileKeyRef"], optional=False)


def _round_to_milli(amounts: Json | None) -> None:
    """Nothing is counted finer than thousandths."""
    for name, amount in (amounts or {}).items():
        if amount[-1] in "nu":
            amounts[name] = quantity.format_milli(quantity.parse_milli(amount))  # type: ignore[index]


_MODES = ("secret", "configMap", "downwardAPI", "projected")
_VOLUME_DEFAULTS: dict[str, Json] = {
    "hostPath": {"type": ""},
    "rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "iscsi": {"iscsiInterface": "default"},
    "azureDisk": {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"},
    "scaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}


def _volume(volume: Json) -> None:
    if len(volume) == 1 and "name" in volume:
        volume["emptyDir"] = {}
        return
    for source, defaults in _VOLUME_DEFAULTS.items():
        if source in volume:
            _fill(volume[source], **defaults)
    for source in _MODES:
        if source in volume:
            _fill(volume[source], defaultMode=420)
    for item in volume.get("downwardAPI", {}).get("items", ()):
        if "fieldRef" in item:
            _fill(item["fieldRef"], apiVersion="v1")
    for source in volume.get("projected", {}).get("sources", ()):
        if "serviceAccountToken" in source:
            _fill(source["serviceAccountToken"], expirationSeconds=3600)
        for item in source.get("downwardAPI", {}).get("items", ()):
            if "fieldRef" in item:
                _fill(item["fieldRef"], apiVersion="v1")
    template = volume.get("ephemeral", {}).get("volumeClaimTemplate")
    if template:
        _fill(template.setdefault("spec", {}), volumeMode="Filesystem")
    if "image" in volume:
        _fill(volume["image"], pullPolicy=image_pull_policy(volume["image"].get("reference", "")))


def containers_of(spec: Json) -> Iterable[Json]:
    """All containers of a pod spec: init, regular, ephemeral."""
    yield from spec.get("initContainers", ())
    yield from spec.get("containers", ())
    yield from spec.get("ephemeralContainers", ())


def pod_spec(spec: Json) -> None:
    """What a pod spec gets wherever it stands, in a Pod or in a template."""
    for container in containers_of(spec):
        _container(container)
    for volume in spec.get("volumes", ()):
        _volume(volume)
    if "restartPolicy" not in spec:
        spec["restartPolicy"] = "Always"
    if "terminationGracePeriodSeconds" not in spec:
        spec["terminationGracePeriodSeconds"] = 30
    if "dnsPolicy" not in spec:
        spec["dnsPolicy"] = "ClusterFirst"
    if "securityContext" not in spec:
        spec["securityContext"] = {}
    if "schedulerName" not in spec:
        spec["schedulerName"] = "default-scheduler"
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if "overhead" in spec:
        _round_to_milli(spec["overhead"])
    if spec.get("hostNetwork"):
        for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
            for port in container.get("ports", ()):
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort", 0)


def pod(obj: Json) -> None:
    spec = obj["spec"]
    for field in ("containers", "initContainers"):
        for container in spec.get(field, ()):
            resources = container.get("resources")
            limits = resources and resources.get("limits")
            if limits:
                requests = resources.setdefault("requests", {})
                for name, amount in limits.items():
                    requests.setdefault(name, amount)
    pod_spec(spec)
    if spec.get("resources", {}).get("limits"):
        _pod_level_requests(spec)
    if "enableServiceLinks" not in spec:
        spec["enableServiceLinks"] = True
    obj.setdefault("status", {})


def _pod_level_requests(spec: Json) -> None:
    """Requests of the whole pod: what its containers ask for together, else its own limits."""
    requests = spec["resources"].setdefault("requests", {})
    together = container_requests(spec)
    for name, amount in together.items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, amount)
    for name, amount in spec["resources"]["limits"].items():
        requests.setdefault(name, amount)


def container_requests(spec: Json) -> dict[str, str]:
    """What the containers need at once: all regular and restartable init ones, or the largest init step."""
    total: dict[str, str] = {}
    for container in spec.get("containers", ()):
        _add(total, container.get("resources", {}).get("requests", {}))
    restartable: dict[str, str] = {}
    largest: dict[str, str] = {}
    for container in spec.get("initContainers", ()):
        wanted = container.get("resources", {}).get("requests", {})
        if container.get("restartPolicy") == "Always":
            _add(total, wanted)
            _add(restartable, wanted)
            step = dict(restartable)
        else:
            step = dict(wanted)
            _add(step, restartable)
        _raise_to(largest, step)
    _raise_to(total, largest)
    return total


def _add(total: dict[str, str], more: dict[str, str]) -> None:
    for name, amount in more.items():
        total[name] = quantity.add(total[name], amount) if name in total else amount


def _raise_to(total: dict[str, str], other: dict[str, str]) -> None:
    for name, amount in other.items():
        if name not in total or quantity.compare(total[name], amount) < 0:
            total[name] = amount


def _template(obj: Json) -> None:
    template = obj.get("template")
    if template:
        pod_spec(template.setdefault("spec", {}))


# ── workloads ───────────────────────────────────────────────────────────────────────────────────────────────


def _replication_controller(obj: Json) -> None:
    spec = obj["spec"]
    labels = spec.get("template", {}).get("metadata", {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)
    _fill(spec, replicas=1)
    _template(spec)


def _replica_set(obj: Json) -> None:
    _fill(obj["spec"], replicas=1)
    _template(obj["spec"])


def _deployment(obj: Json) -> None:
    spec = obj["spec"]
    _fill(spec, replicas=1, revisionHistoryLimit=10, progressDeadlineSeconds=600)
    strategy = spec.setdefault("strategy", {})
    _fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable="25%", maxSurge="25%")
    _template(spec)


def _stateful_set(obj: Json) -> None:
    spec = obj["spec"]
    _fill(spec, podManagementPolicy="OrderedReady", replicas=1, revisionHistoryLimit=10)
    strategy = spec.setdefault("updateStrategy", {})
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        _fill(strategy["rollingUpdate"], partition=0)
    _fill(spec.setdefault("persistentVolumeClaimRetentionPolicy", {}), whenDeleted="Retain", whenScaled="Retain")
    for claim in spec.get("volumeClaimTemplates", ()):
        _claim(claim)
    _template(spec)


def _daemon_set(obj: Json) -> None:
    spec = obj["spec"]
    _fill(spec, revisionHistoryLimit=10)
    strategy = spec.setdefault("updateStrategy", {})
    _fill(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _fill(strategy.setdefault("rollingUpdate", {}), maxUnavailable=1, maxSurge=0)
    _template(spec)


def _job_spec(spec: Json) -> None:
    _template(spec)
    for rule in spec.get("podFailurePolicy", {}).get("rules", ()):
        for pattern in rule.get("onPodConditions", ()):
            _fill(pattern, status="True")


def _job(obj: Json) -> None:
    spec = obj["spec"]
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    _fill(spec, parallelism=1, backoffLimit=2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    labels = spec["template"].get("metadata", {}).get("labels")
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)
    replacement = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    _fill(spec, completionMode="NonIndexed", suspend=False, podReplacementPolicy=replacement, manualSelector=False)
    _job_spec(spec)


def _cron_job(obj: Json) -> None:
    spec = obj["spec"]
    _fill(spec, concurrencyPolicy="Allow", suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1)
    _job_spec(spec["jobTemplate"]["spec"])


# ── the rest of core ────────────────────────────────────────────────────────────────────────────────────────


def _service(obj: Json) -> None:
    spec = obj["spec"]
    _fill(spec, sessionAffinity="None", type="ClusterIP")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        _fill(spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {}), timeoutSeconds=10800)
    for port in spec.get("ports", ()):
        _fill(port, protocol="TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    kind = spec["type"]
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        _fill(spec, externalTrafficPolicy="Cluster")
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        _fill(spec, internalTrafficPolicy="Cluster")
    if kind == "LoadBalancer":
        _fill(spec, allocateLoadBalancerNodePorts=True)


def _endpoints(obj: Json) -> None:
    for subset in obj.get("subsets", ()):
        for port in subset.get("ports", ()):
            _fill(port, protocol="TCP")


def _secret(obj: Json) -> None:
    """What was written as text is kept as bytes."""
    _fill(obj, type="Opaque")
    text = obj.pop("stringData", None)
    if text:
        encoded = {key: b64encode(value.encode()).decode() for key, value in text.items()}
        obj["data"] = {**obj.get("data", {}), **encoded}


def _persistent_volume(obj: Json) -> None:
    _fill(obj["status"], phase="Pending")
    _fill(obj["spec"], persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    for source, defaults in _VOLUME_DEFAULTS.items():
        if source in obj["spec"]:
            _fill(obj["spec"][source], **defaults)


def _claim(obj: Json) -> None:
    _fill(obj.setdefault("status", {}), phase="Pending")
    _fill(obj.setdefault("spec", {}), volumeMode="Filesystem")


def _namespace(obj: Json) -> None:
    meta = obj["metadata"]
    if meta.get("name"):
        meta.setdefault("labels", {})["kubernetes.io/metadata.name"] = meta["name"]
    _fill(obj["status"], phase="Active")


def _node(obj: Json) -> None:
    spec, status = obj["spec"], obj["status"]
    if spec.get("podCIDR") and (spec.get("podCIDRs") or [""])[0] != spec["podCIDR"]:
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif spec.get("podCIDRs") and not spec.get("podCIDR"):
        spec["podCIDR"] = spec["podCIDRs"][0]
    if "allocatable" not in status and "capacity" in status:
        status["allocatable"] = dict(status["capacity"])
    _round_to_milli(status.get("capacity"))
    _round_to_milli(status.get("allocatable"))


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
    _fill(obj, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _csi_driver(obj: Json) -> None:
    _fill(
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
    _fill(obj, preemptionPolicy="PreemptLowerPriority")


def _pod_group(obj: Json) -> None:
    _fill(obj["spec"], disruptionMode="Pod")


def _device_claim(spec: Json) -> None:
    for request in spec.get("devices", {}).get("requests", ()):
        exact = (request["exactly"],) if "exactly" in request else ()
        for one in (*exact, *request.get("firstAvailable", ())):
            _fill(one, allocationMode="ExactCount")
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
            _fill(port, protocol="TCP")


def _ingress_class(obj: Json) -> None:
    if obj["spec"].get("parameters"):
        _fill(obj["spec"]["parameters"], scope="Cluster")


def _endpoint_slice(obj: Json) -> None:
    for port in obj.get("ports") or ():
        _fill(port, name="", protocol="TCP")


_RBAC_GROUP = "rbac.authorization.k8s.io"


def _role_binding(obj: Json) -> None:
    _fill(obj["roleRef"], apiGroup=_RBAC_GROUP)
    if not obj["roleRef"]["apiGroup"]:
        obj["roleRef"]["apiGroup"] = _RBAC_GROUP
    for subject in obj.get("subjects", ()):
        if subject.get("kind") in ("User", "Group"):
            _fill(subject, apiGroup=_RBAC_GROUP)


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
    _fill(spec, minReplicas=1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        behavior["scaleUp"] = {**_UP, **behavior.get("scaleUp", {})}
        behavior["scaleDown"] = {**_DOWN, **behavior.get("scaleDown", {})}


def _autoscaler_v1(obj: Json) -> None:
    _fill(obj["spec"], minReplicas=1)


def _csi_node(obj: Json) -> None:
    if not obj["spec"].get("drivers"):
        obj["spec"]["drivers"] = None


def _pod_template(obj: Json) -> None:
    _template(obj)


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
    "storage.CSINode": _csi_node,
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
