"""Sets of fields, as managedFields records who owns what.

A field is a path of elements: `f:spec` a member of a map, `k:{"name":"c"}` the item of a list with that key,
`v:"x"` a value in a set.  A FieldSet is a tree of them in which every node may itself be owned or merely lead to
something owned, because owning `.spec` (it is I who said that there is a spec) and owning what is in it are two
things.  FieldsV1 is its JSON:

    {"f:spec": {"f:containers": {"k:{\\"name\\":\\"c\\"}": {".": {}, "f:image": {}}}}}

owns the item c and its image, but neither spec nor containers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

Json = dict[str, Any]
Element = str
Path = tuple[Element, ...]


class FieldSet:
    """A set of paths; operations return new sets and never change their operands."""

    __slots__ = ("children", "members")

    def __init__(self) -> None:
        self.members: set[Element] = set()
        self.children: dict[Element, FieldSet] = {}

    @classmethod
    def of(cls, *paths: Path) -> FieldSet:
        fields = cls()
        for path in paths:
            fields.insert(path)
        return fields

    def insert(self, path: Path) -> None:
        """Add a path (for building; the empty path, the whole object, belongs to nobody)."""
        if path:
            self.at(path[:-1]).members.add(path[-1])

    def at(self, path: Path) -> FieldSet:
        """The node below a path, made if missing (for building)."""
        here = self
        for element in path:
            below = here.children.get(element)
            if below is None:
                below = here.children[element] = FieldSet()
            here = below
        return here

    def __bool__(self) -> bool:
        return bool(self.members) or any(self.children.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # it changes while it is built

    def __contains__(self, path: Path) -> bool:
        here = self
        for element in path[:-1]:
            below = here.children.get(element)
            if below is None:
                return False
            here = below
        return bool(path) and path[-1] in here.members

    def below(self, element: Element) -> FieldSet:
        """What of it lies below an element, without that element."""
        return self.children.get(element) or FieldSet()

    def __or__(self, other: FieldSet) -> FieldSet:
        result = FieldSet()
        result.members = self.members | other.members
        result.children = dict(self.children)
        for element, theirs in other.children.items():
            ours = result.children.get(element)
            result.children[element] = theirs if ours is None else ours | theirs
        return result

    def __and__(self, other: FieldSet) -> FieldSet:
        result = FieldSet()
        result.members = self.members & other.members
        for element, ours in self.children.items():
            theirs = other.children.get(element)
            if theirs is not None and (both := ours & theirs):
                result.children[element] = both
        return result

    def __sub__(self, other: FieldSet) -> FieldSet:
        """Path by path: a parent does not take its children with it."""
        result = FieldSet()
        result.members = self.members - other.members
        for element, ours in self.children.items():
            theirs = other.children.get(element)
            if rest := (ours if theirs is None else ours - theirs):
                result.children[element] = rest
        return result

    def without(self, other: FieldSet) -> FieldSet:
        """The difference that takes whole subtrees: without `.spec` nothing below it stays."""
        result = FieldSet()
        result.members = self.members - other.members
        for element, ours in self.children.items():
            if element in other.members:
                continue
            theirs = other.children.get(element)
            if rest := (ours if theirs is None else ours.without(theirs)):
                result.children[element] = rest
        return result

    def paths(self, prefix: Path = ()) -> Iterator[Path]:
        """Every path, parents before what is below them, in the order in which the real server lists conflicts."""
        for element in sorted(self.members, key=_sort_key):
            yield (*prefix, element)
        for element in sorted(self.children, key=_sort_key):
            yield from self.children[element].paths((*prefix, element))

    def meets_json(self, fields: Json) -> bool:
        """Whether it shares a path with a set in FieldsV1, found without decoding that."""
        for element in self.members:
            below = fields.get(element)
            if below is not None and (not below or "." in below):
                return True
        for element, ours in self.children.items():
            below = fields.get(element)
            if below and ours.meets_json(below):
                return True
        return False

    # FieldsV1 --------------------------------------------------------------------------------------

    def to_json(self) -> Json:
        """Return it as FieldsV1, in the order of the real server."""
        fields: Json = {}
        for element in sorted(self.members | self.children.keys(), key=_sort_key):
            below = self.children[element].to_json() if element in self.children else {}
            if below:
                fields[element] = {".": {}, **below} if element in self.members else below
            elif element in self.members:
                fields[element] = {}
        return fields

    @classmethod
    def from_json(cls, fields: Any) -> FieldSet:
        """Read FieldsV1; ValueError for what is none.  Elements of an unknown kind are ignored."""
        result = cls()
        if not isinstance(fields, dict):
            raise ValueError("FieldsV1 must be an object")
        for text, below in fields.items():
            if text == ".":
                continue
            element = _canonical(text)
            if element is None:
                continue
            if not isinstance(below, dict):
                raise ValueError(f"the value of {text!r} must be an object")
            if "." in below or not below:
                result.members.add(element)
            children = cls.from_json(below)
            if children:
                result.children[element] = children
        return result


# Elements --------------------------------------------------------------------------------------------------------


def field_element(name: str) -> Element:
    return "f:" + name


def key_element(keys: Json) -> Element:
    """The element of a list item with these key fields."""
    return "k:" + _dumps({name: keys[name] for name in sorted(keys)})


def value_element(value: Any) -> Element:
    """The element of a value in a set."""
    return "v:" + _dumps(value)


def shown(path: Path) -> str:
    """A path as messages show it: .spec.containers[name="c"].image"""
    return "".join(shown_element(element) for element in path)


def shown_element(element: Element) -> str:
    kind, text = element[:2], element[2:]
    if kind == "f:":
        return "." + text
    if kind == "k:":
        return "[" + ",".join(f"{name}={_shown_value(value)}" for name, value in json.loads(text).items()) + "]"
    if kind == "v:":
        return f"[={_shown_value(json.loads(text))}]"
    return f"[{text}]"


def _shown_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _dumps(value: Any) -> str:
    """JSON as Go writes it, which escapes what could upset HTML."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        if letter in text:
            text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


@lru_cache(maxsize=65536)
def _canonical(text: str) -> Element | None:
    """An element as we write it, or None for a kind we do not know; ValueError when malformed."""
    kind, body = text[:2], text[2:]
    if len(text) < 2 or text[1] != ":":
        raise ValueError(f"{text!r} is no path element")
    if kind == "f:":
        return text
    if kind == "k:":
        keys = json.loads(body)
        if not isinstance(keys, dict):
            raise ValueError(f"{text!r} must hold an object")
        return key_element(keys)
    if kind == "v:":
        return value_element(json.loads(body))
    if kind == "i:":
        return f"i:{int(body)}"
    return None


@lru_cache(maxsize=65536)
def _sort_key(element: Element) -> tuple[Any, ...]:
    """Fields before keys before values before indices, each in their own order."""
    kind, text = element[:2], element[2:]
    if kind == "f:":
        return 0, text
    if kind == "k:":
        return 1, tuple((name, _value_key(value)) for name, value in json.loads(text).items())
    if kind == "v:":
        return 2, _value_key(json.loads(text))
    return 3, int(text)


def _value_key(value: Any) -> tuple[Any, ...]:
    match value:
        case bool():
            return 2, value
        case int() | float():
            return 0, value
        case str():
            return 1, value
        case list():
            return 3, tuple(_value_key(item) for item in value)
        case dict():
            return 4, tuple((name, _value_key(value[name])) for name in sorted(value))
    return (5,)
