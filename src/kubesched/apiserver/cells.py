"""What stands in the cells of a table: durations, selectors, labels and containers as kube-apiserver words them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.api.time import parse_rfc3339

Json = dict[str, Any]
Cells = list[Any]
Row = Callable[[Json, int], Cells]

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86400, 365 * 86400


def selector_text(selector: Any) -> str:
    """A selector as Scale shows it: the string form."""
    if isinstance(selector, str):
        return selector
    if not isinstance(selector, dict):
        return ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for one in selector.get("matchExpressions") or ():
        key, values = one.get("key", ""), ",".join(sorted(one.get("values") or ()))
        shown = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }.get(one.get("operator", ""), "")
        parts.append((key, shown))
    return ",".join(text for _, text in sorted(parts))


def human_duration(seconds: int) -> str:
    """A span of time as kubectl users know it: 85s, 3m20s, 47h, 5d3h, 2y10d."""
    if seconds < 0:
        return "0s" if seconds >= -1 else "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    minutes, hours, days = seconds // _MINUTE, seconds // _HOUR, seconds // _DAY
    if minutes < 10:
        rest = seconds % _MINUTE
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        rest = minutes % 60
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        rest = hours % 24
        return f"{days}d{rest}h" if rest else f"{days}d"
    if days < 365 * 2:
        return f"{days}d"
    years, rest = days // 365, days % 365
    if days < 365 * 8:
        return f"{years}y{rest}d" if rest else f"{years}y"
    return f"{years}y"


def since(timestamp: str | None, now: int) -> str:
    """The age of something that happened at a timestamp."""
    if not timestamp:
        return UNKNOWN
    return human_duration((now - parse_rfc3339(timestamp)) // 1_000_000_000)


def age(obj: Json, now: int) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def or_none(value: Any, default: str = NONE) -> Any:
    return default if value in (None, "") else value


def labels_text(found: Json | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((found or {}).items())) or NONE


def chosen_text(selector: Json | None) -> str:
    return selector_text(selector) or NONE


def containers_text(template: Json | None) -> tuple[str, str]:
    containers = ((template or {}).get("spec") or {}).get("containers") or ()
    names = ",".join(c.get("name", "") for c in containers)
    return names, ",".join(c.get("image", "") for c in containers)


def condition_of(obj: Json, kind: str) -> Json | None:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((c for c in conditions if c.get("type") == kind), None)
