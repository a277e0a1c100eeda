"""What each kind does to an object before it is stored, beyond defaults: the registry strategies of kube-apiserver.

A status cannot be written through the main resource and a spec not through /status; some kinds start with a status,
some fields are the server's to set.  `prepare_create`, `prepare_update` and `prepare_status` are these rules; they
change the new object, never the stored one.  `bumps_generation` says which changes count as a new generation.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from kubesched.api import quantity
from kubesched.api.time import Instant, format_rfc3339
from kubesched.apiserver import cleaning, crd_rules, schema
from kubesched.apiserver.defaulting_pod import container_requests
from kubesched.apiserver.kinds import Resource

Json = dict[str, Any]
Prepare = Callable[[Json, int], None]

GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"
_COUNTED = ("cpu", "memory")


@functools.cache
def _empty_status_of(shape: str) -> Json:
    status = schema.shape(shape).fields.get("status")
    if status is None:
        return {}
    empty: Json = cleaning.struct_cleaner(status.type.base)({}, [])
    return empty


def empty_status(shape: str) -> Json:
    """The status of a kind as Go prints it when nothing is set."""
    return copy.deepcopy(_empty_status_of(shape)) if shape else {}


def drop_status(resource: Resource, obj: Json) -> None:
    """A status that came with a create is not for clients to give."""
    if resource.has_status and not resource.status_on_create:
        if resource.is_custom or resource.shape == "core.Pod":
            obj.pop("status", None)
        else:
            obj["status"] = empty_status(resource.shape)


def prepare_create(resource: Resource, obj: Json, now: int) -> None:
    rule = _CREATE.get(resource.shape)
    if rule is not None:
        rule(obj, now)


def prepare_update(resource: Resource, obj: Json, old: Json) -> None:
    """Through the main resource the status stays what it was."""
    if resource.has_status:
        _keep(obj, old, "status")
    rule = _UPDATE.get(resource.shape)
    if rule is not None:
        rule(obj, old)


# Kept from kube-apiserver: through /status not even their labels change.
_STATUS_ALONE = ("resource.ResourceClaim", "storage.VolumeAttachment")


def prepare_status(resource: Resource, obj: Json, old: Json, now: int) -> None:
    """Through /status everything but the status stays; labels and annotations may change, owners not."""
    for field in [f for f in obj if f not in ("kind", "apiVersion", "metadata", "status")]:
        if field not in old:
            del obj[field]
    for field, value in old.items():
        if field not in ("kind", "apiVersion", "metadata", "status"):
            obj[field] = value
    meta, was = obj["metadata"], old["metadata"]
    if resource.shape == "apps.Deployment":
        _keep(meta, was, "labels")
    if resource.is_custom or resource.shape in _STATUS_ALONE:
        obj["metadata"] = {
            **was,
            **{key: meta[key] for key in ("managedFields", "resourceVersion", "uid") if key in meta},
        }
        return
    for field in ("ownerReferences", "finalizers"):
        if field == "finalizers" and resource.shape != "core.Pod":
            continue
        _keep(meta, was, field)
    if resource.shape == "core.Pod":
        _pod_status(obj, old, now)
    elif resource.shape == "core.PersistentVolume":
        _phase_time(obj["status"], old.get("status") or {}, now)


def _phase_time(status: Json, was: Json, now: int) -> None:
    """When a volume's phase changed, unless whoever says so knows better."""
    field, before = "lastPhaseTransitionTime", was.get("lastPhaseTransitionTime")
    if status.get("phase") == was.get("phase"):
        if before is not None:
            status.setdefault(field, before)
    elif status.get(field) in (None, before):
        status[field] = format_rfc3339(Instant(now))


def _keep(obj: Json, old: Json, field: str) -> None:
    if field in old:
        obj[field] = old[field]
    else:
        obj.pop(field, None)


def bumps_generation(resource: Resource) -> Callable[[Json, Json], bool]:
    """Which changes through the main resource are a new generation."""
    if resource.is_custom and not resource.has_status:
        return _anything_but_metadata
    if resource.is_custom:
        return _anything_but_status
    return _BUMPS.get(resource.shape, _spec_changed)


