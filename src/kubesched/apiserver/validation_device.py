"""The rules of dynamic resources: device classes, claims, templates and slices."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.api.names import check_dns1123_label
from kubesched.apiserver.status import (
    field_duplicate,
    field_invalid,
    field_not_supported,
    field_required,
)
from kubesched.apiserver.validation import (
    Check,
    CheckChange,
    Errors,
    Json,
    faults,
    immutable,
    keeps_spec,
    subdomain,
)


def _device_class(obj: Json) -> Errors:
    return _selectors(obj["spec"].get("selectors") or (), "spec.selectors")


def _selectors(selectors: Sequence[Json], at: str) -> Errors:
    errors: Errors = []
    for index, selector in enumerate(selectors):
        cel = selector.get("cel")
        if cel is None:
            errors.append(field_required(f"{at}[{index}].cel"))
        elif not cel.get("expression"):
            errors.append(field_required(f"{at}[{index}].cel.expression"))
    return errors


def _device_requests(spec: Json, at: str) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        where = f"{at}.devices.requests[{index}]"
        name = request.get("name", "")
        if not name:
            errors.append(field_required(f"{where}.name"))
        else:
            errors += [field_invalid(f"{where}.name", name, fault) for fault in faults(check_dns1123_label(name))]
        exact, choices = request.get("exactly"), request.get("firstAvailable")
        if (exact is None) == (not choices):
            errors.append(field_required(where, "exactly one of `exactly` or `firstAvailable` is required"))
        if exact is not None:
            errors += _device_request(exact, f"{where}.exactly")
        for position, choice in enumerate(choices or ()):
            errors += _device_request(choice, f"{where}.firstAvailable[{position}]")
        if name in names:
            errors.append(field_duplicate(where, name))
        names.add(name)
    return errors


def _device_request(request: Json, at: str) -> Errors:
    errors: Errors = []
    if not request.get("deviceClassName"):
        errors.append(field_required(f"{at}.deviceClassName"))
    errors += _selectors(request.get("selectors") or (), f"{at}.selectors")
    if request.get("allocationMode") not in ("All", "ExactCount"):
        errors.append(field_not_supported(f"{at}.allocationMode", request.get("allocationMode"), ("All", "ExactCount")))
    elif request["allocationMode"] == "All" and request.get("count"):
        why = "must not be specified when allocationMode is 'All'"
        errors.append(field_invalid(f"{at}.count", request["count"], why))
    elif request["allocationMode"] == "ExactCount" and request.get("count", 0) <= 0:
        errors.append(field_invalid(f"{at}.count", request.get("count", 0), "must be greater than zero"))
    return errors


def _resource_claim(obj: Json) -> Errors:
    return _device_requests(obj["spec"], "spec")


def _resource_claim_template(obj: Json) -> Errors:
    return _device_requests(obj["spec"].get("spec") or {}, "spec.spec")


def _resource_slice(obj: Json) -> Errors:
    spec = obj["spec"]
    errors: Errors = []
    if not spec.get("driver"):
        errors.append(field_required("spec.driver"))
    pool = spec.get("pool") or {}
    if not pool.get("name"):
        errors.append(field_required("spec.pool.name"))
    if pool.get("resourceSliceCount", 0) <= 0:
        count = pool.get("resourceSliceCount", 0)
        errors.append(field_invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    names = [device.get("name", "") for device in spec.get("devices") or ()]
    for index, name in enumerate(names):
        at = f"spec.devices[{index}]"
        errors += [field_invalid(f"{at}.name", name, fault) for fault in faults(check_dns1123_label(name))]
        if name in names[:index]:
            errors.append(field_duplicate(at, name))
    if spec.get("nodeName"):
        errors += subdomain(spec["nodeName"], "spec.nodeName")
    placed = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
    chosen = [name for name in placed if spec.get(name)]
    if len(chosen) != 1:
        shown = ", ".join(f"`{name}`" for name in placed)
        if not chosen:
            errors.append(field_required("spec", f"exactly one of {shown} is required"))
        else:
            several = "{" + ", ".join(f"`{name}`" for name in chosen) + "}"
            why = f"exactly one of {shown} is required, but multiple fields are set"
            errors.append(field_invalid("spec", several, why))
    return errors


def _resource_slice_update(obj: Json, old: Json) -> Errors:
    errors = _resource_slice(obj)
    for field in ("spec.driver", "spec.pool.name", "spec.nodeName"):
        errors += immutable(obj, old, field)
    return errors


# ── who checks what ──────────────────────────────────────────────────────────────────────────────────────────

CREATE: dict[str, Check] = {
    "resource.DeviceClass": _device_class,
    "resource.ResourceClaim": _resource_claim,
    "resource.ResourceClaimTemplate": _resource_claim_template,
    "resource.ResourceSlice": _resource_slice,
}

UPDATE: dict[str, CheckChange] = {
    "resource.ResourceClaim": keeps_spec(_resource_claim),
    "resource.ResourceClaimTemplate": keeps_spec(_resource_claim_template),
    "resource.ResourceSlice": _resource_slice_update,
}
