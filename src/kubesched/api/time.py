"""Instants and durations as integers, and the two texts Kubernetes writes them in.

A scheduler compares times, adds them and sorts by them; it never needs a calendar.  So an Instant is nanoseconds
since 1970 in UTC and a Duration is nanoseconds, both plain ints: exact, ordered, hashable, and the same in every
world.  Only the border has calendars: RFC 3339 as `metav1.Time` and `metav1.MicroTime` write it, and durations as
Go prints and reads them ("1m30s").

Nothing here asks what time it is.
"""

from __future__ import annotations

import datetime
import math
import re
from functools import lru_cache
from typing import Final, NewType

__all__ = [
    "Duration",
    "Instant",
    "format_duration",
    "format_micro",
    "format_rfc3339",
    "milliseconds",
    "minutes",
    "parse_duration",
    "parse_rfc3339",
    "seconds",
]

Instant = NewType("Instant", int)
Duration = NewType("Duration", int)

_MICROSECOND: Final = 1_000
_MILLISECOND: Final = 1_000_000
_SECOND: Final = 1_000_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_MAX_DURATION: Final = (1 << 63) - 1
_EPOCH_DAY: Final = datetime.date(1970, 1, 1).toordinal()
_LAST_SECOND: Final = (datetime.date.max.toordinal() - _EPOCH_DAY + 1) * 86_400 - 1
_FIRST_SECOND: Final = (1 - _EPOCH_DAY) * 86_400


# ── durations ────────────────────────────────────────────────────────────────────────────────────────────────


def milliseconds(count: int | float) -> Duration:
    return _scaled(count, _MILLISECOND)


def seconds(count: int | float) -> Duration:
    return _scaled(count, _SECOND)


def minutes(count: int | float) -> Duration:
    return _scaled(count, _MINUTE)


def _scaled(count: int | float, unit: int) -> Duration:
    if isinstance(count, float) and not math.isfinite(count):
        raise ValueError(f"a duration must be a finite number, not {count}")
    return Duration(round(count * unit))


def format_duration(duration: Duration) -> str:
    """Print as Go does: "1m0s", "9s", "1.5s", "100ms", "0s"."""
    sign, size = ("-", -duration) if duration < 0 else ("", int(duration))
    if size == 0:
        return "0s"
    for unit, name in ((_MICROSECOND, "ns"), (_MILLISECOND, "µs"), (_SECOND, "ms")):
        if size < unit:
            step = 1 if name == "ns" else unit // 1_000
            return f"{sign}{_decimal(size, step)}{name}"
    whole_minutes, rest = divmod(size, _MINUTE)
    text = f"{_decimal(rest, _SECOND)}s"
    if whole_minutes:
        hours, odd_minutes = divmod(whole_minutes, 60)
        text = f"{odd_minutes}m{text}"
        if hours:
            text = f"{hours}h{text}"
    return sign + text


def _decimal(amount: int, unit: int) -> str:
    """`amount / unit` exactly, unit being a power of ten, without trailing zeros."""
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    width = len(str(unit)) - 1
    return f"{whole}.{rest:0{width}d}".rstrip("0")


_UNITS: Final = {
    "ns": 1,
    "us": _MICROSECOND,
    "µs": _MICROSECOND,  # U+00B5, the micro sign
    "μs": _MICROSECOND,  # U+03BC, the Greek letter
    "ms": _MILLISECOND,
    "s": _SECOND,
    "m": _MINUTE,
    "h": _HOUR,
}
_PART: Final = re.compile(r"([0-9]*)(\.?)([0-9]*)([^0-9.]+)")