def _spec_changed(old: Json, new: Json) -> bool:
    return bool(old.get("spec") != new.get("spec"))


def _spec_or_annotations_changed(old: Json, new: Json) -> bool:
    if old.get("spec") != new.get("spec"):
        return True
    return bool(old["metadata"].get("annotations") != new["metadata"].get("annotations"))


def _anything_but_metadata(old: Json, new: Json) -> bool:
    return any(old.get(f) != new.get(f) for f in {**old, **new} if f != "metadata")


def _anything_but_status(old: Json, new: Json) -> bool:
    return any(old.get(f) != new.get(f) for f in {**old, **new} if f not in ("metadata", "status"))


def _never(old: Json, new: Json) -> bool:
    return False


_BUMPS: dict[str, Callable[[Json, Json], bool]] = {
    "apps.Deployment": _spec_or_annotations_changed,
    "scheduling.PriorityClass": _never,
    "discovery.EndpointSlice": _anything_but_metadata,
    "core.PodTemplate": _anything_but_metadata,
}


# ── pods ────────────────────────────────────────────────────────────────────────────────────────────────────


def qos_class(spec: Json) -> str:
    """Guaranteed, Burstable or BestEffort, from what the containers ask for."""
    whole = spec.get("resources")
    parts: list[Json] = []
    if whole is not None:
        parts.append(whole)
    else:
        parts = [c.get("resources", {}) for c in (*spec.get("containers", ()), *spec.get("initContainers", ()))]
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    guaranteed = True
    for part in parts:
        asked = {n: q for n, q in part.get("requests", {}).items() if n in _COUNTED and _positive(q)}
        limited = {n: q for n, q in part.get("limits", {}).items() if n in _COUNTED and _positive(q)}
        for total, more in ((requests, asked), (limits, limited)):
            for name, amount in more.items():
                total[name] = quantity.add(total[name], amount) if name in total else amount
        if len(limited) != len(_COUNTED):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    if guaranteed and len(requests) == len(limits):
        if all(name in limits and quantity.compare(limits[name], amount) == 0 for name, amount in requests.items()):
            return "Guaranteed"
    return "Burstable"


def _positive(amount: str) -> bool:
    return quantity.parse_milli(amount) > 0


def _pod(obj: Json, now: int) -> None:
    spec = obj["spec"]
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    status: Json = {"phase": "Pending"}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": format_rfc3339(Instant(now)),
                "reason": "SchedulingGated",
                "message": GATED_MESSAGE,
            }
        ]
    status["qosClass"] = qos_class(spec)
    obj["status"] = status
    merge_label_keys(obj)


def merge_label_keys(obj: Json) -> None:
    """What matchLabelKeys and mismatchLabelKeys of a new pod mean for the selectors beside them."""
    spec, labels = obj["spec"], obj["metadata"].get("labels") or {}
    for constraint in spec.get("topologySpreadConstraints", ()):
        _merge_label_keys(constraint, constraint.get("matchLabelKeys", ()), "In", labels)
    for term in affinity_terms(spec):
        _merge_label_keys(term, term.get("matchLabelKeys", ()), "In", labels)
        _merge_label_keys(term, term.get("mismatchLabelKeys", ()), "NotIn", labels)


def affinity_terms(spec: Json) -> list[Json]:
    """All pod affinity and anti-affinity terms, required and preferred."""
    terms: list[Json] = []
    for side in ("podAffinity", "podAntiAffinity"):
        affinity = (spec.get("affinity") or {}).get(side) or {}
        terms += affinity.get("requiredDuringSchedulingIgnoredDuringExecution", ())
        for weighted in affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
            terms.append(weighted.get("podAffinityTerm", {}))
    return terms


def _merge_label_keys(term: Json, keys: Any, operator: str, labels: Json) -> None:
    """The pod's own values of these labels become requirements of the term's selector."""
    selector = term.get("labelSelector")
    if not keys or selector is None:
        return
    for key in keys:
        if key in labels:
            requirement = {"key": key, "operator": operator, "values": [labels[key]]}
            selector["matchExpressions"] = [*selector.get("matchExpressions", ()), requirement]


