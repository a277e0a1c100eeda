"""Field selectors, node selectors and tolerations, as kube-scheduler and kubectl understand them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api import labels, names, selectors
from kubesched.api.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration
from kubesched.api.selectors import (
    FieldRequirement,
    FieldSelector,
    SelectorError,
    compile_node_selector,
    compile_node_term,
    parse_field_selector,
    tolerates,
    untolerated,
)


def test_labels_and_names_are_offered_here_too():
    for room in (labels, names):
        for name in set(room.__all__) & set(selectors.__all__):
            assert getattr(selectors, name) is getattr(room, name)
    assert set(names.__all__) <= set(selectors.__all__)


# ── field selectors ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        (",,", ""),
        ("metadata.name=x", "metadata.name=x"),
        ("spec.nodeName!=y,metadata.name==x", "metadata.name=x,spec.nodeName!=y"),
        ("a=", "a="),
        ("=b", "=b"),
        ("=", ""),
        (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
    ],
)
def test_field_selectors_are_read_and_printed_as_kubernetes_does(text, printed):
    assert str(parse_field_selector(text)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"),
        ("a=b=c", "invalid field selector: unescaped character in value: ="),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_malformed_field_selector_is_refused(text, message):
    with pytest.raises(SelectorError) as refusal:
        parse_field_selector(text)
    assert str(refusal.value) == message


def test_an_absent_field_has_the_empty_value():
    assert parse_field_selector("spec.nodeName=").matches({})
    assert not parse_field_selector("spec.nodeName!=").matches({})
    assert parse_field_selector("spec.nodeName!=n1").matches({})
    assert not parse_field_selector("spec.nodeName=n1").matches({})
    assert parse_field_selector("").empty


def test_the_value_that_a_field_must_have_can_be_asked_for():
    both = parse_field_selector("metadata.name=web,spec.nodeName!=n1")
    assert both.exact("metadata.name") == "web"
    assert both.exact("spec.nodeName") is None


field_requirements = st.builds(
    FieldRequirement,
    field=st.sampled_from(["metadata.name", "spec.nodeName"]),
    value=st.text("ab,=\\ !", max_size=6),
    equal=st.booleans(),
)


@given(st.lists(field_requirements, max_size=3))
def test_a_printed_field_selector_reads_back(some):
    read = parse_field_selector(str(FieldSelector(tuple(some))))
    assert sorted(map(str, read.requirements)) == sorted(map(str, some))


@given(st.text("ab=!,\\", max_size=12), st.dictionaries(st.sampled_from("ab"), st.sampled_from(["", "a", ","])))
def test_any_text_is_a_field_selector_or_a_selector_error(text, fields):
    try:
        read = parse_field_selector(text)
    except SelectorError:
        return
    assert parse_field_selector(str(read)).matches(fields) == read.matches(fields)


# ── node selectors ───────────────────────────────────────────────────────────────────────────────────────────


def need(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def term(*expressions: NodeSelectorRequirement, fields: tuple[NodeSelectorRequirement, ...] = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions, match_fields=fields)


def either(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(node_selector_terms=terms)


def name_in(*names: str) -> NodeSelectorTerm:
    return term(fields=(need("metadata.name", "In", *names),))


NODE = {"zone": "z1", "cores": "8", "ssd": ""}


@pytest.mark.parametrize(
    ("requirement", "matches"),
    [
        (need("zone", "In", "z1", "z2"), True),
        (need("zone", "In", "z2"), False),
        (need("gone", "NotIn", "z1"), True),
        (need("ssd", "Exists"), True),
        (need("gone", "DoesNotExist"), True),
        (need("cores", "Gt", "7"), True),
        (need("cores", "Gt", "8"), False),
        (need("cores", "Lt", "9"), True),
        (need("cores", "Lt", "8"), False),
        (need("zone", "Gt", "1"), False),
        (need("gone", "Lt", "1"), False),
    ],
)
def test_a_term_asks_for_labels(requirement, matches):
    assert compile_node_term(term(requirement)).matches(NODE, "n1") is matches


def test_a_term_asks_for_the_name():
    assert compile_node_term(name_in("n1")).matches({}, "n1")
    assert not compile_node_term(name_in("n1")).matches({}, "n2")
    other = compile_node_term(term(fields=(need("metadata.name", "NotIn", "n1"),)))
    assert not other.matches({}, "n1")
    assert other.matches({}, "n2")


def test_a_field_other_than_the_name_is_empty():
    assert not compile_node_term(term(fields=(need("spec.x", "In", "a"),))).matches({}, "n1")
    assert compile_node_term(term(fields=(need("spec.x", "NotIn", "a"),))).matches({}, "n1")
    assert compile_node_term(term(fields=(need("spec.x", "In", ""),))).matches({}, "n1")


def test_a_node_without_a_name_is_not_asked_for_fields():
    assert compile_node_term(name_in("n1")).matches({}, "")


def test_labels_and_name_must_both_fit():
    both = compile_node_term(term(need("zone", "In", "z1"), fields=(need("metadata.name", "In", "n1"),)))
    assert both.matches(NODE, "n1")
    assert not both.matches(NODE, "n2")
    assert not both.matches({}, "n1")
    assert both.requirements[0].key == "zone"
    assert both.fields[0].values == ("n1",)


def test_an_empty_term_matches_no_node_and_neither_does_a_selector_without_terms():
    assert compile_node_term(term()).empty
    assert not compile_node_term(term()).matches(NODE, "n1")
    assert not compile_node_selector(either()).matches(NODE, "n1")
    assert not compile_node_selector(either(term(), term())).matches(NODE, "n1")
    assert compile_node_selector(either(term())).error is None


def test_one_matching_term_is_enough():
    matcher = compile_node_selector(either(term(), name_in("n2"), term(need("zone", "In", "z1"))))
    assert len(matcher.terms) == 3
    assert matcher.matches(NODE, "n1")
    assert matcher.matches({}, "n2")
    assert not matcher.matches({}, "n1")


def test_a_broken_term_never_matches_but_its_siblings_can():
    matcher = compile_node_selector(either(term(need("zone", "Foo"), need("ssd", "Exists")), name_in("n1")))
    assert matcher.matches(NODE, "n1")
    assert not matcher.matches(NODE, "n2")
    assert matcher.terms[1].error is None
    assert matcher.error == (
        'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Foo": '
        'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
    )


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (
            term(need("a", "Gt", "x")),
            (
                'nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "x": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ),
        ),
        (
            term(need("a", "Lt", "1", "2")),
            (
                'nodeSelectorTerms[0].matchExpressions[0].values: Invalid value: ["1","2"]: '
                "for 'Gt', 'Lt' operators, exactly one value is required"
            ),
        ),
        (
            term(need("a", "Gt", "9223372036854775808")),
            (
                'nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "9223372036854775808": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ),
        ),
        (
            name_in("n1", "n2"),
            'nodeSelectorTerms[0].matchFields[0].values: Invalid value: ["n1","n2"]: must have one element',
        ),
        (
            name_in(),
            "nodeSelectorTerms[0].matchFields[0].values: Invalid value: null: must have one element",
        ),
        (
            term(fields=(need("metadata.name", "Exists"),)),
            (
                'nodeSelectorTerms[0].matchFields[0].operator: Unsupported value: "Exists": '
                'supported values: "In", "NotIn"'
            ),
        ),
    ],
)
def test_a_broken_term_says_why(bad, error):
    matcher = compile_node_selector(either(bad))
    assert matcher.error == error
    assert matcher.errors == (error,)
    assert not matcher.matches({"a": "5"}, "n1")


def test_errors_name_the_place_they_were_given():
    matcher = compile_node_selector(either(term(), term(need("a", "In"))), path="args.addedAffinity.required")
    assert matcher.error == (
        "args.addedAffinity.required.nodeSelectorTerms[1].matchExpressions[0].values: "
        "Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    )
    assert (compile_node_term(term(need("a", "In")), path="[3]").error or "").startswith("[3].matchExpressions[0]")


def test_all_errors_of_a_term_are_listed():
    broken = compile_node_term(term(need("-a", "Gt", "x")))
    assert len(broken.errors) == 2
    assert broken.error == f"[{broken.errors[0]}, {broken.errors[1]}]"


# ── taints ───────────────────────────────────────────────────────────────────────────────────────────────────


def taint(key: str = "k", value: str = "v", effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=effect)


@pytest.mark.parametrize(
    ("toleration", "matches"),
    [
        (Toleration(key="k", operator="Equal", value="v", effect="NoSchedule"), True),
        (Toleration(key="k", value="v"), True),
        (Toleration(key="k", operator="", value="v"), True),
        (Toleration(key="k", value="w"), False),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(key="k", operator="Exists", value="w"), True),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(operator="Equal", value="v"), True),
        (Toleration(), False),
        (Toleration(key="k", operator="Foo", value="v"), False),
        (Toleration(key="k", operator="Gt", value="1"), False),
    ],
)
def test_a_toleration_matches_as_kubernetes_says(toleration, matches):
    assert tolerates((toleration,), taint()) is matches


def test_no_toleration_tolerates_nothing():
    assert not tolerates((), taint())


@pytest.mark.parametrize(
    ("operator", "bound", "value", "matches"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "-6", True),
        ("Lt", "5", "6", False),
        ("Gt", "05", "6", False),
        ("Gt", "5", "+6", False),
        ("Gt", "-0", "6", False),
        ("Gt", "0", "9223372036854775808", False),
        ("Gt", "x", "6", False),
    ],
)
def test_numeric_tolerations_count_only_where_they_are_understood(operator, bound, value, matches):
    some = (Toleration(key="k", operator=operator, value=bound),)
    assert tolerates(some, taint(value=value), comparisons=True) is matches
    assert not tolerates(some, taint(value=value))


def test_the_first_untolerated_taint_in_the_node_s_order_is_named():
    taints = (taint("soft", effect="PreferNoSchedule"), taint("a"), taint("b", effect="NoExecute"), taint("c"))
    assert untolerated(taints, ()) is taints[1]
    assert untolerated(taints, (Toleration(key="a", operator="Exists"),)) is taints[2]
    assert untolerated(taints, (Toleration(operator="Exists"),)) is None
    assert untolerated(taints, (), effects=("PreferNoSchedule",)) is taints[0]
    assert untolerated((), ()) is None
