"""Strategic merge patch: a merge patch that knows which lists are really maps.

kubectl's default, and what kube-scheduler sends.  Plain merge patches replace lists; this one merges those
whose items have a key (containers by name, conditions by type), as the schema says, and unites those that
are sets (finalizers).  A patch steers with directives:

    {"$patch": "replace"}                     this map, or this list, is replaced by the rest of the patch
    {"$patch": "delete", "name": "sidecar"}   this map is emptied, this item of a list removed
    {"$retainKeys": ["type", "recreate"]}     all other fields of this map go
    {"$setElementOrder/containers": […]}      the items come in this order (as far as they exist)
    {"$deleteFromPrimitiveList/finalizers": […]}  these values go

What comes out is what kube-apiserver makes of it, the order of lists included, and so are the refusals.
Inputs are left alone; the result shares with them what the patch did not touch.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.apiserver.gotext import go_type, go_value, json_kind
from kubesched.apiserver.schema import Field, Type, shape
from kubesched.apiserver.status import ApiError, bad_request, plain, unprocessable

Json = dict[str, Any]
Mark = tuple[type, Any]

DIRECTIVE, RETAIN = "$patch", "$retainKeys"
ORDER, REMOVE = "$setElementOrder", "$deleteFromPrimitiveList"

# The one struct whose tag says that a patch replaces it.
_REPLACED = frozenset({("policy.PodDisruptionBudgetSpec", "selector")})

_encode_sorted = msgspec.json.Encoder(order="sorted").encode

_BAD_RETAIN = "invalid patch format of retainKeys"
_BAD_ORDER = "invalid patch format of setElementOrder list"
_BAD_REMOVE = "invalid patch format of primitive list"


def strategic_merge_patch(target: Json, patch: Any, struct: str) -> Json:
    """Return what the patch makes of target, an object of a built-in kind.

    Args:
        target: the object; {} for a new one.
        patch: the decoded body.
        struct: the kind's struct in the schema, "core.Pod".

    Raises 400 for a malformed patch and, as the real server does, 500 for an item without its merge key.
    """
    if not isinstance(patch, dict):
        raise bad_request(f"json: cannot unmarshal {json_kind(patch)} into Go value of type map[string]interface {{}}")
    return _merge_map(target, patch, Type(struct))


# Maps ------------------------------------------------------------------------------------------------------------


def _merge_map(original: Json, patch: Json, kind: Type | None) -> Json:
    if DIRECTIVE in patch:
        directive = patch[DIRECTIVE]
        if directive == "replace":
            rest: Json = _taken_as_is(patch)
            return rest
        if directive == "delete":
            return {}
        raise _bad_directive(directive, patch)
    result = dict(original)
    todo = dict(patch)
    if RETAIN in todo:
        _retain(result, todo)
    for field in [field for field in todo if field.startswith(ORDER)]:
        _reorder(result, todo, field, kind)
    for field, value in todo.items():
        if field.startswith(REMOVE):
            _remove_values(result, _directed(field, REMOVE, _BAD_REMOVE), value)
        elif value is None:
            result.pop(field, None)
        else:
            _merge_field(result, field, value, kind)
    return result


def _merge_field(result: Json, field: str, value: Any, kind: Type | None) -> None:
    below, meta = _child(kind, field)
    old = result.get(field)
    if isinstance(value, dict) and isinstance(old, dict):
        replaced = kind is not None and (kind.base, field) in _REPLACED and not kind.containers
        result[field] = _taken_as_is(value) if replaced else _merge_map(old, value, below)
    elif isinstance(value, list) and isinstance(old, list):
        merges = meta is not None and meta.merge
        key = meta.merge_key if meta is not None else ""
        result[field] = _merge_list(old, value, below, key) if merges else _taken_as_is(value)
    elif isinstance(value, dict) and DIRECTIVE in value:
        result.pop(field, None)
    else:
        result[field] = _without_directives(value)


def _retain(result: Json, todo: Json) -> None:
    """Drop what $retainKeys does not name; everything the patch sets must be named."""
    kept = todo.pop(RETAIN)
    if not isinstance(kept, list):
        raise bad_request(_BAD_RETAIN)
    for field, value in todo.items():
        if value is not None and not field.startswith((REMOVE, ORDER)) and field not in kept:
            raise bad_request(_BAD_RETAIN)
    for field in [field for field in result if field not in kept]:
        del result[field]


def _remove_values(result: Json, field: str, values: Any) -> None:
    old = result.get(field)
    if values is None:
        result.pop(field, None)
    elif isinstance(old, list) and isinstance(values, list):
        if not old and not values:
            return
        if isinstance(_one_type(old, values), dict):
            raise plain("cannot merge lists without merge key for struct")
        gone = {_mark(value) for value in values}
        result[field] = [value for value in old if _mark(value) not in gone]


def _child(kind: Type | None, field: str) -> tuple[Type | None, Field | None]:
    """The type below a field, list items for a list, and what the schema says about the field."""
    if kind is None:
        return None, None
    if kind.containers:
        return (kind.element, None) if kind.containers[0] == "{}" else (None, None)
    if not kind.is_struct:
        return None, None
    known = shape(kind.base).fields.get(field)
    if known is None:
        return None, None
    below = known.type
    if below.containers and below.containers[0] == "[]":
        below = below.element
    return below, known


# Lists -----------------------------------------------------------------------------------------------------------


def _merge_list(old: list[Any], patch: list[Any], item: Type | None, key: str) -> list[Any]:
    if not old and not patch:
        return old
    if isinstance(_one_type(old, patch), dict):
        if not key:
            raise plain("cannot merge lists without merge key for struct")
        old, patch = _obey_directives(old, patch, key)
        merged = _merge_items(old, patch, item, key)
    else:
        merged = list({_mark(value): value for value in (*old, *patch)}.values())
    return _arrange(merged, patch, old, key)


def _obey_directives(old: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Take the directives out of a list of maps: items to delete, or the order to replace all."""
    rest, doomed, replaced = [], set(), False
    for value in patch:
        if DIRECTIVE not in value:
            rest.append(value)
            continue
        match value[DIRECTIVE]:
            case "delete":
                doomed.add(_mark(_key_of(value, key)))
            case "replace":
                replaced = True
            case "merge":
                raise plain("merging lists cannot yet be specified in the patch")
            case directive:
                raise _bad_directive(directive, value)
    if replaced:
        return _taken_as_is(rest), []
    return [item for item in old if key not in item or _mark(item[key]) not in doomed], rest


