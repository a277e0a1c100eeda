"""Evict a pod, unless a disruption budget says that it may not be missed now.

An eviction is a deletion that asks first.  The budget's numbers are kept by a controller; a granted eviction takes one
disruption off them at once, so that two evictions in the same second cannot both spend the last one.
"""

from __future__ import annotations

from typing import Any

from kubesched.api.time import Instant, format_rfc3339
from kubesched.apiserver import admission
from kubesched.apiserver.deletion import pod_grace
from kubesched.apiserver.objects import Objects
from kubesched.apiserver.options import checked_delete_options
from kubesched.apiserver.status import ApiError, bad_request, forbidden, not_found, too_many_requests
from kubesched.apiserver.store import DeleteOptions
from kubesched.apiserver.validation import selects

Json = dict[str, Any]

BUDGETS = "policy/poddisruptionbudgets"
_VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."
_DISRUPTED_MAX = 2000
_UNSETTLED_RETRY = 10


def evict(objects: Objects, namespace: str, name: str, eviction: Json, *, dry_run: bool = False) -> Json:
    """Perform an Eviction of a pod and return the Status that says so."""
    admission.namespace_exists(objects.store, "pods", namespace, name)
    if (eviction.get("metadata") or {}).get("name", "") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = checked_delete_options(eviction.get("deleteOptions") or {})
    dry_run = dry_run or options.dry_run
    store = objects.store
    stored = store.find("pods", namespace, name)
    if stored is None:
        raise not_found("pods", name)
    pod = stored.obj
    if not _may_go_freely(pod):
        budget = _budget_of(objects, pod)
        if budget is not None:
            _spend(objects, budget, pod, dry_run)
    if not dry_run:
        store.guaranteed_update("pods", namespace, name, lambda found: _told(found, objects.now()))
    options = DeleteOptions(options.grace_period_seconds, options.preconditions, options.propagation_policy, dry_run)
    store.delete("pods", namespace, name, options, grace=pod_grace)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _told(pod: Json, now: int) -> Json:
    """The pod with a condition that says why it goes."""
    status = pod.get("status") or {}
    others = [c for c in status.get("conditions") or () if c.get("type") != "DisruptionTarget"]
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": format_rfc3339(Instant(now)),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    return {**pod, "status": {**status, "conditions": [*others, condition]}}


def _may_go_freely(pod: Json) -> bool:
    """Pods that do nothing (any more, or yet) are nobody's loss."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Pending", "Succeeded", "Failed") or "deletionTimestamp" in pod["metadata"]


def _budget_of(objects: Objects, pod: Json) -> Json | None:
    labels = pod["metadata"].get("labels") or {}
    found = [
        stored.obj
        for stored in objects.store.list(BUDGETS, pod["metadata"]["namespace"]).items
        if selects(stored.obj["spec"].get("selector"), labels)
    ]
    if len(found) > 1:
        why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise ApiError(500, "", why)
    return found[0] if found else None


def _is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _spend(objects: Objects, budget: Json, pod: Json, dry_run: bool) -> None:
    """Take one disruption off a budget, or refuse."""
    spec, status = budget["spec"], budget.get("status") or {}
    if not _is_ready(pod):
        policy = spec.get("unhealthyPodEvictionPolicy")
        healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        if policy == "AlwaysAllow" or (healthy >= desired and desired > 0):
            return
    name, pod_name = budget["metadata"]["name"], pod["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 1):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", _UNSETTLED_RETRY)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        why = "pdb disruptions allowed is negative"
        raise forbidden(BUDGETS, name, why)
    if len(status.get("disruptedPods") or {}) > _DISRUPTED_MAX:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden(BUDGETS, name, why)
    if allowed == 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _refused(f"The disruption budget {name} needs {needs} healthy pods and has {has} currently", 0)
    at = format_rfc3339(Instant(objects.now()))

    def spend(current: Json) -> Json:
        was = current["status"]
        disrupted = {**(was.get("disruptedPods") or {}), pod_name: at}
        return {**current, "status": {**was, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}}

    objects.store.guaranteed_update(BUDGETS, budget["metadata"]["namespace"], name, spend, dry_run=dry_run)


def _refused(message: str, retry_after: int) -> ApiError:
    cause = {"reason": "DisruptionBudget", "message": message}
    return too_many_requests(_VIOLATED, retry_after, [cause])
