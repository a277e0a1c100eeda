"""Structural schemas: prune, default and validate custom resources by their openAPIV3Schema.

A structural schema types every field it mentions, so one walk can tell what is known (the rest is pruned), fill in
defaults and say what is wrong, in the words of kube-apiserver.  Schemas come from users: patterns are compiled when
the definition is accepted, and everything here is bounded by the depth of the object.

Rules in CEL (x-kubernetes-validations) are kept and shown but not evaluated.
"""

from __future__ import annotations

import copy
import datetime
import functools
import ipaddress
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from kubesched.apiserver.status import (
    FieldError,
    field_duplicate,
    field_invalid,
    field_not_supported,
    field_required,
    field_too_long,
    field_too_many,
    field_type_invalid,
)

Json = dict[str, Any]
Errors = list[FieldError]

PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"
LIST_TYPE, LIST_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
TYPES = ("array", "boolean", "integer", "number", "object", "string")
_OBJECT_HEAD = ("apiVersion", "kind", "metadata")


# ── pruning ─────────────────────────────────────────────────────────────────────────────────────────────────


def prune(value: Any, schema: Json, path: str = "", *, root: bool = False) -> Iterator[str]:
    """Remove from a value (in place) what the schema does not know; yield the paths of what went."""
    if isinstance(value, dict):
        yield from _prune_object(value, schema, path, root or bool(schema.get(EMBEDDED)))
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from prune(item, schema["items"], f"{path}[{index}]")


def _prune_object(value: Json, schema: Json, path: str, is_resource: bool) -> Iterator[str]:
    properties = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    keeps = bool(schema.get(PRESERVE)) or more is True
    for key in list(value):
        where = f"{path}.{key}" if path else key
        if is_resource and key in _OBJECT_HEAD:
            continue
        if key in properties:
            yield from prune(value[key], properties[key], where)
        elif isinstance(more, dict):
            yield from prune(value[key], more, where)
        elif not keeps:
            del value[key]
            yield where


# ── defaulting ──────────────────────────────────────────────────────────────────────────────────────────────


def fill(value: Any, schema: Json) -> Any:
    """Fill in defaults (in place) and drop nulls that may not be; return the value."""
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        for key, inner in properties.items():
            if value.get(key) is None and key in value and not inner.get("nullable"):
                del value[key]
            if key not in value and "default" in inner:
                value[key] = copy.deepcopy(inner["default"])
            if key in value:
                fill(value[key], inner)
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            for key, item in value.items():
                if key not in properties:
                    fill(item, more)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for item in value:
            fill(item, schema["items"])
    return value


# ── validation ──────────────────────────────────────────────────────────────────────────────────────────────


