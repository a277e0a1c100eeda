"""Bring quantities and times into the one spelling in which Kubernetes stores them.

`0.5` and `500m` are the same CPU, and kube-apiserver always answers `500m`; clients compare such strings.  Times are
UTC with whole seconds, MicroTimes with six digits.  What cannot be read is refused in the words of kube-apiserver,
which is all this module adds to kubesched.api.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from kubesched.api import quantity
from kubesched.api.time import format_micro, format_rfc3339, parse_rfc3339

_LAYOUT, _MICRO_LAYOUT = "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05.000000Z07:00"
_SIX_DIGITS = re.compile(r"[.,][0-9]{6}(Z|[+-])")  # of a MicroTime, no more and no fewer
QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


class BadScalar(ValueError):
    """A quantity or a time that is none; text is what kube-apiserver says, or "" with the Go type it wanted."""

    def __init__(self, text: str, wanted: str = "") -> None:
        super().__init__(text)
        self.text, self.wanted = text, wanted


@functools.lru_cache(maxsize=4096)
def canonical_quantity(text: str) -> str:
    """Return the canonical form: "0.5" → "500m", "1024Mi" → "1Gi"."""
    try:
        return quantity.canonical(text)
    except ValueError:
        raise BadScalar(QUANTITY_RULE) from None


def canonical_time(value: Any) -> str | None:
    """Return a metav1.Time as stored: UTC, whole seconds."""
    return None if value is None else _second(value)


def canonical_micro_time(value: Any) -> str | None:
    """Return a metav1.MicroTime as stored: UTC, six digits after the point."""
    return None if value is None else _micro(value)


@functools.lru_cache(maxsize=1024)
def _second(text: Any) -> str:
    return format_rfc3339(_instant(text))


@functools.lru_cache(maxsize=1024)
def _micro(text: Any) -> str:
    instant = _instant(text, _MICRO_LAYOUT)
    if _SIX_DIGITS.search(text) is None:
        rest = text[19:]
        raise BadScalar(f'parsing time "{text}" as "{_MICRO_LAYOUT}": cannot parse "{rest}" as ".000000"')
    return format_micro(instant)


def _instant(text: Any, layout: str = _LAYOUT) -> Any:
    if type(text) is not str:
        raise BadScalar("", "string")
    try:
        return parse_rfc3339(text)
    except ValueError:
        shown = text if len(text) <= 64 else text[:64]
        raise BadScalar(f'parsing time "{shown}" as "{layout}": cannot parse "{shown}" as "2006"') from None
