"""Look at objects through the model of their kind: which fields they have, how two differ, what both make.

The four questions server-side apply is made of.  All of them walk a value beside its Model and name fields by
paths; an atomic list or map is one leaf however much is in it, an item of a map-like list is named by its keys.
Null is a value here, and not the same as nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from kubesched.apiserver.fieldset import (
    Element,
    FieldSet,
    Path,
    field_element,
    key_element,
    shown_element,
    value_element,
)
from kubesched.apiserver.gotext import go_syntax, go_type, go_value
from kubesched.apiserver.model import ListModel, MapModel, Model

Json = dict[str, Any]


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Any = _Absent()
_encode = msgspec.json.Encoder().encode


class Mismatch(Exception):
    """A value that is not what its model says; str() lists all that is wrong as the real server does."""

    def __init__(self, errors: list[str]) -> None:
        self.errors = errors
        super().__init__(errors[0] if len(errors) == 1 else "\n".join(["errors:", *(f"  {e}" for e in errors)]))


# Names -----------------------------------------------------------------------------------------------------------


def item_element(model: ListModel, item: Any) -> Element:
    """The path element of an item of a set or a map-like list; ValueError when it cannot have one."""
    if not model.keys:
        if isinstance(item, dict):
            raise ValueError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise ValueError("not supported: associative list with lists as elements")
        if item is None:
            raise ValueError("associative list without keys has an element that's an explicit null")
        return value_element(item)
    if item is None:
        raise ValueError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ValueError("associative list with keys may not have non-map elements")
    keys: Json = {}
    below = model.element().map
    for name in model.keys:
        if name in item:
            keys[name] = item[name]
        else:
            known = below.fields(name) if below is not None else None
            if known is not None and known.default is not None:
                keys[name] = known.default
    if not keys:
        listed = " ".join(f'"{name}"' for name in model.keys)
        raise ValueError(
            f"associative list with keys has an element that omits all key fields [{listed}] "
            "(and doesn't have default values for any key fields)"
        )
    return key_element(keys)


def _member(model: MapModel, name: str) -> Model | None:
    known = model.fields(name)
    if known is None and model.element is not None:
        return model.element()
    return known


# Validity --------------------------------------------------------------------------------------------------------


def validate(value: Any, model: Model) -> None:
    """Check a whole object against its model; raises Mismatch."""
    errors: list[str] = []
    _validate(value, model, "", errors)
    if errors:
        raise Mismatch(errors)


def _validate(value: Any, model: Model, path: str, errors: list[str]) -> None:
    kind = model.for_value(value)
    if kind.map is not None:
        if isinstance(value, dict):
            _validate_map(value, kind.map, path, errors)
        elif value is not None:
            errors.append(_at(path, f"expected map, got &{{{go_value(value)}}}"))
    elif kind.scalar is not None:
        wrong = _scalar_fault(value, kind.scalar)
        if wrong:
            errors.append(_at(path, wrong))
    elif kind.list is not None:
        if isinstance(value, list):
            _validate_list(value, kind.list, path, errors)
        elif value is not None:
            errors.append(_at(path, f"expected list, got &{{{go_value(value)}}}"))


def _validate_map(value: Json, model: MapModel, path: str, errors: list[str]) -> None:
    for name, below in value.items():
        kind = _member(model, name)
        if kind is None:
            errors.append(_at(f"{path}.{name}", "field not declared in schema"))
            return
        _validate(below, kind, f"{path}.{name}", errors)


def _validate_list(value: list[Any], model: ListModel, path: str, errors: list[str]) -> None:
    seen: set[Element] = set()
    for index, item in enumerate(value):
        where = f"[{index}]"
        if not model.atomic:
            try:
                element = item_element(model, item)
            except ValueError as error:
                errors.append(_at(path, f"element {index}: {error}"))
                return
            where = shown_element(element)
            if element in seen:
                errors.append(_at(path, f"duplicate entries for key {where}"))
            seen.add(element)
        _validate(item, model.element(), path + where, errors)


def _scalar_fault(value: Any, scalar: str) -> str:
    if value is None:
        return ""
    match scalar:
        case "numeric" if isinstance(value, bool) or not isinstance(value, int | float):
            return f"expected numeric (int or float), got {go_type(value)}"
        case "string" if not isinstance(value, str):
            return f"expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}"
        case "boolean" if not isinstance(value, bool):
            return f"expected boolean, got &{{{go_value(value)}}}"
        case "untyped" if isinstance(value, dict | list):
            return f"expected any scalar, got &{{{go_value(value)}}}"
    return ""


def _at(path: str, message: str) -> str:
    return f"{path}: {message}" if path else message


# The fields of a value -------------------------------------------------------------------------------------------


def field_set(value: Any, model: Model) -> FieldSet:
    """Return every leaf and every list item that an object mentions."""
    fields = FieldSet()
    _collect(value, model, (), fields)
    return fields


def _collect(value: Any, model: Model, path: Path, fields: FieldSet) -> None:
    kind = model.for_value(value)
    if kind.map is not None:
        if kind.map.atomic:
            fields.insert(path)
        elif isinstance(value, dict):
            for name, below in value.items():
                inner = (*path, field_element(name))
                declared = kind.map.fields(name)
                _collect(below, declared or _member(kind.map, name) or Model(), inner, fields)
                if below is None or below == {} or declared is None:
                    fields.insert(inner)
    elif kind.scalar is not None:
        fields.insert(path)
    elif kind.list is not None:
        if kind.list.atomic:
            fields.insert(path)
        elif isinstance(value, list):
            _collect_items(value, kind.list, path, fields)


def _collect_items(value: list[Any], model: ListModel, path: Path, fields: FieldSet) -> None:
    for element, items in _by_element(value, model).items():
        # Items that stand there twice are owned, but what is in them cannot be told apart.
        if len(items) == 1:
            _collect(items[0], model.element(), (*path, element), fields)
        fields.insert((*path, element))


# The difference of two values ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Comparison:
    """What is only in the old object, what differs, what is only in the new one."""

    removed: FieldSet = field(default_factory=FieldSet)
    modified: FieldSet = field(default_factory=FieldSet)
    added: FieldSet = field(default_factory=FieldSet)

    def without(self, fields: FieldSet | None) -> Comparison:
        """The same, but for some fields and all below them."""
        if not fields:
            return self
        return Comparison(self.removed.without(fields), self.modified.without(fields), self.added.without(fields))


def compare(old: Any, new: Any, model: Model) -> Comparison:
    """Return how two objects of a kind differ."""
    result = Comparison()
    if isinstance(old, dict) and isinstance(new, dict):
        # Most writes leave most of an object alone: what is the same text is the same.
        alike = [name for name in old if name in new and _encode(old[name]) == _encode(new[name])]
        if alike:
            old = {name: value for name, value in old.items() if name not in alike}
            new = {name: value for name, value in new.items() if name not in alike}
    _compare(old, new, model, (), result)
    return result


def _compare(old: Any, new: Any, model: Model, path: Path, result: Comparison) -> None:
    if old is new:
        return
    if old is ABSENT or new is ABSENT:
        value, into = (new, result.added) if old is ABSENT else (old, result.removed)
        if path:
            _insert_all(value, model, path[-1], into.at(path[:-1]))
        return
    before, after = model.for_value(old), model.for_value(new)
    if not _same_kind(before, after):
        _compare_as(old, new, before, path, result)
    _compare_as(old, new, after, path, result)


def _insert_all(value: Any, model: Model, element: Element, into: FieldSet) -> None:
    """Add a value that stands on one side only: itself and everything in it."""
    into.members.add(element)
    kind = model.for_value(value)
    if not value or kind.scalar is not None:
        return
    below = FieldSet()
    if kind.map is not None and not kind.map.atomic and isinstance(value, dict):
        for name, inner in value.items():
            _insert_all(inner, _member(kind.map, name) or Model(), "f:" + name, below)
    elif kind.list is not None and not kind.list.atomic and isinstance(value, list):
        for item_name, items in _by_element(value, kind.list).items():
            if len(items) == 1:
                _insert_all(items[0], kind.list.element(), item_name, below)
            else:
                below.members.add(item_name)
    if below.members:
        into.children[element] = below


def _same_kind(one: Model, other: Model) -> bool:
    return (one.scalar, one.list is None, one.map is None) == (other.scalar, other.list is None, other.map is None)


def _compare_as(old: Any, new: Any, kind: Model, path: Path, result: Comparison) -> None:
    """Compare two values as one kind of thing."""
    if kind.map is not None:
        was, now = _as_dict(old), _as_dict(new)
        if kind.map.atomic or not (was or now):
            _compare_leaf(old, new, path, result)
            return
        for name in {**(was or {}), **(now or {})}:
            below = _member(kind.map, name) or Model()
            inner = (*path, field_element(name))
            _compare((was or {}).get(name, ABSENT), (now or {}).get(name, ABSENT), below, inner, result)
    elif kind.list is not None and kind.scalar is None:
        before, after = _as_list(old), _as_list(new)
        if kind.list.atomic or not (before or after):
            _compare_leaf(old, new, path, result)
            return
        _compare_items(before or [], after or [], kind.list, path, result)
    elif kind.scalar is not None:
        _compare_leaf(old, new, path, result)


def _as_dict(value: Any) -> Json | None:
    return value if isinstance(value, dict) else None


def _as_list(value: Any) -> list[Any] | None:
    return value if isinstance(value, list) else None


def _compare_leaf(old: Any, new: Any, path: Path, result: Comparison) -> None:
    if not same(old, new):
        result.modified.insert(path)


def _compare_items(old: list[Any], new: list[Any], model: ListModel, path: Path, result: Comparison) -> None:
    before, after = _by_element(old, model), _by_element(new, model)
    for element in {**before, **after}:
        was, now = before.get(element, []), after.get(element, [])
        inner = (*path, element)
        if len(was) <= 1 and len(now) <= 1:
            _compare(was[0] if was else ABSENT, now[0] if now else ABSENT, model.element(), inner, result)
        elif len(was) > 1 and len(now) > 1:
            if not same(was, now):
                result.modified.insert(inner)
        elif len(was) > 1:
            if now:
                _compare(ABSENT, now[0], model.element(), inner, result)
            result.removed.insert(inner)
        else:
            if was:
                _compare(was[0], ABSENT, model.element(), inner, result)
            result.added.insert(inner)


def _by_element(items: list[Any], model: ListModel) -> dict[Element, list[Any]]:
    found: dict[Element, list[Any]] = {}
    for item in items:
        found.setdefault(item_element(model, item), []).append(item)
    return found


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON; numbers by value, but true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


# Two values in one -----------------------------------------------------------------------------------------------


def merge(old: Any, new: Any, model: Model) -> Any:
    """Return old with everything that new says laid over it; nothing is removed.

    Lists keep the order of new where it says one.
    """
    if new is ABSENT or old is ABSENT:
        return old if new is ABSENT else new
    kind = model.for_value(new)
    if kind.map is not None and not kind.map.atomic:
        was, now = _as_dict(old), _as_dict(new)
        if not (was or now):
            return new
        merged: Json = {}
        for name in {**(was or {}), **(now or {})}:
            below = _member(kind.map, name) or Model()
            value = merge((was or {}).get(name, ABSENT), (now or {}).get(name, ABSENT), below)
            if value is not ABSENT:
                merged[name] = value
        return merged
    if kind.map is None and kind.scalar is None and kind.list is not None and not kind.list.atomic:
        before, after = _as_list(old), _as_list(new)
        if before or after:
            return _merge_items(before or [], after or [], kind.list)
    return new


def _merge_items(old: list[Any], new: list[Any], model: ListModel) -> list[Any]:
    """Weave two lists: items of both in the order of new, items of old alone where old had them."""
    olds = [item_element(model, item) for item in old]
    news = [item_element(model, item) for item in new]
    ours, theirs = dict(zip(olds, old, strict=True)), dict(zip(news, new, strict=True))
    doubled = {element for element, items in _by_element(old, model).items() if len(items) > 1}
    kind = model.element()

    def both(element: Element) -> Any:
        # Items that stand there twice are not merged but replaced.
        was = ABSENT if element in doubled else ours.get(element, ABSENT)
        return merge(was, theirs[element], kind)

    shared = [element for element in news if element in ours]
    merged: list[Any] = []
    done: set[Element] = set()
    left = right = turn = 0
    while left < len(olds) or right < len(news):
        while turn < len(shared) and shared[turn] in done:
            turn += 1
        if left < len(olds) and right < len(news):
            element = olds[left]
            if element == news[right]:
                done.add(element)
                merged.append(both(element))
                left += 1
                right += 1
                continue
            if element in theirs and turn < len(shared) and element != shared[turn]:
                left += 1  # an item of both, but not the one whose turn it is
                continue
        if left < len(olds):
            element = olds[left]
            if element not in theirs:
                merged.append(old[left])
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(news):
            done.add(news[right])
            merged.append(both(news[right]))
            right += 1
    return merged


# Taking away -----------------------------------------------------------------------------------------------------


def remove(value: Any, doomed: FieldSet, model: Model) -> Any:
    """Return a value without the fields and items in a set; null when nothing is left of it."""
    kind = model.for_value(value)
    if kind.map is not None:
        return _remove_fields(value, doomed, kind.map) if isinstance(value, dict) and value else None
    if kind.scalar is not None:
        return value
    if kind.list is not None:
        return _remove_items(value, doomed, kind.list) if isinstance(value, list) and value else None
    return None


def _remove_fields(value: Json, doomed: FieldSet, model: MapModel) -> Json | None:
    if model.atomic:
        return None
    kept: Json = {}
    for name, below in value.items():
        element = field_element(name)
        if element in doomed.members:
            continue
        inner = doomed.children.get(element)
        kept[name] = remove(below, inner, _member(model, name) or Model()) if inner else below
    return kept or None


def _remove_items(value: list[Any], doomed: FieldSet, model: ListModel) -> list[Any] | None:
    if model.atomic:
        return None
    kept: list[Any] = []
    for item in value:
        element = item_element(model, item)
        if element in doomed.members:
            continue
        inner = doomed.children.get(element)
        kept.append(remove(item, inner, model.element()) if inner else item)
    return kept or None


def with_named_fields(fields: FieldSet, model: Model | None) -> FieldSet:
    """Add, for everything a set holds, the declared fields that lead to it."""
    result = FieldSet()
    result.members = set(fields.members)
    maps = model.map if model is not None else None
    lists = model.list if model is not None else None
    for element, below in fields.children.items():
        inner: Model | None = None
        if element.startswith("f:") and maps is not None:
            name = element[2:]
            if maps.fields(name) is not None:
                result.members.add(element)
            inner = _member(maps, name)
        elif element.startswith("k:") and lists is not None:
            inner = lists.element()
        result.children[element] = with_named_fields(below, inner)
    return result
