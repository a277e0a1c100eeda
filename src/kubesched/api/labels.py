"""Label selectors: compiled once, asked often.

A scheduler asks the same few selectors about very many objects, so a selector is compiled into an immutable value
with a `matches` method.  It comes from three places, and means the same from each: a `LabelSelector` in an object, a
plain map of labels, or a string as `kubectl -l` takes it.  Equal selectors are equal values, so what was computed
for one may be kept for the other.

A malformed selector raises `SelectorError`, in the words that users of kube-scheduler and kubectl know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import Struct

from kubesched.api.names import check_label_key, check_label_value

if TYPE_CHECKING:
    from kubesched.api.objects import LabelSelector

__all__ = [
    "DOES_NOT_EXIST",
    "EVERYTHING",
    "EXISTS",
    "GT",
    "IN",
    "LT",
    "NOTHING",
    "NOT_IN",
    "Requirement",
    "Selector",
    "SelectorError",
    "compile_label_selector",
    "parse_selector",
    "selector_from_map",
]

_INT64_MAX: Final = (1 << 63) - 1
_INTEGER: Final = re.compile("([+-]?)0*([0-9]{1,19})")


class SelectorError(ValueError):
    """A selector that means nothing; the message is a sentence that says why."""


@lru_cache(maxsize=65536)
def int64(text: str) -> int | None:
    """The text as a 64 bit integer, or None if it is none."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    number = int(found[1] + found[2])
    return number if -_INT64_MAX - 1 <= number <= _INT64_MAX else None


# ── requirements ─────────────────────────────────────────────────────────────────────────────────────────────

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"
GT: Final = "Gt"
LT: Final = "Lt"


class Requirement(Struct, frozen=True, gc=False):
    """One condition on one key; `values` are sorted and each is there once.

    `sign` is how an equality was written ("=", "==", "!="), or empty for the set form; it is for printing only.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()
    sign: str = ""

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        operator = self.operator
        if operator == IN:
            return value is not None and value in self.values
        if operator == NOT_IN:
            return value is None or value not in self.values
        if operator == EXISTS:
            return value is not None
        if operator == DOES_NOT_EXIST:
            return value is None
        if value is None or len(self.values) != 1:
            return False
        mine, theirs = int64(self.values[0]), int64(value)
        if mine is None or theirs is None:
            return False
        return theirs > mine if operator == GT else theirs < mine

    def __str__(self) -> str:
        operator, values = self.operator, ",".join(self.values)
        if self.sign:
            return f"{self.key}{self.sign}{values}"
        if operator == IN:
            return f"{self.key} in ({values})"
        if operator == NOT_IN:
            return f"{self.key} notin ({values})"
        if operator == EXISTS:
            return self.key
        if operator == DOES_NOT_EXIST:
            return f"!{self.key}"
        return f"{self.key}{'>' if operator == GT else '<'}{values}"


def requirement_faults(key: str, operator: str, values: Sequence[str], path: str = "") -> list[str]:
    """What an API server would say of this requirement, each fault with its path."""
    dot = f"{path}." if path else ""
    faults = []
    if sentence := check_label_key(key):
        faults.append(f"{dot}key: Invalid value: {quoted(key)}: {sentence}")
    written = f"{dot}values: Invalid value: {listed(values)}"
    if operator in (IN, NOT_IN):
        if not values:
            faults.append(f"{written}: for 'in', 'notin' operators, values set can't be empty")
    elif operator in (EXISTS, DOES_NOT_EXIST):
        if values:
            faults.append(f"{written}: values set must be empty for exists and does not exist")
    else:
        if len(values) != 1:
            faults.append(f"{written}: for 'Gt', 'Lt' operators, exactly one value is required")
        faults += [
            f"{dot}values[{at}]: Invalid value: {quoted(value)}: for 'Gt', 'Lt' operators, the value must be an integer"
            for at, value in enumerate(values)
            if int64(value) is None
        ]
    for at, value in enumerate(values):
        if sentence := check_label_value(value):
            faults.append(f"{dot}values[{at}][{key}]: Invalid value: {quoted(value)}: {sentence}")
    return faults


def _requirement(key: str, operator: str, values: Sequence[str], sign: str = "") -> Requirement:
    faults = requirement_faults(key, operator, values)
    if faults:
        raise SelectorError(aggregate(faults))
    return Requirement(key, operator, tuple(sorted(set(values))), sign)


def aggregate(faults: Sequence[str]) -> str:
    """One fault bare, several as Kubernetes lists them, none twice."""
    once = list(dict.fromkeys(faults))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"


_ESCAPES: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def quoted(text: str) -> str:
    """The text in double quotes, as Go's %q writes it."""
    body = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{body if body.isprintable() else "".join(map(_escaped, body))}"'


