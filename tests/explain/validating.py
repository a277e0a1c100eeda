"""As much of JSON Schema as the schemas of kubesched use; what a schema says beyond that is refused, not ignored."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

_TYPES = {"object": dict, "array": list, "string": str, "integer": int}
_WORDS = {"$schema", "$id", "title", "description", "$defs", "$ref", "type", "properties", "required", "enum"}
_WORDS |= {"additionalProperties", "minProperties", "items", "oneOf"}


Schema: TypeAlias = Mapping[str, Any]


def faults(value: Any, schema: Schema, root: Schema | None = None, at: str = "$") -> Iterator[str]:
    """Where a value is not as its schema says, and how."""
    root = root or schema
    assert not schema.keys() - _WORDS, f"nobody here checks {schema.keys() - _WORDS}"
    if "$ref" in schema:
        yield from faults(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, at)
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    if "type" in schema and (not isinstance(value, _TYPES[schema["type"]]) or isinstance(value, bool)):
        yield f"{at}: {value!r} is no {schema['type']}"
        return
    if isinstance(value, dict):
        yield from _object_faults(value, schema, root, at)
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            yield from faults(item, schema["items"], root, f"{at}[{i}]")
    if "oneOf" in schema:
        fitting = [one for one in schema["oneOf"] if not list(faults(value, one, root, at))]
        if len(fitting) != 1:
            yield f"{at}: fits {len(fitting)} of {schema['oneOf']}, not one"


def _object_faults(value: dict[str, Any], schema: Schema, root: Schema, at: str) -> Iterator[str]:
    yield from (f"{at}: lacks {name}" for name in schema.get("required", ()) if name not in value)
    if len(value) < schema.get("minProperties", 0):
        yield f"{at}: has too little in it"
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in known:
            yield from faults(item, known[name], root, f"{at}.{name}")
        elif others is False:
            yield f"{at}: has {name}, which nobody expects"
        elif others is not True:
            yield from faults(item, others, root, f"{at}.{name}")
