"""Kubernetes quantities ("1500m", "2Gi", "1e3") as exact integers.

A quantity on the wire is a decimal number with a suffix; a scheduler adds and compares thousands of them, and a
float that is off by one in the last place would place a pod where it does not fit.  So a quantity becomes an int at
the border, thousandths for CPU and units for everything else, rounded away from zero: who asks for a little gets a
little, never nothing.

Amounts that do not fit an int64 stop at 2^63-1.  That is where Kubernetes' own arithmetic ends; it then answers 0 or
wraps around, which would let a pod that asks for everything fit everywhere, so here the amount stays at the limit.

Work is bounded: "1e999999999" costs no more than "1".
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from kubesched.api.names import check_qualified_name

__all__ = [
    "add",
    "canonical",
    "canonical_resource",
    "compare",
    "format_milli",
    "format_units",
    "is_extended_resource",
    "is_scalar_resource",
    "parse_milli",
    "parse_units",
    "resource_amount",
]

Written: TypeAlias = str | int | float  # as JSON or YAML holds it
Style: TypeAlias = Literal["decimal", "binary", "exponent"]

MAX_AMOUNT: Final = (1 << 63) - 1
_LENGTH_MAX: Final = 256  # no honest quantity is a tenth of this
_NANO: Final = -9  # the finest place a quantity keeps
_EXACT_DIGITS: Final = 18  # numbers up to this many digits are kept as they were written
_SPREAD_MAX: Final = 10_000  # decimal places between two summands

_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_NAMES: Final = {0: "", **{exponent // 10: suffix for suffix, exponent in _BINARY.items()}}

_PATTERN: Final = re.compile(r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?")


class _Amount(NamedTuple):
    """mantissa x 10^exponent, how it was written, and its text if that is to be kept as it is."""

    mantissa: int
    exponent: int
    style: Style
    text: str | None


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=65536, typed=True)
def parse_units(quantity: Written) -> int:
    """The amount in whole units (bytes, pods, devices), rounded away from zero."""
    return _rounded(_parse(quantity), 0)


@lru_cache(maxsize=65536, typed=True)
def parse_milli(quantity: Written) -> int:
    """The amount in thousandths (milli-CPU), rounded away from zero."""
    return _rounded(_parse(quantity), -3)


def resource_amount(name: str, quantity: Written) -> int:
    """The amount as the scheduler counts this resource: thousandths of a CPU, units of all else."""
    return parse_milli(quantity) if name == "cpu" else parse_units(quantity)


def _rounded(amount: _Amount, place: int) -> int:
    """The amount as a multiple of 10^place, away from zero, within an int64."""
    mantissa, shift = amount.mantissa, amount.exponent - place
    size = abs(mantissa)
    if shift >= 0:
        size = size * 10**shift if size and shift <= 20 else (MAX_AMOUNT if size else 0)
    else:
        # Past the last digit any remainder rounds up to one, so no need to divide by more than that.
        size = -(-size // 10 ** min(-shift, _LENGTH_MAX + 20))
    size = min(size, MAX_AMOUNT)
    return -size if mantissa < 0 else size


def _parse(quantity: Written) -> _Amount:
    text = _text_of(quantity)
    found = _PATTERN.fullmatch(text)
    if found is None or not (found[2] or found[4]):
        raise ValueError(
            f"{_shown(quantity)} is not a quantity: write a number with an optional suffix "
            "(n, u, m, k, M, G, T, P, E, or Ki, Mi, Gi, Ti, Pi, Ei, or an exponent such as e3)"
        )
    negative, whole, places, suffix = found[1] == "-", found[2].lstrip("0") or "0", found[4] or "", found[5] or ""
    if suffix in _BINARY:
        amount = _binary(text, whole, places, _BINARY[suffix])
    elif suffix in _DECIMAL:
        amount = _decimal(text, whole, places, _DECIMAL[suffix], "decimal")
    else:
        amount = _decimal(text, whole, places, _exponent_of(suffix, quantity), "exponent")
    return amount._replace(mantissa=-amount.mantissa) if negative else amount


def _text_of(quantity: Written) -> str:
    if isinstance(quantity, str):
        text = quantity.strip(" \t\n\v\f\r\x85\xa0")  # an API server strips this much
    elif isinstance(quantity, bool) or not isinstance(quantity, int | float):
        raise ValueError(f"{_shown(quantity)} is not a quantity: write a number or a string such as '500m'")
    elif isinstance(quantity, float):
        if not math.isfinite(quantity):
            raise ValueError(f"{quantity} is not a quantity: the number must be finite")
        text = repr(quantity)
    else:
        text = str(quantity) if quantity.bit_length() < 3 * _LENGTH_MAX else "9" * (_LENGTH_MAX + 1)
    if len(text) > _LENGTH_MAX:
        raise ValueError(f"quantity {_shown(quantity)} is too long: at most {_LENGTH_MAX} characters are read")
    return text


def _exponent_of(suffix: str, quantity: Written) -> int:
    exponent = int(suffix[1:])
    if not -(1 << 31) <= exponent < 1 << 31:
        raise ValueError(f"quantity {_shown(quantity)} has an exponent that does not fit 32 bits")
    return exponent


def _decimal(text: str, whole: str, places: str, exponent: int, style: Style) -> _Amount:
    digits = whole + places
    scale = exponent - len(places)
    if len(digits) <= _EXACT_DIGITS and scale >= _NANO:
        # Kept from resource.Quantity: a number that looks canonical (a scale of thousands, no thousands left in the
        # digits) is printed as it was written, so "1.125" stays "1.125" while "1.25" becomes "1250m".
        keep = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        return _Amount(int(digits), scale, style, text if keep else None)
    return _to_nano(int(digits), scale, style)


def _binary(text: str, whole: str, places: str, exponent: int) -> _Amount:
    number = int(whole + places)
    if not places and len(whole) <= 14 - exponent * 3 // 10:
        return _Amount(number << exponent, 0, "binary", text if number & 7 else None)
    mantissa, scale = (number << exponent), -len(places)
    if mantissa > MAX_AMOUNT * 10**-scale:
        mantissa, scale = MAX_AMOUNT, 0
    small = mantissa < 10**-scale
    return _to_nano(mantissa, scale, "decimal" if small else "binary")


def _to_nano(mantissa: int, scale: int, style: Style) -> _Amount:
    """Round what is finer than a billionth up to one, as Kubernetes does when it reads."""
    if scale < _NANO and mantissa:
        mantissa, scale = -(-mantissa // 10 ** min(_NANO - scale, 2 * _LENGTH_MAX)), _NANO
    return _Amount(mantissa, scale, style, None)


# ── printing ─────────────────────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=16384, typed=True)
def canonical(quantity: Written) -> str:
    """The quantity as an API server prints it: "1000m" is "1", "0.5" is "500m", "1.5Gi" is "1536Mi"."""
    amount = _parse(quantity)
    return amount.text if amount.text is not None else _print(amount.mantissa, amount.exponent, amount.style)


@lru_cache(maxsize=16384, typed=True)
def canonical_resource(quantity: Written) -> str:
    """The quantity as an API server keeps it in a resource list: canonical, and nothing finer than a thousandth."""
    amount = _parse(quantity)
    if amount.exponent >= -3:
        return canonical(quantity)
    fine = 10 ** (-3 - amount.exponent)
    size = -(-abs(amount.mantissa) // fine)
    return _print(-size if amount.mantissa < 0 else size, -3, amount.style)


def format_units(units: int) -> str:
    """A whole amount in its shortest exact writing: "2Gi", "3k", "1500"."""
    decimal, binary = _print(units, 0, "decimal"), _print(units, 0, "binary")
    return binary if len(binary) < len(decimal) else decimal


def format_milli(milli: int) -> str:
    """An amount in thousandths, as an API server prints CPU: "1500m", "2"."""
    return _print(milli, -3, "decimal")


def _print(mantissa: int, exponent: int, style: Style) -> str:
    if not mantissa:
        return "0"
    sign, size = ("-", -mantissa) if mantissa < 0 else ("", mantissa)
    if style == "binary":
        whole = size * 10**exponent if exponent >= 0 else size // 10**-exponent
        if whole >= 1024 and (exponent >= 0 or not size % 10**-exponent):
            times = 0
            while times < 6 and not whole % 1024:
                whole, times = whole // 1024, times + 1
            return f"{sign}{whole}{_BINARY_NAMES[times]}"
        style = "decimal"  # nothing may be lost, and small amounts are plainer so
    while not size % 10:
        size, exponent = size // 10, exponent + 1
    # Suffixes end at E: what is larger keeps its zeros.
    target = exponent // 3 * 3 if style == "exponent" else min(exponent // 3 * 3, 18)
    size *= 10 ** (exponent - target)
    if style == "exponent":
        return f"{sign}{size}e{target}" if target else f"{sign}{size}"
    return f"{sign}{size}{_DECIMAL_NAMES[target]}"


# ── arithmetic ───────────────────────────────────────────────────────────────────────────────────────────────


def compare(left: Written, right: Written) -> int:
    """-1, 0 or 1 as left is less than, equal to or more than right; exact at any size."""
    a, b = _parse(left), _parse(right)
    sign_a, sign_b = _sign(a.mantissa), _sign(b.mantissa)
    if sign_a != sign_b or not sign_a:
        return _sign(sign_a - sign_b)
    reach_a, reach_b = _reach(a), _reach(b)
    if reach_a != reach_b:
        return sign_a if reach_a > reach_b else -sign_a
    low = min(a.exponent, b.exponent)  # the same reach: the exponents are apart by no more than the digits
    return _sign(a.mantissa * 10 ** (a.exponent - low) - b.mantissa * 10 ** (b.exponent - low))


def add(left: Written, right: Written) -> str:
    """The exact sum, printed in the style of the left summand (of the right one if the left is zero)."""
    a, b = _parse(left), _parse(right)
    style = a.style if a.mantissa else b.style
    if not (a.mantissa and b.mantissa):
        kept = a if a.mantissa else b
        return _print(kept.mantissa, kept.exponent, style)
    low = min(a.exponent, b.exponent)
    if max(a.exponent, b.exponent) - low > _SPREAD_MAX:
        raise ValueError(f"quantities {_shown(left)} and {_shown(right)} are too far apart to be added exactly")
    return _print(a.mantissa * 10 ** (a.exponent - low) + b.mantissa * 10 ** (b.exponent - low), low, style)


def _reach(amount: _Amount) -> int:
    """The decimal place above the first digit."""
    return len(str(abs(amount.mantissa))) + amount.exponent


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


# ── resource names ───────────────────────────────────────────────────────────────────────────────────────────


def is_extended_resource(name: str) -> bool:
    """Is this a resource of somebody's own, such as example.com/gpu?"""
    return (
        "/" in name
        and "kubernetes.io/" not in name
        and not name.startswith("requests.")
        and check_qualified_name("requests." + name) is None
    )


@lru_cache(maxsize=4096)
def is_scalar_resource(name: str) -> bool:
    """Does the scheduler count this resource beside cpu, memory, ephemeral-storage and pods?"""
    return (
        name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name or is_extended_resource(name)
    )


def _shown(quantity: object) -> str:
    """The value as the user wrote it, cut where it stops being helpful."""
    if isinstance(quantity, int) and quantity.bit_length() > 256:
        return "an integer of more than 256 bits"
    text = repr(quantity)
    return text if len(text) <= 64 else text[:40] + "..." + text[-10:]