def _merge_items(old: list[Any], patch: list[Any], item: Type | None, key: str) -> list[Any]:
    merged = list(old)
    places = _places(merged, key)
    for value in patch:
        mark = _mark(_key_of(value, key))
        at = places.get(mark)
        if at is None:
            places[mark] = len(merged)
            merged.append(_taken_as_is(value))
        else:
            merged[at] = _merge_map(merged[at], value, item)
    return merged


def _reorder(result: Json, todo: Json, directive: str, kind: Type | None) -> None:
    """Merge a list that comes with its order: the order wins over the patch's own, that over the object's."""
    order = todo.pop(directive)
    field = _directed(directive, ORDER, _BAD_ORDER)
    if not isinstance(order, list):
        raise _bad_argument([], order)
    item, meta = _child(kind, field)
    key = meta.merge_key if meta is not None else ""
    merges = meta is not None and meta.merge
    old, patch = result.get(field), todo.get(field)
    for value in (old, patch):
        if value is not None and not isinstance(value, list):
            raise _bad_argument([], value)
    if old is None and patch is None:
        return
    _check_order(patch or [], order, key)
    if patch is None:
        merged: list[Any] = old or []
    elif old is None:
        merged = _without_directives(patch)
    else:
        merged = _merge_list(old, patch, item, key) if merges else _taken_as_is(patch)
    todo.pop(field, None)
    result[field] = _arrange(merged, order, old or [], key)


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """What a patch lists must come in the order it demands."""
    if not patch or not order:
        return
    if key:
        _check_maps(patch)
        _check_maps(order)
    listed = [value for value in patch if not (isinstance(value, dict) and value.get(DIRECTIVE) == "delete")]
    index = turn = 0
    while index < len(listed) and turn < len(order):
        value = listed[index]
        # Kept from the real server: other directives are passed over, but not behind the last item of the order.
        if isinstance(value, dict) and DIRECTIVE in value:
            index += 1
            continue
        index += _name(value, key) == _name(order[turn], key)
        turn += 1
    if index < len(listed):
        raise plain(f"The order in patch list:\n{go_value(patch)}\n doesn't match {ORDER} list:\n{go_value(order)}\n")


