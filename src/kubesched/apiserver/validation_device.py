"""The rules of dynamic resources: device classes, claims and templates.

What an expression says is not looked at: that takes a compiler of CEL.  The rules of slices are in validation_slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kubesched.api import quantity
from kubesched.api.names import check_dns1123_label, check_label_value, check_qualified_name
from kubesched.apiserver import validation_slice
from kubesched.apiserver.status import (
    field_duplicate,
    field_invalid,
    field_not_supported,
    field_required,
    field_too_long,
    field_too_many,
)
from kubesched.apiserver.validation import (
    Check,
    CheckChange,
    Errors,
    Json,
    driver_name,
    each,
    faults,
    immutable,
    subdomain,
)

_REQUESTS_MAX = _CONSTRAINTS_MAX = _CONFIG_MAX = _SELECTORS_MAX = 32
_CHOICES_MAX = 8
_EXPRESSION_MAX = 10 * 1024
_MODES = ("All", "ExactCount")
_TOLERATION_OPERATORS = ("Equal", "Exists")


def _device_class(obj: Json) -> Errors:
    spec = obj["spec"]
    errors = _selectors(spec.get("selectors") or (), "spec.selectors")
    errors += _each_of(spec.get("config") or (), _CONFIG_MAX, _configuration, "spec.config")
    extended = spec.get("extendedResourceName")
    if extended is not None and not quantity.is_extended_resource(extended):
        why = "must be a valid extended resource name"
        errors.append(field_invalid("spec.extendedResourceName", extended, why))
    return errors


def _each_of(items: Sequence[Any], most: int, check: Callable[[Any, str], Errors], at: str) -> Errors:
    """Faults of the items of a list, which are not looked at if there are too many."""
    if len(items) > most:
        return [field_too_many(at, len(items), most)]
    return [error for index, item in enumerate(items) for error in check(item, f"{at}[{index}]")]


def _set_of(
    items: Sequence[Any], most: int, check: Callable[[Any, str], Errors], key: Callable[[Any], str], at: str
) -> Errors:
    """Faults of the items of a list in which no two may be called the same."""
    errors = _each_of(items, most, check, at)
    if len(items) > most:
        return errors
    names = [key(item) for item in items]
    return errors + [
        field_duplicate(f"{at}[{index}]", name) for index, name in enumerate(names) if name in names[:index]
    ]


def _name_of(item: Json) -> str:
    return str(item.get("name", ""))


def _itself(item: str) -> str:
    return item


def _selectors(selectors: Sequence[Json], at: str) -> Errors:
    return _each_of(selectors, _SELECTORS_MAX, _selector, at)


def _selector(selector: Json, at: str) -> Errors:
    cel = selector.get("cel")
    if cel is None:
        return [field_required(f"{at}.cel")]
    if len(cel.get("expression", "")) > _EXPRESSION_MAX:
        return [field_too_long(f"{at}.cel.expression", _EXPRESSION_MAX)]
    return [] if cel.get("expression") else [field_required(f"{at}.cel.expression")]


# ── claims ──────────────────────────────────────────────────────────────────────────────────────────────────


def _claim_spec(spec: Json, at: str) -> Errors:
    devices = spec.get("devices") or {}
    requests = devices.get("requests") or ()
    known = _request_names(requests)
    here = f"{at}.devices"

    def refers(name: str, where: str) -> Errors:
        return _reference(name, known, where)

    def constraint(found: Json, where: str) -> Errors:
        named = _set_of(found.get("requests") or (), _REQUESTS_MAX, refers, _itself, f"{where}.requests")
        return named + _constraint(found, where)

    def configuration(found: Json, where: str) -> Errors:
        named = _set_of(found.get("requests") or (), _REQUESTS_MAX, refers, _itself, f"{where}.requests")
        return named + _configuration(found, where)

    errors = _set_of(requests, _REQUESTS_MAX, _request, _name_of, f"{here}.requests")
    errors += _each_of(devices.get("constraints") or (), _CONSTRAINTS_MAX, constraint, f"{here}.constraints")
    return errors + _each_of(devices.get("config") or (), _CONFIG_MAX, configuration, f"{here}.config")


def _request_names(requests: Sequence[Json]) -> set[str]:
    """What constraints and configurations may refer to: a request, or one of its choices."""
    known: set[str] = set()
    for request in requests:
        name = _name_of(request)
        known.add(name)
        known.update(f"{name}/{_name_of(choice)}" for choice in request.get("firstAvailable") or ())
    return known


def _reference(name: str, known: set[str], at: str) -> Errors:
    why = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
    if name.count("/") > 1:
        return [field_invalid(at, name, why)]
    errors = [field_invalid(at, part, fault) for part in name.split("/") for fault in faults(check_dns1123_label(part))]
    return errors if name in known else [*errors, field_invalid(at, name, why)]


def _constraint(constraint: Json, at: str) -> Errors:
    for name in ("matchAttribute", "distinctAttribute"):
        if constraint.get(name) is not None:
            return validation_slice.fully_qualified_name(constraint[name], f"{at}.{name}")
    why = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    return [field_required(at, why)]


def _configuration(config: Json, at: str) -> Errors:
    opaque = config.get("opaque")
    if opaque is None:
        return [field_required(f"{at}.opaque")]
    return driver_name(opaque.get("driver", ""), f"{at}.opaque.driver")


def _request(request: Json, at: str) -> Errors:
    name = _name_of(request)
    errors = [field_invalid(f"{at}.name", name, fault) for fault in faults(check_dns1123_label(name))]
    exact, choices = request.get("exactly"), request.get("firstAvailable") or ()
    if exact is not None and choices:
        why = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        errors.append(field_invalid(at, None, why))
    elif choices:
        errors += _set_of(choices, _CHOICES_MAX, _choice, _name_of, f"{at}.firstAvailable")
    elif exact is not None:
        errors += _wanted(exact, f"{at}.exactly")
    else:
        errors.append(field_required(at, "exactly one of `exactly` or `firstAvailable` is required"))
    return errors


def _choice(choice: Json, at: str) -> Errors:
    name = _name_of(choice)
    errors = [field_invalid(f"{at}.name", name, fault) for fault in faults(check_dns1123_label(name))]
    return errors + _wanted(choice, at)


def _wanted(request: Json, at: str) -> Errors:
    """Faults of what a request asks for."""
    of_class = request.get("deviceClassName", "")
    where = f"{at}.deviceClassName"
    errors = subdomain(of_class, where) if of_class else [field_required(where)]
    errors += _selectors(request.get("selectors") or (), f"{at}.selectors")
    mode, count = request.get("allocationMode"), request.get("count", 0)
    if mode not in _MODES:
        errors.append(field_not_supported(f"{at}.allocationMode", mode, _MODES))
    elif mode == "All" and count:
        errors.append(field_invalid(f"{at}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        errors.append(field_invalid(f"{at}.count", count, "must be greater than zero"))
    for index, toleration in enumerate(request.get("tolerations") or ()):
        errors += _toleration(toleration, f"{at}.tolerations[{index}]")
    return errors


def _toleration(toleration: Json, at: str) -> Errors:
    errors = each(f"{at}.key", toleration.get("key", ""), check_qualified_name)
    operator, value, effect = (toleration.get(name, "") for name in ("operator", "value", "effect"))
    if operator == "Exists" and value:
        errors.append(field_invalid(f"{at}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        errors += each(f"{at}.value", value, check_label_value)
    elif not operator:
        errors.append(field_required(f"{at}.operator"))
    elif operator not in _TOLERATION_OPERATORS:
        errors.append(field_not_supported(f"{at}.operator", operator, _TOLERATION_OPERATORS))
    if effect and effect not in validation_slice.EFFECTS:
        errors.append(field_not_supported(f"{at}.effect", effect, validation_slice.EFFECTS))
    return errors


def _resource_claim(obj: Json) -> Errors:
    return _claim_spec(obj["spec"], "spec")


def _resource_claim_update(obj: Json, old: Json) -> Errors:
    """Nothing of a claim may change, so nothing else is worth saying."""
    return immutable(obj, old, "spec")


def _resource_claim_template(obj: Json) -> Errors:
    return _claim_spec(obj["spec"].get("spec") or {}, "spec.spec")


def _resource_claim_template_update(obj: Json, old: Json) -> Errors:
    return [*_resource_claim_template(obj), *immutable(obj, old, "spec")]


# ── who checks what ──────────────────────────────────────────────────────────────────────────────────────────

CREATE: dict[str, Check] = {
    "resource.DeviceClass": _device_class,
    "resource.ResourceClaim": _resource_claim,
    "resource.ResourceClaimTemplate": _resource_claim_template,
    "resource.ResourceSlice": validation_slice.created,
}

UPDATE: dict[str, CheckChange] = {
    "resource.ResourceClaim": _resource_claim_update,
    "resource.ResourceClaimTemplate": _resource_claim_template_update,
    "resource.ResourceSlice": validation_slice.changed,
}
