"""The rules of metadata, which every kind has: names, labels, annotations, owners, finalizers.

A new object is looked at whole.  Of a changed one kube-apiserver looks at what may have become wrong, and mostly more
than once, because the rules of a kind repeat what holds for all; every look tells every fault, and clients see the
causes so often.  How often is in a table here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from kubesched.api.names import check_dns1123_label, check_dns1123_subdomain, check_qualified_name
from kubesched.apiserver.kinds import Resource
from kubesched.apiserver.status import field_forbidden, field_invalid, field_required
from kubesched.apiserver.validation import Errors, Json, annotation_map, faults, labels

STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion", "external-provisioner")
NameCheck = Callable[[str], str | None]


def check_path_segment(text: str) -> str | None:
    """A role's name: whatever fits between two slashes."""
    if text in (".", ".."):
        return f"may not be '{text}'"
    for character in "/%":
        if character in text:
            return f"may not contain '{character}'"
    return None


_NAMES: dict[str, NameCheck] = {
    "core.Namespace": check_dns1123_label,
    "core.Service": check_dns1123_label,
    "policy.PodDisruptionBudget": check_path_segment,
    "apps.StatefulSet": check_dns1123_label,
    "rbac.Role": check_path_segment,
    "rbac.ClusterRole": check_path_segment,
    "rbac.RoleBinding": check_path_segment,
    "rbac.ClusterRoleBinding": check_path_segment,
}


# Kept from kube-apiserver: kinds whose finalizers need no domain before their names.
_ANY_FINALIZER = frozenset(
    ("policy.PodDisruptionBudget", "node.RuntimeClass", "coordination.Lease", "core.Event", "events.Event")
)


@functools.lru_cache(maxsize=8192)
def _good_name(name: str) -> bool:
    return check_dns1123_subdomain(name) is None


# Kept from kube-apiserver: for these kinds the name that came of a prefix is looked at, the prefix is not.
_ANY_PREFIX = frozenset(("core.ReplicationController", "resource.DeviceClass"))


def created(resource: Resource, meta: Json) -> Errors:
    """Faults of a new object's metadata."""
    errors = _names(resource, meta) + _shared(meta) + _finalizers(meta)
    return errors + _standard_finalizers(resource, meta)


# All kinds have one look at the change and one at the new metadata in common.  Here is how often a kind looks at the
# change once more, and how often at the new metadata as if the object was new.
_ONCE_MORE = (1, 0)
_AS_NEW, _BOTH, _NEITHER = (0, 1), (1, 1), (0, 0)
_LOOKS: dict[tuple[str, str], tuple[int, int]] = {
    **{
        (shape, ""): _BOTH
        for shape in (
            *("core.Pod", "core.Node", "core.Namespace", "core.ConfigMap", "core.Secret"),
            *("core.Endpoints", "core.ServiceAccount", "core.PersistentVolumeClaim", "apps.ControllerRevision"),
            *("batch.Job", "networking.Ingress", "networking.IngressClass", "node.RuntimeClass"),
            *("storage.StorageClass", "storage.CSIStorageCapacity", "storage.VolumeAttributesClass"),
            *("resource.DeviceClass", "resource.ResourceClaim", "resource.ResourceClaimTemplate"),
            *("rbac.Role", "rbac.RoleBinding", "rbac.ClusterRole", "rbac.ClusterRoleBinding"),
        )
    },
    **{
        (shape, ""): _AS_NEW
        for shape in ("core.LimitRange", "discovery.EndpointSlice", "storage.CSINode", "storage.VolumeAttachment")
    },
    ("core.PersistentVolume", ""): (0, 2),
    ("policy.PodDisruptionBudget", ""): _NEITHER,
    ("policy.PodDisruptionBudget", "status"): _NEITHER,
    ("storage.VolumeAttachment", "status"): _AS_NEW,
    ("batch.CronJob", "status"): _NEITHER,
}