def _escaped(char: str) -> str:
    code = ord(char)
    if char.isprintable():
        return char
    if code < 0x80:
        return _ESCAPES.get(char, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def listed(values: Sequence[str]) -> str:
    """The values as a list in a message; none at all are null."""
    return msgspec.json.encode(values).decode() if values else "null"


# ── label selectors ──────────────────────────────────────────────────────────────────────────────────────────


class Selector:
    """A compiled label selector: all its requirements must hold."""

    __slots__ = ("_equal", "_hash", "_meaning", "_other", "nothing", "requirements")

    requirements: tuple[Requirement, ...]
    nothing: bool

    def __init__(self, requirements: Iterable[Requirement] = (), *, nothing: bool = False) -> None:
        self.requirements = () if nothing else tuple(sorted(requirements, key=lambda one: one.key))
        self.nothing = nothing
        # Nearly all requirements in the wild ask for one value; those are checked first and fastest.
        self._equal = tuple(
            (one.key, one.values[0]) for one in self.requirements if one.operator == IN and len(one.values) == 1
        )
        self._other = tuple(one for one in self.requirements if one.operator != IN or len(one.values) != 1)
        # `a=b` and `a in (b)` print differently and mean the same.
        self._meaning = (nothing, tuple((one.key, one.operator, one.values) for one in self.requirements))
        self._hash = hash(self._meaning)

    def matches(self, labels: Mapping[str, str]) -> bool:
        for key, value in self._equal:
            if labels.get(key) != value:
                return False
        for requirement in self._other:
            if not requirement.matches(labels):
                return False
        return not self.nothing

    @property
    def empty(self) -> bool:
        """Does it match everything?"""
        return not self.requirements and not self.nothing

    def with_requirements(self, *more: Requirement) -> Selector:
        """The selector that asks for this and more; nothing stays nothing."""
        return self if self.nothing or not more else Selector((*self.requirements, *more))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self._meaning == other._meaning

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Callable[..., Selector], tuple[tuple[Requirement, ...], bool]]:
        # Built anew in the process that reads it: the hash of a string is another one there.
        return _restored, (self.requirements, self.nothing)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return "Selector(nothing)" if self.nothing else f"Selector({str(self)!r})"


def _restored(requirements: tuple[Requirement, ...], nothing: bool) -> Selector:
    return Selector(requirements, nothing=nothing)


NOTHING: Final = Selector(nothing=True)
EVERYTHING: Final = Selector()

_OPERATORS: Final = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)
Items: TypeAlias = tuple[tuple[str, str], ...]
Expressions: TypeAlias = tuple[tuple[str, str, tuple[str, ...]], ...]  # key, operator, values


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """The selector as the API defines it: None matches nothing, an empty one everything."""
    if selector is None:
        return NOTHING
    return _compile(
        tuple(sorted(selector.match_labels.items())),
        tuple((one.key, one.operator, tuple(one.values)) for one in selector.match_expressions),
    )


