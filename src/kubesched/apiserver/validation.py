"""Refuse objects that break the rules of their kind, with every fault named by its field.

What every kind shares is here: metadata, labels, selectors.  Each group of kinds has a module of its own, as
validation_pod and validation_storage; validation_kinds collects them, and says who checks what.  Checks return
FieldErrors in the order in which kube-apiserver finds them; paths are only put together when there is something to say.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from kubesched.api.labels import SelectorError, compile_label_selector
from kubesched.api.names import check_dns1123_label, check_dns1123_subdomain, check_label_value, check_qualified_name
from kubesched.api.objects import LabelSelector, LabelSelectorRequirement
from kubesched.apiserver.kinds import Resource
from kubesched.apiserver.status import (
    FieldError,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
    field_too_long,
)

Json = dict[str, Any]
Errors = list[FieldError]
Check = Callable[[Json], Errors]
CheckChange = Callable[[Json, Json], Errors]

ANNOTATIONS_BYTES_MAX = 256 * 1024
STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion", "external-provisioner")
NameCheck = Callable[[str], str | None]


def faults(sentence: str | None) -> list[str]:
    """The single faults of a sentence of kubesched.api.names."""
    return sentence.split("; ") if sentence else []


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
def _good_label(key: str, value: str) -> bool:
    return check_qualified_name(key) is None and check_label_value(value) is None


@functools.lru_cache(maxsize=8192)
def _good_name(name: str) -> bool:
    return check_dns1123_subdomain(name) is None


def labels(found: Json, field: str) -> Errors:
    """Faults of a label map."""
    errors: Errors = []
    for key, value in found.items():
        if _good_label(key, value):
            continue
        errors += [field_invalid(field, key, fault) for fault in faults(check_qualified_name(key))]
        errors += [field_invalid(field, value, fault) for fault in faults(check_label_value(value))]
    return errors


def metadata(resource: Resource, meta: Json, old: Json | None = None) -> Errors:
    """Faults of an object's metadata; old is that of the stored object."""
    errors: Errors = []
    if old is not None:
        errors += _metadata_update(meta, old)
    check = _NAMES.get(resource.shape, check_dns1123_subdomain)
    prefix = meta.get("generateName")
    if prefix:
        masked = prefix[:-1] + "a" if prefix.endswith("-") and len(prefix) > 1 else prefix
        errors += [field_invalid("metadata.generateName", prefix, fault) for fault in faults(check(masked))]
    name = meta.get("name", "")
    if not name:
        if not prefix:
            errors.append(field_required("metadata.name", "name or generateName is required"))
    elif check is not check_dns1123_subdomain or not _good_name(name):
        errors += [field_invalid("metadata.name", name, fault) for fault in faults(check(name))]
    if "labels" in meta:
        errors += labels(meta["labels"], "metadata.labels")
    if "annotations" in meta:
        errors += _annotations(meta["annotations"], "metadata.annotations")
    if "ownerReferences" in meta:
        errors += _owners(meta["ownerReferences"])
    if "finalizers" in meta and resource.shape not in _ANY_FINALIZER:
        errors += _finalizers(meta["finalizers"])
    return errors


def _metadata_update(meta: Json, old: Json) -> Errors:
    if "deletionTimestamp" not in old:
        return []
    new = [f for f in meta.get("finalizers", ()) if f not in (old.get("finalizers") or ())]
    if not new:
        return []
    shown = ", ".join(f'"{finalizer}"' for finalizer in new)
    why = "no new finalizers can be added if the object is being deleted, found new finalizers []string{" + shown + "}"
    return [field_forbidden("metadata.finalizers", why)]


def _annotations(found: Json, field: str) -> Errors:
    errors: Errors = []
    size = 0
    for key, value in found.items():
        size += len(key) + len(value)
        if not _good_label(key, ""):
            errors += [field_invalid(field, key, fault) for fault in faults(check_qualified_name(key.lower()))]
    if size > ANNOTATIONS_BYTES_MAX:
        errors.append(field_too_long(field, ANNOTATIONS_BYTES_MAX))
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


def _finalizers(found: list[str]) -> Errors:
    errors: Errors = []
    for finalizer in found:
        errors += [field_invalid("metadata.finalizers", finalizer, f) for f in faults(check_qualified_name(finalizer))]
    for index, finalizer in enumerate(found):
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(field_invalid(f"metadata.finalizers[{index}]", finalizer, why))
    if "orphan" in found and "foregroundDeletion" in found:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(field_invalid("metadata.finalizers", found, why))
    return errors


_SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def label_selector(selector: Json | None, field: str) -> Errors:
    """Faults of a metav1.LabelSelector."""
    errors: Errors = []
    if not selector:
        return errors
    if "matchLabels" in selector:
        errors += labels(selector["matchLabels"], f"{field}.matchLabels")
    for index, one in enumerate(selector.get("matchExpressions", ())):
        here = f"{field}.matchExpressions[{index}]"
        operator, values = one.get("operator", ""), one.get("values", ())
        if operator in ("In", "NotIn"):
            if not values:
                errors.append(field_required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                errors.append(field_forbidden(f"{here}.values", why))
        else:
            errors.append(field_invalid(f"{here}.operator", operator, "not a valid selector operator"))
        errors += [
            field_invalid(f"{here}.key", one.get("key", ""), f)
            for f in faults(check_qualified_name(one.get("key", "")))
        ]
        for at, value in enumerate(values):
            errors += [field_invalid(f"{here}.values[{at}]", value, f) for f in faults(check_label_value(value))]
    return errors


def immutable(new: Json, old: Json, path: str, why: str = "field is immutable") -> Errors:
    """A fault if the value under a dotted path changed."""
    was: Any = old
    now: Any = new
    for step in path.split("."):
        was, now = (was or {}).get(step), (now or {}).get(step)
    return [] if was == now else [field_invalid(path, now, why)]


# ── words that many rules are made of ────────────────────────────────────────────────────────────────────────


def each(field: str, value: str, check: Callable[[str], str | None]) -> Errors:
    return [field_invalid(field, value, fault) for fault in faults(check(value))] if value else []


def not_negative(obj: Json, at: str, *fields: str) -> Errors:
    return [
        field_invalid(f"{at}.{name}", obj[name], "must be greater than or equal to 0")
        for name in fields
        if obj.get(name) is not None and obj[name] < 0
    ]


def one_of(obj: Json, at: str, name: str, supported: Sequence[str]) -> Errors:
    value = obj.get(name)
    if value is None or value in supported:
        return []
    return [field_not_supported(f"{at}.{name}" if at else name, value, supported)]


def subdomain(value: str, at: str) -> Errors:
    return [field_invalid(at, value, fault) for fault in faults(check_dns1123_subdomain(value))]


def keeps_spec(check: Check, why: str = "field is immutable") -> CheckChange:
    return lambda obj, old: [*check(obj), *immutable(obj, old, "spec", why)]


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
