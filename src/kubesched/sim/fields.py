"""Reading what a person wrote, field by field: every fault is kept with its path, and reading goes on.

A Fields is one mapping of a document.  Whoever reads asks it for each field by name and type; what is missing,
misspelt or of another type becomes a Fault in the one list all Fields of a document share, so that one look at a
file's faults mends them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from kubesched.api.quantity import resource_amount
from kubesched.api.time import Duration, parse_duration, seconds
from kubesched.config.faults import Fault, did_you_mean, shown

T = TypeVar("T")
Word = TypeVar("Word", bound=str)
Json = dict[str, Any]

LONGEST: Duration = seconds(100 * 365 * 86_400)  # virtual years are cheap, but calendars end
AMOUNT_MAX = (1 << 63) - 1


class Fields:
    """One mapping of a document.

    Args:
        tree: the mapping; anything else is a fault, and then every field is absent.
        path: where it is in the document.
        faults: where faults are collected.
    """

    def __init__(self, tree: Any, path: str, faults: list[Fault]) -> None:
        self.path, self.faults = path, faults
        self._asked: list[str] = []
        self._quiet = not isinstance(tree, Mapping)
        self._tree: Mapping[str, Any] = {} if self._quiet else tree
        if self._quiet:
            self.fault("", f"must be a mapping, not {described(tree)}")

    @property
    def given(self) -> bool:
        """Whether there is a mapping at all."""
        return not self._quiet

    def __contains__(self, key: str) -> bool:
        return self._tree.get(key) is not None

    @property
    def present(self) -> list[str]:
        """The fields that have a value, in the order they were written."""
        return [key for key, value in self._tree.items() if value is not None]

    def at(self, key: str) -> str:
        """The path of a field."""
        if not key or not self.path:
            return key or self.path
        return f"{self.path}{key}" if key.startswith("[") else f"{self.path}.{key}"

    def fault(self, key: str, problem: str, remedy: str = "") -> None:
        self.faults.append(Fault(self.at(key), problem, remedy))

    def done(self, *others: str) -> None:
        """All fields have been asked for (those named here as well); others are faults."""
        known = [*self._asked, *others]
        for key in self.present:
            if key not in known:
                close = did_you_mean(key, known) or f"there are: {', '.join(dict.fromkeys(known))}"
                self.fault(key, f"unknown field {shown(key)}", close)

    # ── fields by type ───────────────────────────────────────────────────────────────────────────────────────

    def raw(self, key: str) -> Any:
        """A field as it was written; None where it is absent."""
        self._asked.append(key)
        return self._tree.get(key)

    def read(self, key: str, wanted: str, convert: Callable[[Any], T | None], default: T) -> T:
        """A field of any kind.  `convert` answers None, or raises ValueError, for what is not `wanted`."""
        value = self.raw(key)
        if value is None:
            return default
        try:
            converted = convert(value)
        except ValueError as error:
            self.fault(key, str(error))
            return default
        if converted is None:
            remedy = quoted(value) if wanted == "a string" else ""
            self.fault(key, f"must be {wanted}, not {described(value)}", remedy)
            return default
        return converted

    def text(self, key: str, default: str = "") -> str:
        return self.read(key, "a string", lambda value: value if isinstance(value, str) else None, default)

    def name(self, key: str) -> str:
        """The name of an object.  A required field."""
        name = self.text(key)
        if key not in self and not self._quiet:
            self.fault(key, "a name is required")
        elif not name and isinstance(self._tree.get(key), str):
            self.fault(key, "a name is not empty")
        elif "/" in name:
            self.fault(key, f"a name has no slash: {shown(name)}", "the namespace has a field of its own")
        return name

    def truth(self, key: str, default: bool = False) -> bool:
        return self.read(key, "true or false", lambda value: value if isinstance(value, bool) else None, default)

    def integer(self, key: str, default: int, low: int, high: int) -> int:
        def convert(value: Any) -> int | None:
            if isinstance(value, bool) or not isinstance(value, int):
                return None
            if not low <= value <= high:
                raise ValueError(f"must be an integer from {low:,} to {high:,}, not {_cut(str(value))}")
            return value

        return self.read(key, "an integer", convert, default)

    def duration(self, key: str, least: int = 0) -> Duration | None:
        """A duration as Go writes it, or a number of seconds; None where it is absent."""

        def convert(value: Any) -> Duration | None:
            read = duration_of(value)
            if read is not None and read < least:
                raise ValueError(f"must be {'positive' if least else '0s or more'}, not {shown(value)}")
            return read

        nothing: Duration | None = None
        return self.read(key, "a duration such as 10s or 1h30m", convert, nothing)

    def choice(self, key: str, supported: Iterable[Word], default: Word) -> Word:
        names = {str(name): name for name in supported}

        def convert(value: Any) -> Word | None:
            if isinstance(value, str) and value not in names:
                hint = did_you_mean(value, names)
                raise ValueError(f"must be one of {', '.join(names)}, not {shown(value)}{f' ({hint})' if hint else ''}")
            return names[value] if isinstance(value, str) else None

        return self.read(key, f"one of {', '.join(names)}", convert, default)

    def mapping(self, key: str) -> Json:
        """A mapping of anything, as it was written."""
        return self.read(key, "a mapping", lambda value: dict(value) if isinstance(value, Mapping) else None, {})

    def texts(self, key: str) -> dict[str, str]:
        """A mapping of strings: labels, annotations."""
        found = self.mapping(key)
        for name, value in found.items():
            if not isinstance(value, str):
                self.fault(f"{key}.{name}", f"must be a string, not {described(value)}", quoted(value))
        return {name: value for name, value in found.items() if isinstance(value, str)}

    def items(self, key: str) -> list[Any]:
        """A list of anything; what is no list is a list of one."""
        value = self.raw(key)
        if value is None:
            return []
        return list(value) if isinstance(value, list) else [value]

    def names(self, key: str) -> list[str]:
        """One string or several."""
        found = self.items(key)
        for i, value in enumerate(found):
            if not isinstance(value, str):
                self.fault(f"{key}[{i}]", f"must be a string, not {described(value)}", quoted(value))
        return [value for value in found if isinstance(value, str)]

    def amount(self, key: str, resource: str | None = None) -> str:
        """A quantity of a resource, as text; empty where it is absent."""
        return self.read(key, "a quantity", lambda value: amount_of(resource or key, value), "")

    def amounts(self, key: str) -> dict[str, str]:
        """A mapping from resources to quantities."""
        inner = Fields(self.mapping(key), self.at(key), self.faults)
        return {name: inner.amount(name) for name in inner.present}

    def inner(self, key: str) -> Fields:
        """The fields of a mapping within this one; required."""
        value = self.raw(key)
        return Fields({} if value is None else value, self.at(key), self.faults)


def amount_of(resource: str, value: Any) -> str:
    """A quantity as text, checked.  Raises ValueError."""
    if isinstance(value, (Mapping, list)):
        raise ValueError(f"must be a quantity such as 2, 500m or 4Gi, not {described(value)}")
    amount = resource_amount(resource, value)
    if amount < 0:
        raise ValueError(f"must be 0 or more, not {shown(value)}")
    if amount >= AMOUNT_MAX:
        raise ValueError(f"{_cut(shown(value))} is more than a scheduler can count (2^63-1)")
    return str(value)


def duration_of(value: Any) -> Duration | None:
    """A duration; None for what is none at all.  Raises ValueError for one that cannot be."""
    if isinstance(value, str):
        duration = parse_duration(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        duration = seconds(value)
    else:
        return None
    if duration > LONGEST:
        raise ValueError(f"{_cut(shown(value))} is longer than a hundred years")
    return duration


def described(value: Any) -> str:
    """A value as an error message names it."""
    match value:
        case None:
            return "nothing"
        case str():
            return f"the string {_cut(shown(value))}"
        case bool() | int() | float():
            return _cut(shown(value))
        case Mapping():
            return "a mapping"
        case _:
            return "a list"


def quoted(value: Any) -> str:
    """The remedy for a scalar that should be a string; empty for what is no scalar."""
    if isinstance(value, bool):
        return "in quotes, as it was written: plain y, n, yes, no, on and off are true and false in YAML"
    return f'in quotes: "{shown(value)}"' if isinstance(value, (int, float)) else ""


def _cut(text: str) -> str:
    return text if len(text) <= 64 else f"{text[:60]}…"