def changed(resource: Resource, meta: Json, old: Json, subresource: str = "") -> Errors:
    """Faults of a changed object's metadata, and of the change."""
    door = subresource if subresource == "status" else ""
    again, as_new = _LOOKS.get((resource.shape, door), _ONCE_MORE)
    change, shared = _change(meta, old), _shared(meta)
    errors = change * (1 + again) + shared * (2 + again) + _finalizers(meta)
    errors += _standard_finalizers(resource, meta) * again
    return errors + created(resource, meta) * as_new if as_new else errors


def _change(meta: Json, old: Json) -> Errors:
    errors: Errors = []
    if "deletionTimestamp" in old:
        new = [f for f in meta.get("finalizers", ()) if f not in (old.get("finalizers") or ())]
        if new:
            shown = ", ".join(f'"{finalizer}"' for finalizer in new)
            why = "no new finalizers can be added if the object is being deleted, found new finalizers []string"
            errors.append(field_forbidden("metadata.finalizers", why + "{" + shown + "}"))
    if meta.get("uid") and meta["uid"] != old.get("uid"):
        errors.append(field_invalid("metadata.uid", meta["uid"], "field is immutable"))
    return errors


def _names(resource: Resource, meta: Json) -> Errors:
    errors: Errors = []
    check = _NAMES.get(resource.shape, check_dns1123_subdomain)
    prefix = meta.get("generateName")
    if prefix and resource.shape not in _ANY_PREFIX:
        masked = prefix[:-1] + "a" if prefix.endswith("-") and len(prefix) > 1 else prefix
        errors += [field_invalid("metadata.generateName", prefix, fault) for fault in faults(check(masked))]
    name = meta.get("name", "")
    if not name:
        if not prefix:
            errors.append(field_required("metadata.name", "name or generateName is required"))
    elif check is not check_dns1123_subdomain or not _good_name(name):
        errors += [field_invalid("metadata.name", name, fault) for fault in faults(check(name))]
    return errors


def _shared(meta: Json) -> Errors:
    errors: Errors = []
    if "labels" in meta:
        errors += labels(meta["labels"], "metadata.labels")
    if "annotations" in meta:
        errors += annotation_map(meta["annotations"], "metadata.annotations")
    if "ownerReferences" in meta:
        errors += _owners(meta["ownerReferences"])
    return errors


def _owners(owners: list[Json]) -> Errors:
    errors: Errors = []
    field = "metadata.ownerReferences"
    controllers = []
    for owner in owners:
        if not (owner.get("apiVersion") or "").rpartition("/")[2]:
            errors.append(
                field_invalid(f"{field}.apiVersion", owner.get("apiVersion", ""), "version must not be empty")
            )
        for part in ("kind", "name", "uid"):
            if not owner.get(part):
                errors.append(field_invalid(f"{field}.{part}", owner.get(part, ""), "must not be empty"))
        if owner.get("apiVersion") == "v1" and owner.get("kind") == "Event":
            errors.append(field_invalid(field, owner, f"{owner} is disallowed from being an owner"))
        if owner.get("controller"):
            controllers.append(owner)
    if len(controllers) > 1:
        names = [owner.get("name", "") for owner in controllers]
        found = f'Found "true" in references for {names[0]} and {names[1]}'
        why = f"Only one reference can have Controller set to true. {found}"
        errors.append(field_invalid(field, owners, why))
    return errors


def _finalizers(meta: Json) -> Errors:
    found: list[str] = meta.get("finalizers") or []
    errors: Errors = []
    for finalizer in found:
        errors += [field_invalid("metadata.finalizers", finalizer, f) for f in faults(check_qualified_name(finalizer))]
    if "orphan" in found and "foregroundDeletion" in found:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(field_invalid("metadata.finalizers", found, why))
    return errors


def _standard_finalizers(resource: Resource, meta: Json) -> Errors:
    found: list[str] = meta.get("finalizers") or []
    if not found or resource.is_custom or resource.shape in _ANY_FINALIZER:
        return []
    why = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        field_invalid(f"metadata.finalizers[{index}]", finalizer, why)
        for index, finalizer in enumerate(found)
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS
    ]