def _arrange(merged: list[Any], order: list[Any], old: list[Any], key: str) -> list[Any]:
    """Bring a merged list into order: what `order` lists as it lists it, the rest as it was, woven together."""
    places, listed = _places(old, key), _places(order, key)
    ours = [value for value in merged if _name(value, key) in listed]
    theirs = [value for value in merged if _name(value, key) not in listed]
    ours.sort(key=lambda value: listed[_name(value, key)])
    theirs.sort(key=lambda value: places.get(_name(value, key), len(old)))
    result: list[Any] = []
    left = 0
    for value in ours:
        # One of theirs goes first where the object had both and had it before.
        at = places.get(_name(value, key), -1)
        while left < len(theirs) and places.get(_name(theirs[left], key), at) < at:
            result.append(theirs[left])
            left += 1
        result.append(value)
    return result + theirs[left:]


def _places(values: list[Any], key: str) -> dict[Mark, int]:
    """Where each value (or, in lists of maps, each key) first stands."""
    places: dict[Mark, int] = {}
    if key:
        _check_maps(values)
    for index, value in enumerate(values):
        places.setdefault(_name(value, key), index)
    return places


def _name(value: Any, key: str) -> Mark:
    """What a list's items are told apart by: their merge key, or themselves."""
    if not key:
        return _mark(value)
    _check_maps([value])
    return _mark(_key_of(value, key))


def _mark(value: Any) -> Mark:
    """A hashable stand-in for a JSON value; 1, 1.0 and true are three values."""
    return type(value), (_encode_sorted(value) if isinstance(value, dict | list) else value)


def _without_directives(value: Any) -> Any:
    """What a patch sets where nothing was: directives and nulls have nothing to act on, and go with all they hold."""
    if isinstance(value, dict):
        return {
            field: _without_directives(below)
            for field, below in value.items()
            if below is not None
            and not field.startswith((RETAIN, ORDER, REMOVE))
            and not (isinstance(below, dict) and DIRECTIVE in below)
        }
    if isinstance(value, list):
        return [_without_directives(below) for below in value if not (isinstance(below, dict) and DIRECTIVE in below)]
    return value


def _taken_as_is(value: Any) -> Any:
    """What a patch puts in as a whole (a new item, a replaced map): directives in it are just unknown fields.

    So a `{"$patch": "delete", "name": "A"}` below a new container makes an A, as it does in the real server.
    """
    if isinstance(value, dict):
        return {
            field: _taken_as_is(below)
            for field, below in value.items()
            if below is not None and not field.startswith((DIRECTIVE, RETAIN, ORDER, REMOVE))
        }
    if isinstance(value, list):
        return [_taken_as_is(below) for below in value]
    return value


# Refusals --------------------------------------------------------------------------------------------------------


def _one_type(*lists: list[Any]) -> Any:
    """Return an item standing for all, which must be of one type and no lists."""
    items = [item for values in lists for item in values]
    first = items[0]
    if isinstance(first, list):
        raise unprocessable()
    if any(type(item) is not type(first) for item in items):
        raise plain(f"list element types are not identical: {go_value(list(lists))}")
    return first


def _check_maps(values: list[Any]) -> None:
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            raise plain(f"value for key {index} is not a map")


def _key_of(value: Json, key: str) -> Any:
    if key not in value:
        raise plain(f"map: {go_value(value)} does not contain declared merge key: {key}")
    return value[key]


def _directed(directive: str, prefix: str, refusal: str) -> str:
    """The field that a directive such as $setElementOrder/containers is about."""
    head, slash, field = directive.partition("/")
    if head != prefix or not slash:
        raise bad_request(refusal)
    return field


def _bad_directive(directive: Any, patch: Json) -> ApiError:
    shown = directive if isinstance(directive, str) else f"%!s({go_type(directive)}={go_value(directive)})"
    return plain(f"unknown patch type: {shown} in map: {go_value(patch)}")


def _bad_argument(expected: Any, actual: Any) -> ApiError:
    return plain(f"expected a {go_type(expected)}, but received a {go_type(actual)}")
