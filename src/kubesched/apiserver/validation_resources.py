"""The rules of resources: what containers, and pods as a whole, may ask for."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.api import quantity
from kubesched.api.names import check_dns1123_label, check_qualified_name
from kubesched.apiserver.defaulting_pod import container_limits, container_requests, is_pod_level_resource
from kubesched.apiserver.status import (
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_found,
    field_not_supported,
    field_required,
)
from kubesched.apiserver.validation import Errors, Json, each, faults

_STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_OTHER_STANDARD_RESOURCES = (  # of quotas and claims; no container can have them
    *("storage", "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps"),
    *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
    *("requests.cpu", "requests.memory", "requests.ephemeral-storage", "requests.storage"),
    *("limits.cpu", "limits.memory", "limits.ephemeral-storage"),
)


def is_standard_container_resource(name: str) -> bool:
    return name in _STANDARD_RESOURCES or name.startswith("hugepages-")


def _overcommits(name: str) -> bool:
    return ("/" not in name or "kubernetes.io/" in name) and not name.startswith("hugepages-")


def _resource_name(name: str, at: str) -> Errors:
    errors = [field_invalid(at, name, fault) for fault in faults(check_qualified_name(name))]
    known = "/" in name or is_standard_container_resource(name) or name in _OTHER_STANDARD_RESOURCES
    if not errors and not known:
        errors.append(field_invalid(at, name, "must be a standard resource type or fully qualified"))
    return errors


def _container_resource_name(name: str, at: str) -> Errors:
    errors = _resource_name(name, at)
    if "/" not in name:
        if not is_standard_container_resource(name):
            errors.append(field_invalid(at, name, "must be a standard resource for containers"))
    elif "kubernetes.io/" not in name and not quantity.is_extended_resource(name):
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


def amounts(found: Json, at: str) -> Errors:
    """Faults of amounts of resources that a container could ask for."""
    errors: Errors = []
    for name, amount in sorted(found.items()):
        errors += _container_resource_name(name, f"{at}[{name}]") + _amount(name, amount, f"{at}[{name}]")
    return errors


def of_container(resources: Json, at: str, claims: set[str]) -> Errors:
    """Faults of what a container asks for; `claims` are those that its pod has."""
    return _requirements(resources, at, _container_resource_name) + _claim_names(resources, at, claims)


def _claim_names(resources: Json, at: str, claims: set[str]) -> Errors:
    errors: Errors = []
    seen: set[tuple[str, str]] = set()
    for index, claim in enumerate(resources.get("claims", ())):
        where, name, request = f"{at}.claims[{index}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            errors.append(field_required(where))
            continue
        if (name, "") in seen or (not request and any(known == name for known, _ in seen)):
            errors.append(field_duplicate(where, name))
        elif (name, request) in seen:
            errors.append(field_duplicate(where, f"{name}/{request}"))
        errors += each(f"{where}.request", request, check_dns1123_label)
        seen.add((name, request))
        if name not in claims:
            among = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            errors.append(field_not_found(where, name, f"must be one of the names in pod.spec.resourceClaims{among}"))
    return errors


def _requirements(resources: Json, at: str, check: Callable[[str, str], Errors]) -> Errors:
    """Faults of what a container or a pod asks for, with `check` for the names."""
    errors: Errors = []
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in sorted(amounts.items()):
            where = f"{at}.{field}[{name}]"
            errors += _amount(name, amount, where) + check(name, where)
    for name, asked in sorted(requests.items()):
        limit = limits.get(name)
        if limit is None:
            if not _overcommits(name):
                errors.append(field_required(f"{at}.limits", "Limit must be set for non overcommitable resources"))
        elif not _overcommits(name) and quantity.compare(asked, limit):
            errors.append(field_invalid(f"{at}.requests", asked, f"must be equal to {name} limit of {limit}"))
        elif quantity.compare(asked, limit) > 0:
            why = f"must be less than or equal to {name} limit of {limit}"
            errors.append(field_invalid(f"{at}.requests", asked, why))
    named = {*limits, *requests}
    if not named & {"cpu", "memory"} and any(name.startswith("hugepages-") for name in named):
        errors.append(field_forbidden(at, "HugePages require cpu or memory"))
    return errors


def _pod_resource_name(name: str, at: str) -> Errors:
    errors = _resource_name(name, at)
    if errors:
        return errors
    return [] if is_pod_level_resource(name) else [field_not_supported(at, name, ("cpu", "hugepages-", "memory"))]


def of_pod(spec: Json, at: str, claims: set[str]) -> Errors:
    """Faults of what a pod as a whole asks for: of few resources, and no less than its containers together."""
    whole = spec["resources"]
    if (spec.get("os") or {}).get("name") == "windows":
        return [field_forbidden(at, "may not be set for a windows pod")]
    errors: Errors = []
    if "claims" in whole:
        errors.append(field_forbidden(f"{at}.claims", "claims may not be set for Resources at pod-level"))
    errors += _requirements(whole, at, _pod_resource_name) + _claim_names(whole, at, claims)
    limits, requests = whole.get("limits", {}), whole.get("requests", {})
    for name, together in sorted(container_requests(spec).items()):
        if name in requests and quantity.compare(requests[name], together) < 0:
            why = f"must be greater than or equal to aggregate container requests of {together}"
            errors.append(field_invalid(f"{at}.requests[{name}]", requests[name], why))
    for name, together in sorted(container_limits(spec).items()):
        if name.startswith("hugepages-") and name in limits and quantity.compare(limits[name], together) < 0:
            why = f"must be greater than or equal to aggregate container limits of {together}"
            errors.append(field_invalid(f"{at}.limits[{name}]", limits[name], why))
    for index, container in enumerate(spec.get("containers") or ()):
        for name, limit in sorted(container.get("resources", {}).get("limits", {}).items()):
            if name in limits and quantity.compare(limit, limits[name]) > 0:
                why = f"must be less than or equal to pod limits of {limits[name]}"
                errors.append(field_invalid(f"{at}.containers[{index}][{name}].limits", limit, why))
    return errors