@lru_cache(maxsize=1024)
def parse_duration(text: str) -> Duration:
    """Read a duration as Go does: "10s", "1h2m3.5s", "300ms", "-1.5h", "0"."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return Duration(0)
    total, at = 0, 0
    while at < len(body) and total <= _MAX_DURATION + 1:
        part = _PART.match(body, at)
        if part is None or not (part[1] or part[3]):
            break
        unit = _UNITS.get(part[4])
        if unit is None:
            known = ", ".join(_UNITS)
            raise ValueError(f"duration {_shown(text)} has the unknown unit {_shown(part[4])}; the units are {known}")
        total += _whole(part[1]) * unit + _fraction(part[3], unit)
        at = part.end()
    negative = text[:1] == "-"
    if total > _MAX_DURATION + negative:
        raise ValueError(f"duration {_shown(text)} is longer than 2^63-1 nanoseconds (about 292 years)")
    if at < len(body) or not body:
        raise ValueError(f"{_shown(text)} is not a duration; write numbers with units, such as 10s, 1h2m3.5s or 300ms")
    return Duration(-total if negative else total)


def _whole(digits: str) -> int:
    """The part before the point; what has too many digits for a duration is simply too much."""
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= 19 else _MAX_DURATION + 2


def _fraction(digits: str, unit: int) -> int:
    """The part behind the point in nanoseconds, cut off where and as Go cuts it."""
    amount, scale = 0, 1.0
    for digit in digits:
        longer = amount * 10 + int(digit)
        if amount > _MAX_DURATION // 10 or longer > _MAX_DURATION + 1:
            break
        amount, scale = longer, scale * 10.0
    return int(float(amount) * (float(unit) / scale))


# ── instants ─────────────────────────────────────────────────────────────────────────────────────────────────

_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)


@lru_cache(maxsize=65536)
def parse_rfc3339(text: str) -> Instant:
    """Read a timestamp as Kubernetes does; digits behind the ninth of a fraction are cut off."""
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise ValueError(f"{_shown(text)} is not an RFC 3339 time such as 2026-03-01T12:30:00Z")
    year, month, day, hour, minute, second, fraction, sign, ahead_hours, ahead_minutes = found.groups()
    try:
        days = datetime.date(int(year), int(month), int(day)).toordinal() - _EPOCH_DAY
    except ValueError:
        raise ValueError(f"time {_shown(text)} names a day that no calendar has") from None
    if int(hour) > 23 or int(minute) > 59 or int(second) > 59:
        raise ValueError(f"time {_shown(text)} has an hour over 23, a minute over 59 or a second over 59")
    whole = days * 86_400 + int(hour) * 3_600 + int(minute) * 60 + int(second)
    if sign is not None:
        if int(ahead_hours) > 24 or int(ahead_minutes) > 60:
            raise ValueError(f"time {_shown(text)} has an offset from UTC of more than a day")
        ahead = int(ahead_hours) * 3_600 + int(ahead_minutes) * 60
        whole += ahead if sign == "-" else -ahead
    return Instant(whole * _SECOND + (int(fraction[:9].ljust(9, "0")) if fraction else 0))


def format_rfc3339(instant: Instant) -> str:
    """Whole seconds and Z, as `metav1.Time` is written; the fraction is cut off."""
    whole = instant // _SECOND
    return _second_text(whole) + "Z"


def format_micro(instant: Instant) -> str:
    """Six digits and Z, as `metav1.MicroTime` is written; the rest of the fraction is cut off."""
    whole, rest = divmod(instant, _SECOND)
    return f"{_second_text(whole)}.{rest // _MICROSECOND:06d}Z"


def format_nano(instant: Instant) -> str:
    """Nine digits and Z: nothing is cut off, so reading it gives the same instant."""
    whole, rest = divmod(instant, _SECOND)
    return f"{_second_text(whole)}.{rest:09d}Z"


@lru_cache(maxsize=4096)
def _second_text(whole: int) -> str:
    if not _FIRST_SECOND <= whole <= _LAST_SECOND:
        raise ValueError(f"an instant {whole} seconds from 1970 is outside the years 1 to 9999")
    days, rest = divmod(whole, 86_400)
    date = datetime.date.fromordinal(days + _EPOCH_DAY)
    return f"{date.year:04d}-{date.month:02d}-{date.day:02d}T{rest // 3_600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"


def _shown(text: str) -> str:
    """The text in quotes, cut where it stops being helpful."""
    return repr(text if len(text) <= 64 else text[:61] + "...")
