"""The rules of what steers scheduling: budgets, priorities, pod groups, runtime classes, leases and events."""

from __future__ import annotations

from kubesched.api.names import check_dns1123_label
from kubesched.apiserver import validation_placement
from kubesched.apiserver.status import (
    field_duplicate,
    field_forbidden,
    field_invalid,
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
    label_selector,
    labels,
    not_negative,
    one_of,
)
from kubesched.apiserver.validation_workload import percent_or_number

_HIGHEST_PRIORITY = 1_000_000_000
_SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def _budget(obj: Json) -> Errors:
    spec = obj["spec"]
    errors: Errors = []
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        errors.append(field_invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    if least is not None:
        errors += percent_or_number(least, "spec.minAvailable")
    if most is not None:
        errors += percent_or_number(most, "spec.maxUnavailable")
    errors += label_selector(spec.get("selector"), "spec.selector")
    return errors + one_of(spec, "spec", "unhealthyPodEvictionPolicy", ("AlwaysAllow", "IfHealthyBudget"))


def _priority_class(obj: Json) -> Errors:
    errors: Errors = []
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if name.startswith("system-"):
        if _SYSTEM_CLASSES.get(name) != value or obj.get("globalDefault"):
            known = name in _SYSTEM_CLASSES
            why = (
                f"value of {name} PriorityClass must be {_SYSTEM_CLASSES.get(name)}"
                if known
                else (f"{name} is not a known system priority class")
            )
            head = "priority class names with 'system-' prefix are reserved for system use only. error: "
            errors.append(field_forbidden("metadata.name", head + why))
    elif value > _HIGHEST_PRIORITY:
        why = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        errors.append(field_forbidden("value", why))
    return errors + one_of(obj, "", "preemptionPolicy", ("PreemptLowerPriority", "Never"))


def _priority_class_update(obj: Json, old: Json) -> Errors:
    errors: Errors = []
    if obj.get("value", 0) != old.get("value", 0):
        errors.append(field_forbidden("value", "may not be changed in an update."))
    return errors + immutable(obj, old, "preemptionPolicy")


def _scheduling_policy(policy: Json, at: str) -> Errors:
    chosen = [name for name in ("basic", "gang") if policy.get(name) is not None]
    if not chosen:
        return [field_invalid(at, "", "must specify one of: `basic`, `gang`")]
    if len(chosen) > 1:
        return [field_invalid(at, "{" + ", ".join(chosen) + "}", "must specify exactly one of: `basic`, `gang`")]
    gang = policy.get("gang")
    if gang is not None:
        count = gang.get("minCount", 0)
        if not count:
            return [field_required(f"{at}.gang.minCount")]
        if count < 0:
            return [field_invalid(f"{at}.gang.minCount", count, "must be greater than or equal to 1")]
    return []


def _pod_group(obj: Json) -> Errors:
    spec = obj["spec"]
    return _scheduling_policy(spec.get("schedulingPolicy") or {}, "spec.schedulingPolicy")


def _workload(obj: Json) -> Errors:
    templates = obj["spec"].get("podGroupTemplates")
    if not templates:
        return [field_required("spec.podGroupTemplates")]
    errors: Errors = []
    names: set[str] = set()
    for index, one in enumerate(templates):
        at = f"spec.podGroupTemplates[{index}]"
        name = one.get("name", "")
        if not name:
            errors.append(field_required(f"{at}.name"))
        else:
            errors += [field_invalid(f"{at}.name", name, fault) for fault in faults(check_dns1123_label(name))]
        if name in names:
            errors.append(field_duplicate(at, name))
        names.add(name)
        errors += _scheduling_policy(one.get("schedulingPolicy") or {}, f"{at}.schedulingPolicy")
    return errors


def _runtime_class(obj: Json) -> Errors:
    handler = obj.get("handler", "")
    if not handler:
        errors = [field_required("handler")]
    else:
        errors = [field_invalid("handler", handler, fault) for fault in faults(check_dns1123_label(handler))]
    for name, amount in ((obj.get("overhead") or {}).get("podFixed") or {}).items():
        if amount.startswith("-"):
            errors.append(field_invalid(f"overhead.limits[{name}]", amount, "must be greater than or equal to 0"))
    scheduling = obj.get("scheduling") or {}
    errors += labels(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector")
    return errors + validation_placement.tolerations(scheduling.get("tolerations") or [], "scheduling.tolerations")


def _runtime_class_update(obj: Json, old: Json) -> Errors:
    return [*_runtime_class(obj), *immutable(obj, old, "handler")]


def _lease(obj: Json) -> Errors:
    spec = obj.get("spec") or {}
    errors: Errors = []
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        errors.append(field_invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    return errors + not_negative(spec, "spec", "leaseTransitions")


def _event(obj: Json) -> Errors:
    about = (obj.get("involvedObject") or {}).get("namespace", "")
    own = obj["metadata"].get("namespace", "")
    if about != own and (about or own != "default"):
        return [field_invalid("involvedObject.namespace", about, "does not match event.namespace")]
    return []


def _new_event(obj: Json) -> Errors:
    """An event that came in the shape of events.k8s.io; it has been converted to the core shape."""
    errors: Errors = []
    if obj.get("eventTime") is None:
        errors.append(field_required("eventTime"))
        if obj.get("type") not in ("Normal", "Warning"):
            errors.append(field_invalid("type", obj.get("type", ""), f"has invalid value: {obj.get('type', '')}"))
        return errors
    for field, name in (("reportingComponent", "reportingController"), ("reportingInstance", "reportingInstance")):
        if not obj.get(field):
            errors.append(field_required(name))
    if not obj.get("action"):
        errors.append(field_required("action"))
    if not obj.get("reason"):
        errors.append(field_required("reason"))
    if obj.get("type") not in ("Normal", "Warning"):
        errors.append(field_invalid("type", obj.get("type", ""), f"has invalid value: {obj.get('type', '')}"))
    return errors + _event(obj)


def _no_check(obj: Json, old: Json) -> Errors:
    return []


# ── who checks what ──────────────────────────────────────────────────────────────────────────────────────────

CREATE: dict[str, Check] = {
    "core.Event": _event,
    "events.Event": _new_event,
    "policy.PodDisruptionBudget": _budget,
    "scheduling.PriorityClass": _priority_class,
    "schedulingalpha.PodGroup": _pod_group,
    "schedulingalpha.Workload": _workload,
    "node.RuntimeClass": _runtime_class,
    "coordination.Lease": _lease,
}

UPDATE: dict[str, CheckChange] = {
    "core.Event": _no_check,
    "events.Event": _no_check,
    "scheduling.PriorityClass": _priority_class_update,
    "schedulingalpha.PodGroup": keeps_spec(_pod_group),
    "schedulingalpha.Workload": keeps_spec(_workload),
    "node.RuntimeClass": _runtime_class_update,
}
