"""Which objects, fields, nodes and taints a selector speaks of.

Kubernetes asks "is it one of these?" in four dialects: label selectors, field selectors, node selector terms, and
tolerations.  Label selectors live in `labels` and names in `names`; both are offered here too, so that whoever
matches anything needs one import.

A malformed selector raises `SelectorError`, except in node selector terms: there a broken term never matches and
says why in `error`, because its siblings still count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kubesched.api.labels import (
    DOES_NOT_EXIST,
    EVERYTHING,
    EXISTS,
    GT,
    IN,
    LT,
    NOT_IN,
    NOTHING,
    Expressions,
    Requirement,
    Selector,
    SelectorError,
    aggregate,
    compile_label_selector,
    int64,
    listed,
    parse_selector,
    quoted,
    requirement_faults,
    selector_from_map,
)
from kubesched.api.names import (
    check_dns1123_label,
    check_dns1123_subdomain,
    check_label_key,
    check_label_value,
    check_qualified_name,
)

if TYPE_CHECKING:
    from kubesched.api.objects import NodeSelector, NodeSelectorTerm, Taint, Toleration

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "FieldRequirement",
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
        requirement = FieldRequirement(split[1], _unescaped(split[3]), split[2] != "!=")
        if requirement.field or requirement.value:  # "=" alone asks for nothing
            requirements.append(requirement)
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
        return aggregate(self.errors) if self.errors else None

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


@lru_cache(maxsize=16384)
def _compile_term(expressions: Expressions, match_fields: Expressions, path: str) -> NodeTerm:
    dot = f"{path}." if path else ""
    errors: list[str] = []
    requirements, fields = [], []
    for at, (key, operator, values) in enumerate(expressions):
        place = f"{dot}matchExpressions[{at}]"
        if operator not in _NODE_OPERATORS:
            errors.append(_unsupported(place, operator, _NODE_OPERATORS))
        elif faults := requirement_faults(key, operator, values, place):
            errors += faults
        else:
            requirements.append(Requirement(key, operator, tuple(sorted(set(values)))))
    for at, (key, operator, values) in enumerate(match_fields):
        place = f"{dot}matchFields[{at}]"
        if operator not in _FIELD_OPERATORS:
            errors.append(_unsupported(place, operator, _FIELD_OPERATORS))
        elif len(values) != 1:
            errors.append(f"{place}.values: Invalid value: {listed(values)}: must have one element")
        else:
            fields.append(Requirement(key, operator, values))
    if errors:
        return NodeTerm(errors=tuple(errors))
    return NodeTerm(tuple(requirements), tuple(fields))


def _unsupported(place: str, operator: str, supported: Iterable[str]) -> str:
    names = ", ".join(map(quoted, supported))
    return f"{place}.operator: Unsupported value: {quoted(operator)}: supported values: {names}"


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
    return int64(text) if _PLAIN_INTEGER.fullmatch(text) else None


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
