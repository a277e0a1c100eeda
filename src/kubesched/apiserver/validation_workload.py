"""The rules of workloads: their selectors, their templates, and what of them may change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kubesched.api.names import check_dns1123_label
from kubesched.apiserver import validation_pod
from kubesched.apiserver.status import (
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
    annotation_map,
    each,
    immutable,
    label_selector,
    labels,
    not_negative,
    one_of,
    selects,
)

_PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


def template(found: Json | None, at: str, restart: Sequence[str] = ("Always",), *, of: str = "") -> Errors:
    """Faults of a pod template; `of` is the kind whose pods live as long as it does."""
    if found is None:
        return [field_required(at)]
    errors = _template_meta(found, at)
    spec = found.get("spec") or {}
    errors += validation_pod.pod_spec(spec, f"{at}.spec")
    return errors + _lifetime(spec, f"{at}.spec", restart, of)


def _template_meta(found: Json, at: str) -> Errors:
    meta = found.get("metadata") or {}
    errors = labels(meta["labels"], f"{at}.labels") if "labels" in meta else []
    return errors + (annotation_map(meta["annotations"], f"{at}.annotations") if "annotations" in meta else [])


def _lifetime(spec: Json, at: str, restart: Sequence[str], of: str) -> Errors:
    errors: Errors = []
    policy = spec.get("restartPolicy")
    if policy not in restart:
        if len(restart) > 1:
            errors.append(field_required(f"{at}.restartPolicy", 'valid values: "OnFailure", "Never"'))
        else:
            errors.append(field_not_supported(f"{at}.restartPolicy", policy, restart))
    if of and spec.get("activeDeadlineSeconds") is not None:
        why = f"activeDeadlineSeconds in {of} is not Supported"
        errors.append(field_forbidden(f"{at}.activeDeadlineSeconds", why))
    return errors


def _selected_template(spec: Json, kind: str, *, required: bool = True, numbers: Sequence[str] = ()) -> Errors:
    """The selector, the replicas and the template of a workload."""
    errors = _selected(spec, kind, required=required)
    errors += template(spec.get("template") or {}, "spec.template", of=_SHOWN[kind])
    return errors + not_negative(spec, "spec", *numbers)


# Kept from kube-apiserver: a deployment's template is looked at as its replica sets' will be.
_SHOWN = {"deployment": "ReplicaSet", "replicaset": "ReplicaSet", "daemonset": "DaemonSet"}


def _selected(spec: Json, kind: str, *, required: bool = True) -> Errors:
    errors: Errors = not_negative(spec, "spec", "replicas")
    selector = spec.get("selector")
    if selector is None:
        if required:
            errors.append(field_required("spec.selector"))
    else:
        errors += label_selector(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            # Kept from kube-apiserver: what holds for a replica set is said of a deployment.
            named = "deployment" if kind == "replicaset" else kind
            errors.append(field_invalid("spec.selector", selector, f"empty selector is invalid for {named}"))
    given = (spec.get("template") or {}).get("metadata", {}).get("labels")
    empty = selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")
    if not empty and not selects(selector, given or {}):
        why = "`selector` does not match template `labels`"
        errors.append(field_invalid("spec.template.metadata.labels", given, why))
    return errors


def percent_or_number(value: Any, at: str) -> Errors:
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
        errors += percent_or_number(rolling.get("maxUnavailable", 0), f"{at}.maxUnavailable")
        if isinstance(rolling.get("maxSurge"), str) and not re.fullmatch("[0-9]+%", rolling["maxSurge"]):
            errors.append(field_invalid(f"{at}.maxSurge", rolling["maxSurge"], _PERCENT_RULE))
        if _is_zero(rolling.get("maxUnavailable", 0)) and _is_zero(rolling.get("maxSurge", 0)):
            why = "may not be 0 when `maxSurge` is 0"
            errors.append(field_invalid(f"{at}.maxUnavailable", rolling.get("maxUnavailable", 0), why))
    else:
        shown = {"Type": kind or "", "RollingUpdate": None}
        errors.append(field_not_supported("spec.strategy", shown, ("Recreate", "RollingUpdate")))
    errors += not_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        errors.append(field_invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors


def _replica_set(obj: Json) -> Errors:
    return _selected_template(obj["spec"], "replicaset", numbers=("minReadySeconds",))


_POD_MANAGEMENT = ("OrderedReady", "Parallel")
_SET_UPDATES = ("RollingUpdate", "OnDelete")


def _stateful_set(obj: Json, *, lenient: bool = False) -> Errors:
    """Faults of a set; `lenient` where one that is there already was wrong in its template before."""
    spec = obj["spec"]
    policy, strategy = spec.get("podManagementPolicy", ""), spec.get("updateStrategy") or {}
    errors: Errors = []
    if not policy:
        errors.append(field_required("spec.podManagementPolicy"))
    elif policy not in _POD_MANAGEMENT:
        errors.append(field_invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
    kind = strategy.get("type")
    if not kind:
        errors.append(field_required("spec.updateStrategy"))
    elif kind not in _SET_UPDATES:
        errors.append(field_invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'"))
    elif kind == "OnDelete" and strategy.get("rollingUpdate") is not None:
        why = "only allowed for updateStrategy 'RollingUpdate'"
        errors.append(field_invalid("spec.updateStrategy.rollingUpdate", strategy["rollingUpdate"], why))
    errors += not_negative(spec, "spec", "minReadySeconds")
    errors += not_negative(spec.get("ordinals") or {}, "spec.ordinals", "start")
    errors += _selected(spec, "statefulset")
    found = spec.get("template") or {}
    if not lenient:
        errors += _template_meta(found, "spec.template")
        errors += validation_pod.pod_spec(_of_identity(found.get("spec") or {}, spec), "spec.template.spec")
    errors += _template_meta(found, "spec.template")
    return errors + _lifetime(found.get("spec") or {}, "spec.template.spec", ("Always",), "StatefulSet")


def _of_identity(found: Json, spec: Json) -> Json:
    """The pod spec as the set's pods will have it: named after the set, with volumes of its claims."""
    claims = [(claim.get("metadata") or {}).get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
    full = {key: value for key, value in found.items() if key not in ("hostname", "subdomain")}
    if claims:
        made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        full["volumes"] = made + [one for one in found.get("volumes") or () if one.get("name") not in claims]
    return full


def _new_stateful_set(obj: Json) -> Errors:
    name = obj["spec"].get("serviceName", "")
    return [*_stateful_set(obj), *each("spec.serviceName", name, check_dns1123_label)]


def _daemon_set(obj: Json) -> Errors:
    numbers = ("minReadySeconds", "revisionHistoryLimit")
    return _selected_template(obj["spec"], "daemonset", required=False, numbers=numbers)


def _replication_controller(obj: Json) -> Errors:
    spec = obj["spec"]
    errors: Errors = []
    if not spec.get("selector"):
        errors.append(field_required("spec.selector"))
    errors += not_negative(spec, "spec", "minReadySeconds", "replicas")
    found = spec.get("template")
    if found is None:
        return [*errors, field_required("spec.template")]
    given = (found.get("metadata") or {}).get("labels")
    if spec.get("selector") and any((given or {}).get(k) != v for k, v in spec["selector"].items()):
        why = "`selector` does not match template `labels`"
        errors.append(field_invalid("spec.template.metadata.labels", given, why))
    return errors + template(found, "spec.template", of="ReplicationController")


def _pod_template(obj: Json) -> Errors:
    found = obj.get("template") or {}
    return _template_meta(found, "template") + validation_pod.pod_spec(found.get("spec") or {}, "template.spec")


def _revision(obj: Json) -> Errors:
    return not_negative(obj, "", "revision")


def _revision_update(obj: Json, old: Json) -> Errors:
    return [*_revision(obj), *immutable(obj, old, "data")]


def _job_spec(spec: Json, at: str, *, selected: bool) -> Errors:
    errors = not_negative(
        spec,
        at,
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "backoffLimitPerIndex",
        "ttlSecondsAfterFinished",
    )
    errors += one_of(spec, at, "completionMode", ("NonIndexed", "Indexed"))
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


def _new_job(obj: Json) -> Errors:
    """Faults of a new job, whose name its pods will have in labels, and with their index in their names."""
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    errors = _job(obj)
    if not spec.get("manualSelector"):
        errors += labels({prefix + "job-name": name for prefix in _JOB_PREFIXES}, "spec.template.labels")
    last = f"{name}-{(spec.get('completions') or 0) - 1}"
    if spec.get("completionMode") == "Indexed" and spec.get("completions", 0) > 0 and check_dns1123_label(last):
        why = f"will not able to create pod with invalid DNS label: {last}"
        errors.append(field_invalid("metadata.name", name, why))
    return errors


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
    errors += one_of(spec, "spec", "concurrencyPolicy", ("Allow", "Forbid", "Replace"))
    errors += not_negative(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
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
    errors = _stateful_set(obj, lenient=bool(_stateful_set(old)))
    new, was = obj["spec"], old["spec"]
    if any(new.get(f) != was.get(f) for f in {**new, **was} if f not in _STATEFUL_MUTABLE):
        why = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        errors.append(field_forbidden("spec", why))
    return errors


def _job_update(obj: Json, old: Json) -> Errors:
    """Kept from kube-apiserver: the spec of a changed job is looked at twice."""
    errors = _generated_labels(obj) + _job(obj) * 2 + _completions(obj, old)
    for field in ("selector", *_JOB_FIXED):
        errors += immutable(obj, old, f"spec.{field}")
    return errors + _job_template(obj["spec"], old)


def _generated_labels(obj: Json) -> Errors:
    """Faults of what tells a job's pods from those of others, unless its owner sees to that."""
    spec, meta = obj["spec"], obj["metadata"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    given = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    wanted = {prefix + "controller-uid": meta.get("uid", "") for prefix in _JOB_PREFIXES}
    wanted |= {prefix + "job-name": meta.get("name", "") for prefix in _JOB_PREFIXES}
    errors: Errors = []
    for key, value in wanted.items():
        at = f"spec.template.metadata.labels[{key}]"
        if key not in given:
            errors.append(field_required(at, f"must be '{value}'"))
        elif given[key] != value:
            errors.append(field_invalid(at, dict(sorted(given.items())), f"must be '{value}'"))
    if not selects(spec["selector"], wanted):
        errors.append(field_invalid("spec.selector", spec["selector"], "`selector` not auto-generated"))
    return errors


_JOB_PREFIXES = ("", "batch.kubernetes.io/")
_JOB_FIXED = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")


def _completions(obj: Json, old: Json) -> Errors:
    new = obj["spec"]
    wanted = new.get("completions")
    if new.get("completionMode") != "Indexed":
        return immutable(obj, old, "spec.completions")
    if wanted in (None, old["spec"].get("completions"), new.get("parallelism")):
        return []
    return [field_invalid("spec.completions", wanted, "can only be modified in tandem with spec.parallelism")]


def _job_template(new: Json, old: Json) -> Errors:
    """The template stays; of a job that waits, where its pods may go and what they ask for may change."""
    was, status = old["spec"], old.get("status") or {}
    wanted, before = new.get("template") or {}, was.get("template") or {}
    conditions = status.get("conditions") or ()
    stopped = any(one.get("type") == "Suspended" and one.get("status") == "True" for one in conditions)
    if not (was.get("suspend") and (stopped or not status.get("startTime")) and not status.get("active")):
        return [] if wanted == before else [field_invalid("spec.template", wanted, "field is immutable")]
    spec, kept = wanted.get("spec") or {}, before.get("spec") or {}
    if _fixed_of_waiting(spec) == _fixed_of_waiting(kept):
        return []
    return [field_invalid("spec.template.spec", spec, "field is immutable")]


def _fixed_of_waiting(spec: Json) -> Json:
    """What of a pod spec stays even while its job waits."""
    fixed = {k: v for k, v in spec.items() if k not in ("nodeSelector", "tolerations", "schedulingGates", "affinity")}
    affinity = {k: v for k, v in (spec.get("affinity") or {}).items() if k != "nodeAffinity"}
    for field in ("containers", "initContainers"):
        fixed[field] = [{k: v for k, v in one.items() if k != "resources"} for one in spec.get(field) or ()]
    return {**fixed, "affinity": affinity}


# ── who checks what ──────────────────────────────────────────────────────────────────────────────────────────

CREATE: dict[str, Check] = {
    "core.PodTemplate": _pod_template,
    "core.ReplicationController": _replication_controller,
    "apps.ControllerRevision": _revision,
    "apps.Deployment": _deployment,
    "apps.ReplicaSet": _replica_set,
    "apps.StatefulSet": _new_stateful_set,
    "apps.DaemonSet": _daemon_set,
    "batch.Job": _new_job,
    "batch.CronJob": _cron_job,
}

UPDATE: dict[str, CheckChange] = {
    "apps.ControllerRevision": _revision_update,
    "apps.Deployment": _keeps_selector(_deployment),
    "apps.ReplicaSet": _keeps_selector(_replica_set),
    "apps.DaemonSet": _keeps_selector(_daemon_set),
    "apps.StatefulSet": _stateful_set_update,
    "batch.Job": _job_update,
}
