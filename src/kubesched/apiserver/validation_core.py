"""The rules of nodes, namespaces, configuration and services."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubesched.api import quantity
from kubesched.api.names import check_dns1123_label, check_label_value, check_qualified_name
from kubesched.apiserver import validation_resources
from kubesched.apiserver.status import (
    FieldError,
    field_duplicate,
    field_forbidden,
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
    labels,
    one_of,
)
from kubesched.apiserver.validation_metadata import STANDARD_FINALIZERS

_CONFIG_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_CONFIG_KEY = re.compile("[-._a-zA-Z0-9]+")


def _taints(taints: Sequence[Json], at: str) -> Errors:
    errors: Errors = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        where = f"{at}[{index}]"
        key, effect, value = taint.get("key", ""), taint.get("effect", ""), taint.get("value", "")
        errors += [field_invalid(f"{where}.key", key, fault) for fault in faults(check_qualified_name(key))]
        errors += [field_invalid(f"{where}.value", value, fault) for fault in faults(check_label_value(value))]
        if not effect:
            errors.append(field_required(f"{where}.effect"))
        elif effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            choices = ("NoSchedule", "PreferNoSchedule", "NoExecute")
            errors.append(field_not_supported(f"{where}.effect", effect, choices))
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            duplicate = field_duplicate(where, shown)
            body = f"{duplicate.body}: taints must be unique by key and effect pair"
            errors.append(FieldError(duplicate.reason, where, body))
        seen.add((key, effect))
    return errors


_WHOLE = (
    *("pods", "replicationcontrollers", "services", "resourcequotas", "secrets", "configmaps"),
    *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
)


def _node_amounts(amounts: Json, at: str) -> Errors:
    errors: Errors = []
    for name, amount in sorted(amounts.items()):
        if amount.startswith("-"):
            errors.append(field_invalid(f"{at}.{name}", amount, "must be greater than or equal to 0"))
        elif (name in _WHOLE or quantity.is_extended_resource(name)) and validation_resources.is_broken(amount):
            errors.append(field_invalid(f"{at}.{name}", amount, "must be an integer"))
    return errors


def _node_resources(obj: Json) -> Errors:
    status = obj.get("status") or {}
    errors = _node_amounts(status.get("capacity") or {}, "status.capacity")
    return errors + _node_amounts(status.get("allocatable") or {}, "status.allocatable")


def _node(obj: Json) -> Errors:
    spec = obj["spec"]
    errors = _taints(spec.get("taints") or (), "metadata.taints") + _node_resources(obj)
    for index, block in enumerate(spec.get("podCIDRs") or ()):
        address, slash, prefix = block.partition("/")
        if not (slash and prefix.isdigit() and re.fullmatch("[0-9a-fA-F.:]+", address)):
            why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            errors.append(field_invalid(f"spec.podCIDRs[{index}]", block, why))
    return errors


def _node_update(obj: Json, old: Json) -> Errors:
    return _node(obj) + _node_change(obj, old)


def _node_change(obj: Json, old: Json) -> Errors:
    """Kept from kube-apiserver: the look at a change repeats much of what is looked at in any node."""
    errors = _node_resources(obj)
    new, was = obj["spec"], old["spec"]
    if was.get("podCIDRs") and new.get("podCIDRs") != was["podCIDRs"]:
        errors.append(field_forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    if was.get("providerID") and new.get("providerID") != was["providerID"]:
        errors.append(
            field_forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')
        )
    return errors + _taints(new.get("taints") or (), "metadata.taints")


def _namespace(obj: Json) -> Errors:
    errors: Errors = []
    for finalizer in obj["spec"].get("finalizers") or ():
        if check_qualified_name(finalizer):
            errors += [field_invalid("spec.finalizers", finalizer, f) for f in faults(check_qualified_name(finalizer))]
        elif "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(field_invalid("spec.finalizers", finalizer, why))
    return errors


def _config_keys(obj: Json, fields: Sequence[str]) -> Errors:
    errors: Errors = []
    for field in fields:
        for key in sorted(obj.get(field) or ()):
            for fault in _config_key_faults(key):
                errors.append(field_invalid(f"{field}[{key}]", key, fault))
            if field == "data" and key in (obj.get("binaryData") or ()):
                errors.append(field_invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    return errors


def _config_key_faults(key: str) -> list[str]:
    if len(key) > 253:
        return ["must be no more than 253 bytes"]
    if not _CONFIG_KEY.fullmatch(key):
        return [_CONFIG_KEY_RULE]
    if key in (".", ".."):
        return [f"must not be '{key}'"]
    return ["must not start with '..'"] if key.startswith("..") else []


def _config_map(obj: Json) -> Errors:
    return _config_keys(obj, ("data", "binaryData"))


def _config_map_update(obj: Json, old: Json) -> Errors:
    errors: Errors = []
    if old.get("immutable"):
        if not obj.get("immutable"):
            errors.append(field_forbidden("immutable", "field is immutable when `immutable` is set"))
        for field in ("data", "binaryData"):
            if obj.get(field) != old.get(field):
                errors.append(field_forbidden(field, "field is immutable when `immutable` is set"))
    return errors + _config_map(obj)


def _secret(obj: Json) -> Errors:
    return _config_keys(obj, ("data",))


def _secret_update(obj: Json, old: Json) -> Errors:
    errors = immutable(obj, old, "type")
    if old.get("immutable"):
        if not obj.get("immutable"):
            errors.append(field_forbidden("immutable", "field is immutable when `immutable` is set"))
        if obj.get("data") != old.get("data"):
            errors.append(field_forbidden("data", "field is immutable when `immutable` is set"))
    return errors + _secret(obj)


def _service(obj: Json) -> Errors:
    spec = obj["spec"]
    errors: Errors = []
    ports = spec.get("ports") or ()
    if not ports and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
        errors.append(field_required("spec.ports"))
    names: set[str] = set()
    for index, port in enumerate(ports):
        at = f"spec.ports[{index}]"
        name = port.get("name", "")
        if not name and len(ports) > 1:
            errors.append(field_required(f"{at}.name"))
        elif name:
            errors += [field_invalid(f"{at}.name", name, fault) for fault in faults(check_dns1123_label(name))]
            if name in names:
                errors.append(field_duplicate(f"{at}.name", name))
            names.add(name)
        number, target = port.get("port", 0), port.get("targetPort")
        if not 1 <= number <= 65535:
            errors.append(field_invalid(f"{at}.port", number, "must be between 1 and 65535, inclusive"))
        if port.get("protocol") not in ("SCTP", "TCP", "UDP"):
            errors.append(field_not_supported(f"{at}.protocol", port.get("protocol"), ("SCTP", "TCP", "UDP")))
        if isinstance(target, int) and not 1 <= target <= 65535:
            errors.append(field_invalid(f"{at}.targetPort", target, "must be between 1 and 65535, inclusive"))
    errors += labels(spec.get("selector") or {}, "spec.selector")
    errors += one_of(spec, "spec", "sessionAffinity", ("ClientIP", "None"))
    return errors + one_of(spec, "spec", "type", ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"))


def _service_update(obj: Json, old: Json) -> Errors:
    new, was = obj["spec"], old["spec"]
    errors: Errors = []
    outside = "ExternalName" in (new.get("type"), was.get("type"))
    if not outside and new.get("clusterIP", "") != was.get("clusterIP", ""):
        addresses = [new["clusterIP"]] if new.get("clusterIP") else []
        if not addresses:
            why = "primary clusterIP can not be unset"
            errors.append(field_invalid("spec.clusterIPs[0]", None, why))
        elif was.get("clusterIP"):
            errors.append(field_invalid("spec.clusterIPs[0]", addresses, "may not change once set"))
    return errors + _service(obj)


# ── who checks what ──────────────────────────────────────────────────────────────────────────────────────────

CREATE: dict[str, Check] = {
    "core.Node": _node,
    "core.Namespace": _namespace,
    "core.ConfigMap": _config_map,
    "core.Secret": _secret,
    "core.Service": _service,
}

UPDATE: dict[str, CheckChange] = {
    "core.Node": _node_update,
    "core.ConfigMap": _config_map_update,
    "core.Secret": _secret_update,
    "core.Service": _service_update,
}

STATUS: dict[str, CheckChange] = {"core.Node": _node_change}
