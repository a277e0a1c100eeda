"""The rules of every kind but pods, and the tables of who checks what.

The depth follows what a scheduler and the controllers around it rely on: workloads and their selectors, budgets,
priorities, volumes and claims, devices.  Kinds without a row are checked by their schema and metadata alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from kubesched.api import quantity
from kubesched.api.labels import SelectorError, compile_label_selector
from kubesched.api.names import check_dns1123_label, check_dns1123_subdomain, check_label_value, check_qualified_name
from kubesched.api.objects import LabelSelector, LabelSelectorRequirement
from kubesched.apiserver import crd_rules, validation_pod
from kubesched.apiserver.kinds import Resource
from kubesched.apiserver.status import (
    FieldError,
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from kubesched.apiserver.validation import STANDARD_FINALIZERS, faults, immutable, label_selector, labels, metadata

Json = dict[str, Any]
Errors = list[FieldError]
Check = Callable[[Json], Errors]
CheckChange = Callable[[Json, Json], Errors]

_PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_CONFIG_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_CONFIG_KEY = re.compile("[-._a-zA-Z0-9]+")
_HIGHEST_PRIORITY = 1_000_000_000
_SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")


def created(resource: Resource, obj: Json) -> Errors:
    """Faults of a new object."""
    errors = metadata(resource, obj["metadata"])
    check = CREATE.get(resource.shape)
    return errors + check(obj) if check is not None else errors


def updated(resource: Resource, obj: Json, old: Json, subresource: str = "") -> Errors:
    """Faults of a changed object, and of the change."""
    errors = metadata(resource, obj["metadata"], old["metadata"])
    update = DOORS.get((resource.shape, subresource)) or UPDATE.get(resource.shape)
    if update is not None:
        return errors + update(obj, old)
    check = CREATE.get(resource.shape)
    return errors + check(obj) if check is not None else errors


def status_changed(resource: Resource, obj: Json, old: Json) -> Errors:
    """Faults of a change through /status."""
    errors = metadata(resource, obj["metadata"], old["metadata"])
    check = STATUS.get(resource.shape)
    return errors + check(obj, old) if check is not None else errors


def _not_negative(obj: Json, at: str, *fields: str) -> Errors:
    return [
        field_invalid(f"{at}.{name}", obj[name], "must be greater than or equal to 0")
        for name in fields
        if obj.get(name) is not None and obj[name] < 0
    ]


def _one_of(obj: Json, at: str, name: str, supported: Sequence[str]) -> Errors:
    value = obj.get(name)
    if value is None or value in supported:
        return []
    return [field_not_supported(f"{at}.{name}" if at else name, value, supported)]


def _subdomain(value: str, at: str) -> Errors:
    return [field_invalid(at, value, fault) for fault in faults(check_dns1123_subdomain(value))]


# ── workloads ───────────────────────────────────────────────────────────────────────────────────────────────


def selects(selector: Json | None, found: Json) -> bool:
    """Whether a label selector (as JSON) matches labels; a broken one matches nothing."""
    if selector is None:
        return False
    expressions = selector.get("matchExpressions") or ()
    try:
        compiled = compile_label_selector(
            LabelSelector(
                match_labels=dict(selector.get("matchLabels") or {}),
                match_expressions=tuple(
                    LabelSelectorRequirement(
                        key=one.get("key", ""), operator=one.get("operator", ""), values=tuple(one.get("values") or ())
                    )
                    for one in expressions
                ),
            )
        )
    except SelectorError:
        return False
    return bool(compiled.matches(found))


def template(found: Json | None, at: str, restart: Sequence[str] = ("Always",)) -> Errors:
    """Faults of a pod template."""
    if found is None:
        return [field_required(at)]
    errors: Errors = []
    meta = found.get("metadata") or {}
    if "labels" in meta:
        errors += labels(meta["labels"], f"{at}.labels")
    spec = found.get("spec") or {}
    errors += validation_pod.pod_spec(spec, f"{at}.spec")
    policy = spec.get("restartPolicy")
    if policy not in restart:
        if len(restart) > 1:
            errors.append(field_required(f"{at}.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
        else:
            errors.append(field_not_supported(f"{at}.spec.restartPolicy", policy, restart))
    return errors


def _selected_template(spec: Json, kind: str, *, required: bool = True, numbers: Sequence[str] = ()) -> Errors:
    """The selector, the replicas and the template of a workload, in the order of the real server."""
    errors: Errors = _not_negative(spec, "spec", *(("replicas",) if kind == "deployment" else ()))
    selector = spec.get("selector")
    if selector is None:
        if required:
            errors.append(field_required("spec.selector"))
    else:
        errors += label_selector(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            errors.append(field_invalid("spec.selector", selector, f"empty selector is invalid for {kind}"))
    if kind != "deployment":
        errors += _not_negative(spec, "spec", "replicas")
    given = (spec.get("template") or {}).get("metadata", {}).get("labels")
    empty = selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")
    if not empty and not selects(selector, given or {}):
        why = "`selector` does not match template `labels`"
        errors.append(field_invalid("spec.template.metadata.labels", given, why))
    errors += template(spec.get("template") or {}, "spec.template")
    errors += _not_negative(spec, "spec", *numbers)
    return errors


def _percent_or_number(value: Any, at: str) -> Errors:
    if isinstance(value, str):
        if not re.fullmatch("[0-9]+%", value):
            return [field_invalid(at, value, _PERCENT_RULE)]
        if int(value[:-1]) > 100:
            return [field_invalid(at, value, "must not be greater than 100%")]
        return []
    return [field_invalid(at, value, "must be greater than or equal to 0")] if value < 0 else []


def _is_zero(value: Any) -> bool:
    if isinstance(value, str):
        digits = value.removesuffix("%")
        return not digits.isdigit() or int(digits) == 0
    return bool(value == 0)


def _deployment(obj: Json) -> Errors:
    spec = obj["spec"]
    errors = _selected_template(spec, "deployment")
    strategy = spec.get("strategy") or {}
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            why = "may not be specified when strategy `type` is 'Recreate'"
            errors.append(field_forbidden("spec.strategy.rollingUpdate", why))
    elif kind == "RollingUpdate":
        rolling = rolling or {}
        at = "spec.strategy.rollingUpdate"
        errors += _percent_or_number(rolling.get("maxUnavailable", 0), f"{at}.maxUnavailable")
        if isinstance(rolling.get("maxSurge"), str) and not re.fullmatch("[0-9]+%", rolling["maxSurge"]):
            errors.append(field_invalid(f"{at}.maxSurge", rolling["maxSurge"], _PERCENT_RULE))
        if _is_zero(rolling.get("maxUnavailable", 0)) and _is_zero(rolling.get("maxSurge", 0)):
            why = "may not be 0 when `maxSurge` is 0"
            errors.append(field_invalid(f"{at}.maxUnavailable", rolling.get("maxUnavailable", 0), why))
    else:
        shown = {"Type": kind or "", "RollingUpdate": None}
        errors.append(field_not_supported("spec.strategy", shown, ("Recreate", "RollingUpdate")))
    errors += _not_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        errors.append(field_invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors


def _replica_set(obj: Json) -> Errors:
    return _selected_template(obj["spec"], "replicaset", numbers=("minReadySeconds",))


def _stateful_set(obj: Json) -> Errors:
    spec = obj["spec"]
    errors = _one_of(spec, "spec", "podManagementPolicy", ("OrderedReady", "Parallel"))
    kind = (spec.get("updateStrategy") or {}).get("type")
    if kind not in ("RollingUpdate", "OnDelete"):
        errors.append(
            field_invalid("spec.updateStrategy", spec.get("updateStrategy"), "must be 'RollingUpdate' or 'OnDelete'")
        )
    return errors + _selected_template(spec, "statefulset", numbers=("minReadySeconds", "revisionHistoryLimit"))


def _daemon_set(obj: Json) -> Errors:
    numbers = ("minReadySeconds", "revisionHistoryLimit")
    return _selected_template(obj["spec"], "daemonset", required=False, numbers=numbers)


def _replication_controller(obj: Json) -> Errors:
    spec = obj["spec"]
    errors: Errors = []
    if not spec.get("selector"):
        errors.append(field_required("spec.selector"))
    errors += _not_negative(spec, "spec", "minReadySeconds", "replicas")
    found = spec.get("template")
    if found is None:
        return [*errors, field_required("spec.template")]
    given = (found.get("metadata") or {}).get("labels")
    if spec.get("selector") and any((given or {}).get(k) != v for k, v in spec["selector"].items()):
        why = "`selector` does not match template `labels`"
        errors.append(field_invalid("spec.template.metadata.labels", given, why))
    return errors + template(found, "spec.template")


def _job_spec(spec: Json, at: str, *, selected: bool) -> Errors:
    errors = _not_negative(
        spec,
        at,
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "backoffLimitPerIndex",
        "ttlSecondsAfterFinished",
    )
    errors += _one_of(spec, at, "completionMode", ("NonIndexed", "Indexed"))
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        errors.append(field_required(f"{at}.completions", "when completion mode is Indexed"))
    if selected and spec.get("manualSelector"):
        if not spec.get("selector"):
            errors.append(field_required(f"{at}.selector"))
        else:
            given = (spec.get("template") or {}).get("metadata", {}).get("labels")
            if not selects(spec["selector"], given or {}):
                why = "`selector` does not match template `labels`"
                errors.append(field_invalid(f"{at}.template.metadata.labels", given, why))
    return errors + template(spec.get("template") or {}, f"{at}.template", ("OnFailure", "Never"))


def _job(obj: Json) -> Errors:
    return _job_spec(obj["spec"], "spec", selected=True)


def _cron_job(obj: Json) -> Errors:
    spec = obj["spec"]
    errors: Errors = []
    schedule = spec.get("schedule", "")
    if not schedule:
        errors.append(field_required("spec.schedule"))
    elif not schedule.startswith("@") and len(schedule.split()) != 5:
        fields = schedule.split()
        why = f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
        errors.append(field_invalid("spec.schedule", schedule, why))
    errors += _one_of(spec, "spec", "concurrencyPolicy", ("Allow", "Forbid", "Replace"))
    errors += _not_negative(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    return errors + _job_spec(
        (spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec", selected=False
    )


def _keeps_selector(check: Check) -> CheckChange:
    return lambda obj, old: [*immutable(obj, old, "spec.selector"), *check(obj)]


_STATEFUL_MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def _stateful_set_update(obj: Json, old: Json) -> Errors:
    errors = _stateful_set(obj)
    new, was = obj["spec"], old["spec"]
    if any(new.get(f) != was.get(f) for f in {**new, **was} if f not in _STATEFUL_MUTABLE):
        why = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        errors.append(field_forbidden("spec", why))
    return errors


def _job_update(obj: Json, old: Json) -> Errors:
    errors = _job(obj)
    new, was = obj["spec"], old["spec"]
    for field in ("completions", "selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy"):
        elastic = field == "completions" and was.get("completionMode") == "Indexed"
        if elastic and new.get("completions") == new.get("parallelism"):
            continue
        errors += immutable(obj, old, f"spec.{field}")
    placed = ("nodeSelector", "affinity", "tolerations", "schedulingGates")
    held, counted = was.get("suspend"), (old.get("status") or {}).get("startTime")
    if new.get("template") != was.get("template"):
        if not (held and not counted and _without(new["template"], placed) == _without(was["template"], placed)):
            errors.append(field_invalid("spec.template", new["template"], "field is immutable"))
    return errors


def _without(found: Json, fields: Sequence[str]) -> Json:
    spec = {key: value for key, value in found.get("spec", {}).items() if key not in fields}
    meta = {k: v for k, v in found.get("metadata", {}).items() if k not in ("labels", "annotations")}
    return {**found, "spec": spec, "metadata": meta}


# ── policy and scheduling ───────────────────────────────────────────────────────────────────────────────────


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
        errors += _percent_or_number(least, "spec.minAvailable")
    if most is not None:
        errors += _percent_or_number(most, "spec.maxUnavailable")
    errors += label_selector(spec.get("selector"), "spec.selector")
    return errors + _one_of(spec, "spec", "unhealthyPodEvictionPolicy", ("AlwaysAllow", "IfHealthyBudget"))


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
    return errors + _one_of(obj, "", "preemptionPolicy", ("PreemptLowerPriority", "Never"))


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


def _keeps_spec(check: Check, why: str = "field is immutable") -> CheckChange:
    return lambda obj, old: [*check(obj), *immutable(obj, old, "spec", why)]


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
    return errors + validation_pod.tolerations(scheduling.get("tolerations") or [], "scheduling.tolerations")


def _runtime_class_update(obj: Json, old: Json) -> Errors:
    return [*_runtime_class(obj), *immutable(obj, old, "handler")]


# ── nodes and namespaces ────────────────────────────────────────────────────────────────────────────────────


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
        elif (name in _WHOLE or quantity.is_extended_resource(name)) and validation_pod.is_broken(amount):
            errors.append(field_invalid(f"{at}.{name}", amount, "must be an integer"))
    return errors


def _node(obj: Json) -> Errors:
    spec, status = obj["spec"], obj.get("status") or {}
    errors = _taints(spec.get("taints") or (), "metadata.taints")
    errors += _node_amounts(status.get("capacity") or {}, "status.capacity")
    errors += _node_amounts(status.get("allocatable") or {}, "status.allocatable")
    for index, block in enumerate(spec.get("podCIDRs") or ()):
        address, slash, prefix = block.partition("/")
        if not (slash and prefix.isdigit() and re.fullmatch("[0-9a-fA-F.:]+", address)):
            why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            errors.append(field_invalid(f"spec.podCIDRs[{index}]", block, why))
    return errors


def _node_update(obj: Json, old: Json) -> Errors:
    # Kept from kube-apiserver: an update looks at the taints twice.
    errors = _node(obj) + _taints(obj["spec"].get("taints") or (), "metadata.taints")
    new, was = obj["spec"], old["spec"]
    if was.get("podCIDRs") and new.get("podCIDRs") != was["podCIDRs"]:
        errors.append(field_forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    if was.get("providerID") and new.get("providerID") != was["providerID"]:
        errors.append(
            field_forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')
        )
    return errors


def _node_status(obj: Json, old: Json) -> Errors:
    return _node(obj)


def _namespace(obj: Json) -> Errors:
    errors: Errors = []
    for finalizer in obj["spec"].get("finalizers") or ():
        if check_qualified_name(finalizer):
            errors += [field_invalid("spec.finalizers", finalizer, f) for f in faults(check_qualified_name(finalizer))]
        elif "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(field_invalid("spec.finalizers", finalizer, why))
    return errors


# ── configuration and services ──────────────────────────────────────────────────────────────────────────────


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
    errors += _one_of(spec, "spec", "sessionAffinity", ("ClientIP", "None"))
    return errors + _one_of(spec, "spec", "type", ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"))


def _service_update(obj: Json, old: Json) -> Errors:
    new, was = obj["spec"], old["spec"]
    errors: Errors = []
    if was.get("type") == new.get("type") != "ExternalName" and was.get("clusterIP"):
        errors += immutable(obj, old, "spec.clusterIP")
    return errors + _service(obj)


# ── storage ─────────────────────────────────────────────────────────────────────────────────────────────────


def _claim(obj: Json) -> Errors:
    return _claim_spec(obj["spec"], "spec")


def _claim_spec(spec: Json, at: str) -> Errors:
    errors = label_selector(spec.get("selector"), f"{at}.selector")
    modes = spec.get("accessModes") or ()
    if not modes:
        errors.append(field_required(f"{at}.accessModes", "at least 1 access mode is required"))
    errors += [field_not_supported(f"{at}.accessModes", m, _ACCESS_MODES) for m in modes if m not in _ACCESS_MODES]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        why = "may not use ReadWriteOncePod with other access modes"
        errors.append(field_forbidden(f"{at}.accessModes", why))
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if asked is None:
        errors.append(field_required(f"{at}.resources[storage]"))
    elif quantity.compare(asked, "0") <= 0:
        errors.append(field_invalid(f"{at}.resources[storage]", asked, "must be greater than zero"))
    if spec.get("storageClassName"):
        errors += _subdomain(spec["storageClassName"], f"{at}.storageClassName")
    return errors + _one_of(spec, at, "volumeMode", _VOLUME_MODES)


def _claim_update(obj: Json, old: Json) -> Errors:
    errors = _claim(obj)
    new, was = dict(obj["spec"]), dict(old["spec"])
    bound = (old.get("status") or {}).get("phase") == "Bound"
    if not was.get("volumeName") and new.get("volumeName"):
        was["volumeName"] = new["volumeName"]
    if "storageClassName" not in was and "storageClassName" in new:
        was["storageClassName"] = new["storageClassName"]
    asked = ((new.get("resources") or {}).get("requests") or {}).get("storage")
    had = ((was.get("resources") or {}).get("requests") or {}).get("storage")
    if bound:
        new["resources"], was["resources"] = {}, {}
        new["volumeAttributesClassName"] = was["volumeAttributesClassName"] = ""
    if new != was:
        why = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
            "claims\n" + validation_pod.diff(was, new)
        )
        errors.append(field_forbidden("spec", why))
    if bound and asked and had and quantity.compare(asked, had) < 0:
        granted = ((old.get("status") or {}).get("capacity") or {}).get("storage", had)
        if quantity.compare(asked, granted) <= 0:
            why = "field can not be less than status.capacity"
            errors.append(field_forbidden("spec.resources.requests.storage", why))
    return errors


def _volume(obj: Json) -> Errors:
    spec = obj["spec"]
    errors: Errors = []
    modes = spec.get("accessModes") or ()
    if not modes:
        errors.append(field_required("spec.accessModes"))
    errors += [field_not_supported("spec.accessModes", m, _ACCESS_MODES) for m in modes if m not in _ACCESS_MODES]
    capacity = spec.get("capacity")
    if not capacity:
        errors.append(field_required("spec.capacity"))
    if set(capacity or ()) != {"storage"}:
        errors.append(field_not_supported("spec.capacity", capacity, ("storage",)))
    elif quantity.compare(capacity["storage"], "0") <= 0:
        if capacity["storage"].startswith("-"):
            units = quantity.parse_units(capacity["storage"])
            errors.append(field_invalid("spec.capacity[storage]", units, "must be a valid resource quantity"))
        errors.append(field_invalid("spec.capacity[storage]", capacity["storage"], "must be greater than zero"))
    errors += _one_of(spec, "spec", "persistentVolumeReclaimPolicy", ("Delete", "Recycle", "Retain"))
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        if affinity.get("required") is None:
            errors.append(field_required("spec.nodeAffinity.required", "must specify required node constraints"))
        else:
            errors += validation_pod.node_selector(affinity["required"], "spec.nodeAffinity.required")
    elif "local" in spec:
        errors.append(field_required("spec.nodeAffinity", "Local volume requires node affinity"))
    sources = [key for key in spec if key in _VOLUME_SOURCES]
    if not sources:
        errors.append(field_required("spec", "must specify a volume type"))
    for source in sources[1:]:
        errors.append(field_forbidden(f"spec.{source}", "may not specify more than 1 volume type"))
    errors += validation_pod.source_path(spec, "spec")
    if "local" in spec and not spec["local"].get("path"):
        errors.append(field_required("spec.local.path"))
    if spec.get("storageClassName"):
        errors += _subdomain(spec["storageClassName"], "spec.storageClassName")
    return errors + _one_of(spec, "spec", "volumeMode", _VOLUME_MODES)


_VOLUME_SOURCES = frozenset(
    (
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "csi",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
        "glusterfs",
        "hostPath",
        "iscsi",
        "local",
        "nfs",
        "photonPersistentDisk",
        "portworxVolume",
        "quobyte",
        "rbd",
        "scaleIO",
        "storageos",
        "vsphereVolume",
    )
)


def _volume_update(obj: Json, old: Json) -> Errors:
    errors = _volume(obj)
    new, was = obj["spec"], old["spec"]
    if {k: v for k, v in new.items() if k in _VOLUME_SOURCES} != {k: v for k, v in was.items() if k in _VOLUME_SOURCES}:
        why = "spec.persistentvolumesource is immutable after creation\n" + validation_pod.diff(was, new)
        errors.append(field_forbidden("spec.persistentvolumesource", why))
    errors += immutable(obj, old, "spec.volumeMode")
    if was.get("nodeAffinity") is not None:
        errors += immutable(obj, old, "spec.nodeAffinity")
    return errors


def _storage_class(obj: Json) -> Errors:
    errors: Errors = []
    provisioner = obj.get("provisioner", "")
    if not provisioner:
        errors.append(field_required("provisioner"))
    else:
        bad = faults(check_qualified_name(provisioner.lower()))
        errors += [field_invalid("provisioner", provisioner.lower(), fault) for fault in bad]
    if "" in (obj.get("parameters") or {}):
        errors.append(field_invalid("parameters", "", "field can not be empty."))
    errors += _one_of(obj, "", "reclaimPolicy", ("Delete", "Retain"))
    errors += _topologies(obj.get("allowedTopologies") or ())
    return errors + _one_of(obj, "", "volumeBindingMode", ("Immediate", "WaitForFirstConsumer"))


def _topologies(terms: Sequence[Json]) -> Errors:
    """Faults of the places where volumes of a class may be."""
    errors: Errors = []
    for number, term in enumerate(terms):
        at = f"allowedTopologies[{number}].matchLabelExpressions"
        wanted = term.get("matchLabelExpressions") or []
        if term in terms[:number] or not wanted:
            errors.append(field_duplicate(at, ""))
        for index, one in enumerate(wanted):
            values, key = one.get("values") or [], one.get("key", "")
            if not values:
                errors.append(field_required(f"{at}[{index}].values"))
            errors += [
                field_duplicate(f"{at}[{index}].values[{place}]", value)
                for place, value in enumerate(values)
                if value in values[:place]
            ]
            errors += [field_invalid(f"{at}[{index}].key", key, fault) for fault in faults(check_qualified_name(key))]
            if key in [other.get("key", "") for other in wanted[:index]]:
                errors.append(field_duplicate(f"{at}[{index}].key", key))
    return errors


def _storage_class_update(obj: Json, old: Json) -> Errors:
    errors: Errors = []
    if obj.get("parameters") != old.get("parameters"):
        errors.append(field_forbidden("parameters", "updates to parameters are forbidden."))
    for field in ("provisioner", "reclaimPolicy", "volumeBindingMode"):
        errors += immutable(obj, old, field)
    return errors


def _csi_node(obj: Json) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    for index, driver in enumerate(obj["spec"].get("drivers") or ()):
        at = f"spec.drivers[{index}]"
        name = driver.get("name", "")
        if not name:
            errors.append(field_required(f"{at}.name"))
        if not driver.get("nodeID"):
            errors.append(field_required(f"{at}.nodeID"))
        count = (driver.get("allocatable") or {}).get("count") or 0
        if count < 0:
            errors.append(
                field_invalid(f"{at}.allocatable.count", count, "must be greater than or equal to 0")
            )
        if name in names:
            errors.append(field_duplicate(f"{at}.name", name))
        names.add(name)
    return errors


def _csi_driver(obj: Json) -> Errors:
    spec = obj["spec"]
    errors = _one_of(spec, "spec", "fsGroupPolicy", ("File", "None", "ReadWriteOnceWithFSType"))
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in ("Persistent", "Ephemeral"):
            errors.append(field_not_supported("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral")))
    return errors


def _capacity(obj: Json) -> Errors:
    errors = _subdomain(obj.get("storageClassName", ""), "storageClassName")
    for field in ("capacity", "maximumVolumeSize"):
        if obj.get(field, "").startswith("-"):
            errors.append(field_invalid(field, obj[field], "must be greater than or equal to 0"))
    return errors + label_selector(obj.get("nodeTopology"), "nodeTopology")


def _capacity_update(obj: Json, old: Json) -> Errors:
    return [*_capacity(obj), *immutable(obj, old, "nodeTopology"), *immutable(obj, old, "storageClassName")]


def _attachment(obj: Json) -> Errors:
    spec = obj["spec"]
    errors: Errors = []
    if not spec.get("attacher"):
        errors.append(field_required("spec.attacher"))
    source = spec.get("source") or {}
    if not source.get("persistentVolumeName") and source.get("inlineVolumeSpec") is None:
        why = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        errors.append(field_required("spec.source", why))
    return errors + _subdomain(spec.get("nodeName", ""), "spec.nodeName")


# ── leases, events, devices ─────────────────────────────────────────────────────────────────────────────────


def _lease(obj: Json) -> Errors:
    spec = obj.get("spec") or {}
    errors: Errors = []
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        errors.append(field_invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    return errors + _not_negative(spec, "spec", "leaseTransitions")


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
        errors += _subdomain(spec["nodeName"], "spec.nodeName")
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


# ── who checks what ─────────────────────────────────────────────────────────────────────────────────────────

CREATE: dict[str, Check] = {
    "apiextensions.CustomResourceDefinition": crd_rules.problems,
    "core.Pod": validation_pod.pod,
    "core.Node": _node,
    "core.Namespace": _namespace,
    "core.ConfigMap": _config_map,
    "core.Secret": _secret,
    "core.Service": _service,
    "core.PersistentVolume": _volume,
    "core.PersistentVolumeClaim": _claim,
    "core.ReplicationController": _replication_controller,
    "core.Event": _event,
    "events.Event": _new_event,
    "apps.Deployment": _deployment,
    "apps.ReplicaSet": _replica_set,
    "apps.StatefulSet": _stateful_set,
    "apps.DaemonSet": _daemon_set,
    "batch.Job": _job,
    "batch.CronJob": _cron_job,
    "policy.PodDisruptionBudget": _budget,
    "scheduling.PriorityClass": _priority_class,
    "schedulingalpha.PodGroup": _pod_group,
    "schedulingalpha.Workload": _workload,
    "node.RuntimeClass": _runtime_class,
    "storage.StorageClass": _storage_class,
    "storage.CSINode": _csi_node,
    "storage.CSIDriver": _csi_driver,
    "storage.CSIStorageCapacity": _capacity,
    "storage.VolumeAttachment": _attachment,
    "coordination.Lease": _lease,
    "resource.DeviceClass": _device_class,
    "resource.ResourceClaim": _resource_claim,
    "resource.ResourceClaimTemplate": _resource_claim_template,
    "resource.ResourceSlice": _resource_slice,
}

UPDATE: dict[str, CheckChange] = {
    "apiextensions.CustomResourceDefinition": crd_rules.changed_problems,
    "core.Pod": validation_pod.pod_update,
    "core.Node": _node_update,
    "core.ConfigMap": _config_map_update,
    "core.Secret": _secret_update,
    "core.Service": _service_update,
    "core.PersistentVolume": _volume_update,
    "core.PersistentVolumeClaim": _claim_update,
    "core.Event": _no_check,
    "events.Event": _no_check,
    "apps.Deployment": _keeps_selector(_deployment),
    "apps.ReplicaSet": _keeps_selector(_replica_set),
    "apps.DaemonSet": _keeps_selector(_daemon_set),
    "apps.StatefulSet": _stateful_set_update,
    "batch.Job": _job_update,
    "scheduling.PriorityClass": _priority_class_update,
    "schedulingalpha.PodGroup": _keeps_spec(_pod_group),
    "schedulingalpha.Workload": _keeps_spec(_workload),
    "node.RuntimeClass": _runtime_class_update,
    "storage.StorageClass": _storage_class_update,
    "storage.CSIStorageCapacity": _capacity_update,
    "storage.VolumeAttachment": _keeps_spec(_attachment),
    "resource.ResourceClaim": _keeps_spec(_resource_claim),
    "resource.ResourceClaimTemplate": _keeps_spec(_resource_claim_template),
    "resource.ResourceSlice": _resource_slice_update,
}

# Doors to the object itself that let other things through than the main one.
DOORS: dict[tuple[str, str], CheckChange] = {
    ("core.Pod", "resize"): validation_pod.pod_resize,
    ("core.Pod", "ephemeralcontainers"): validation_pod.pod_ephemeral,
}

STATUS: dict[str, CheckChange] = {
    "core.Pod": validation_pod.pod_status,
    "core.Node": _node_status,
}
