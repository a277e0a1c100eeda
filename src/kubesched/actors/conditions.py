"""Conditions: what an object says of itself, one entry for each type, with the moment it last changed its mind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubesched.api.time import Instant, format_rfc3339

Json = dict[str, Any]


def find_condition(obj: Json, type: str) -> Json | None:
    return next((c for c in (obj.get("status") or {}).get("conditions") or () if c.get("type") == type), None)


def is_true(obj: Json, type: str) -> bool:
    found = find_condition(obj, type)
    return found is not None and found.get("status") == "True"


def condition(type: str, status: str, now: Instant, reason: str = "", message: str = "", **more: Any) -> Json:
    made = {"type": type, "status": status, "lastTransitionTime": format_rfc3339(now), **more}
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    return made


def with_conditions(obj: Json, made: Iterable[Json]) -> list[Json]:
    """An object's conditions with these in place; a time of transition stays where the status did."""
    conditions = list((obj.get("status") or {}).get("conditions") or ())
    for new in made:
        for at, old in enumerate(conditions):
            if old.get("type") == new["type"]:
                if old.get("status") == new["status"] and "lastTransitionTime" in old:
                    new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
                conditions[at] = new
                break
        else:
            conditions.append(new)
    return conditions
