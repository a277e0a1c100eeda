"""The rules of resource slices: the pool they belong to, the nodes they are for, and the devices in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubesched.api.names import check_dns1123_label, check_label_value, check_qualified_name
from kubesched.apiserver import validation_placement
from kubesched.apiserver.status import (
    field_duplicate,
    field_invalid,
    field_not_supported,
    field_required,
    field_too_long,
    field_too_many,
)
from kubesched.apiserver.validation import Errors, Json, driver_name, each, faults, immutable, subdomain

EFFECTS = ("NoExecute", "NoSchedule", "None")
_DEVICES_MAX, _DEVICES_MAX_WITH_MORE = 128, 64
_COUNTER_SETS_MAX, _COUNTERS_MAX = 8, 32
_ATTRIBUTES_MAX, _TAINTS_MAX, _CONDITIONS_MAX = 32, 16, 4
_VALUE_MAX, _ID_MAX, _POOL_NAME_MAX = 64, 32, 253
_PLACED = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_VALUES = ("bool", "int", "string", "version", "bools", "ints", "strings", "versions")
_LISTS = ("bools", "ints", "strings", "versions")
_IDENTIFIER = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_IDENTIFIER_RULE = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_NAMELESS = "the name must not be empty"
_NUMBER, _WORD = r"(0|[1-9]\d*)", r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_WORD}(\.{_WORD})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?", re.ASCII
)


def created(obj: Json) -> Errors:
    """Faults of a slice."""
    return _spec(obj["spec"])


def changed(obj: Json, old: Json) -> Errors:
    """Faults of a changed slice, and of the change."""
    errors = _spec(obj["spec"])
    for field in ("spec.pool.name", "spec.driver", "spec.nodeName"):
        errors += immutable(obj, old, field)
    return errors


def _spec(spec: Json) -> Errors:
    errors = driver_name(spec.get("driver", ""), "spec.driver") + _pool(spec.get("pool") or {})
    chosen, wrong = _place(spec, "spec")
    errors += wrong
    if "nodeSelector" in spec and len(spec["nodeSelector"].get("nodeSelectorTerms") or ()) != 1:
        terms = spec["nodeSelector"].get("nodeSelectorTerms")
        why = "must have exactly one node selector term"
        errors.append(field_invalid("spec.nodeSelector.nodeSelectorTerms", terms, why))
    shown = ", ".join(f"`{name}`" for name in _PLACED)
    if not chosen:
        errors.append(field_required("spec", f"exactly one of {shown} is required"))
    elif len(chosen) > 1:
        why = f"exactly one of {shown} is required, but multiple fields are set"
        errors.append(field_invalid("spec", _several(chosen), why))
    devices, counters = spec.get("devices") or (), spec.get("sharedCounters") or ()
    if devices and counters:
        errors.append(field_invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    return errors + _devices(devices, bool(spec.get("perDeviceNodeSelection"))) + _counter_sets(counters)


def _several(chosen: Sequence[str]) -> str:
    return "{" + ", ".join(f"`{name}`" for name in chosen) + "}"


def _pool(pool: Json) -> Errors:
    name, count, generation = pool.get("name", ""), pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    errors: Errors = []
    if not name:
        errors.append(field_required("spec.pool.name"))
    elif len(name) > _POOL_NAME_MAX:
        errors.append(field_too_long("spec.pool.name", _POOL_NAME_MAX))
    errors += [fault for part in name.split("/") for fault in subdomain(part, "spec.pool.name")] if name else []
    if count <= 0:
        errors.append(field_invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        errors.append(field_invalid("spec.pool.generation", generation, "must be greater than or equal to zero"))
    return errors


def _place(found: Json, at: str) -> tuple[list[str], Errors]:
    """Which of the ways to say where a slice or a device is are used, and what is wrong with them."""
    chosen: list[str] = []
    errors: Errors = []
    name = found.get("nodeName")
    if name:
        chosen.append("nodeName")
        errors += subdomain(name, f"{at}.nodeName")
    elif name is not None:
        why = "must be either unset or set to a non-empty string" if at == "spec" else "must not be empty"
        errors.append(field_invalid(f"{at}.nodeName", name, why))
    if found.get("nodeSelector") is not None:
        chosen.append("nodeSelector")
        errors += validation_placement.node_selector(found["nodeSelector"], f"{at}.nodeSelector")
    for flag in ("allNodes", "perDeviceNodeSelection"):
        if found.get(flag):
            chosen.append(flag)
        elif found.get(flag) is not None:
            errors.append(field_invalid(f"{at}.{flag}", False, "must be either unset or set to true"))
    return chosen, errors


# ── devices ─────────────────────────────────────────────────────────────────────────────────────────────────


def _devices(devices: Sequence[Json], each_placed: bool) -> Errors:
    at, most = "spec.devices", _DEVICES_MAX_WITH_MORE if any(map(_is_more, devices)) else _DEVICES_MAX
    if len(devices) > most:
        return [field_too_many(at, len(devices), most)]
    errors: Errors = []
    for index, device in enumerate(devices):
        errors += _device(device, f"{at}[{index}]", each_placed)
    names = [device.get("name", "") for device in devices]
    return errors + [
        field_duplicate(f"{at}[{index}]", name) for index, name in enumerate(names) if name in names[:index]
    ]


def _is_more(device: Json) -> bool:
    """Whether a device says what takes more room; slices of such devices are shorter."""
    listed = any(name in attribute for attribute in (device.get("attributes") or {}).values() for name in _LISTS)
    return bool(device.get("taints") or device.get("consumesCounters") or listed)


def _device(device: Json, at: str, each_placed: bool) -> Errors:
    name, attributes = device.get("name", ""), device.get("attributes") or {}
    errors = [field_invalid(f"{at}.name", name, fault) for fault in faults(check_dns1123_label(name))]
    together = len(attributes) + len(device.get("capacity") or ())
    if together > _ATTRIBUTES_MAX:
        why = f"the total number of attributes and capacities must not exceed {_ATTRIBUTES_MAX}"
        errors.append(field_invalid(at, together, why))
    for key, attribute in sorted(attributes.items()):
        errors += qualified_name(key, f"{at}.attributes") + _attribute(attribute, f"{at}.attributes[{key}]")
    for key in sorted(device.get("capacity") or ()):
        errors += qualified_name(key, f"{at}.capacity")
    taints = device.get("taints") or ()
    if len(taints) > _TAINTS_MAX:
        errors.append(field_too_many(f"{at}.taints", len(taints), _TAINTS_MAX))
    else:
        for index, taint in enumerate(taints):
            errors += _taint(taint, f"{at}.taints[{index}]")
    for index, consumed in enumerate(device.get("consumesCounters") or ()):
        errors += _counters(consumed, "counterSet", f"{at}.consumesCounters[{index}]")
    return errors + _device_place(device, at, each_placed) + _binding_conditions(device, at)


def _device_place(device: Json, at: str, each_placed: bool) -> Errors:
    if not each_placed:
        if all(device.get(name) is None for name in ("nodeName", "nodeSelector", "allNodes")):
            return []
        why = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
            "the ResourceSlice spec"
        )
        return [field_invalid(at, None, why)]
    chosen, errors = _place(device, at)
    why = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to "
        "true in the ResourceSlice spec"
    )
    if not chosen:
        errors.append(field_required(at, why))
    elif len(chosen) > 1:
        errors.append(field_invalid(at, _several(chosen), why))
    return errors


def _attribute(attribute: Json, at: str) -> Errors:
    errors: Errors = []
    strings = [(name, attribute.get(name)) for name in ("string", "version")]
    for name in ("strings", "versions"):
        strings += [(f"{name}[{index}]", value) for index, value in enumerate(attribute.get(name) or ())]
    for name, value in strings:
        if value is None:
            continue
        if name.startswith("version") and not _SEMVER.fullmatch(value):
            why = "must be a string compatible with semver.org spec 2.0.0"
            errors.append(field_invalid(f"{at}.{name}", value, why))
        if len(value) > _VALUE_MAX:
            errors.append(field_too_long(f"{at}.{name}", _VALUE_MAX))
    said = [name for name in _VALUES if attribute.get(name) is not None]
    if len(said) != 1:
        errors.append(field_invalid(at, attribute if said else "", "exactly one value must be specified"))
    return errors


def qualified_name(name: str, at: str) -> Errors:
    """Faults of the name of an attribute or a capacity, which may have a driver's domain before it."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        return _identifier(name, at)
    if "/" in identifier:
        return []  # kept from kube-apiserver: nobody looks at names with more than one slash
    errors = driver_name(domain, at) if domain else [field_invalid(at, "", "the domain must not be empty")]
    return errors + _identifier(identifier, at) if identifier else [*errors, field_invalid(at, "", _NAMELESS)]


