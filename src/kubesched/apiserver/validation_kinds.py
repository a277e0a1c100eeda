"""Who checks what: the rules of every kind, collected from the groups, and when they are asked.

The depth follows what a scheduler and the controllers around it rely on: workloads and their selectors, budgets,
priorities, volumes and claims, devices.  Kinds without a row are checked by their schema and metadata alone.
"""

from __future__ import annotations

from typing import Any

from kubesched.apiserver import (
    crd_rules,
    validation_core,
    validation_device,
    validation_metadata,
    validation_pod,
    validation_pod_change,
    validation_policy,
    validation_storage,
    validation_workload,
)
from kubesched.apiserver.kinds import Resource
from kubesched.apiserver.validation import Check, CheckChange, Errors

Json = dict[str, Any]


# Kept from kube-apiserver: their metadata are looked at when all else is well.
_METADATA_LAST = ("policy.PodDisruptionBudget",)


def created(resource: Resource, obj: Json) -> Errors:
    """Faults of a new object."""
    check = CREATE.get(resource.shape)
    found = check(obj) if check is not None else []
    if found and resource.shape in _METADATA_LAST:
        return found
    return validation_metadata.created(resource, obj["metadata"]) + found


def updated(resource: Resource, obj: Json, old: Json, subresource: str = "") -> Errors:
    """Faults of a changed object, and of the change."""
    errors = validation_metadata.changed(resource, obj["metadata"], old["metadata"], subresource)
    update = DOORS.get((resource.shape, subresource)) or UPDATE.get(resource.shape)
    if update is not None:
        return errors + update(obj, old)
    check = CREATE.get(resource.shape)
    return errors + check(obj) if check is not None else errors


def status_changed(resource: Resource, obj: Json, old: Json) -> Errors:
    """Faults of a change through /status."""
    errors = validation_metadata.changed(resource, obj["metadata"], old["metadata"], "status")
    check = STATUS.get(resource.shape)
    return errors + check(obj, old) if check is not None else errors


CREATE: dict[str, Check] = {
    "apiextensions.CustomResourceDefinition": crd_rules.problems,
    "core.Pod": validation_pod.pod,
    **validation_core.CREATE,
    **validation_workload.CREATE,
    **validation_policy.CREATE,
    **validation_storage.CREATE,
    **validation_device.CREATE,
}

UPDATE: dict[str, CheckChange] = {
    "apiextensions.CustomResourceDefinition": crd_rules.changed_problems,
    "core.Pod": validation_pod_change.pod_update,
    **validation_core.UPDATE,
    **validation_workload.UPDATE,
    **validation_policy.UPDATE,
    **validation_storage.UPDATE,
    **validation_device.UPDATE,
}

# Doors to the object itself that let other things through than the main one.
DOORS: dict[tuple[str, str], CheckChange] = {
    ("core.Pod", "resize"): validation_pod_change.pod_resize,
    ("core.Pod", "ephemeralcontainers"): validation_pod_change.pod_ephemeral,
}

STATUS: dict[str, CheckChange] = {"core.Pod": validation_pod_change.pod_status, **validation_core.STATUS}
