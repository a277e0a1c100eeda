"""Strict decoding: everything in a document that its type does not know, with the path, at once.

msgspec stops at the first surprise.  An operator with five misspelt fields wants to hear of five, so the document is
walked beside its type first; only one without faults is converted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import inspect as types

from kubesched.config.faults import Fault, did_you_mean, invalid, shown


def faults_of(value: Any, kind: Any, path: str = "") -> Iterator[Fault]:
    """Every place where a value is not what its type wants."""
    return _walk(value, types.type_info(kind), path)


def _walk(value: Any, kind: types.Type, path: str) -> Iterator[Fault]:
    match kind:
        case types.StructType():
            yield from _struct(value, kind, path)
        case types.VarTupleType() | types.ListType():
            if isinstance(value, Sequence) and not isinstance(value, str):
                for at, item in enumerate(value):
                    yield from _walk(item, kind.item_type, f"{path}[{at}]")
            else:
                yield _wanted("a list", value, path)
        case types.DictType():
            if isinstance(value, Mapping):
                for key, item in value.items():
                    yield from _walk(item, kind.value_type, _below(path, key))
            else:
                yield _wanted("a mapping", value, path)
        case types.UnionType():
            yield from _union(value, kind, path)
        case _:
            yield from _leaf(value, kind, path)


def _struct(value: Any, kind: types.StructType, path: str) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield _wanted("a mapping", value, path)
        return
    fields = {field.encode_name: field for field in kind.fields}
    for key, item in value.items():
        field = fields.get(key)
        if field is not None:
            yield from _walk(item, field.type, _below(path, key))
        elif kind.forbid_unknown_fields:
            yield Fault(_below(path, key), f'unknown field "{key}"', did_you_mean(str(key), fields))
    for field in kind.fields:
        if field.required and field.encode_name not in value:
            yield Fault(_below(path, field.encode_name), "Required value")


def _union(value: Any, kind: types.UnionType, path: str) -> Iterator[Fault]:
    """X or None, in practice; of several kinds the one with the fewest faults is meant."""
    if value is None and kind.includes_none:
        return
    found = [list(_walk(value, one, path)) for one in kind.types if not isinstance(one, types.NoneType)]
    yield from min(found, key=len, default=[])


def _leaf(value: Any, kind: types.Type, path: str) -> Iterator[Fault]:
    match kind:
        case types.IntType(ge=low, le=high):
            if isinstance(value, bool) or not isinstance(value, int):
                yield _wanted("an integer", value, path)
            elif (low is not None and value < low) or (high is not None and value > high):
                yield Fault(path, invalid(value, f"must be an integer from {low} to {high}"))
        case types.FloatType():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                yield _wanted("a number", value, path)
        case types.BoolType():
            if not isinstance(value, bool):
                yield _wanted("true or false", value, path)
        case types.StrType():
            if not isinstance(value, str):
                yield _wanted("a string", value, path)
        case types.LiteralType(values=values):
            if value not in values:
                supported = ", ".join(shown(one) for one in values)
                yield Fault(path, f"Unsupported value: {shown(value)}: supported values: {supported}")


def _wanted(what: str, value: Any, path: str) -> Fault:
    remedy = ""
    if what == "a string" and isinstance(value, (int, float)):
        remedy = f'in quotes: "{shown(value)}"'
    return Fault(path, f"must be {what}, not {_named(value)}", remedy)


def _named(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool() | int() | float():
            return shown(value)
        case str():
            return f"the string {shown(value)}"
        case Mapping():
            return "a mapping"
        case _:
            return "a list"


def _below(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)
