"""Give a freshly decoded body the shape that a round trip through Go's structs would give it.

The most travelled road of the API server.  Wrong types are refused in the words of encoding/json, nulls and empty
optional values vanish, quantities and times become canonical, and fields that Go always prints (`status: {}`,
`resources: {}`) appear.  Unlike Go it keeps fields it does not know; it only counts them, because warning about them is
for the caller to decide.

What is to be done with each field of a struct is worked out once, when such a struct is first met.
"""

from __future__ import annotations

import functools
import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kubesched.apiserver.scalars import BadScalar, canonical_micro_time, canonical_quantity, canonical_time
from kubesched.apiserver.schema import Field, Type, shape

Found = list[str]
Clean = Callable[[Any, Found], Any]

_INT_RANGE = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


class _Drop:
    """What a cleaner answers for a value that Go would not print."""


DROP = _Drop()


class Mistyped(Exception):
    """A value that cannot be what its field says; str() is what encoding/json says about it."""

    def __init__(self, what: str, wanted: str = "", text: str = "") -> None:
        super().__init__(text)
        self.what, self.wanted, self.text = what, wanted, text
        self.struct = ""
        self.path: list[str] = []

    def __str__(self) -> str:
        if self.text:
            return self.text
        if not self.path:
            return f"json: cannot unmarshal {self.what} into Go value of type {self.wanted}"
        where = ".".join(reversed(self.path))
        return f"json: cannot unmarshal {self.what} into Go struct field {self.struct}.{where} of type {self.wanted}"


