"""Answer `as=Table`: objects as rows of cells, with the columns of the real server.

kubectl prints what it is given; only which columns are wide, and times in `date` columns, are left to it.  Built-in
kinds have their rows in kubesched.apiserver.printers, custom resources the columns of their definition.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from kubesched.apiserver import jsonpath, printers, printers_workload
from kubesched.apiserver.cells import Row, since
from kubesched.apiserver.kinds import Resource

Json = dict[str, Any]

META = "meta.k8s.io/v1"
_TYPES = {"#": "integer", "?": "boolean", "@": "date"}


@functools.cache
def columns(line: str) -> tuple[Json, ...]:
    """The columnDefinitions of a line of printers.COLUMNS."""
    found = []
    for text in line.split(", "):
        wide, text = text.startswith("+"), text.removeprefix("+")
        is_name, text = text.startswith("!"), text.removeprefix("!")
        kind = _TYPES.get(text[0], "string")
        name = text[1:] if text[0] in _TYPES else text
        found.append(
            {
                "name": name,
                "type": kind,
                "format": "name" if is_name else "",
                "description": "",
                "priority": 1 if wide else 0,
            }
        )
    return tuple(found)


def table(resource: Resource, objects: Sequence[Json], meta: Json, include: str, now: int) -> Json:
    """Return the Table of some objects; include is includeObject: None, Metadata or Object."""
    if resource.is_custom:
        definitions, row = resource.definition.columns()
    else:
        line, row = printers.COLUMNS.get(resource.storage, printers.DEFAULT)
        definitions = columns(line)
    rows = []
    for obj in objects:
        entry: Json = {"cells": row(obj, now)}
        if resource.shape == "core.Pod":
            conditions = printers_workload.pod_conditions(obj)
            if conditions:
                entry["conditions"] = conditions
        entry["object"] = _included(obj, include)
        rows.append(entry)
    return {
        "kind": "Table",
        "apiVersion": META,
        "metadata": meta,
        "columnDefinitions": list(definitions),
        "rows": rows,
    }


def _included(obj: Json, include: str) -> Json | None:
    if include == "None":
        return None
    if include == "Object":
        return obj
    return {"kind": "PartialObjectMetadata", "apiVersion": META, "metadata": obj["metadata"]}


def custom_cell(found: Sequence[Any], kind: str) -> Any:
    """The cell of a printer column: nothing found is null, several values are joined."""
    if not found:
        return None
    if len(found) > 1:
        return ",".join(_text(value) for value in found)
    value = found[0]
    if kind == "string":
        return _text(value)
    if kind == "integer":
        return value if isinstance(value, int) else None
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def custom_columns(declared: Sequence[Json]) -> tuple[tuple[Json, ...], Row]:
    """Columns and row function from a definition's additionalPrinterColumns."""
    head = columns("!Name")
    found = [
        {
            "name": column["name"],
            "type": column["type"],
            "format": column.get("format", ""),
            "description": column.get("description", ""),
            "priority": column.get("priority", 0),
        }
        for column in declared
    ]
    paths = [(jsonpath.compile_path(column["jsonPath"]), column["type"]) for column in declared]

    def row(obj: Json, now: int) -> list[Any]:
        cells: list[Any] = [obj["metadata"]["name"]]
        for path, kind in paths:
            cell = custom_cell(list(jsonpath.values(obj, path)), kind)
            if kind == "date" and cell is not None:
                cell = since(cell, now) if isinstance(cell, str) else None
            cells.append(cell)
        return cells

    return (*head, *found), row
