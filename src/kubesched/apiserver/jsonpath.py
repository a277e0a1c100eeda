"""The JSONPath that CustomResourceDefinitions use to point into objects: printer columns, scale, selectable fields.

`.spec.size`, `.spec.parts[0].name`, `.status.conditions[?(@.type=="Ready")].status`, `.spec.items[*].name` and
`.metadata.labels['a.b']` are understood, which is what is found in practice.  A path is compiled once; values come
out in the order of the document.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_STEP = re.compile(
    r"""\.(?P<name>[\w-]+(?:\\\.[\w-]+)*)
      |\[(?P<index>-?\d+)\]
      |\[(?P<all>\*)\]
      |\.(?P<star>\*)
      |\['(?P<quoted>[^']*)'\]
      |\["(?P<double>[^"]*)"\]
      |\[\?\(\s*@\.(?P<key>[\w.-]+)\s*(?P<op>==|!=)\s*(?P<value>"[^"]*"|'[^']*'|[\w.+-]+)\s*\)\]""",
    re.VERBOSE,
)


class BadPath(ValueError):
    """Text that is no JSONPath, or none of those understood here."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step: a name, an index, every item, or the items for which a condition holds."""

    kind: str
    name: str = ""
    index: int = 0
    value: str = ""
    equal: bool = True


@functools.lru_cache(maxsize=1024)
def compile_path(text: str) -> tuple[Step, ...]:
    """Read a path; a leading "$" or "{…}" makes no difference."""
    path = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    if path and not path.startswith((".", "[")):
        path = f".{path}"
    steps: list[Step] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise BadPath(f"cannot read JSONPath {text!r} at {path[at:]!r}")
        steps.append(_step(match))
        at = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> Step:
    part = match.groupdict()
    if part["key"] is not None:
        return Step("filter", part["key"], value=part["value"].strip("\"'"), equal=part["op"] == "==")
    if part["index"] is not None:
        return Step("index", index=int(part["index"]))
    if part["all"] is not None or part["star"] is not None:
        return Step("all")
    name = part["name"] or part["quoted"] or part["double"] or ""
    return Step("name", name.replace("\\.", "."))


def values(obj: Any, steps: tuple[Step, ...]) -> Iterator[Any]:
    """Yield what a compiled path finds."""
    if not steps:
        yield obj
        return
    step, rest = steps[0], steps[1:]
    if step.kind == "name":
        if isinstance(obj, dict) and step.name in obj:
            yield from values(obj[step.name], rest)
    elif step.kind == "index":
        if isinstance(obj, list) and -len(obj) <= step.index < len(obj):
            yield from values(obj[step.index], rest)
    else:
        for item in obj if isinstance(obj, list) else obj.values() if isinstance(obj, dict) else ():
            if step.kind == "all" or _holds(item, step):
                yield from values(item, rest)


def _holds(item: Any, step: Step) -> bool:
    value = item
    for name in step.name.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        return False
    shown = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return (shown == step.value) is step.equal


def names(text: str) -> tuple[str, ...]:
    """The path as plain field names, for paths that may have nothing else."""
    steps = compile_path(text)
    if any(step.kind != "name" for step in steps):
        raise BadPath(f"JSONPath {text!r} may only hold field names")
    return tuple(step.name for step in steps)
