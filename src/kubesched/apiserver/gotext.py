"""Values as Go's fmt prints them, for the refusals of the real server that show what they refuse."""

from __future__ import annotations

from typing import Any


def go_type(value: Any) -> str:
    """%T of decoded JSON."""
    match value:
        case dict():
            return "map[string]interface {}"
        case list():
            return "[]interface {}"
        case bool():
            return "bool"
        case str():
            return "string"
        case int():
            return "int64"
        case float():
            return "float64"
    return "%!s(<nil>)"


def go_value(value: Any) -> str:
    """%v of decoded JSON."""
    match value:
        case dict():
            return "map[" + " ".join(f"{name}:{go_value(value[name])}" for name in sorted(value)) + "]"
        case list():
            return "[" + " ".join(map(go_value, value)) + "]"
        case bool():
            return "true" if value else "false"
        case None:
            return "<nil>"
    return str(value)


def go_syntax(value: Any) -> str:
    """%#v of decoded JSON."""
    match value:
        case dict():
            inner = ", ".join(f"{go_syntax(name)}:{go_syntax(value[name])}" for name in sorted(value))
            return f"map[string]interface {{}}{{{inner}}}"
        case list():
            return "[]interface {}{" + ", ".join(map(go_syntax, value)) + "}"
        case str():
            return f'"{value}"'
        case None:
            return "interface {}(nil)"
    return go_value(value)


def json_kind(value: Any) -> str:
    """What encoding/json calls a value that it cannot put where it should."""
    match value:
        case dict():
            return "object"
        case list():
            return "array"
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return "number"
    return "null"