def type_name(value: Any) -> str:
    """What JSON schema calls a value."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
    return "null"


def validate(value: Any, schema: Json, path: str = "") -> Errors:
    """Return what is wrong with a value."""
    if value is None and schema.get("nullable"):
        return []
    errors = _check_type(value, schema, path)
    if errors:
        return errors + _check_enum(value, schema, path)
    if isinstance(value, str):
        errors = _check_string(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        errors = _check_number(value, schema, path)
    elif isinstance(value, list):
        errors = _check_list(value, schema, path)
    elif isinstance(value, dict):
        errors = _check_object(value, schema, path)
    return errors + _check_enum(value, schema, path) + _check_logic(value, schema, path)


def _check_type(value: Any, schema: Json, path: str) -> Errors:
    wanted, found = schema.get("type"), type_name(value)
    if schema.get(INT_OR_STRING):
        if found in ("integer", "string"):
            return []
        wanted = "integer,string"
    elif not wanted or wanted == found or (wanted == "number" and found == "integer"):
        return []
    return [field_type_invalid(path, found, f'{path} in body must be of type {wanted}: "{found}"')]


def _check_enum(value: Any, schema: Json, path: str) -> Errors:
    choices = schema.get("enum")
    if not choices or any(_equal(value, choice) for choice in choices):
        return []
    return [field_not_supported(path, value, choices)]


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)


@functools.lru_cache(maxsize=512)
def pattern(text: str) -> re.Pattern[str]:
    """A pattern of a schema; Go's syntax is close enough to Python's for those that compile here."""
    return re.compile(text)


def _check_string(value: str, schema: Json, path: str) -> Errors:
    errors: Errors = []
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    if longest is not None and len(value) > longest:
        errors.append(field_too_long(path, longest))
    if shortest is not None and len(value) < shortest:
        errors.append(field_invalid(path, value, f"{path} in body should be at least {shortest} chars long"))
    if "pattern" in schema and not pattern(schema["pattern"]).search(value):
        errors.append(field_invalid(path, value, f"{path} in body should match '{schema['pattern']}'"))
    check = _FORMATS.get(schema.get("format", ""))
    if check is not None and not check(value):
        kind = schema["format"]
        errors.append(field_invalid(path, value, f"{path} in body must be of type {kind}: {json.dumps(value)}"))
    return errors


def _parses(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def check(value: str) -> bool:
        try:
            parse(value)
        except ValueError:
            return False
        return True

    return check


_FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": _parses(lambda text: datetime.datetime.fromisoformat(text)),
    "date": _parses(lambda text: datetime.date.fromisoformat(text)),
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "cidr": _parses(lambda text: ipaddress.ip_interface(text)),
    "uuid": re.compile("(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}").fullmatch,  # type: ignore[dict-item]  # a match is true
}


def _check_number(value: float, schema: Json, path: str) -> Errors:
    errors: Errors = []
    most, least = schema.get("maximum"), schema.get("minimum")
    if most is not None and (value >= most if schema.get("exclusiveMaximum") else value > most):
        what = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        errors.append(field_invalid(path, value, f"{path} in body should be {what} {most}"))
    if least is not None and (value <= least if schema.get("exclusiveMinimum") else value < least):
        what = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        errors.append(field_invalid(path, value, f"{path} in body should be {what} {least}"))
    step = schema.get("multipleOf")
    if step and value % step:
        errors.append(field_invalid(path, value, f"{path} in body should be a multiple of {step}"))
    return errors


def _check_list(value: list[Any], schema: Json, path: str) -> Errors:
    errors: Errors = []
    most, least = schema.get("maxItems"), schema.get("minItems")
    if most is not None and len(value) > most:
        errors.append(field_too_many(path, len(value), most))
    if least is not None and len(value) < least:
        errors.append(field_invalid(path, len(value), f"{path} in body should have at least {least} items"))
    if isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            errors += validate(item, schema["items"], f"{path}[{index}]")
    return errors + _check_unique(value, schema, path)


def _check_unique(value: list[Any], schema: Json, path: str) -> Errors:
    kind = schema.get(LIST_TYPE)
    if kind not in ("map", "set"):
        return []
    errors: Errors = []
    keys = schema.get(LIST_KEYS) or []
    seen: set[str] = set()
    for index, item in enumerate(value):
        identity: Any = item
        if kind == "map":
            if not isinstance(item, dict):
                continue
            identity = {key: item[key] for key in keys if key in item}
        mark = json.dumps(identity, sort_keys=True)
        if mark in seen:
            errors.append(field_duplicate(f"{path}[{index}]", identity))
        seen.add(mark)
    return errors


def _check_object(value: Json, schema: Json, path: str) -> Errors:
    errors: Errors = []
    properties = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    if most is not None and len(value) > most:
        errors.append(field_too_many(path, len(value), most))
    if least is not None and len(value) < least:
        errors.append(field_invalid(path, value, f"{path} in body should have at least {least} properties"))
    for key in schema.get("required") or ():
        if key not in value:
            errors.append(field_required(f"{path}.{key}" if path else key))
    for key, item in value.items():
        where = f"{path}.{key}" if path else key
        if key in properties:
            errors += validate(item, properties[key], where)
        elif isinstance(more, dict):
            errors += validate(item, more, where)
    return errors


def _check_logic(value: Any, schema: Json, path: str) -> Errors:
    errors: Errors = []
    for inner in schema.get("allOf") or ():
        errors += validate(value, inner, path)
    choices = schema.get("anyOf")
    if choices and not any(not validate(value, inner, path) for inner in choices):
        why = f"{path} in body must validate at least one schema (anyOf)"
        errors.append(field_invalid(path, "", why))
    choices = schema.get("oneOf")
    if choices:
        found = sum(not validate(value, inner, path) for inner in choices)
        if found != 1:
            tail = "Found none valid" if not found else f"Found {found} valid alternatives"
            why = f"{path} in body must validate one and only one schema (oneOf). {tail}"
            errors.append(field_invalid(path, "", why))
    if schema.get("not") and not validate(value, schema["not"], path):
        errors.append(field_invalid(path, "", f"{path} in body must not validate the schema (not)"))
    return errors


# ── schemas themselves ──────────────────────────────────────────────────────────────────────────────────────


_KEYWORDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("type", "format", "pattern", "title", "description", LIST_TYPE, "x-kubernetes-map-type"), (str,)),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), (int, float)),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), (int,)),
    **dict.fromkeys(("nullable", "uniqueItems", "exclusiveMaximum", "exclusiveMinimum"), (bool,)),
    **dict.fromkeys((PRESERVE, INT_OR_STRING, EMBEDDED), (bool,)),
    **dict.fromkeys(("required", "enum", "allOf", "anyOf", "oneOf", LIST_KEYS), (list,)),
    **dict.fromkeys(("properties", "not", "items"), (dict,)),
    "additionalProperties": (dict, bool),
}
_STRINGS = ("required", LIST_KEYS)
_SCHEMAS = ("allOf", "anyOf", "oneOf")


def malformed(schema: Any, path: str) -> Errors:
    """Return what is no schema at all: keywords with values of the wrong type."""
    if not isinstance(schema, dict):
        return [field_type_invalid(path, schema, "must be a schema")]
    errors: Errors = []
    for name, types in _KEYWORDS.items():
        value = schema.get(name)
        if value is None:
            continue
        fits = isinstance(value, types) and (not isinstance(value, bool) or bool in types)
        if fits and name in _STRINGS:
            fits = all(isinstance(item, str) for item in value)
        if not fits:
            wanted = " or ".join(kind.__name__ for kind in types)
            errors.append(field_type_invalid(f"{path}.{name}", value, f"must be of type {wanted}"))
    if errors:
        return errors
    inner = [(f"{path}.properties[{name}]", one) for name, one in (schema.get("properties") or {}).items()]
    inner += [(f"{path}.{name}", schema[name]) for name in ("items", "not") if schema.get(name) is not None]
    if isinstance(schema.get("additionalProperties"), dict):
        inner.append((f"{path}.additionalProperties", schema["additionalProperties"]))
    for name in _SCHEMAS:
        inner += [(f"{path}.{name}[{index}]", one) for index, one in enumerate(schema.get(name) or ())]
    return [error for where, one in inner for error in malformed(one, where)]


def check_schema(schema: Any, path: str, *, root: bool = True) -> Errors:
    """Return what keeps a schema from being structural."""
    if root and (errors := malformed(schema, path)):
        return errors
    errors = []
    kind = schema.get("type")
    free = schema.get(INT_OR_STRING) or (schema.get(PRESERVE) and not root)
    if not kind and not free:
        why = "must not be empty at the root" if root else "must not be empty for specified object fields"
        errors.append(field_required(f"{path}.type", why))
    elif kind and kind not in TYPES:
        errors.append(field_not_supported(f"{path}.type", kind, TYPES))
    if root and kind and kind != "object":
        errors.append(field_invalid(f"{path}.type", kind, "must be object at the root"))
    if kind == "array" and schema.get("items") is None:
        errors.append(field_required(f"{path}.items", "must be specified"))
    if "pattern" in schema:
        try:
            pattern(schema["pattern"])
        except (re.error, RecursionError) as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            errors.append(field_invalid(f"{path}.pattern", schema["pattern"], why))
    if schema.get(LIST_TYPE) == "map" and not schema.get(LIST_KEYS):
        errors.append(field_required(f"{path}.{LIST_KEYS}", f"must not be empty if {LIST_TYPE} is map"))
    if "default" in schema and not errors:
        errors += _check_default(schema, path)
    for name, inner in (schema.get("properties") or {}).items():
        errors += check_schema(inner, f"{path}.properties[{name}]", root=False)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            errors += check_schema(schema[name], f"{path}.{name}", root=False)
    return errors


def _check_default(schema: Json, path: str) -> Errors:
    default = copy.deepcopy(schema["default"])
    if list(prune(default, schema)):
        return [field_invalid(f"{path}.default", schema["default"], "must not have unknown fields")]
    wrong = validate(schema["default"], schema, f"{path}.default")
    return wrong[:1]