@lru_cache(maxsize=16384)
def _compile(labels: Items, expressions: Expressions) -> Selector:
    if not labels and not expressions:
        return EVERYTHING
    requirements = [_requirement(key, IN, (value,), sign="=") for key, value in labels]
    for key, operator, values in expressions:
        if operator not in _OPERATORS:
            raise SelectorError(f"{quoted(operator)} is not a valid label selector operator")
        requirements.append(_requirement(key, operator, values))
    return Selector(requirements)


def selector_from_map(labels: Mapping[str, str]) -> Selector:
    """The selector for exactly these labels, unchecked; an empty map selects everything."""
    return _from_items(tuple(sorted(labels.items()))) if labels else EVERYTHING


@lru_cache(maxsize=16384)
def _from_items(items: Items) -> Selector:
    return Selector(Requirement(key, IN, (value,), "=") for key, value in items)


# ── the string form: kubectl -l, labelSelector= ──────────────────────────────────────────────────────────────

_TOKEN: Final = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^=!(),<> \t\r\n]+)|$)")
_SIGNS: Final = {"=": IN, "==": IN, "!=": NOT_IN, ">": GT, "<": LT, "in": IN, "notin": NOT_IN}
_END: Final = ""


@lru_cache(maxsize=4096)
def parse_selector(text: str) -> Selector:
    """Read a selector as `kubectl -l` takes it: `app=web,tier in (a,b),!legacy,cores>4`."""
    return Selector(_Reader(text).read()) if text.strip(" \t\r\n") else EVERYTHING


class _Reader:
    """Reads one selector from left to right, a token at a time."""

    def __init__(self, text: str) -> None:
        self._tokens = [found[1] or found[2] or _END for found in _TOKEN.finditer(text)]
        self._at = 0

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else _END

    def _take(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def read(self) -> list[Requirement]:
        requirements = []
        while True:
            token = self._peek()
            if token != "!" and not _is_word(token):
                raise SelectorError(f"found '{token}', expected: !, identifier, or 'end of string'")
            requirements.append(self._requirement())
            token = self._take()
            if token == _END:
                return requirements
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or 'end of string'")
            token = self._peek()
            if token != "!" and not _is_word(token):
                raise SelectorError(f"found '{token}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        try:
            return self._one()
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None

    def _one(self) -> Requirement:
        key = self._take()
        absent = key == "!"
        if absent:
            key = self._take()
        if not _is_word(key):
            raise SelectorError(f"found '{key}', expected: identifier")
        if sentence := check_label_key(key):
            raise SelectorError(f"<nil>: Invalid value: {quoted(key)}: {sentence}")
        if absent:
            return _requirement(key, DOES_NOT_EXIST, ())
        if self._peek() in (",", _END):
            return _requirement(key, EXISTS, ())
        sign = self._take()
        operator = _SIGNS.get(sign)
        if operator is None:
            raise SelectorError(f"found '{sign}', expected: in, notin, =, ==, !=, gt, lt")
        if sign in ("in", "notin"):
            return _requirement(key, operator, self._set())
        return _requirement(key, operator, (self._value(),), sign=sign if operator in (IN, NOT_IN) else "")

    def _value(self) -> str:
        token = self._peek()
        if token in (",", _END):
            return ""
        if not _is_word(token):
            raise SelectorError(f"found '{token}', expected: identifier")
        return self._take()

    def _set(self) -> list[str]:
        """`(a,b)`; beside a comma with nothing on one side stands an empty value."""
        token = self._take()
        if token != "(":
            raise SelectorError(f"found '{token}' expected: '('")
        if not _is_word(self._peek()) and self._peek() not in (",", ")"):
            raise SelectorError(f"found '{self._peek()}', expected: ',', ')' or identifier")
        values = set()
        while True:
            word = _is_word(self._peek())
            values.add(self._take() if word else "")
            token = self._take()
            if token == ")":
                return sorted(values)
            if token != ",":
                wanted = "',' or ')'" if word else "',', or identifier"
                raise SelectorError(f"found '{token}', expected: {wanted}")


def _is_word(token: str) -> bool:
    return token not in ("", "=", "==", "!=", "!", "(", ")", ",", "<", ">")