def json_kind(value: Any) -> str:
    """What encoding/json calls a value in its errors."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
    return "null"


def _string(value: Any, found: Found) -> Any:
    if type(value) is str:
        return value
    if value is None:
        return ""
    raise Mistyped(json_kind(value), "string")


def _optional_string(value: Any, found: Found) -> Any:
    if type(value) is str:
        return value or DROP
    if value is None:
        return DROP
    raise Mistyped(json_kind(value), "string")


def _integer(base: str) -> Clean:
    low, high = _INT_RANGE[base]

    def clean(value: Any, found: Found) -> Any:
        if type(value) is int:
            if low <= value <= high:
                return value
            raise Mistyped(f"number {value}", base)
        if value is None:
            return 0
        raise Mistyped(f"number {value}" if isinstance(value, float) else json_kind(value), base)

    return clean


def _bool(value: Any, found: Found) -> Any:
    if type(value) is bool:
        return value
    if value is None:
        return False
    raise Mistyped(json_kind(value), "bool")


def _float(value: Any, found: Found) -> Any:
    if type(value) in (int, float):
        return value
    if value is None:
        return 0
    raise Mistyped(json_kind(value), "float64")


def _int_or_string(value: Any, found: Found) -> Any:
    if type(value) is str:
        return value
    if type(value) is int:
        return _INT32(value, found)
    if value is None:
        return 0
    raise Mistyped(f"number {value}" if type(value) is float else json_kind(value), "int32")


_INT32 = _integer("int32")


def _bytes(value: Any, found: Found) -> Any:
    if value is None:
        return ""
    if type(value) is not str:
        raise Mistyped(json_kind(value), "[]uint8")
    try:
        b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
    except (Base64Error, ValueError):
        raise Mistyped("", text=f"illegal base64 data at input byte {_first_bad_base64(value)}") from None
    return value


def _first_bad_base64(value: str) -> int:
    match = re.search(r"[^A-Za-z0-9+/=\r\n]", value)
    return match.start() if match else len(value) - len(value) % 4


def _scalar(canonical: Callable[[Any], str | None]) -> Clean:
    def clean(value: Any, found: Found) -> Any:
        if type(value) in (dict, list):
            raise Mistyped(json_kind(value), "string")
        try:
            return canonical(value)
        except BadScalar as error:
            raise Mistyped(json_kind(value), error.wanted, text=error.text) from None

    return clean


def _quantity(value: Any, found: Found) -> Any:
    if type(value) is str:
        try:
            return canonical_quantity(value)
        except BadScalar as error:
            raise Mistyped("string", text=error.text) from None
    if value is None:
        return "0"
    if type(value) in (int, float):
        return canonical_quantity(repr(value))
    try:
        return canonical_quantity(str(value))
    except BadScalar as error:
        raise Mistyped(json_kind(value), text=error.text) from None


def _any(value: Any, found: Found) -> Any:
    return value


_SCALARS: dict[str, Clean] = {
    "string": _string,
    "bool": _bool,
    "int32": _INT32,
    "int64": _integer("int64"),
    "float64": _float,
    "bytes": _bytes,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "Time": _scalar(canonical_time),
    "MicroTime": _scalar(canonical_micro_time),
    "Duration": _string,
    "RawExtension": _any,
    "FieldsV1": _any,
    "JSON": _any,
    "JSONSchemaProps": _any,
}

_ZERO: dict[str, Any] = {
    "string": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "float64": 0,
    "Quantity": "0",
    "IntOrString": 0,
    "Time": None,
    "MicroTime": None,
    "Duration": "0s",
}


def _list(kind: Type) -> Clean:
    element = kind.element
    one = cleaner(element)
    empty: Any = {} if element.is_struct or element.containers else None

    def clean(value: Any, found: Found) -> Any:
        if type(value) is not list:
            raise Mistyped(json_kind(value), kind.go)
        try:
            for index, item in enumerate(value):
                if item is None and empty is not None:
                    item = value[index] = {} if not element.containers else []
                new = one(item, found)
                if new is not item:
                    value[index] = new
        except Mistyped as error:
            error.wanted = _name_of_scalar(element, error)
            raise
        return value

    return clean


def _name_of_scalar(kind: Type, error: Mistyped) -> str:
    """What the error wanted, by the name that a scalar of this type has in Go; inside a struct the name is known."""
    return kind.named if kind.named and not kind.containers and not error.path else error.wanted


def _map(kind: Type) -> Clean:
    element = kind.element
    one = cleaner(element)
    plain = element.base == "string" and not element.containers

    def clean(value: Any, found: Found) -> Any:
        if type(value) is not dict:
            raise Mistyped(json_kind(value), kind.go)
        for key, item in value.items():
            if plain and type(item) is str:
                continue
            if item is None and element.is_struct:
                item = value[key] = {}
            new = one(item, found)
            if new is not item:
                value[key] = new
        return value

    return clean


@functools.cache
def cleaner(kind: Type) -> Clean:
    """Return what cleans a value of this type."""
    if kind.containers:
        return _list(kind) if kind.containers[0] == "[]" else _map(kind)
    if kind.is_struct:
        return _lazy_struct(kind.base)
    return _SCALARS[kind.base]


def _lazy_struct(name: str) -> Clean:
    """Structs may contain themselves: look one up when it is first met."""
    known: list[Clean] = []

    def clean(value: Any, found: Found) -> Any:
        if not known:
            known.append(struct_cleaner(name))
        return known[0](value, found)

    return clean


def _property(field: Field) -> Clean | None:
    """What cleans the value of a field; None for the commonest, an optional string."""
    kind = field.type
    if kind.base == "string" and not kind.containers and not kind.pointer and field.omitempty:
        return None
    one = cleaner(kind if not kind.pointer else replace(kind, pointer=False))
    container = bool(kind.containers) or kind.base == "bytes"
    optional = field.omitempty
    zero = _ZERO.get(kind.base)
    scalar = not container and not kind.pointer and not kind.is_struct
    struct = kind.is_struct and not container and not kind.pointer
    null = bool(kind.containers) and _is_null_when_missing(field)

    def clean(value: Any, found: Found) -> Any:
        if value is None:
            return {} if struct and not field.omitzero and not one({}, found) else None if null else DROP
        new = one(value, found)
        if optional:
            if container and not new:
                return DROP
            if scalar and new == zero and zero is not None:
                return DROP
        if field.omitzero and not new:
            return DROP
        return new

    return clean


# Required by what their markers say, but nobody insists.
_REQUIRED_IN_NAME = ("limits", "drivers")


def _is_null_when_missing(field: Field) -> bool:
    """Whether Go prints a list or a map with nothing in it as null; a required one is refused, and never printed."""
    return not field.omitempty and (not field.required or field.name in _REQUIRED_IN_NAME)


def _always(fields: Mapping[str, Field]) -> list[tuple[str, Any]]:
    """The fields that Go prints even when nobody set them, with the value it prints (a Shape name for structs)."""
    always: list[tuple[str, Any]] = []
    for field in fields.values():
        kind = field.type
        if kind.containers and _is_null_when_missing(field):
            always.append((field.name, None))
        if kind.pointer or kind.containers or field.omitzero:
            continue
        if kind.is_struct or kind.base in ("Time", "MicroTime"):
            always.append((field.name, kind.base if kind.is_struct else None))
        elif not field.omitempty and kind.base in _ZERO:
            always.append((field.name, ("zero", _ZERO[kind.base])))
    return always


def _below(field: Field) -> Mapping[str, Field]:
    return shape(field.type.base).fields


@functools.cache
def struct_cleaner(name: str) -> Clean:
    """Return what cleans a struct, in place: `clean(value, found)`, where found gathers unknown field names."""
    here = shape(name)
    short, spelled = name.split(".")[1], Type(name).go
    inlined = {below: field.type.base.split(".")[1] for field in here.own if field.inline for below in _below(field)}
    checks = {field.name: _property(field) for field in here.fields.values()}
    structs = [(key, base) for key, base in _always(here.fields) if isinstance(base, str)]
    values = [(k, b[1] if isinstance(b, tuple) else b) for k, b in _always(here.fields) if not isinstance(b, str)]

    def clean(value: Any, found: Found) -> Any:
        if type(value) is not dict:
            raise Mistyped(json_kind(value), spelled)
        gone: list[str] | None = None
        key = ""
        try:
            for key, item in value.items():
                try:
                    check = checks[key]
                except KeyError:
                    found.append(key)
                    continue
                if check is None:
                    if type(item) is str and item:
                        continue
                    new = _optional_string(item, found)
                else:
                    new = check(item, found)
                if new is not item:
                    if new is DROP:
                        gone = [key] if gone is None else [*gone, key]
                    else:
                        value[key] = new
        except Mistyped as error:
            if not error.path:
                error.struct = short
                error.wanted = _name_of_scalar(here.fields[key].type, error)
            error.path.append(key)
            if key in inlined:
                error.path.append(inlined[key])
            raise
        if gone is not None:
            for key in gone:
                del value[key]
        for key, zero in values:
            if key not in value:
                value[key] = zero
        for key, base in structs:
            if key not in value:
                value[key] = struct_cleaner(base)({}, found)
        return value

    return clean


# ── lists with nothing in them ──────────────────────────────────────────────────────────────────────────────


@functools.cache
def _null_paths(name: str, above: tuple[str, ...] = ()) -> tuple[tuple[str, ...], ...]:
    """Where in a struct there are lists that are null with nothing in them; "*" is every item of a list or a map."""
    if name in above:
        return ()
    found: list[tuple[str, ...]] = []
    for field in shape(name).fields.values():
        kind = field.type
        if kind.containers and _is_null_when_missing(field):
            found.append((field.name,))
        if kind.is_struct:
            here = (field.name, *("*" for _ in kind.containers))
            found += [(*here, *below) for below in _null_paths(kind.base, (*above, name))]
    return tuple(found)


def empty_to_null(obj: Any, name: str) -> None:
    """Make of an object what writing it down in protobuf makes of it, which knows no empty lists; in place."""
    for path in _null_paths(name):
        _nullify(obj, path)


def _nullify(value: Any, path: tuple[str, ...]) -> None:
    step, *rest = path
    if step == "*":
        for item in (value.values() if isinstance(value, dict) else value) or ():
            _nullify(item, tuple(rest))
    elif isinstance(value, dict) and step in value:
        if rest:
            _nullify(value[step], tuple(rest))
        elif value[step] in ([], {}):
            value[step] = None
