"""The rules of pods: what a pod spec may say, and what of it may still change.

Everything a scheduler reads is checked as kube-apiserver does, with its sentences; of what only a kubelet reads (probe
handlers, security contexts, volume sources) the shape alone is checked, by the schema.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kubesched.api.names import check_dns1123_label, check_dns1123_subdomain
from kubesched.apiserver import validation_placement, validation_resources
from kubesched.apiserver.admission import TOLERATES_LOST
from kubesched.apiserver.status import (
    FieldError,
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_found,
    field_not_supported,
    field_required,
)
from kubesched.apiserver.validation import each, labels

Json = dict[str, Any]
Errors = list[FieldError]

_INT32_MAX = 2**31 - 1
_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULL = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PORT_NAME = re.compile("[-a-z0-9]+")



def pod(obj: Json) -> Errors:
    """Faults of a new pod, beyond its metadata."""
    errors = spec_of_pod(obj["spec"])
    spec = obj["spec"]
    if spec.get("schedulingGates") and spec.get("nodeName"):
        errors.append(field_forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def spec_of_pod(spec: Json) -> Errors:
    """Faults of a pod's spec: those of any pod spec, and where a pod must say what a template may leave open."""
    errors = pod_spec(spec, "spec", in_pod=True)
    for field in ("containers", "initContainers"):
        errors += spaced_images(spec.get(field) or (), f"spec.{field}")
    return errors


def spaced_images(containers: Sequence[Json], at: str) -> Errors:
    why = "must not have leading or trailing whitespace"
    images = [container.get("image", "") for container in containers]
    return [
        field_invalid(f"{at}[{index}].image", image, why)
        for index, image in enumerate(images)
        if image.strip() != image
    ]


def pod_spec(spec: Json, at: str, *, in_pod: bool = False) -> Errors:
    """Faults of a pod spec, in a pod or in a template."""
    errors: Errors = []
    volumes: set[str] = set()
    if "volumes" in spec:
        errors += _volumes(spec["volumes"], f"{at}.volumes", volumes)
    if "resourceClaims" in spec:
        errors += _claims(spec["resourceClaims"], f"{at}.resourceClaims")
    claims = {claim.get("name", "") for claim in spec.get("resourceClaims", ())}
    errors += _containers(spec, at, volumes, claims)
    if spec.get("hostNetwork"):
        errors += _host_ports(spec, at, in_pod)
    if spec.get("restartPolicy") not in _RESTART:
        errors.append(_choice(f"{at}.restartPolicy", spec.get("restartPolicy", ""), _RESTART))
    if spec.get("dnsPolicy") not in _DNS:
        errors.append(_choice(f"{at}.dnsPolicy", spec.get("dnsPolicy", ""), _DNS))
    if "nodeSelector" in spec:
        errors += labels(spec["nodeSelector"], f"{at}.nodeSelector")
    if "hostname" in spec:
        errors += each(f"{at}.hostname", spec["hostname"], check_dns1123_label)
    if "subdomain" in spec:
        errors += each(f"{at}.subdomain", spec["subdomain"], check_dns1123_label)
    if "serviceAccountName" in spec:
        errors += each(f"{at}.serviceAccountName", spec["serviceAccountName"], check_dns1123_subdomain)
    if "nodeName" in spec:
        errors += each(f"{at}.nodeName", spec["nodeName"], check_dns1123_subdomain)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _INT32_MAX:
        why = f"must be between 1 and {_INT32_MAX}, inclusive"
        errors.append(field_invalid(f"{at}.activeDeadlineSeconds", deadline, why))
    if "affinity" in spec:
        errors += validation_placement.affinity(spec["affinity"], f"{at}.affinity")
    if spec.get("tolerations") and spec["tolerations"] is not TOLERATES_LOST:
        errors += validation_placement.tolerations(spec["tolerations"], f"{at}.tolerations")
    if "priorityClassName" in spec:
        errors += each(f"{at}.priorityClassName", spec["priorityClassName"], check_dns1123_subdomain)
    if "runtimeClassName" in spec:
        errors += each(f"{at}.runtimeClassName", spec["runtimeClassName"], check_dns1123_subdomain)
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in ("Never", "PreemptLowerPriority"):
        errors.append(_choice(f"{at}.preemptionPolicy", policy, ("PreemptLowerPriority", "Never")))
    system = spec["os"].get("name", "") if "os" in spec else "linux"
    if not system:
        errors.append(field_required(f"{at}.os.name"))
    elif system not in ("linux", "windows"):
        errors.append(field_not_supported(f"{at}.os", system, ("linux", "windows")))
    if "resources" in spec:
        errors += validation_resources.of_pod(spec, f"{at}.resources", claims)
    if "overhead" in spec:
        errors += validation_resources.amounts(spec["overhead"], f"{at}.overhead")
    if "topologySpreadConstraints" in spec:
        errors += validation_placement.spread(spec["topologySpreadConstraints"], f"{at}.topologySpreadConstraints")
    if "schedulingGates" in spec:
        errors += validation_placement.gates(spec["schedulingGates"], f"{at}.schedulingGates")
    return errors


