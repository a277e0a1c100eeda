"""The JSON Schema of a KubeSchedulerConfiguration, for editors that complete and check while one types.

Made from the same Structs that decode a file, the arguments of the plugins included: what an entry of pluginConfig
may say follows from its name.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from kubesched.config.registry import Registry, args_type
from kubesched.config.schema import API_VERSION, KIND, Configuration

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REF = "#/$defs/{name}"
_ARGUMENT = re.compile(r"^        (\w+): (.*(?:\n            .*)*)", re.MULTILINE)
"""One entry of `Args:` in a docstring, with its continuation lines."""


def editor_schema(registry: Registry | None = None) -> dict[str, Any]:
    """The schema of v1, with the arguments of every plugin that can be found by name."""
    registry = registry or Registry()
    kinds = {name: args_type(registry.get(name)) for name in registry.names()}
    with_args = {name: kind for name, kind in kinds.items() if kind is not None}
    (top, *args), parts = msgspec.json.schema_components(
        [Configuration, *with_args.values()], ref_template=_REF
    )
    root = parts.pop(_name_in(top))
    root["properties"] = {"apiVersion": {"const": API_VERSION}, "kind": {"const": KIND}, **root["properties"]}
    root["required"] = ["apiVersion", "kind"]
    for ref in args:  # arguments may say whose they are
        properties = parts[_name_in(ref)]["properties"]
        properties |= {"apiVersion": {"const": API_VERSION}, "kind": {"type": "string"}}
    for part in (root, *parts.values()):
        _describe(part)
    parts["PluginConfig"]["allOf"] = [
        {
            "if": {"properties": {"name": {"const": name}}, "required": ["name"]},
            "then": {"properties": {"args": {"anyOf": [ref, {"type": "null"}]}}},
        }
        for name, ref in zip(with_args, args, strict=True)
    ]
    return {"$schema": DRAFT, **root, "$defs": parts}


def _describe(part: dict[str, Any]) -> None:
    """What the docstring says of each argument is what an editor shows beside the field."""
    text, _, listed = str(part.get("description", "")).partition("\n\n    Args:\n")
    if text:
        part["description"] = _flat(text)
    for name, said in _ARGUMENT.findall(listed):
        first, *rest = name.split("_")
        field = part.get("properties", {}).get(first + "".join(word.capitalize() for word in rest))
        if field is not None:
            field["description"] = _flat(said)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _name_in(ref: dict[str, Any]) -> str:
    """The name of the part a reference points to."""
    return str(ref["$ref"]).rpartition("/")[2]
