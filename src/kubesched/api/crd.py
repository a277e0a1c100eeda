"""From a CustomResource, a Python class, to the CustomResourceDefinition an API server wants.

The class is the only place where the kind is described: its annotations become the structural schema, its defaults
the defaults, its docstrings the descriptions, `Annotated[int, Meta(ge=0)]` a validation, `Literal` an enum, and its
`columns` what `kubectl get` prints.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import NODEFAULT, UNSET
from msgspec import inspect as types

from kubesched.api.kinds import CustomResource, Kind, kind_of
from kubesched.api.objects import KubeObject

Json = dict[str, Any]


class UnfitKind(ValueError):
    """A class no CustomResourceDefinition can be made of; says which field, and what to write instead."""


def definition_of(view: type[CustomResource]) -> Json:
    """The CustomResourceDefinition of a class.  Raises UnfitKind."""
    try:
        kind = kind_of(view)
    except ValueError as error:
        raise UnfitKind(str(error)) from None
    schema = _schema_of(view)
    version: Json = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    if "status" in schema["properties"]:
        version["subresources"] = {"status": {}}
    if view.columns:
        version["additionalPrinterColumns"] = [_column(view, column.path, column.name) for column in view.columns]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}", **_protection(kind)},
        "spec": {
            "group": kind.group,
            "names": _names(view, kind),
            "scope": view.scope,
            "versions": [version],
        },
    }


def _names(view: type[CustomResource], kind: Kind) -> Json:
    names: Json = {"kind": kind.name, "listKind": f"{kind.name}List", "plural": kind.plural}
    names["singular"] = kind.name.lower()
    if view.short_names:
        names["shortNames"] = list(view.short_names)
    return names


def _protection(kind: Kind) -> Json:
    """Groups of the community itself are guarded: an API server asks for a word on who approved the definition."""
    if not kind.group.endswith((".k8s.io", ".kubernetes.io")):
        return {}
    return {"annotations": {"api-approved.kubernetes.io": "unapproved, for use in your own clusters"}}


# ── the schema ───────────────────────────────────────────────────────────────────────────────────────────────


def _schema_of(view: type[CustomResource]) -> Json:
    known = types.type_info(view)
    assert isinstance(known, types.StructType)
    schema = _struct(known, view.__name__, ())
    schema["properties"].pop("metadata", None)
    head = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    schema["properties"] = head | schema["properties"]
    return schema


def _struct(known: types.StructType, path: str, above: tuple[type, ...]) -> Json:
    if known.cls in above:
        raise UnfitKind(f"{path}: {known.cls.__name__} contains itself, and a structural schema must end somewhere")
    schema: Json = {"type": "object", "properties": {}}
    if text := _own_docstring(known.cls):
        schema["description"] = text
    for field in known.fields:
        where = f"{path}.{field.name}"
        inner = _of(field.type, where, (*above, known.cls))
        if field.default_factory is not NODEFAULT:
            _default(inner, field.default_factory(), where)
        elif field.default is NODEFAULT:
            schema.setdefault("required", []).append(field.encode_name)
        elif field.default is not None and field.default is not UNSET:
            _default(inner, field.default, where)
        schema["properties"][field.encode_name] = inner
    return schema


def _default(schema: Json, default: Any, path: str) -> None:
    """Write a default down, unless it says no more than an absent field does."""
    try:
        plain = _spare(default)
    except TypeError as error:
        raise UnfitKind(f"{path}: its default {default!r} is no JSON: {error}") from None
    if plain not in ({}, [], "") or _has_defaults(schema):
        schema["default"] = plain


def _spare(value: Any) -> Any:
    """A value as JSON, of a Struct only what differs from its own defaults: the server fills in the others."""
    if not isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    fields = msgspec.structs.fields(value)
    given = ((field, getattr(value, field.name)) for field in fields)
    return {field.encode_name: _spare(inner) for field, inner in given if inner != _default_of(field)}


def _default_of(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


def _has_defaults(schema: Json) -> bool:
    """Whether an empty object is more than nothing, because fields within it have defaults."""
    inner = (schema.get("properties") or {}).values()
    return any("default" in one or _has_defaults(one) for one in inner)


def _of(known: types.Type, path: str, above: tuple[type, ...]) -> Json:
    if isinstance(known, types.Metadata):
        return _of(known.type, path, above) | _said(known.extra_json_schema or {})
    if isinstance(known, types.UnionType):
        return _union(known, path, above)
    for kind, write in _WRITERS.items():
        if isinstance(known, kind):
            return write(known, path, above)
    raise UnfitKind(f"{path}: {_name(known)} has no place in a structural schema; {_REMEDY}")


_REMEDY = "write str, int, float, bool, a Literal, list[…], dict[str, …] or a Struct of these"


def _name(known: types.Type) -> str:
    return type(known).__name__.removesuffix("Type")


def _union(known: types.UnionType, path: str, above: tuple[type, ...]) -> Json:
    some = [one for one in known.types if not isinstance(one, types.NoneType)]
    if {type(one) for one in some} == {types.IntType, types.StrType}:
        return {"x-kubernetes-int-or-string": True}
    if len(some) != 1:
        raise UnfitKind(f"{path}: a field is of one type, or `int | str`, or one of them and None; {_REMEDY}")
    schema = _of(some[0], path, above)
    return {**schema, "nullable": True} if known.includes_none else schema


def _array(known: Any, path: str, above: tuple[type, ...]) -> Json:
    schema: Json = {"type": "array", "items": _of(known.item_type, f"{path}[]", above)}
    if isinstance(known, types.SetType | types.FrozenSetType):
        schema["x-kubernetes-list-type"] = "set"
    return schema | _bounds(known, {"min_length": "minItems", "max_length": "maxItems"})


def _map(known: types.DictType, path: str, above: tuple[type, ...]) -> Json:
    if not isinstance(known.key_type, types.StrType):
        raise UnfitKind(f"{path}: the keys of a map are strings; write dict[str, …]")
    schema: Json = {"type": "object", "additionalProperties": _of(known.value_type, f"{path}[]", above)}
    return schema | _bounds(known, {"min_length": "minProperties", "max_length": "maxProperties"})


def _literal(known: types.LiteralType, path: str, above: tuple[type, ...]) -> Json:
    named = {str: "string", int: "integer"}
    kinds = {type(value) for value in known.values}
    if len(kinds) != 1 or not kinds <= named.keys():
        raise UnfitKind(f"{path}: the choices of a Literal are all strings, or all integers")
    return {"type": named[kinds.pop()], "enum": list(known.values)}


def _enum(known: types.EnumType, path: str, above: tuple[type, ...]) -> Json:
    choices = types.LiteralType(tuple(member.value for member in known.cls))
    return _literal(choices, path, above)


def _number(known: Any, path: str, above: tuple[type, ...]) -> Json:
    schema: Json = {"type": "integer", "format": "int64"} if isinstance(known, types.IntType) else {"type": "number"}
    if known.gt is not None:
        schema |= {"minimum": known.gt, "exclusiveMinimum": True}
    if known.lt is not None:
        schema |= {"maximum": known.lt, "exclusiveMaximum": True}
    return schema | _bounds(known, {"ge": "minimum", "le": "maximum", "multiple_of": "multipleOf"})


def _string(known: types.StrType, path: str, above: tuple[type, ...]) -> Json:
    bounds = {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"}
    return {"type": "string"} | _bounds(known, bounds)


def _anything(known: types.Type, path: str, above: tuple[type, ...]) -> Json:
    return {"x-kubernetes-preserve-unknown-fields": True}


_WRITERS: Mapping[type[types.Type], Callable[[Any, str, tuple[type, ...]], Json]] = {
    types.StructType: _struct,
    types.StrType: _string,
    types.BoolType: lambda known, path, above: {"type": "boolean"},
    types.IntType: _number,
    types.FloatType: _number,
    types.LiteralType: _literal,
    types.EnumType: _enum,
    types.ListType: _array,
    types.VarTupleType: _array,
    types.SetType: _array,
    types.FrozenSetType: _array,
    types.DictType: _map,
    types.AnyType: _anything,
}


def _bounds(known: types.Type, names: Mapping[str, str]) -> Json:
    found = ((ours, getattr(known, name)) for name, ours in names.items())
    return {ours: value for ours, value in found if value is not None}


def _said(extra: Mapping[str, Any]) -> Json:
    """What `Meta(title=…, description=…)` says, of which a structural schema takes these."""
    return {name: extra[name] for name in ("title", "description", "format", "example") if name in extra}


def _own_docstring(cls: type) -> str:
    text = cls.__dict__.get("__doc__")
    inherited = any(text == base.__doc__ for base in (KubeObject, CustomResource))
    return inspect.cleandoc(text) if text and not inherited else ""


# ── what kubectl prints ──────────────────────────────────────────────────────────────────────────────────────


def _column(view: type[CustomResource], path: str, name: str) -> Json:
    """A printer column; its type follows from the field its path leads to."""
    if path == ".metadata.creationTimestamp":
        return {"name": name, "type": "date", "jsonPath": path}
    schema = _schema_of(view)
    for step in path.lstrip(".").split("."):
        schema = (schema.get("properties") or {}).get(step) or schema.get("additionalProperties") or {}
        if not schema and not path.startswith(".metadata."):
            raise UnfitKind(f"{view.__name__}.columns: {path} leads to no field of it")
    kind = schema.get("type", "string")
    return {"name": name, "type": kind if kind in ("integer", "number", "boolean") else "string", "jsonPath": path}