def _choice(field: str, value: Any, supported: Sequence[str]) -> FieldError:
    return field_not_supported(field, value, supported) if value else field_required(field)


def _host_ports(spec: Json, at: str, in_pod: bool) -> Errors:
    """On the node's network the ports are the node's; a template need not say so, its pods will."""
    why = "must match `containerPort` when `hostNetwork` is true"
    return [
        field_invalid(f"{at}.containers[{index}].ports[{place}].hostPort", port.get("hostPort", 0), why)
        for index, container in enumerate(spec.get("containers") or ())
        for place, port in enumerate(container.get("ports") or ())
        if (in_pod or port.get("hostPort")) and port.get("hostPort", 0) != port.get("containerPort", 0)
    ]


# ── containers ──────────────────────────────────────────────────────────────────────────────────────────────


def _containers(spec: Json, at: str, volumes: set[str], claims: set[str]) -> Errors:
    errors: Errors = []
    containers = spec.get("containers")
    names: set[str] = set()
    if not containers:
        errors.append(field_required(f"{at}.containers"))
    for field in ("containers", "initContainers"):
        host_ports: set[tuple[str, str, int]] = set()
        for index, container in enumerate(spec.get(field) or ()):
            if _is_plain(container, names):
                names.add(container["name"])
                continue
            where = f"{at}.{field}[{index}]"
            errors += _container(container, where, volumes, claims, host_ports)
            name = container.get("name", "")
            if name in names:
                errors.append(field_duplicate(f"{where}.name", name))
            names.add(name)
    return errors


_PLAIN_KEYS = frozenset(
    (
        "name",
        "image",
        "imagePullPolicy",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "resources",
        "command",
        "args",
    )
)


def _is_plain(container: Json, names: set[str]) -> bool:
    """Whether a container says nothing that could be wrong; most pods are like that."""
    if not _PLAIN_KEYS.issuperset(container) or not container.get("image"):
        return False
    name = container.get("name", "")
    if name in names or not _good_container_name(name) or container["imagePullPolicy"] not in _PULL:
        return False
    resources = container.get("resources")
    return not resources or _plain_resources(resources)


def _good_container_name(name: str) -> bool:
    return name.isascii() and check_dns1123_label(name) is None


def _plain_resources(resources: Json) -> bool:
    requests, limits = resources.get("requests", {}), resources.get("limits")
    if "claims" in resources or limits:
        return False
    return all(name in ("cpu", "memory") and amount[0] != "-" for name, amount in requests.items())


def _container(
    container: Json, at: str, volumes: set[str], claims: set[str], host_ports: set[tuple[str, str, int]]
) -> Errors:
    errors: Errors = []
    name = container.get("name", "")
    if not name:
        errors.append(field_required(f"{at}.name"))
    else:
        errors += each(f"{at}.name", name, check_dns1123_label)
    if not container.get("image"):
        errors.append(field_required(f"{at}.image"))
    if "ports" in container:
        errors += _ports(container["ports"], f"{at}.ports", host_ports)
    for index, variable in enumerate(container.get("env", ())):
        errors += _variable(variable, f"{at}.env[{index}]")
    mounts: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts", ())):
        errors += _mount(mount, f"{at}.volumeMounts[{index}]", volumes, mounts)
    pull = container.get("imagePullPolicy", "")
    if pull not in _PULL:
        errors.append(_choice(f"{at}.imagePullPolicy", pull, _PULL))
    errors += validation_resources.of_container(container.get("resources", {}), f"{at}.resources", claims)
    if container.get("restartPolicy") not in (None, *_RESTART):
        errors.append(field_not_supported(f"{at}.restartPolicy", container["restartPolicy"], _RESTART))
    return errors


