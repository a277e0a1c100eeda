"""Refuse objects that break the rules of their kind, with every fault named by its field.

What many kinds share is here: labels, selectors, and the words that rules are made of; validation_metadata has what is
common to all.  Each group of kinds has a module of its own, as validation_pod and validation_storage;
validation_kinds collects them, and says who checks what.  Checks return FieldErrors in the order in which
kube-apiserver finds them; paths are only put together when there is something to say.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from kubesched.api.labels import SelectorError, compile_label_selector
from kubesched.api.names import check_dns1123_subdomain, check_label_value, check_qualified_name
from kubesched.api.objects import LabelSelector, LabelSelectorRequirement
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

DRIVER_NAME_MAX = 63
ANNOTATIONS_BYTES_MAX = 256 * 1024

def faults(sentence: str | None) -> list[str]:
    """The single faults of a sentence of kubesched.api.names."""
    return sentence.split("; ") if sentence else []


@functools.lru_cache(maxsize=8192)
def good_label(key: str, value: str) -> bool:
    return check_qualified_name(key) is None and check_label_value(value) is None


def labels(found: Json, field: str) -> Errors:
    """Faults of a label map."""
    errors: Errors = []
    for key, value in found.items():
        if good_label(key, value):
            continue
        errors += [field_invalid(field, key, fault) for fault in faults(check_qualified_name(key))]
        errors += [field_invalid(field, value, fault) for fault in faults(check_label_value(value))]
    return errors


def annotation_map(found: Json, field: str) -> Errors:
    """Faults of an annotation map."""
    errors: Errors = []
    size = 0
    for key, value in found.items():
        size += len(key) + len(value)
        if not good_label(key, ""):
            errors += [field_invalid(field, key, fault) for fault in faults(check_qualified_name(key.lower()))]
    if size > ANNOTATIONS_BYTES_MAX:
        errors.append(field_too_long(field, ANNOTATIONS_BYTES_MAX))
    return errors


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
        field_invalid(f"{at}.{name}" if at else name, obj[name], "must be greater than or equal to 0")
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


def driver_name(value: str, at: str) -> Errors:
    """Faults of the name of a driver, of storage or of devices: a subdomain whose letters may be of any case."""
    if not value:
        return [field_required(at)]
    errors = [field_too_long(at, DRIVER_NAME_MAX)] if len(value) > DRIVER_NAME_MAX else []
    return errors + [field_invalid(at, value, fault) for fault in faults(check_dns1123_subdomain(value.lower()))]


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
