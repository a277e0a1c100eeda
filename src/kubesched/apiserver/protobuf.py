"""Read the protobuf bodies that Go clients insist on sending.

kube-scheduler and newer kubectl encode what they create in protobuf and do not fall back to JSON when refused, though
they read JSON answers happily; so this half of the wire format is needed and the other is not.  A body is `k8s\\0` and
a runtime.Unknown that names the kind and holds the message.  The numbers and types of all fields are in the schema,
so one walk over the bytes serves every kind.

Go writes every field that is not a pointer, empty or not.  The result here may therefore hold empty strings and zeros
that a JSON client would have left out; cleaning (kubesched.apiserver.schema) removes them as it does for JSON.
"""

from __future__ import annotations

import functools
import struct
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from kubesched.api.time import format_micro, format_rfc3339
from kubesched.apiserver.schema import Field, Type, shape

Json = dict[str, Any]

MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class BadProtobuf(ValueError):
    """Bytes that are no protobuf message of the kind they claim to be."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise BadProtobuf("unexpected EOF")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Yield (number, wire type, value): ints for varints, bytes for everything else."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire == _FIXED64:
            size = 8
        elif wire == _FIXED32:
            size = 4
        else:
            raise BadProtobuf(f"illegal wireType {wire}")
        if at + size > end:
            raise BadProtobuf("unexpected EOF")
        yield number, wire, data[at : at + size]
        at += size


def read_envelope(body: bytes) -> tuple[str, str, bytes]:
    """Return (apiVersion, kind, message) of a body."""
    if not body.startswith(MAGIC):
        raise BadProtobuf("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    version = kind = ""
    raw = b""
    for number, _, value in fields(body[len(MAGIC) :]):
        if not isinstance(value, bytes):
            raise BadProtobuf("the envelope is not a runtime.Unknown")
        if number == 1:
            for inner, _, text in fields(value):
                if isinstance(text, bytes):
                    version, kind = (_text(text), kind) if inner == 1 else (version, _text(text))
        elif number == 2:
            raw = value
    return version, kind, raw


def read_message(name: str, data: bytes) -> Json:
    """Decode a message of a struct of the schema ("core.Pod")."""
    return _struct(name)(data)


# ── readers by type ─────────────────────────────────────────────────────────────────────────────────────────


def _text(value: Any) -> str:
    if not isinstance(value, bytes):
        raise BadProtobuf("wrong wireType for a string")
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise BadProtobuf("invalid UTF-8 in a string") from None


def _int(value: Any) -> int:
    if not isinstance(value, int):
        raise BadProtobuf("wrong wireType for a number")
    return value - (1 << 64) if value >> 63 else value


def _bool(value: Any) -> bool:
    return bool(_int(value))


def _double(value: Any) -> float:
    if not isinstance(value, bytes) or len(value) != 8:
        raise BadProtobuf("wrong wireType for a double")
    number: float = struct.unpack("<d", value)[0]
    return number


def _bytes(value: Any) -> str:
    return b64encode(_raw(value)).decode()


def _raw(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise BadProtobuf("wrong wireType for bytes")
    return value


def _parts(value: Any) -> dict[int, Any]:
    return {number: part for number, _, part in fields(_raw(value))}


def _quantity(value: Any) -> str:
    return _text(_parts(value).get(1, b"")) or "0"


def _int_or_string(value: Any) -> int | str:
    parts = _parts(value)
    return _text(parts.get(3, b"")) if parts.get(1) else _int(parts.get(2, 0))


def _instant(value: Any) -> int | None:
    parts = _parts(value)
    seconds, nanos = _int(parts.get(1, 0)), _int(parts.get(2, 0))
    return seconds * 1_000_000_000 + nanos if seconds or nanos else None


def _moment(render: Callable[[Any], str]) -> Callable[[Any], str | None]:
    def read(value: Any) -> str | None:
        instant = _instant(value)
        try:
            return None if instant is None else render(instant)
        except ValueError as error:
            raise BadProtobuf(str(error)) from None

    return read


def _duration(value: Any) -> str:
    return f"{_int(_parts(value).get(1, 0))}ns"


def _embedded_json(value: Any) -> Any:
    raw = _raw(_parts(value).get(1, b""))
    try:
        return msgspec.json.decode(raw) if raw else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise BadProtobuf("an embedded JSON value is malformed") from None


_READERS: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "bool": _bool,
    "int32": _int,
    "int64": _int,
    "float64": _double,
    "bytes": _bytes,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "Time": _moment(format_rfc3339),
    "MicroTime": _moment(format_micro),
    "Duration": _duration,
    "RawExtension": _embedded_json,
    "FieldsV1": _embedded_json,
    "JSON": _embedded_json,
}


def _one(kind: Type) -> Callable[[Any], Any]:
    """Read a value that is neither list nor map.  A list inside a map travels as a message of items."""
    if kind.containers:
        item = _one(kind.element)
        return lambda value: [item(part) for number, _, part in fields(_raw(value)) if number == 1]
    if kind.is_struct:
        return lambda value: _struct(kind.base)(_raw(value))
    if kind.base not in _READERS:
        raise BadProtobuf(f"{kind.base} is not read from protobuf")
    return _READERS[kind.base]


@functools.cache
def _struct(name: str) -> Callable[[bytes], Json]:
    by_number: dict[int, tuple[Field, Callable[[Any], Any]]] = {}
    for field in shape(name).own:
        if field.number:
            container = bool(field.type.containers)
            by_number[field.number] = (field, _one(field.type.element if container else field.type))

    def read(data: bytes) -> Json:
        result: Json = {}
        for number, wire, value in fields(data):
            known = by_number.get(number)
            if known is None:
                continue
            field, one = known
            if field.inline:
                result.update(one(value))
            elif not field.type.containers:
                result[field.name] = one(value)
            elif field.type.containers[0] == "[]":
                found = result.setdefault(field.name, [])
                if (
                    wire == _BYTES
                    and field.type.base in ("int32", "int64", "bool")
                    and not field.type.element.containers
                ):
                    found.extend(_packed(value, one))
                else:
                    found.append(one(value))
            else:
                entry = _parts(value)
                result.setdefault(field.name, {})[_text(entry.get(1, b""))] = one(entry.get(2, b""))
        return result

    return read


def _packed(data: bytes, one: Callable[[Any], Any]) -> Iterator[Any]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield one(value)