def _pod_status(obj: Json, old: Json, now: int) -> None:
    """A kubelet may not take the qosClass away, nor un-finish a pod's deletion."""
    status = obj.setdefault("status", {})
    if not status.get("qosClass") and (old.get("status") or {}).get("qosClass"):
        status["qosClass"] = old["status"]["qosClass"]


# ── everything else ─────────────────────────────────────────────────────────────────────────────────────────


def _namespace(obj: Json, now: int) -> None:
    spec = obj["spec"]
    finalizers = [f for f in spec.get("finalizers", ()) if f != "kubernetes"]
    spec["finalizers"] = [*finalizers, "kubernetes"]
    obj["status"] = {"phase": "Active"}


def _namespace_update(obj: Json, old: Json) -> None:
    _keep(obj.setdefault("spec", {}), old.get("spec") or {}, "finalizers")


def _claim(obj: Json, now: int) -> None:
    obj["status"] = {"phase": "Pending"}


def _volume(obj: Json, now: int) -> None:
    obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": format_rfc3339(Instant(now))}


def _daemon_set(obj: Json, now: int) -> None:
    obj["metadata"].setdefault("annotations", {})["deprecated.daemonset.template.generation"] = "1"


def _daemon_set_update(obj: Json, old: Json) -> None:
    name = "deprecated.daemonset.template.generation"
    was = int((old["metadata"].get("annotations") or {}).get(name, "1"))
    changed = obj["spec"].get("template") != old["spec"].get("template")
    obj["metadata"].setdefault("annotations", {})[name] = str(was + 1 if changed else was)


def _secret_update(obj: Json, old: Json) -> None:
    obj.setdefault("type", old.get("type", "Opaque"))


def _service_update(obj: Json, old: Json) -> None:
    """Addresses that the server gave out stay when an update leaves them away."""
    spec, was = obj["spec"], old["spec"]
    if spec.get("type") != "ExternalName" and was.get("type") != "ExternalName":
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if not spec.get(field) and field in was:
                spec[field] = was[field]


def _job(obj: Json, now: int) -> None:
    """Jobs that do not choose their selector get one that nobody else has."""
    obj["status"] = {}


def label_job(obj: Json) -> None:
    """The selector of a job is made from its uid, so this runs when the uid is known."""
    spec, meta = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return
    mine = {
        "batch.kubernetes.io/controller-uid": meta["uid"],
        "batch.kubernetes.io/job-name": meta["name"],
        "controller-uid": meta["uid"],
        "job-name": meta["name"],
    }
    template = spec["template"].setdefault("metadata", {})
    # A job takes its template's labels when it has none of its own, and these then, too.
    shared = not meta.get("labels") or meta["labels"] is template.get("labels")
    template["labels"] = {**template.get("labels", {}), **mine}
    if shared:
        meta["labels"] = dict(template["labels"])
    spec.setdefault("selector", {}).setdefault("matchLabels", {})["batch.kubernetes.io/controller-uid"] = meta["uid"]


def _csr(obj: Json, now: int) -> None:
    obj["status"] = {}


_CREATE: dict[str, Prepare] = {
    "apiextensions.CustomResourceDefinition": crd_rules.first_status,
    "core.Pod": _pod,
    "core.Namespace": _namespace,
    "core.PersistentVolumeClaim": _claim,
    "core.PersistentVolume": _volume,
    "apps.DaemonSet": _daemon_set,
    "batch.Job": _job,
    "certificates.CertificateSigningRequest": _csr,
}
_UPDATE: dict[str, Callable[[Json, Json], None]] = {
    "core.Namespace": _namespace_update,
    "core.Service": _service_update,
    "core.Secret": _secret_update,
    "apps.DaemonSet": _daemon_set_update,
}

__all__ = [
    "affinity_terms",
    "bumps_generation",
    "container_requests",
    "drop_status",
    "empty_status",
    "label_job",
    "prepare_create",
    "prepare_status",
    "prepare_update",
    "qos_class",
]
