"""Know the fields of every built-in kind: their types, their wire numbers, which lists are maps.

An API server in Go learns all this from its structs.  Here it is read from schema.txt, one line a field, and serves
everyone who must look inside an object: the reader of request bodies (types, unknown fields; `cleaning.py`), the
protobuf decoder (numbers), OpenAPI and explain (names and types), patches (merge keys).

A line of schema.txt: ` <protobuf number> <name> <type> <marks>`; the name + marks an inlined struct.  Types: string,
bool, int32, int64, float64, bytes, the scalars of apimachinery (Quantity, Time …), `package.Struct`, with `*`, `[]`
and `{}` (a map) before. Marks: e omitted when empty, z also when a zero struct, r required, map=keys / set / atomic
for lists, whole for maps and structs replaced as one, merge=key and retain for strategic merge patches, go= the name
that a type has in Go and that its errors therefore speak of.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

SCALARS = frozenset(
    [
        *("string", "bool", "int32", "int64", "float64", "bytes"),
        *("Quantity", "IntOrString", "Time", "MicroTime", "Duration"),
        *("RawExtension", "FieldsV1", "JSON", "JSONSchemaProps"),
    ]
)
"""The types that are no structs."""


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a field: base inside containers, outermost first ("[]" a list, "{}" a map).

    named: how Go spells it where scalars, lists or maps in it have names of their own, "[]v1.FinalizerName".
    """

    base: str
    containers: tuple[str, ...] = ()
    pointer: bool = False
    named: str = ""

    @property
    def is_struct(self) -> bool:
        return "." in self.base

    @property
    def element(self) -> Type:
        head = "[]" if self.containers[0] == "[]" else self.named.partition("]")[0] + "]"
        return Type(self.base, self.containers[1:], named=self.named[len(head) :] if head in self.named else "")

    @property
    def go(self) -> str:
        """The type as Go spells it in error messages."""
        if self.named:
            return self.named
        if self.is_struct:
            base = ".".join(shape(self.base).openapi.rsplit(".", 2)[1:])
        else:
            base = _GO_NAMES.get(self.base, self.base)
        return "".join("[]" if c == "[]" else "map[string]" for c in self.containers) + base


_GO_NAMES = {
    "Quantity": "resource.Quantity",
    "Time": "v1.Time",
    "MicroTime": "v1.MicroTime",
    "Duration": "v1.Duration",
    "IntOrString": "intstr.IntOrString",
    "bytes": "[]uint8",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct, as Go's tags and markers describe it."""

    name: str
    number: int
    type: Type
    omitempty: bool = False
    omitzero: bool = False
    required: bool = False
    inline: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    whole: bool = False
    merge: bool = False
    merge_key: str = ""
    retain: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """A struct: `own` are its fields as declared, `fields` its JSON properties (inlined structs flattened)."""

    name: str
    openapi: str
    own: tuple[Field, ...]
    fields: Mapping[str, Field]
    whole: bool = False


def _parse_type(text: str, alias: str, named: str) -> Type:
    pointer = text.startswith("*")
    text = text.removeprefix("*")
    containers: list[str] = []
    while text[:2] in ("[]", "{}"):
        containers.append(text[:2])
        text = text[2:].removeprefix("*")
    if text not in SCALARS and "." not in text:
        text = f"{alias}.{text}"
    return Type(text, tuple(containers), pointer, named)


def _parse_field(line: str, alias: str) -> Field:
    number, name, kind, *marks = line.split()
    listed = next((m[4:] for m in marks if m.startswith("map=")), None)
    merge = next((m[6:] for m in marks if m.startswith("merge=")), None)
    plain = next((m for m in marks if m in ("set", "atomic")), "")
    named = next((m[3:] for m in marks if m.startswith("go=")), "")
    return Field(
        name=name,
        number=int(number),
        type=_parse_type(kind, alias, named),
        omitempty="e" in marks,
        omitzero="z" in marks,
        required="r" in marks,
        inline=name == "+",
        list_type="map" if listed is not None else plain,
        list_keys=tuple(listed.split(",")) if listed else (),
        whole="whole" in marks,
        merge=merge is not None,
        merge_key=merge or "",
        retain="retain" in marks,
    )


@functools.cache
def _blocks() -> dict[str, tuple[str, bool, list[str]]]:
    """Struct → (OpenAPI name, whole, its lines); the lines are parsed when somebody asks for the struct."""
    blocks: dict[str, tuple[str, bool, list[str]]] = {}
    alias = prefix = ""
    lines: list[str] = []
    for line in resources.files(__package__).joinpath("schema.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("@"):
            alias, prefix = line[1:].split()
        elif line.startswith(" "):
            lines.append(line)
        else:
            name, _, whole = line.partition(" ")
            lines = []
            blocks[f"{alias}.{name}"] = (f"{prefix}.{name}", bool(whole), lines)
    return blocks


@functools.cache
def shape(name: str) -> Shape:
    """Return the struct, by package and name: "core.PodSpec"."""
    openapi, whole, lines = _blocks()[name]
    own = tuple(_parse_field(line, name.split(".")[0]) for line in lines)
    flat: dict[str, Field] = {}
    for field in own:
        if field.inline:
            flat.update(shape(field.type.base).fields)
        else:
            flat[field.name] = field
    return Shape(name, openapi, own, flat, whole)


def shapes() -> list[str]:
    """Return the names of all structs."""
    return list(_blocks())


# ── unknown fields, said with their paths ───────────────────────────────────────────────────────────────────


def unknown_fields(value: Any, kind: Type, path: str = "") -> Iterator[str]:
    """Yield the path of every field the schema does not know, in the order of the document."""
    if kind.containers:
        if kind.containers[0] == "[]" and isinstance(value, list):
            for index, item in enumerate(value):
                yield from unknown_fields(item, kind.element, f"{path}[{index}]")
        elif kind.containers[0] == "{}" and isinstance(value, dict):
            for key, item in value.items():
                yield from unknown_fields(item, kind.element, f"{path}.{key}" if path else key)
    elif kind.is_struct and isinstance(value, dict):
        fields = shape(kind.base).fields
        for key, item in value.items():
            where = f"{path}.{key}" if path else key
            if key in fields:
                yield from unknown_fields(item, fields[key].type, where)
            elif path or key not in ("kind", "apiVersion"):
                yield where
