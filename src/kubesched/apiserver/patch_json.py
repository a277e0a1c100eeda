"""JSON Patch (RFC 6902): a list of steps, of which all are done or none.

    [{"op": "test", "path": "/spec/replicas", "value": 2}, {"op": "replace", "path": "/spec/replicas", "value": 3}]

What the RFC leaves to "error" the real server answers with one sentence and 422, whatever went wrong;
only a body that is no list of steps is a 400.  Kept from it, because clients have come to rely on them:
`replace` of a member that is not there adds it, an index may be negative, `test` for null passes where
nothing is, and `copy` of nothing copies null.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from kubesched.apiserver.gotext import json_kind
from kubesched.apiserver.status import bad_request, too_large, unprocessable

OPERATIONS_MAX = 10_000
COPIED_BYTES_MAX = 3 * 1024 * 1024

_INDEX = re.compile(r"[+-]?[0-9]+")
_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def json_patch(target: Any, patch: Any) -> Any:
    """Return what the steps make of target, which is left alone.

    Raises 400 for what is no list of steps, 413 for too many, 422 when a step cannot be done.
    """
    return _Patcher(target).run(_steps(patch))


def _steps(patch: Any) -> list[dict[str, Any]]:
    if patch is None:
        return []
    if not isinstance(patch, list):
        what = json_kind(patch)
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {what} into Go value of type []handlers.jsonPatchOp"
        )
    for step in patch:
        if not isinstance(step, dict):
            what = json_kind(step)
            raise bad_request(
                f"error decoding patch: json: cannot unmarshal {what} into Go value of type handlers.jsonPatchOp"
            )
        for field in ("op", "path", "from"):
            value = step.get(field, "")
            if not isinstance(value, str):
                what = json_kind(value)
                raise bad_request(
                    f"error decoding patch: json: cannot unmarshal {what} into Go struct field "
                    f"jsonPatchOp.{field} of type string"
                )
    if len(patch) > OPERATIONS_MAX:
        raise too_large(f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(patch)}")
    return patch


class _Patcher:
    """A document being changed; containers are copied when they are first written to."""

    def __init__(self, target: Any) -> None:
        self.document = target
        self._own: dict[int, Any] = {}
        self._copied = 0

    def run(self, steps: list[dict[str, Any]]) -> Any:
        operations: dict[str, Callable[[dict[str, Any]], None]] = {
            "add": self._add_step,
            "remove": self._remove_step,
            "replace": self._replace_step,
            "move": self._move_step,
            "copy": self._copy_step,
            "test": self._test_step,
        }
        for step in steps:
            operation = operations.get(step.get("op", ""))
            if operation is None:
                raise unprocessable()
            operation(step)
        return self.document

    # steps -----------------------------------------------------------------------------------------

    def _add_step(self, step: dict[str, Any]) -> None:
        self._add(_path(step, "path"), step.get("value"))

    def _remove_step(self, step: dict[str, Any]) -> None:
        self._remove(_path(step, "path"))

    def _replace_step(self, step: dict[str, Any]) -> None:
        path = _path(step, "path")
        value = step.get("value")
        if not path:
            if not isinstance(value, dict | list):
                raise unprocessable()
            self.document = value
            return
        holder, key = self._holder(path, write=True)
        if isinstance(holder, dict):
            holder[key] = value
        else:
            holder[_index(key, len(holder))] = value

    def _move_step(self, step: dict[str, Any]) -> None:
        origin = _path(step, "from")
        value = self._get(origin)
        self._remove(origin)
        self._add(_path(step, "path"), value)

    def _copy_step(self, step: dict[str, Any]) -> None:
        value = self._get(_path(step, "from"))
        encoded = _encode(value)
        # Copies of copies double: without a bound, thirty steps fill the memory.
        self._copied += len(encoded)
        if self._copied > COPIED_BYTES_MAX:
            raise unprocessable()
        self._add(_path(step, "path"), msgspec.json.decode(encoded))

    def _test_step(self, step: dict[str, Any]) -> None:
        path, wanted = _path(step, "path"), step.get("value")
        found = self.document if not path else self._get(path)
        if _encode_sorted(found) != _encode_sorted(wanted):
            raise unprocessable()

    # places ----------------------------------------------------------------------------------------

    def _holder(self, path: list[str], *, write: bool) -> tuple[Any, str]:
        """Return the container a path points into, and the last part of the path."""
        if not path:
            raise unprocessable()
        here = self._owned(self.document) if write else self.document
        if write:
            self.document = here
        for part in path[:-1]:
            if isinstance(here, dict):
                key: Any = part
                if part not in here:
                    raise unprocessable()
            elif isinstance(here, list):
                key = _index(part, len(here))
            else:
                raise unprocessable()
            below = here[key]
            if write:
                below = here[key] = self._owned(below)
            here = below
        if not isinstance(here, dict | list):
            raise unprocessable()
        return here, path[-1]

    def _owned(self, container: Any) -> Any:
        """Return a container that may be written to: itself if it is ours, else a copy."""
        if not isinstance(container, dict | list):
            raise unprocessable()
        if id(container) in self._own:
            return container
        copy = container.copy()
        self._own[id(copy)] = copy
        return copy

    def _get(self, path: list[str]) -> Any:
        holder, key = self._holder(path, write=False)
        return holder.get(key) if isinstance(holder, dict) else holder[_index(key, len(holder))]

    def _add(self, path: list[str], value: Any) -> None:
        holder, key = self._holder(path, write=True)
        if isinstance(holder, dict):
            holder[key] = value
        else:
            holder.insert(len(holder) if key == "-" else _index(key, len(holder) + 1), value)

    def _remove(self, path: list[str]) -> None:
        holder, key = self._holder(path, write=True)
        if isinstance(holder, dict):
            if key not in holder:
                raise unprocessable()
            del holder[key]
        else:
            del holder[_index(key, len(holder))]


def _path(step: dict[str, Any], field: str) -> list[str]:
    """Return the parts of a JSON pointer; "" is the whole document, []."""
    text = step.get(field)
    if not isinstance(text, str):
        raise unprocessable()
    if not text:
        return []
    # What stands before the first slash is never looked at, as in the real server.
    _, *parts = text.split("/")
    if not parts:
        raise unprocessable()
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def _index(text: str, length: int) -> int:
    """Return the index a path part stands for in a list; negative ones count from its end."""
    if not _INDEX.fullmatch(text):
        raise unprocessable()
    index = int(text) if len(text) < 20 else length
    if not -length <= index < length:
        raise unprocessable()
    return index + length if index < 0 else index