def fully_qualified_name(name: str, at: str) -> Errors:
    """Faults of the name of an attribute that must have a domain."""
    errors = qualified_name(name, at)
    if "/" not in name:
        why = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(field_invalid(at, name, why))
    return errors


def _identifier(name: str, at: str) -> Errors:
    errors = [field_too_long(at, _ID_MAX)] if len(name) > _ID_MAX else []
    return errors if _IDENTIFIER.fullmatch(name) else [*errors, field_invalid(at, name, _IDENTIFIER_RULE)]


def _taint(taint: Json, at: str) -> Errors:
    key, effect = taint.get("key", ""), taint.get("effect", "")
    errors = [field_invalid(f"{at}.key", key, fault) for fault in faults(check_qualified_name(key))]
    errors += each(f"{at}.value", taint.get("value", ""), check_label_value)
    if not effect:
        errors.append(field_required(f"{at}.effect"))
    elif effect not in EFFECTS:
        errors.append(field_not_supported(f"{at}.effect", effect, EFFECTS))
    return errors


def _binding_conditions(device: Json, at: str) -> Errors:
    """Faults of the conditions that a binding waits for: both kinds or none, and no name twice."""
    fields = ("bindingConditions", "bindingFailureConditions")
    wanted, failures = (device.get(field) or [] for field in fields)
    errors: Errors = []
    for field, names in zip(fields, (wanted, failures), strict=True):
        if len(names) > _CONDITIONS_MAX:
            errors.append(field_too_many(f"{at}.{field}", len(names), _CONDITIONS_MAX))
        else:
            for index, name in enumerate(names):
                bad = faults(check_qualified_name(name))
                errors += [field_invalid(f"{at}.{field}[{index}]", name, fault) for fault in bad]
        errors += [field_duplicate(f"{at}.{field}[{i}]", name) for i, name in enumerate(names) if name in names[:i]]
    for index, name in enumerate(failures):
        if name in wanted:
            why = "bindingFailureConditions must not overlap with bindingConditions"
            errors.append(field_invalid(f"{at}.{fields[1]}[{index}]", name, why))
    if bool(wanted) != bool(failures):
        missing, given = fields if failures else fields[::-1]
        errors.append(field_invalid(f"{at}.{missing}", None, f"{missing} are required to use {given}"))
    return errors


# ── counters ────────────────────────────────────────────────────────────────────────────────────────────────


def _counter_sets(sets: Sequence[Json]) -> Errors:
    at = "spec.sharedCounters"
    if len(sets) > _COUNTER_SETS_MAX:
        return [field_too_many(at, len(sets), _COUNTER_SETS_MAX)]
    errors: Errors = []
    for index, found in enumerate(sets):
        errors += _counters(found, "name", f"{at}[{index}]")
    names = [found.get("name", "") for found in sets]
    return errors + [
        field_duplicate(f"{at}[{index}]", name) for index, name in enumerate(names) if name in names[:index]
    ]


def _counters(found: Json, named: str, at: str) -> Errors:
    name, counters = found.get(named, ""), found.get("counters") or {}
    errors = each(f"{at}.{named}", name, check_dns1123_label) if name else [field_required(f"{at}.{named}")]
    if not counters:
        errors.append(field_required(f"{at}.counters"))
    elif len(counters) > _COUNTERS_MAX:
        errors.append(field_too_many(f"{at}.counters", len(counters), _COUNTERS_MAX))
    else:
        for key in sorted(counters):
            errors += [field_invalid(f"{at}.counters", key, fault) for fault in faults(check_dns1123_label(key))]
    return errors
