"""Encode an OpenAPI 2 document in protobuf, for kubectl versions that read no other.

The messages are those of gnostic's OpenAPIv2.proto; only what our own documents contain is written.  A message here
is a list of encoded fields joined together, so encoding is a walk over the JSON document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _message(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _text(number: int, value: Any) -> bytes:
    return _message(number, str(value).encode()) if value else b""


def _texts(number: int, values: Iterable[Any]) -> bytes:
    return b"".join(_message(number, str(value).encode()) for value in values)


def _flag(number: int, value: Any) -> bytes:
    return _varint(number << 3) + b"\x01" if value else b""


def _named(number: int, name: str, body: bytes) -> bytes:
    """A NamedX: a name and a message."""
    return _message(number, _text(1, name) + _message(2, body))


def _any(value: Any) -> bytes:
    """An Any: YAML, of which JSON is a part."""
    return _text(2, json.dumps(value))


def _extensions(number: int, found: Json) -> bytes:
    parts = [_named(number, key, _any(value)) for key, value in found.items() if key.startswith("x-")]
    return b"".join(parts)


def _schema(found: Json) -> bytes:
    parts = [
        _text(1, found.get("$ref")),
        _text(2, found.get("format")),
        _text(4, found.get("description")),
        _message(5, _any(found["default"])) if "default" in found else b"",
        _texts(19, found.get("required") or ()),
        b"".join(_message(20, _any(value)) for value in found.get("enum") or ()),
    ]
    more = found.get("additionalProperties")
    if isinstance(more, dict):
        parts.append(_message(21, _message(1, _schema(more))))
    elif more:
        parts.append(_message(21, _flag(2, True)))
    if found.get("type"):
        parts.append(_message(22, _text(1, found["type"])))
    if isinstance(found.get("items"), dict):
        parts.append(_message(23, _message(1, _schema(found["items"]))))
    parts += [_message(24, _schema(one)) for one in found.get("allOf") or ()]
    properties = found.get("properties")
    if properties:
        named = b"".join(_named(1, name, _schema(one)) for name, one in properties.items())
        parts.append(_message(25, named))
    parts.append(_extensions(31, found))
    return b"".join(parts)


def _parameter(found: Json) -> bytes:
    """A query parameter, inside the messages that tell the kinds of parameter apart."""
    body = b"".join(
        (
            _text(2, found["in"]),
            _text(4, found["name"]),
            _text(6, found.get("type")),
            _flag(20, found.get("uniqueItems")),
        )
    )
    return _message(1, _message(2, _message(3, body)))


def _operation(found: Json) -> bytes:
    responses = b"".join(
        _named(1, code, _message(1, _text(1, answer.get("description"))))
        for code, answer in found.get("responses", {}).items()
    )
    parameters = b"".join(_message(8, _parameter(one)) for one in found.get("parameters") or ())
    return parameters + _message(9, responses) + _extensions(13, found)


_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def _path(found: Json) -> bytes:
    return b"".join(_message(_METHODS[method], _operation(one)) for method, one in found.items())


def encode_document(document: Json) -> bytes:
    """Return an OpenAPI 2 document as gnostic's Document message."""
    info = document["info"]
    paths = b"".join(_named(2, path, _path(found)) for path, found in document["paths"].items())
    definitions = b"".join(_named(1, name, _schema(found)) for name, found in document["definitions"].items())
    return b"".join(
        (
            _text(1, document["swagger"]),
            _message(2, _text(1, info["title"]) + _text(2, info["version"])),
            _message(8, paths),
            _message(9, definitions),
        )
    )
