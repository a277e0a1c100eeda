"""Changing a field of a scenario before it is read: `latency.write=50ms`, `workloads[0].count=500`, `cluster[+]={…}`.

A path leads through mappings by name and through lists by number; `[+]` is one more item.  What is not there yet is
made, so a misspelt name is found where all misspelt names are found, when the scenario is read.  The value is YAML.
"""

from __future__ import annotations

import re
from typing import Any

from kubesched.config.faults import Fault, InvalidConfiguration, shown
from kubesched.config.yaml import List, Map, parse

_STEP = re.compile(r"\.?(?P<key>[^.\[\]=]+)|\[(?P<index>\d+|\+)\]")


def changed(tree: Any, change: str) -> Any:
    """A document with one field set; the document itself is changed where it can be.  Raises InvalidConfiguration."""
    path, equals, text = change.partition("=")
    steps = _steps(path)
    if not equals or not steps:
        raise _wrong(change, "is no change", "write PATH=VALUE, such as seed=7 or workloads[0].count=500")
    value = parse(text.encode("utf-8", "surrogateescape"))
    if tree is None:
        tree = Map()
    here = tree
    for at, step in enumerate(steps[:-1]):
        inner = _inner(here, step, change)
        if not isinstance(inner, (dict, list)):
            inner = List() if isinstance(steps[at + 1], int) or steps[at + 1] == "+" else Map()
            _put(here, step, inner, change)
        here = inner
    _put(here, steps[-1], value, change)
    return tree


def _steps(path: str) -> list[str | int]:
    """The names and numbers of a path; empty for what is no path."""
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return []
        index = found["index"]
        steps.append(found["key"] if index is None else index if index == "+" else int(index))
        at = found.end()
    return steps


def _inner(here: Any, step: str | int, change: str) -> Any:
    if isinstance(step, int):
        items = _list(here, change)
        if step >= len(items):
            raise _wrong(change, f"has no item [{step}]: there are {len(items)}", "[+] adds one")
        return items[step]
    return None if step == "+" else _mapping(here, change).get(step)


def _put(here: Any, step: str | int, value: Any, change: str) -> None:
    if step == "+":
        _list(here, change).append(value)
    elif isinstance(step, int):
        _inner(here, step, change)
        here[step] = value
    else:
        _mapping(here, change)[step] = value


def _list(here: Any, change: str) -> list[Any]:
    if not isinstance(here, list):
        raise _wrong(change, "has a number where the scenario has a mapping", "name the field")
    return here


def _mapping(here: Any, change: str) -> dict[str, Any]:
    if not isinstance(here, dict):
        raise _wrong(change, "has a name where the scenario has a list", "say which item, as [0], or [+] for one more")
    return here


def _wrong(change: str, problem: str, remedy: str) -> InvalidConfiguration:
    return InvalidConfiguration([Fault("", f"--set {shown(change)} {problem}", remedy)])