def _ports(ports: list[Json], at: str, taken: set[tuple[str, str, int]]) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{at}[{index}]"
        name = port.get("name")
        if name:
            bad = _port_name_faults(name)
            errors += [field_invalid(f"{where}.name", name, fault) for fault in bad]
            if not bad and name in names:
                errors.append(field_duplicate(f"{where}.name", name))
            names.add(name)
        number = port.get("containerPort", 0)
        if number == 0:
            errors.append(field_required(f"{where}.containerPort"))
        elif not 1 <= number <= 65535:
            errors.append(field_invalid(f"{where}.containerPort", number, "must be between 1 and 65535, inclusive"))
        host = port.get("hostPort", 0)
        if host and not 1 <= host <= 65535:
            errors.append(field_invalid(f"{where}.hostPort", host, "must be between 1 and 65535, inclusive"))
        protocol = port.get("protocol", "")
        if protocol not in _PROTOCOLS:
            errors.append(_choice(f"{where}.protocol", protocol, _PROTOCOLS))
        if host:
            key = (protocol, port.get("hostIP", ""), host)
            if key in taken:
                errors.append(field_duplicate(f"{where}.hostPort", f"{key[0]}/{key[1]}/{key[2]}"))
            taken.add(key)
    return errors


def _port_name_faults(name: str) -> list[str]:
    found = []
    if len(name) > 15:
        found.append("must be no more than 15 bytes")
    if not _PORT_NAME.fullmatch(name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= character <= "z" for character in name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name[:1] == "-" or name[-1:] == "-":
        found.append("must not begin or end with a hyphen")
    return found


def _variable(variable: Json, at: str) -> Errors:
    name = variable.get("name", "")
    if not name:
        return [field_required(f"{at}.name")]
    if "=" in name or not (name.isascii() and name.isprintable()):
        why = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        return [field_invalid(f"{at}.name", name, why)]
    if variable.get("value") and variable.get("valueFrom"):
        return [field_invalid(f"{at}.valueFrom", "", "may not be specified when `value` is not empty")]
    return []


def _mount(mount: Json, at: str, volumes: set[str], mounts: set[str]) -> Errors:
    errors: Errors = []
    name, path = mount.get("name", ""), mount.get("mountPath", "")
    if not name:
        errors.append(field_required(f"{at}.name"))
    elif name not in volumes:
        errors.append(field_not_found(f"{at}.name", name))
    if not path:
        errors.append(field_required(f"{at}.mountPath"))
    elif path in mounts:
        errors.append(field_invalid(f"{at}.mountPath", path, "must be unique"))
    mounts.add(path)
    return errors


# ── volumes and claims ──────────────────────────────────────────────────────────────────────────────────────


def _volumes(volumes: list[Json], at: str, names: set[str]) -> Errors:
    errors: Errors = []
    for index, volume in enumerate(volumes):
        where = f"{at}[{index}]"
        name = volume.get("name", "")
        bad = [field_required(f"{where}.name")] if not name else each(f"{where}.name", name, check_dns1123_label)
        if not bad and name in names:
            bad = [field_duplicate(f"{where}.name", name)]
        errors += bad
        names.add(name)
        sources = [key for key in volume if key != "name"]
        for source in sources[1:]:
            errors.append(field_forbidden(f"{where}.{source}", "may not specify more than 1 volume type"))
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            errors.append(field_required(f"{where}.persistentVolumeClaim.claimName"))
        errors += source_path(volume, where)
    return errors


def source_path(source: Json, at: str) -> Errors:
    """Faults of a path on the node, of a volume in a pod or of one that stands for itself."""
    if "hostPath" not in source:
        return []
    path, where = source["hostPath"].get("path", ""), f"{at}.hostPath.path"
    if not path:
        return [field_required(where)]
    return [field_invalid(where, path, "must not contain '..'")] if ".." in path.split("/") else []


def _claims(claims: list[Json], at: str) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    for index, claim in enumerate(claims):
        where = f"{at}[{index}]"
        name = claim.get("name", "")
        if not name:
            errors.append(field_required(f"{where}.name"))
        else:
            errors += each(f"{where}.name", name, check_dns1123_label)
        if name in names:
            errors.append(field_duplicate(f"{where}.name", name))
        names.add(name)
        sources = (claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName"))
        shown = {"Name": name, "ResourceClaimName": sources[0], "ResourceClaimTemplateName": sources[1]}
        if all(sources):
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(field_invalid(where, shown, why))
        elif not any(sources):
            why = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(field_invalid(where, shown, why))
    return errors
