"""From plain data to a view; and what is said of an object that does not have the shape its kind promises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from kubesched.api.objects.known import Invalid
from kubesched.api.objects.meta import KubeObject, ObjectMeta
from kubesched.api.objects.pods import Pod

T = TypeVar("T", bound=KubeObject)


class UnreadableObject(ValueError):
    """An object that does not have the shape its kind promises; says where in it and what was expected."""


def read(raw: Mapping[str, Any], kind: type[T]) -> T:
    """Make a view of an object given as plain data.  Raises UnreadableObject."""
    try:
        return msgspec.convert(raw, kind)
    except (msgspec.ValidationError, RecursionError):
        pass  # most often a null that Go's decoder would take for absent
    try:
        return msgspec.convert(_without_nulls(raw), kind)
    except msgspec.ValidationError as error:
        raise UnreadableObject(f"{_describe(raw, kind)}: {_sentence(error)}") from None
    except RecursionError:
        raise UnreadableObject(f"{_describe(raw, kind)}: it is nested too deeply") from None


def read_or_invalid(raw: Mapping[str, Any], kind: type[T]) -> T | Invalid:
    """Make a view, or an Invalid that says what is wrong with the object and still names it."""
    try:
        return read(raw, kind)
    except UnreadableObject as error:
        scheduler = _scheduler_of(raw.get("spec")) if kind is Pod else ""
        return Invalid(_salvaged(raw.get("metadata")), of=kind.__name__, error=str(error), scheduler=scheduler)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _salvaged(meta: Any) -> ObjectMeta:
    if not isinstance(meta, Mapping):
        return ObjectMeta()
    names = ("name", "namespace", "uid", "resourceVersion")
    return msgspec.convert({name: meta[name] for name in names if isinstance(meta.get(name), str)}, ObjectMeta)


def _scheduler_of(spec: Any) -> str:
    """Who would have to place a pod of which only parts can be read; empty where that cannot be told."""
    fields = spec if isinstance(spec, Mapping) else {}
    name = fields.get("schedulerName") or "default-scheduler"
    return name if isinstance(name, str) and not fields.get("nodeName") else ""


def _describe(raw: Any, kind: type[KubeObject]) -> str:
    meta = raw.get("metadata") if isinstance(raw, Mapping) else None
    salvaged = _salvaged(meta)
    name = f"{salvaged.namespace}/{salvaged.name}" if salvaged.namespace else salvaged.name
    return f"{kind.__name__} {name!r}" if name else f"a {kind.__name__} without a name"


def _sentence(error: msgspec.ValidationError) -> str:
    """`Expected `str`, got `int` - at `$.spec.nodeName`` → `spec.nodeName: expected str, got int`."""
    what, at, path = str(error).partition(" - at ")
    what = what.replace("`", "")
    what = what[:1].lower() + what[1:]
    where = path.strip("`").removeprefix("$").lstrip(".")
    return f"{where}: {what}" if at and where else what
