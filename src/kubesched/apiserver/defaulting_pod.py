"""What is filled in where a pod, or the template of one, says nothing: kube-apiserver's defaults, field by field."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any

from kubesched.api import quantity

Json = dict[str, Any]


def fill(obj: Json, **values: Any) -> None:
    for key, value in values.items():
        if obj.get(key) is None:
            obj[key] = value


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
    fill(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    _handler(probe)
    grpc = probe.get("grpc")
    if grpc:
        fill(grpc, service="")


def _handler(handler: Json) -> None:
    http = handler.get("httpGet")
    if http:
        fill(http, path="/", scheme="HTTP")


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
            fill(port, protocol="TCP")
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
        round_to_milli(resources.get("limits"))
        round_to_milli(resources.get("requests"))


def _environment(env: Json) -> None:
    source = env.get("valueFrom")
    if source:
        if "fieldRef" in source:
            fill(source["fieldRef"], apiVersion="v1")
        if "fileKeyRef" in source:
            fill(source["fileKeyRef"], optional=False)


def round_to_milli(amounts: Json | None) -> None:
    """Nothing is counted finer than thousandths."""
    if amounts is None:
        return
    for name, amount in amounts.items():
        if amount[-1] in "nu":
            amounts[name] = quantity.format_milli(quantity.parse_milli(amount))


_MODES = ("secret", "configMap", "downwardAPI", "projected")
VOLUME_DEFAULTS: dict[str, Json] = {
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
    for source, defaults in VOLUME_DEFAULTS.items():
        if source in volume:
            fill(volume[source], **defaults)
    for source in _MODES:
        if source in volume:
            fill(volume[source], defaultMode=420)
    for item in volume.get("downwardAPI", {}).get("items", ()):
        if "fieldRef" in item:
            fill(item["fieldRef"], apiVersion="v1")
    for source in volume.get("projected", {}).get("sources") or ():
        if "serviceAccountToken" in source:
            fill(source["serviceAccountToken"], expirationSeconds=3600)
        for item in source.get("downwardAPI", {}).get("items", ()):
            if "fieldRef" in item:
                fill(item["fieldRef"], apiVersion="v1")
    template = volume.get("ephemeral", {}).get("volumeClaimTemplate")
    if template:
        fill(template.setdefault("spec", {}), volumeMode="Filesystem")
    if "image" in volume:
        fill(volume["image"], pullPolicy=image_pull_policy(volume["image"].get("reference", "")))


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
        round_to_milli(spec["overhead"])
    if "resources" in spec:
        round_to_milli(spec["resources"].get("limits"))
        round_to_milli(spec["resources"].get("requests"))


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
    if spec.get("resources"):
        _pod_level_limits(spec)
        _pod_level_requests(spec)
    if "enableServiceLinks" not in spec:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
            for port in container.get("ports", ()):
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort", 0)
    obj.setdefault("status", {})


def is_pod_level_resource(name: str) -> bool:
    """Whether a pod as a whole can ask for this."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _pod_level_limits(spec: Json) -> None:
    """Huge pages that containers may have, the pod may have."""
    whole = spec["resources"]
    if not (whole.get("limits") or whole.get("requests")):
        return
    for name, amount in container_limits(spec).items():
        if name.startswith("hugepages-") and name not in whole.get("requests", {}):
            whole.setdefault("limits", {}).setdefault(name, amount)


def _pod_level_requests(spec: Json) -> None:
    """Requests of the whole pod: what its containers ask for together, else its own limits."""
    whole = spec["resources"]
    if not whole.get("limits"):
        return
    requests = whole.get("requests", {})
    for name, amount in container_requests(spec).items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, amount)
    for name, amount in whole["limits"].items():
        if is_pod_level_resource(name):
            requests.setdefault(name, amount)
    if requests:
        whole["requests"] = requests


def container_requests(spec: Json) -> dict[str, str]:
    """What the containers need at once: all regular and restartable init ones, or the largest init step."""
    return _together(spec, "requests")


def container_limits(spec: Json) -> dict[str, str]:
    """What the containers may have at once."""
    return _together(spec, "limits")


def _together(spec: Json, field: str) -> dict[str, str]:
    total: dict[str, str] = {}
    for container in spec.get("containers", ()):
        _add(total, container.get("resources", {}).get(field, {}))
    restartable: dict[str, str] = {}
    largest: dict[str, str] = {}
    for container in spec.get("initContainers", ()):
        wanted = container.get("resources", {}).get(field, {})
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


def template(obj: Json) -> None:
    template = obj.get("template")
    if template:
        pod_spec(template.setdefault("spec", {}))
