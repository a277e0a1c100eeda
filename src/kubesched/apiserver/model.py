"""How objects of a kind merge: which lists are maps or sets, which maps and lists are one piece.

Server-side apply asks this of every field it meets.  A Model answers for one type.  There are three sources:
the schema of the built-in kinds, the OpenAPI schema of a CustomResourceDefinition, and, where neither knows,
the value itself (maps field by field, lists whole).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from kubesched.apiserver.schema import Field, Type, shape

Json = dict[str, Any]
Scalar = Literal["string", "numeric", "boolean", "untyped"]


@dataclass(frozen=True, slots=True)
class ListModel:
    """keys: the fields that tell the items of a map-like list apart; () for a set; atomic: replaced whole."""

    element: Callable[[], Model]
    atomic: bool = True
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MapModel:
    """fields: those that are declared; element: the type of all others, None if there may be none."""

    fields: Callable[[str], Model | None]
    element: Callable[[], Model] | None = None
    atomic: bool = False


@dataclass(frozen=True, slots=True)
class Model:
    """What a value may be, and how it merges; a value decides between several possibilities.

    default: what a key of a list item is taken for when it is missing.
    zero: what Go prints for an empty object of the kind; only the models of whole kinds have it.
    """

    scalar: Scalar | None = None
    list: ListModel | None = None
    map: MapModel | None = None
    default: Any = None
    zero: Callable[[], Json] | None = field(default=None, compare=False)
    _is_one: bool = field(init=False, default=False, compare=False)

    def __post_init__(self) -> None:
        possible = (self.scalar is not None) + (self.list is not None) + (self.map is not None)
        object.__setattr__(self, "_is_one", possible < 2)

    def for_value(self, value: Any) -> Model:
        """Narrow to what the value is; unchanged for null, and for what the type does not allow."""
        if self._is_one:
            return self
        match value:
            case dict():
                return Model(map=self.map) if self.map is not None else self
            case list():
                return Model(list=self.list) if self.list is not None else self
            case str() | int() | float():
                return Model(scalar=self.scalar) if self.scalar is not None else self
        return self

    def empty(self) -> Json:
        """What an object of this kind is before anything was set: what Go prints for the empty struct."""
        return self.zero() if self.zero is not None else {}


def _no_fields(name: str) -> Model | None:
    return None


UNTYPED_ATOMIC: Model = Model(
    scalar="untyped",
    list=ListModel(element=lambda: UNTYPED_ATOMIC),
    map=MapModel(_no_fields, element=lambda: UNTYPED_ATOMIC, atomic=True),
)
DEDUCED: Model = Model(
    scalar="untyped",
    list=ListModel(element=lambda: UNTYPED_ATOMIC),
    map=MapModel(_no_fields, element=lambda: DEDUCED),
)
_STRING = Model(scalar="string")
_UNTYPED = Model(scalar="untyped")

# Built-in kinds --------------------------------------------------------------------------------------------------

_BASES: dict[str, Model] = {
    "string": _STRING,
    "bytes": _STRING,
    "Duration": _STRING,
    "bool": Model(scalar="boolean"),
    "int32": Model(scalar="numeric"),
    "int64": Model(scalar="numeric"),
    "float64": Model(scalar="numeric"),
    "Quantity": _UNTYPED,
    "IntOrString": _UNTYPED,
    "Time": _UNTYPED,
    "MicroTime": _UNTYPED,
    "RawExtension": UNTYPED_ATOMIC,
    "FieldsV1": DEDUCED,
    "JSON": DEDUCED,
    "JSONSchemaProps": DEDUCED,
}
# Key fields that may be left out, and what they then are.
_KEY_DEFAULTS = {
    ("core.ContainerPort", "protocol"): "TCP",
    ("core.ServicePort", "protocol"): "TCP",
    ("core.LocalObjectReference", "name"): "",
}


@cache
def built_in(struct: str) -> Model:
    """Return the model of a built-in kind, by its struct in the schema: "core.Pod"."""
    inner = _struct(struct)
    fields = inner.map

    def find(name: str) -> Model | None:
        if name in ("kind", "apiVersion"):
            return _STRING
        return fields.fields(name) if fields is not None else None

    return Model(map=MapModel(find, atomic=fields is not None and fields.atomic), zero=lambda: _zero(struct))


@cache
def _struct(name: str) -> Model:
    known: Mapping[str, Field] = shape(name).fields

    @cache
    def find(field_name: str) -> Model | None:
        declared = known.get(field_name)
        if declared is None:
            return None
        return _field(declared, _KEY_DEFAULTS.get((name, field_name)))

    return Model(map=MapModel(find, atomic=shape(name).whole))


def _field(declared: Field, default: Any) -> Model:
    kind = declared.type
    if kind.containers and kind.containers[0] == "[]":
        element = kind.element
        if declared.list_type:
            keys, atomic = declared.list_keys, declared.list_type == "atomic"
        else:
            keys, atomic = ((declared.merge_key,) if declared.merge_key else ()), not declared.merge
        return Model(list=ListModel(lambda: _type(element), atomic, keys))
    found = _type(kind)
    if declared.whole and found.map is not None:
        found = Model(map=MapModel(found.map.fields, found.map.element, atomic=True))
    return Model(found.scalar, found.list, found.map, default)


def _type(kind: Type) -> Model:
    if kind.containers:
        element = kind.element
        if kind.containers[0] == "[]":
            return Model(list=ListModel(lambda: _type(element)))
        return Model(map=MapModel(_no_fields, element=lambda: _type(element)))
    return _struct(kind.base) if kind.is_struct else _BASES[kind.base]


_ZEROS: dict[str, Any] = {
    "string": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "float64": 0,
    "IntOrString": 0,
    "Quantity": "0",
}


def _zero(struct: str) -> Json:
    """What Go prints for an empty struct: everything that is not left out when empty."""
    zero: Json = {}
    for name, declared in shape(struct).fields.items():
        kind = declared.type
        nested = kind.is_struct and not kind.containers and not kind.pointer
        if declared.omitzero or (declared.omitempty and not nested):
            continue
        if nested:
            zero[name] = _zero(kind.base)
        elif kind.pointer or kind.containers:
            zero[name] = None
        else:
            zero[name] = _ZEROS.get(kind.base)
    return zero


# Custom resources ------------------------------------------------------------------------------------------------


def custom(openapi: Json | None, preserve_unknown: bool = False) -> Model:
    """Return the model of a custom resource from its openAPIV3Schema; None: deduced from the values."""
    if openapi is None:
        return DEDUCED
    preserve = preserve_unknown or openapi.get("x-kubernetes-preserve-unknown-fields") is True
    known = dict(openapi.get("properties") or {})
    inner = _openapi({**openapi, "properties": known}, preserve)

    def find(name: str) -> Model | None:
        if name in ("kind", "apiVersion"):
            return _STRING
        if name == "metadata":
            return _struct("meta.ObjectMeta")
        return inner.map.fields(name) if inner.map is not None else None

    return Model(map=MapModel(find, inner.map.element if inner.map is not None and preserve else None))


def _openapi(node: Json, preserve: bool) -> Model:
    preserve = preserve or node.get("x-kubernetes-preserve-unknown-fields") is True
    default = node.get("default")
    match node.get("type") if not node.get("x-kubernetes-int-or-string") else "":
        case "object":
            return Model(map=_openapi_map(node, preserve), default=default)
        case "array":
            return Model(list=_openapi_list(node, preserve), default=default)
        case "integer" | "number":
            return Model(scalar="numeric", default=default)
        case "boolean":
            return Model(scalar="boolean", default=default)
        case "string":
            plain = node.get("format", "") in ("", "byte")
            return Model(scalar="string" if plain else "untyped", default=default)
    return Model("untyped", _openapi_list(node, preserve), _openapi_map(node, preserve), default)


def _openapi_map(node: Json, preserve: bool) -> MapModel:
    properties: Json = node.get("properties") or {}
    embedded = node.get("x-kubernetes-embedded-resource") is True

    @cache
    def find(name: str) -> Model | None:
        if embedded and name in ("kind", "apiVersion"):
            return _STRING
        if embedded and name == "metadata":
            return _struct("meta.ObjectMeta")
        return _openapi(properties[name], preserve) if name in properties else None

    extra = node.get("additionalProperties")
    element: Callable[[], Model] | None
    if isinstance(extra, dict):
        element = lambda: _openapi(extra, preserve)  # noqa: E731  # the two others are lambdas as well
    elif extra is True or (extra is None and (preserve or not properties)):
        element = lambda: DEDUCED  # noqa: E731
    else:
        element = None
    return MapModel(find, element, atomic=node.get("x-kubernetes-map-type") == "atomic")


def _openapi_list(node: Json, preserve: bool) -> ListModel:
    items = node.get("items")
    kind = node.get("x-kubernetes-list-type", "atomic")
    keys = tuple(node.get("x-kubernetes-list-map-keys") or ()) if kind == "map" else ()

    def element() -> Model:
        return _openapi(items, preserve) if isinstance(items, dict) else UNTYPED_ATOMIC

    return ListModel(element, atomic=kind == "atomic", keys=keys)
