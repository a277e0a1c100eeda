"""Which labels, fields, nodes and taints a selector speaks of.

Kubernetes writes the same question in four dialects: label selectors in objects, `kubectl -l` strings, node selector
terms with their fields, and tolerations.  They are asked millions of times, of few different selectors, so each is
compiled once into an immutable value with a `matches` method; equal selectors are equal values and may share what
has been computed for them.

Malformed selectors raise `SelectorError` with the words kube-scheduler and kubectl users know, except node selector
terms: there a broken term only never matches, and says why in `error`, because its siblings still count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from kubesched.api.names import (
    check_dns1123_label,
    check_dns1123_subdomain,
    check_label_key,
    check_label_value,
    check_qualified_name,
)

if TYPE_CHECKING:
    from kubesched.api.objects import LabelSelector, NodeSelector, NodeSelectorTerm, Taint, Toleration

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "FieldSelector",
    "NodeMatcher",
    "NodeTerm",
    "Requirement",
    "Selector",
    "SelectorError",
    "check_dns1123_label",
    "check_dns1123_subdomain",
    "check_label_key",
    "check_label_value",
    "check_qualified_name",
    "compile_label_selector",
    "compile_node_selector",
    "compile_node_term",
    "parse_field_selector",
    "parse_selector",
    "selector_from_map",
    "tolerates",
    "untolerated",
]

_INT64_MAX: Final = (1 << 63) - 1
_INTEGER: Final = re.compile("[+-]?0*([0-9]{1,19})")


class SelectorError(ValueError):
    """A selector that means nothing; the message is a sentence that says why."""


def _int64(text: str) -> int | None:
    """The text as a 64 bit integer, or None if it is none."""
    if not _INTEGER.fullmatch(text):
        return None
    number = int(text)
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
        mine, theirs = _int64(self.values[0]), _int64(value)
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


def _faults(key: str, operator: str, values: Sequence[str], path: str, sign: str = "") -> list[str]:
    """What an API server would say of this requirement, each fault with its path."""
    dot = f"{path}." if path else ""
    faults = []
    if sentence := check_label_key(key):
        faults.append(f"{dot}key: Invalid value: {_quoted(key)}: {sentence}")
    listed = f"{dot}values: Invalid value: {_listed(values)}"
    if operator in (IN, NOT_IN):
        if sign and len(values) != 1:
            faults.append(f"{listed}: exact-match compatibility requires one single value")
        elif not values:
            faults.append(f"{listed}: for 'in', 'notin' operators, values set can't be empty")
    elif operator in (EXISTS, DOES_NOT_EXIST):
        if values:
            faults.append(f"{listed}: values set must be empty for exists and does not exist")
    else:
        if len(values) != 1:
            faults.append(f"{listed}: for 'Gt', 'Lt' operators, exactly one value is required")
        faults += [
            f"{dot}values[{at}]: Invalid value: {_quoted(value)}: "
            "for 'Gt', 'Lt' operators, the value must be an integer"
            for at, value in enumerate(values)
            if _int64(value) is None
        ]
    for at, value in enumerate(values):
        if sentence := check_label_value(value):
            faults.append(f"{dot}values[{at}][{key}]: Invalid value: {_quoted(value)}: {sentence}")
    return faults


def _requirement(key: str, operator: str, values: Sequence[str], path: str = "", sign: str = "") -> Requirement:
    faults = _faults(key, operator, values, path, sign)
    if faults:
        raise SelectorError(_aggregate(faults))
    return Requirement(key, operator, tuple(sorted(set(values))), sign)


def _aggregate(faults: Sequence[str]) -> str:
    """One fault bare, several as Kubernetes lists them, none twice."""
    once = list(dict.fromkeys(faults))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _listed(values: Sequence[str]) -> str:
    return msgspec.json.encode(list(values)).decode()


# ── label selectors ──────────────────────────────────────────────────────────────────────────────────────────


class Selector:
    """A compiled label selector: all its requirements must hold."""

    __slots__ = ("_equal", "_hash", "_other", "nothing", "requirements")

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
        self._hash = hash((nothing, self.requirements))

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
        return self.nothing == other.nothing and self.requirements == other.requirements

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return "Selector(nothing)" if self.nothing else f"Selector({str(self)!r})"


NOTHING: Final = Selector(nothing=True)
EVERYTHING: Final = Selector()

_LABEL_OPERATORS: Final = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)


def compile_label_selector(selector: LabelSelector | None) -> Selector:
    """The selector as the API defines it: None matches nothing, an empty one everything."""
    if selector is None:
        return NOTHING
    return _compile(
        tuple(sorted(selector.match_labels.items())),
        tuple((one.key, one.operator, tuple(one.values)) for one in selector.match_expressions),
    )


@lru_cache(maxsize=16384)
def _compile(
    labels: tuple[tuple[str, str], ...], expressions: tuple[tuple[str, str, tuple[str, ...]], ...]
) -> Selector:
    if not labels and not expressions:
        return EVERYTHING
    requirements = [_requirement(key, IN, (value,), sign="=") for key, value in labels]
    for key, operator, values in expressions:
        if operator not in _LABEL_OPERATORS:
            raise SelectorError(f"{_quoted(operator)} is not a valid label selector operator")
        requirements.append(_requirement(key, operator, values))
    return Selector(requirements)


def selector_from_map(labels: Mapping[str, str]) -> Selector:
    """The selector for exactly these labels, unchecked; an empty map selects everything."""
    return _from_items(tuple(sorted(labels.items()))) if labels else EVERYTHING


@lru_cache(maxsize=16384)
def _from_items(items: tuple[tuple[str, str], ...]) -> Selector:
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
            raise SelectorError(f"<nil>: Invalid value: {_quoted(key)}: {sentence}")
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
        """`(a,b)`; between two commas, and beside a bracket, stands an empty value."""
        token = self._take()
        if token != "(":
            raise SelectorError(f"found '{token}' expected: '('")
        values = []
        while True:
            word = self._take() if _is_word(self._peek()) else ""
            values.append(word)
            token = self._take()
            if token == ")":
                return values
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or ')'")


def _is_word(token: str) -> bool:
    return token not in ("", "=", "==", "!=", "!", "(", ")", ",", "<", ">")


# ── field selectors ──────────────────────────────────────────────────────────────────────────────────────────


class FieldRequirement(Struct, frozen=True, gc=False):
    """A field that must (or must not) have a value; an absent field has the empty one."""

    field: str
    value: str
    equal: bool = True

    def __str__(self) -> str:
        value = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{'=' if self.equal else '!='}{value}"


class FieldSelector(Struct, frozen=True, gc=False):
    """A compiled field selector: all its requirements must hold."""

    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all((fields.get(one.field, "") == one.value) is one.equal for one in self.requirements)

    @property
    def empty(self) -> bool:
        return not self.requirements

    def exact(self, field: str) -> str | None:
        """The value that the field must have, if the selector asks for one."""
        return next((one.value for one in self.requirements if one.equal and one.field == field), None)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


_TERM: Final = re.compile(r"((?:[^\\,]|\\.)*\\?)(?:,|$)", re.DOTALL)
_SPLIT: Final = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.?)|[,=]", re.DOTALL)


@lru_cache(maxsize=4096)
def parse_field_selector(text: str) -> FieldSelector:
    """Read a field selector: `metadata.name=web,spec.nodeName!=n1`; a backslash escapes comma, equals and itself."""
    requirements = []
    for term in sorted(found[1] for found in _TERM.finditer(text) if found[1]):
        split = _SPLIT.fullmatch(term)
        if split is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        requirements.append(FieldRequirement(split[1], _unescaped(split[3]), split[2] != "!="))
    return FieldSelector(tuple(requirements))


def _unescaped(value: str) -> str:
    def plain(found: re.Match[str]) -> str:
        if found[1] is None:
            raise SelectorError(f"invalid field selector: unescaped character in value: {found[0]}")
        if found[1] not in ("\\", ",", "="):
            raise SelectorError(f"invalid field selector: invalid escape sequence: {found[0]}")
        return found[1]

    return _ESCAPE.sub(plain, value)


# ── node selectors ───────────────────────────────────────────────────────────────────────────────────────────


class NodeTerm(Struct, frozen=True, gc=False):
    """One compiled term: conditions on a node's labels and on its name, all of which must hold.

    A term without any condition matches no node, and neither does one with errors.
    """

    requirements: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.requirements or self.fields or self.errors)

    @property
    def error(self) -> str | None:
        return _aggregate(self.errors) if self.errors else None

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if self.errors or not (self.requirements or self.fields):
            return False
        for requirement in self.requirements:
            if not requirement.matches(labels):
                return False
        # A field that is not metadata.name has the empty value; a node without a name is not asked for fields.
        for field in self.fields if name else ():
            actual = name if field.key == "metadata.name" else ""
            if (actual == field.values[0]) is not (field.operator == IN):
                return False
        return True


class NodeMatcher(Struct, frozen=True, gc=False):
    """A compiled node selector: one of its terms must match.  `terms` are in the order written, empty ones too."""

    terms: tuple[NodeTerm, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return any(term.matches(labels, name) for term in self.terms)

    @property
    def error(self) -> str | None:
        """What is wrong with the first broken term, if one is."""
        return next((term.error for term in self.terms if term.errors), None)

    @property
    def errors(self) -> tuple[str, ...]:
        """All that is wrong, in order."""
        return tuple(error for term in self.terms for error in term.errors)


_NODE_OPERATORS: Final = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT)
_FIELD_OPERATORS: Final = (IN, NOT_IN)


def compile_node_selector(selector: NodeSelector, path: str = "") -> NodeMatcher:
    """Compile the terms of a node selector; errors name their place below `path`."""
    dot = f"{path}." if path else ""
    return NodeMatcher(
        tuple(
            compile_node_term(term, f"{dot}nodeSelectorTerms[{at}]")
            for at, term in enumerate(selector.node_selector_terms)
        )
    )


def compile_node_term(term: NodeSelectorTerm, path: str = "") -> NodeTerm:
    """Compile one term, as preferred affinity holds them singly."""
    return _compile_term(
        tuple((one.key, one.operator, tuple(one.values)) for one in term.match_expressions),
        tuple((one.key, one.operator, tuple(one.values)) for one in term.match_fields),
        path,
    )


_Expressions = tuple[tuple[str, str, tuple[str, ...]], ...]


@lru_cache(maxsize=16384)
def _compile_term(expressions: _Expressions, match_fields: _Expressions, path: str) -> NodeTerm:
    dot = f"{path}." if path else ""
    errors: list[str] = []
    requirements, fields = [], []
    for at, (key, operator, values) in enumerate(expressions):
        place = f"{dot}matchExpressions[{at}]"
        if operator not in _NODE_OPERATORS:
            errors.append(_unsupported(place, operator, _NODE_OPERATORS))
        elif faults := _faults(key, operator, values, place):
            errors.append(_aggregate(faults))
        else:
            requirements.append(Requirement(key, operator, tuple(sorted(set(values)))))
    for at, (key, operator, values) in enumerate(match_fields):
        place = f"{dot}matchFields[{at}]"
        if operator not in _FIELD_OPERATORS:
            errors.append(_unsupported(place, operator, _FIELD_OPERATORS))
        elif len(values) != 1:
            errors.append(f"{place}.values: Invalid value: {_listed(values)}: must have one element")
        else:
            fields.append(Requirement(key, operator, values))
    if errors:
        return NodeTerm(errors=tuple(errors))
    return NodeTerm(tuple(requirements), tuple(fields))


def _unsupported(place: str, operator: str, supported: Iterable[str]) -> str:
    names = ", ".join(map(_quoted, supported))
    return f"{place}.operator: Unsupported value: {_quoted(operator)}: supported values: {names}"


# ── taints ───────────────────────────────────────────────────────────────────────────────────────────────────


def tolerates(tolerations: Iterable[Toleration], taint: Taint, *, comparisons: bool = False) -> bool:
    """Does one of the tolerations match the taint?

    Args:
        comparisons: whether Lt and Gt are understood (feature gate TaintTolerationComparisonOperators); if not,
            a toleration with one of them matches nothing.
    """
    return any(_matches_taint(toleration, taint, comparisons) for toleration in tolerations)


def _matches_taint(toleration: Toleration, taint: Taint, comparisons: bool) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator
    if operator in ("", "Equal"):
        return toleration.value == taint.value
    if operator == EXISTS:
        return True
    if not comparisons or operator not in (GT, LT):
        return False
    bound, value = _plain_int64(toleration.value), _plain_int64(taint.value)
    if bound is None or value is None:
        return False
    return value > bound if operator == GT else value < bound


_PLAIN_INTEGER: Final = re.compile("0|-?[1-9][0-9]*")


def _plain_int64(text: str) -> int | None:
    """An integer in the one way to write it: no plus, no leading zeros."""
    return _int64(text) if _PLAIN_INTEGER.fullmatch(text) else None


def untolerated(
    taints: Iterable[Taint],
    tolerations: Sequence[Toleration],
    effects: Iterable[str] = ("NoSchedule", "NoExecute"),
    *,
    comparisons: bool = False,
) -> Taint | None:
    """The first taint with one of the effects that no toleration matches."""
    wanted = tuple(effects)
    for taint in taints:
        if taint.effect in wanted and not tolerates(tolerations, taint, comparisons=comparisons):
            return taint
    return None
