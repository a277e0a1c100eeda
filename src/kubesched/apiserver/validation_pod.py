"""The rules of pods: what a pod spec may say, and what of it may still change.

Everything a scheduler reads is checked as kube-apiserver does, with its sentences; of what only a kubelet reads (probe
handlers, security contexts, volume sources) the shape alone is checked, by the schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from kubesched.api import quantity
from kubesched.api.names import check_dns1123_label, check_dns1123_subdomain, check_label_value, check_qualified_name
from kubesched.apiserver.admission import TOLERATES_LOST
from kubesched.apiserver.schema import shape
from kubesched.apiserver.status import (
    FieldError,
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_found,
    field_not_supported,
    field_required,
)
from kubesched.apiserver.strategy import affinity_terms, container_requests, qos_class
from kubesched.apiserver.validation import faults, label_selector, labels

Json = dict[str, Any]
Errors = list[FieldError]

_INT32_MAX = 2**31 - 1
_RESTART = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PULL = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_OTHER_STANDARD_RESOURCES = (  # of quotas and claims; no container can have them
    *("storage", "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"),
    *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
    *("requests.cpu", "requests.memory", "requests.ephemeral-storage", "requests.storage"),
    *("limits.cpu", "limits.memory", "limits.ephemeral-storage"),
)
_PORT_NAME = re.compile("[-a-z0-9]+")
_SELECT_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"

UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def pod(obj: Json) -> Errors:
    """Faults of a new pod, beyond its metadata."""
    errors = pod_spec(obj["spec"], "spec")
    spec = obj["spec"]
    if spec.get("schedulingGates") and spec.get("nodeName"):
        errors.append(field_forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    errors += _match_label_keys(spec)
    return errors


def pod_spec(spec: Json, at: str) -> Errors:
    """Faults of a pod spec, in a pod or in a template."""
    errors: Errors = []
    volumes: set[str] = set()
    if "volumes" in spec:
        errors += _volumes(spec["volumes"], f"{at}.volumes", volumes)
    if "resourceClaims" in spec:
        errors += _claims(spec["resourceClaims"], f"{at}.resourceClaims")
    errors += _containers(spec, at, volumes)
    if spec.get("restartPolicy") not in _RESTART:
        errors.append(_choice(f"{at}.restartPolicy", spec.get("restartPolicy", ""), _RESTART))
    if spec.get("dnsPolicy") not in _DNS:
        errors.append(_choice(f"{at}.dnsPolicy", spec.get("dnsPolicy", ""), _DNS))
    if "nodeSelector" in spec:
        errors += labels(spec["nodeSelector"], f"{at}.nodeSelector")
    if "hostname" in spec:
        errors += _each(f"{at}.hostname", spec["hostname"], check_dns1123_label)
    if "subdomain" in spec:
        errors += _each(f"{at}.subdomain", spec["subdomain"], check_dns1123_label)
    if "serviceAccountName" in spec:
        errors += _each(f"{at}.serviceAccountName", spec["serviceAccountName"], check_dns1123_subdomain)
    if "nodeName" in spec:
        errors += _each(f"{at}.nodeName", spec["nodeName"], check_dns1123_subdomain)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= _INT32_MAX:
        why = f"must be between 1 and {_INT32_MAX}, inclusive"
        errors.append(field_invalid(f"{at}.activeDeadlineSeconds", deadline, why))
    if "affinity" in spec:
        errors += _affinity(spec["affinity"], f"{at}.affinity")
    if spec.get("tolerations") and spec["tolerations"] is not TOLERATES_LOST:
        errors += tolerations(spec["tolerations"], f"{at}.tolerations")
    if "priorityClassName" in spec:
        errors += _each(f"{at}.priorityClassName", spec["priorityClassName"], check_dns1123_subdomain)
    if "runtimeClassName" in spec:
        errors += _each(f"{at}.runtimeClassName", spec["runtimeClassName"], check_dns1123_subdomain)
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in ("Never", "PreemptLowerPriority"):
        errors.append(_choice(f"{at}.preemptionPolicy", policy, ("PreemptLowerPriority", "Never")))
    system = spec["os"].get("name", "") if "os" in spec else "linux"
    if not system:
        errors.append(field_required(f"{at}.os.name"))
    elif system not in ("linux", "windows"):
        errors.append(field_not_supported(f"{at}.os", system, ("linux", "windows")))
    if "resources" in spec:
        errors += _pod_resources(spec, f"{at}.resources")
    if "overhead" in spec:
        errors += _amounts(spec["overhead"], f"{at}.overhead")
    if "topologySpreadConstraints" in spec:
        errors += _spread(spec["topologySpreadConstraints"], f"{at}.topologySpreadConstraints")
    if "schedulingGates" in spec:
        errors += _gates(spec["schedulingGates"], f"{at}.schedulingGates")
    return errors


def _choice(field: str, value: Any, supported: Sequence[str]) -> FieldError:
    return field_not_supported(field, value, supported) if value else field_required(field)


def _each(field: str, value: str, check: Callable[[str], str | None]) -> Errors:
    return [field_invalid(field, value, fault) for fault in faults(check(value))] if value else []


# ── containers ──────────────────────────────────────────────────────────────────────────────────────────────


def _containers(spec: Json, at: str, volumes: set[str]) -> Errors:
    errors: Errors = []
    containers = spec.get("containers")
    names: set[str] = set()
    claims = {claim.get("name") for claim in spec.get("resourceClaims", ())}
    if not containers:
        errors.append(field_required(f"{at}.containers"))
    for field in ("containers", "initContainers"):
        host_ports: set[tuple[str, str, int]] = set()
        for index, container in enumerate(spec.get(field) or ()):
            if _is_plain(container, names):
                names.add(container["name"])
                continue
            where = f"{at}.{field}[{index}]"
            errors += _container(container, where, volumes, claims, spec, host_ports)
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
    container: Json, at: str, volumes: set[str], claims: set[Any], spec: Json, host_ports: set[tuple[str, str, int]]
) -> Errors:
    errors: Errors = []
    name = container.get("name", "")
    if not name:
        errors.append(field_required(f"{at}.name"))
    else:
        errors += _each(f"{at}.name", name, check_dns1123_label)
    if not container.get("image"):
        errors.append(field_required(f"{at}.image"))
    if "ports" in container:
        errors += _ports(container["ports"], f"{at}.ports", bool(spec.get("hostNetwork")), host_ports)
    for index, variable in enumerate(container.get("env", ())):
        errors += _variable(variable, f"{at}.env[{index}]")
    mounts: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts", ())):
        errors += _mount(mount, f"{at}.volumeMounts[{index}]", volumes, mounts)
    pull = container.get("imagePullPolicy", "")
    if pull not in _PULL:
        errors.append(_choice(f"{at}.imagePullPolicy", pull, _PULL))
    errors += _resources(container.get("resources", {}), f"{at}.resources", claims)
    if container.get("restartPolicy") not in (None, *_RESTART):
        errors.append(field_not_supported(f"{at}.restartPolicy", container["restartPolicy"], _RESTART))
    return errors


def _ports(ports: list[Json], at: str, host_network: bool, taken: set[tuple[str, str, int]]) -> Errors:
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
        if host_network and host != number:
            why = "must match `containerPort` when `hostNetwork` is true"
            errors.append(field_invalid(f"{where}.hostPort", host, why))
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


# ── resources ───────────────────────────────────────────────────────────────────────────────────────────────


def is_standard_container_resource(name: str) -> bool:
    return name in _STANDARD_RESOURCES or name.startswith("hugepages-")


def _overcommits(name: str) -> bool:
    return ("/" not in name or "kubernetes.io/" in name) and not name.startswith("hugepages-")


def _resource_name(name: str, at: str) -> Errors:
    errors: Errors = []
    for fault in faults(check_qualified_name(name)):
        errors.append(field_invalid(at, name, fault))
    if errors:
        return errors
    if "/" not in name:
        if not is_standard_container_resource(name):
            if name not in _OTHER_STANDARD_RESOURCES:
                errors.append(field_invalid(at, name, "must be a standard resource type or fully qualified"))
            errors.append(field_invalid(at, name, "must be a standard resource for containers"))
    elif not name.startswith("kubernetes.io/") and "kubernetes.io/" not in name:
        if not quantity.is_extended_resource(name):
            errors.append(field_invalid(at, name, "doesn't follow extended resource name standard"))
    return errors


def _amount(name: str, amount: str, at: str) -> Errors:
    errors: Errors = []
    if amount[:1] == "-":
        errors.append(field_invalid(at, amount, "must be greater than or equal to 0"))
    if "/" in name and quantity.is_extended_resource(name):
        if is_broken(amount):
            errors.append(field_invalid(at, amount, "must be an integer"))
    if name.startswith("hugepages-") and not _is_multiple(amount, name.removeprefix("hugepages-")):
        errors.append(field_invalid(at, amount, f"{amount} is not positive integer multiple of {name}"))
    return errors


def is_broken(amount: str) -> bool:
    """Whether a quantity is no whole number; one beyond all numbers is whole enough."""
    milli = quantity.parse_milli(amount)
    return milli % 1000 != 0 and abs(milli) < 2**63 - 1


def _is_multiple(amount: str, page: str) -> bool:
    try:
        size = quantity.parse_milli(page)
    except ValueError:
        return False
    return size > 0 and quantity.parse_milli(amount) % size == 0


def _amounts(amounts: Json, at: str) -> Errors:
    errors: Errors = []
    for name, amount in sorted(amounts.items()):
        errors += _resource_name(name, f"{at}[{name}]") + _amount(name, amount, f"{at}[{name}]")
    return errors


def _resources(resources: Json, at: str, claims: set[Any]) -> Errors:
    errors: Errors = []
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for name in sorted(limits):
        where = f"{at}.limits[{name}]"
        errors += _amount(name, limits[name], where) + _resource_name(name, where)
    for name in sorted(requests):
        where, asked = f"{at}.requests[{name}]", requests[name]
        bad = _amount(name, asked, where)
        errors += bad + _resource_name(name, where)
        limit = limits.get(name)
        if limit is not None:
            if not _overcommits(name) and quantity.compare(asked, limit):
                errors.append(field_invalid(f"{at}.requests", asked, f"must be equal to {name} limit of {limit}"))
            elif quantity.compare(asked, limit) > 0:
                why = f"must be less than or equal to {name} limit of {limit}"
                errors.append(field_invalid(f"{at}.requests", asked, why))
        elif not _overcommits(name) and not _resource_name(name, where):
            errors.append(field_required(f"{at}.limits", "Limit must be set for non overcommitable resources"))
    named = {*limits, *requests}
    if not named & {"cpu", "memory"} and any(name.startswith("hugepages-") for name in named):
        errors.append(field_forbidden(at, "HugePages require cpu or memory"))
    for index, claim in enumerate(resources.get("claims", ())):
        if claim.get("name") not in claims:
            errors.append(field_not_found(f"{at}.claims[{index}]", claim.get("name", "")))
    return errors


def _pod_resources(spec: Json, at: str) -> Errors:
    """Faults of what a pod as a whole asks for: of few resources, and no less than its containers together."""
    errors: Errors = []
    whole = spec["resources"]
    limits, requests = whole.get("limits", {}), whole.get("requests", {})
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in sorted(amounts.items()):
            where = f"{at}.{field}[{name}]"
            wrong = _resource_name(name, where)[:1]
            if not wrong and name not in ("cpu", "memory") and not name.startswith("hugepages-"):
                wrong = [field_not_supported(where, name, ("cpu", "hugepages-", "memory"))]
            errors += wrong or _amount(name, amount, where)
    together = container_requests(spec)
    for name, asked in sorted(requests.items()):
        if name in limits and quantity.compare(asked, limits[name]) > 0:
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            errors.append(field_invalid(f"{at}.requests", asked, why))
        if name in together and quantity.compare(asked, together[name]) < 0:
            why = f"must be greater than or equal to aggregate container requests of {together[name]}"
            errors.append(field_invalid(f"{at}.requests[{name}]", asked, why))
    return errors


# ── volumes and claims ──────────────────────────────────────────────────────────────────────────────────────


def _volumes(volumes: list[Json], at: str, names: set[str]) -> Errors:
    errors: Errors = []
    for index, volume in enumerate(volumes):
        where = f"{at}[{index}]"
        name = volume.get("name", "")
        bad = [field_required(f"{where}.name")] if not name else _each(f"{where}.name", name, check_dns1123_label)
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
            errors += _each(f"{where}.name", name, check_dns1123_label)
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


# ── placement ───────────────────────────────────────────────────────────────────────────────────────────────


def tolerations(found: list[Json], at: str) -> Errors:
    errors: Errors = []
    for index, toleration in enumerate(found):
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        value, effect = toleration.get("value", ""), toleration.get("effect", "")
        where = f"{at}[{index}]"
        if key:
            errors += _each(f"{where}.key", key, check_qualified_name)
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(field_invalid(f"{where}.operator", operator, why))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(field_invalid(f"{where}.effect", effect, why))
        if operator in ("", "Equal"):
            bad = faults(check_label_value(value))
            if bad:
                errors.append(field_invalid(f"{where}.operator", value, ";".join(bad)))
        elif operator == "Exists":
            if value:
                errors.append(
                    field_invalid(f"{where}.operator", value, "value must be empty when `operator` is 'Exists'")
                )
        elif operator in ("Lt", "Gt"):
            errors.append(field_not_supported(f"{where}.operator", operator, ("Equal", "Exists", "Lt", "Gt")))
        else:
            errors.append(field_not_supported(f"{where}.operator", operator, ("Equal", "Exists")))
        if effect and effect not in _EFFECTS:
            errors.append(field_not_supported(f"{where}.effect", effect, _EFFECTS))
    return errors


def _affinity(affinity: Json, at: str) -> Errors:
    errors: Errors = []
    if "nodeAffinity" in affinity:
        errors += _node_affinity(affinity["nodeAffinity"], f"{at}.nodeAffinity")
    for side in ("podAffinity", "podAntiAffinity"):
        if side in affinity:
            errors += _pod_affinity(affinity[side], f"{at}.{side}")
    return errors


_REQUIRED, _PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


def _node_affinity(affinity: Json, at: str) -> Errors:
    errors: Errors = []
    if _REQUIRED in affinity:
        errors += node_selector(affinity[_REQUIRED], f"{at}.{_REQUIRED}")
    for index, preferred in enumerate(affinity.get(_PREFERRED, ())):
        where = f"{at}.{_PREFERRED}[{index}]"
        errors += _weight(preferred, where)
        errors += _node_term(preferred.get("preference", {}), f"{where}.preference")
    return errors


def _weight(preferred: Json, at: str) -> Errors:
    weight = preferred.get("weight", 0)
    return [] if 1 <= weight <= 100 else [field_invalid(f"{at}.weight", weight, "must be in the range 1-100")]


def node_selector(selector: Json, at: str) -> Errors:
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        return [field_required(f"{at}.nodeSelectorTerms", "must have at least one node selector term")]
    return [e for index, term in enumerate(terms) for e in _node_term(term, f"{at}.nodeSelectorTerms[{index}]")]


def _node_term(term: Json, at: str) -> Errors:
    errors: Errors = []
    for index, one in enumerate(term.get("matchExpressions", ())):
        where = f"{at}.matchExpressions[{index}]"
        operator, values = one.get("operator", ""), one.get("values", ())
        if operator in ("In", "NotIn"):
            if not values:
                errors.append(field_required(f"{where}.values", _SELECT_VALUES))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(field_forbidden(f"{where}.values", why))
        elif operator in ("Gt", "Lt"):
            if len(values) != 1:
                errors.append(
                    field_required(f"{where}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
                )
        else:
            errors.append(field_invalid(f"{where}.operator", operator, "not a valid selector operator"))
        key = one.get("key", "")
        errors += [field_invalid(f"{where}.key", key, fault) for fault in faults(check_qualified_name(key))]
        if operator in ("In", "NotIn"):
            for position, value in enumerate(values):
                bad = faults(check_label_value(value))
                errors += [field_invalid(f"{where}.values[{position}]", value, fault) for fault in bad]
    for index, one in enumerate(term.get("matchFields", ())):
        errors += _match_field(one, f"{at}.matchFields[{index}]")
    return errors


def _match_field(one: Json, at: str) -> Errors:
    operator, values, key = one.get("operator", ""), one.get("values", ()), one.get("key", "")
    errors: Errors = []
    if operator in ("In", "NotIn"):
        if len(values) != 1:
            why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            errors.append(field_required(f"{at}.values", why))
    else:
        errors.append(field_invalid(f"{at}.operator", operator, "not a valid selector operator"))
    if key != "metadata.name":
        errors.append(field_invalid(f"{at}.key", key, "not a valid field selector key"))
    else:
        for index, value in enumerate(values):
            errors += _each(f"{at}.values[{index}]", value, check_dns1123_subdomain)
    return errors


def _pod_affinity(affinity: Json, at: str) -> Errors:
    errors: Errors = []
    for index, term in enumerate(affinity.get(_REQUIRED, ())):
        errors += _pod_term(term, f"{at}.{_REQUIRED}[{index}]")
    for index, preferred in enumerate(affinity.get(_PREFERRED, ())):
        where = f"{at}.{_PREFERRED}[{index}]"
        errors += _weight(preferred, where)
        errors += _pod_term(preferred.get("podAffinityTerm", {}), f"{where}.podAffinityTerm")
    return errors


def _pod_term(term: Json, at: str) -> Errors:
    errors = label_selector(term.get("labelSelector"), f"{at}.labelSelector")
    errors += label_selector(term.get("namespaceSelector"), f"{at}.namespaceSelector")
    for name in term.get("namespaces", ()):
        errors += [field_invalid(f"{at}.namespace", name, fault) for fault in faults(check_dns1123_label(name))]
    key = term.get("topologyKey", "")
    if not key:
        errors.append(field_required(f"{at}.topologyKey", "can not be empty"))
    errors += [field_invalid(f"{at}.topologyKey", key, fault) for fault in faults(check_qualified_name(key))]
    mismatched = term.get("mismatchLabelKeys", ())
    for index, label in enumerate(term.get("matchLabelKeys", ())):
        if label in mismatched:
            why = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(field_invalid(f"{at}.matchLabelKeys[{index}]", label, why))
    if (term.get("matchLabelKeys") or mismatched) and term.get("labelSelector") is None:
        for name in ("matchLabelKeys", "mismatchLabelKeys"):
            if term.get(name):
                why = "must not be specified when labelSelector is not set"
                errors.append(field_forbidden(f"{at}.{name}", why))
    return errors


def _match_label_keys(spec: Json) -> Errors:
    """Keys that a selector already speaks of may not be merged into it.

    The merge has happened when this runs (strategy), so one mention of a key is the merged one.
    """
    errors: Errors = []
    terms = [
        (constraint, f"spec.topologySpreadConstraints[{index}]")
        for index, constraint in enumerate(spec.get("topologySpreadConstraints", ()))
    ]
    terms += [(term, "spec.affinity") for term in affinity_terms(spec)]
    for term, at in terms:
        selector = term.get("labelSelector")
        if selector is None:
            continue
        given = [*selector.get("matchLabels", ()), *(one.get("key") for one in selector.get("matchExpressions", ()))]
        for field in ("matchLabelKeys", "mismatchLabelKeys"):
            for index, key in enumerate(term.get(field, ())):
                if given.count(key) > 1:
                    errors.append(
                        field_invalid(f"{at}[{index}]", key, "exists in both matchLabelKeys and labelSelector")
                    )
    return errors


def _spread(constraints: list[Json], at: str) -> Errors:
    errors: Errors = []
    pairs = [(one.get("topologyKey", ""), one.get("whenUnsatisfiable", "")) for one in constraints]
    for index, constraint in enumerate(constraints):
        where = f"{at}[{index}]"
        skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
        unsatisfiable = constraint.get("whenUnsatisfiable", "")
        if skew <= 0:
            errors.append(field_invalid(f"{where}.maxSkew", skew, "must be greater than zero"))
        if not key:
            errors.append(field_required(f"{where}.topologyKey", "can not be empty"))
        else:
            errors += _each(f"{where}.topologyKey", key, check_qualified_name)
        if unsatisfiable not in _UNSATISFIABLE:
            errors.append(field_not_supported(f"{where}.whenUnsatisfiable", unsatisfiable, _UNSATISFIABLE))
        if (key, unsatisfiable) in pairs[index + 1 :]:
            shown = f"{{{key}, {unsatisfiable}}}"
            errors.append(field_duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", shown))
        domains = constraint.get("minDomains")
        if domains is not None:
            if domains <= 0:
                errors.append(field_invalid(f"{where}.minDomains", domains, "must be greater than zero"))
            if unsatisfiable != "DoNotSchedule":
                why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {unsatisfiable}"
                errors.append(field_invalid(f"{where}.minDomains", domains, why))
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(policy) not in (None, "Honor", "Ignore"):
                errors.append(field_not_supported(f"{where}.{policy}", constraint[policy], ("Honor", "Ignore")))
        if constraint.get("matchLabelKeys") and constraint.get("labelSelector") is None:
            why = "must not be specified when labelSelector is not set"
            errors.append(field_forbidden(f"{where}.matchLabelKeys", why))
        errors += label_selector(constraint.get("labelSelector"), f"{where}.labelSelector")
    return errors


def _gates(gates: list[Json], at: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name, where = gate.get("name", ""), f"{at}[{index}]"
        errors += [field_invalid(where, name, fault) for fault in faults(check_qualified_name(name))]
        if name in seen:
            errors.append(field_duplicate(where, name))
        seen.add(name)
    return errors


# ── changes ─────────────────────────────────────────────────────────────────────────────────────────────────


def pod_update(obj: Json, old: Json) -> Errors:
    """Faults of a changed pod, and of the change."""
    new, was = obj["spec"], old["spec"]
    if new == was:
        return []
    errors = pod_spec(new, "spec")
    for field in ("containers", "initContainers"):
        if len(new.get(field) or ()) != len(was.get(field) or ()):
            return [*errors, field_forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
    errors += _deadline(new, was)
    errors += _only_added_tolerations(new.get("tolerations") or [], was.get("tolerations") or [])
    errors += _only_removed_gates(new, was)
    munged = {**new}
    for field in ("containers", "initContainers"):
        if field in new:
            munged[field] = [
                {**container, "image": before.get("image")}
                for container, before in zip(new[field], was[field], strict=True)
            ]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _restore(munged, was, field)
    if was.get("terminationGracePeriodSeconds", 0) < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = was["terminationGracePeriodSeconds"]
    if was.get("schedulingGates"):
        errors += _gated_changes(munged, was)
    if any(munged.get(field) != was.get(field) for field in shape("core.PodSpec").fields):
        errors.append(
            field_forbidden("spec", f"pod updates may not change fields other than {UPDATABLE}\n{diff(was, munged)}")
        )
    return errors


def _restore(munged: Json, was: Json, field: str) -> None:
    if field in was:
        munged[field] = was[field]
    else:
        munged.pop(field, None)


def diff(was: Json, munged: Json) -> str:
    """The fields that changed, one line each way."""
    lines = []
    for field in sorted({*was, *munged}):
        if was.get(field) != munged.get(field):
            lines += [f"- {field}: {was.get(field)}", f"+ {field}: {munged.get(field)}"]
    return "\n".join(lines) + "\n"


def _deadline(new: Json, was: Json) -> Errors:
    at = "spec.activeDeadlineSeconds"
    deadline, before = new.get("activeDeadlineSeconds"), was.get("activeDeadlineSeconds")
    if deadline is None:
        why = "must not update from a positive integer to nil value"
        return [field_invalid(at, None, why)] if before is not None else []
    if before is not None and before < deadline:
        return [field_invalid(at, deadline, "must be less than or equal to previous value")]
    return []


def _only_added_tolerations(new: list[Json], was: list[Json]) -> Errors:
    def core(toleration: Json) -> Json:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = [core(toleration) for toleration in new]
    if all(core(toleration) in kept for toleration in was):
        return []
    return [field_forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _only_removed_gates(new: Json, was: Json) -> Errors:
    had = {gate.get("name") for gate in was.get("schedulingGates", ())}
    return [
        field_forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(new.get("schedulingGates", ()))
        if gate.get("name") not in had
    ]


def _gated_changes(munged: Json, was: Json) -> Errors:
    """While it is gated a pod may be told more about where to go, never less."""
    errors: Errors = []
    new_selector, old_selector = munged.get("nodeSelector") or {}, was.get("nodeSelector") or {}
    if new_selector != old_selector:
        if any(new_selector.get(key) != value for key, value in old_selector.items()):
            why = "only additions are allowed (no mutations or deletions)"
            errors.append(field_invalid("spec.nodeSelector", new_selector, why))
        _restore(munged, was, "nodeSelector")
    new_affinity = (munged.get("affinity") or {}).get("nodeAffinity")
    old_affinity = (was.get("affinity") or {}).get("nodeAffinity")
    if new_affinity != old_affinity:
        errors += _node_affinity_change(new_affinity or {}, old_affinity or {})
        affinity = {key: value for key, value in (munged.get("affinity") or {}).items() if key != "nodeAffinity"}
        if old_affinity is not None:
            affinity["nodeAffinity"] = old_affinity
        if affinity or was.get("affinity") is not None:
            munged["affinity"] = affinity
        else:
            munged.pop("affinity", None)
    return errors


def _node_affinity_change(new: Json, was: Json) -> Errors:
    at = f"spec.affinity.nodeAffinity.{_REQUIRED}"
    old_terms = (was.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    if not old_terms:
        return []
    terms = (new.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    if len(terms) != len(old_terms):
        return [
            field_invalid(
                f"{at}.nodeSelectorTerms",
                terms,
                "no additions/deletions to non-empty NodeSelectorTerms list are allowed",
            )
        ]
    errors: Errors = []
    for index, (term, before) in enumerate(zip(terms, old_terms, strict=True)):
        for field in ("matchExpressions", "matchFields"):
            kept = (term.get(field) or [])[: len(before.get(field) or [])]
            if kept != (before.get(field) or []):
                why = "only additions are allowed (no mutations or deletions)"
                errors.append(field_invalid(f"{at}.nodeSelectorTerms[{index}]", term, why))
                break
    return errors


def pod_resize(obj: Json, old: Json) -> Errors:
    """Faults of a change through /resize: resources of containers may change, nothing else."""
    errors: Errors = []
    munged = {**obj["spec"]}
    for field in ("containers", "initContainers"):
        new, was = munged.get(field) or [], old["spec"].get(field) or []
        if len(new) != len(was):
            return [field_forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
        munged[field] = [
            {**one, "resources": before.get("resources"), "resizePolicy": before.get("resizePolicy")}
            for one, before in zip(new, was, strict=True)
        ]
        munged[field] = [{k: v for k, v in one.items() if v is not None} for one in munged[field]]
        if not munged[field] and field not in old["spec"]:
            del munged[field]
    kept = qos_class(old["spec"])
    if qos_class(obj["spec"]) != kept:
        errors.append(field_invalid("spec", kept, "Pod QOS Class may not change as a result of resizing"))
    if munged != old["spec"]:
        errors.append(
            field_forbidden("spec", f"only cpu and memory resources are mutable\n{diff(old['spec'], munged)}")
        )
    return errors or pod_spec(obj["spec"], "spec")


def pod_ephemeral(obj: Json, old: Json) -> Errors:
    """Faults of a change through /ephemeralcontainers: they may be added, nothing else may change."""
    new, was = obj["spec"].get("ephemeralContainers") or [], old["spec"].get("ephemeralContainers") or []
    names = [one.get("name") for one in new]
    errors: Errors = []
    for index, one in enumerate(was):
        if one.get("name") not in names:
            why = f'existing ephemeral containers "{one.get("name")}" may not be removed\n'
            errors.append(field_forbidden("spec.ephemeralContainers", why))
        elif one not in new:
            where = f"spec.ephemeralContainers[{index}]"
            errors.append(
                field_forbidden(where, f'existing ephemeral containers "{one.get("name")}" may not be changed\n')
            )
    for index, one in enumerate(new):
        where = f"spec.ephemeralContainers[{index}]"
        errors += [field_required(f"{where}.{field}") for field in ("name", "image") if not one.get(field)]
    if {**obj["spec"], "ephemeralContainers": was} != {**old["spec"], "ephemeralContainers": was}:
        errors.append(field_forbidden("spec", "only ephemeral containers may be changed here"))
    return errors


def pod_status(obj: Json, old: Json) -> Errors:
    """Faults of a changed pod status."""
    errors: Errors = []
    status, was = obj.get("status") or {}, old.get("status") or {}
    nominated = status.get("nominatedNodeName")
    if nominated:
        errors += _each("status.nominatedNodeName", nominated, check_dns1123_subdomain)
        if obj["spec"].get("nodeName") and nominated != was.get("nominatedNodeName"):
            why = "may not be set on pods that are already bound to a node"
            errors.append(field_forbidden("status.nominatedNodeName", why))
    if was.get("qosClass") and status.get("qosClass") != was["qosClass"]:
        errors.append(field_invalid("status.qosClass", status.get("qosClass", ""), "field is immutable"))
    return errors
