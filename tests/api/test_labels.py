"""Label selectors mean the same however they were written, and are refused in Kubernetes' words."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.labels import (
    EVERYTHING,
    NOTHING,
    Requirement,
    Selector,
    SelectorError,
    compile_label_selector,
    parse_selector,
    selector_from_map,
)
from kubesched.api.objects import LabelSelector, LabelSelectorRequirement


def selector(*expressions: tuple[str, str, tuple[str, ...]], **labels: str) -> LabelSelector:
    return LabelSelector(
        match_labels=labels,
        match_expressions=tuple(
            LabelSelectorRequirement(key=key, operator=operator, values=values) for key, operator, values in expressions
        ),
    )


# ── meaning ──────────────────────────────────────────────────────────────────────────────────────────────────

LABELS = {"app": "web", "tier": "", "cores": "5"}


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        (("app", "In", ("web", "db")), True),
        (("app", "In", ("db",)), False),
        (("gone", "In", ("web",)), False),
        (("app", "NotIn", ("db",)), True),
        (("app", "NotIn", ("web",)), False),
        (("gone", "NotIn", ("web",)), True),
        (("app", "Exists", ()), True),
        (("tier", "Exists", ()), True),
        (("gone", "Exists", ()), False),
        (("app", "DoesNotExist", ()), False),
        (("gone", "DoesNotExist", ()), True),
        (("tier", "In", ("",)), True),
        (("gone", "In", ("",)), False),
    ],
)
def test_each_operator_matches_as_kubernetes_says(expression, matches):
    assert compile_label_selector(selector(expression)).matches(LABELS) is matches


def test_no_selector_matches_nothing_and_an_empty_one_everything():
    assert compile_label_selector(None) is NOTHING
    assert compile_label_selector(LabelSelector()) == EVERYTHING
    assert EVERYTHING.empty
    assert EVERYTHING.matches({})
    assert NOTHING.nothing
    assert not NOTHING.empty
    assert not NOTHING.matches({})
    assert NOTHING != EVERYTHING


def test_all_requirements_must_hold():
    both = compile_label_selector(selector(("tier", "Exists", ()), app="web"))
    assert both.matches(LABELS)
    assert not both.matches({"app": "web"})
    assert not both.matches({"tier": ""})


def test_more_requirements_make_a_narrower_selector():
    wide = compile_label_selector(selector(app="web"))
    narrow = wide.with_requirements(Requirement("hash", "In", ("1", "2")), Requirement("hash", "Exists"))
    assert [one.key for one in narrow.requirements] == ["app", "hash", "hash"]
    assert wide.matches({"app": "web"})
    assert not narrow.matches({"app": "web"})
    assert narrow.matches({"app": "web", "hash": "2"})
    assert NOTHING.with_requirements(Requirement("a", "Exists")) is NOTHING
    assert EVERYTHING.with_requirements() is EVERYTHING


def test_selectors_that_mean_the_same_are_equal():
    written = [
        compile_label_selector(selector(("tier", "In", ("b", "a", "b")), app="web")),
        compile_label_selector(selector(("app", "In", ("web",)), ("tier", "In", ("a", "b")))),
        parse_selector("tier in (b,a),app==web"),
    ]
    assert len(set(written)) == 1
    assert written[0] != parse_selector("app=web")
    assert written[0] != "app=web"
    assert [str(one) for one in written] == [
        "app=web,tier in (a,b)",
        "app in (web),tier in (a,b)",
        "app==web,tier in (a,b)",
    ]


def test_a_map_selects_its_labels_unchecked():
    assert selector_from_map({"b": "2", "a": "not valid!"}).matches({"a": "not valid!", "b": "2", "c": ""})
    assert not selector_from_map({"a": ""}).matches({})
    assert str(selector_from_map({"b": "2", "a": "1"})) == "a=1,b=2"
    assert selector_from_map({}) is EVERYTHING


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (("app", "Foo", ()), '"Foo" is not a valid label selector operator'),
        (("app", "Gt", ("1",)), '"Gt" is not a valid label selector operator'),
        (("app", "In", ()), "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"),
        (("app", "NotIn", ()), "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"),
        (
            ("app", "Exists", ("a", "b")),
            'values: Invalid value: ["a","b"]: values set must be empty for exists and does not exist',
        ),
    ],
)
def test_a_malformed_expression_is_refused_in_kubernetes_words(expression, message):
    with pytest.raises(SelectorError) as refusal:
        compile_label_selector(selector(expression))
    assert str(refusal.value) == message


def test_several_faults_are_listed_once_each():
    with pytest.raises(SelectorError) as refusal:
        compile_label_selector(selector(("-a", "In", ("b\n", "b\n"))))
    message = str(refusal.value)
    assert message.startswith('[key: Invalid value: "-a": name part must consist of')
    assert ', values[0][-a]: Invalid value: "b\\n": a valid label must be' in message
    assert ', values[1][-a]: Invalid value: "b\\n": a valid label must be' in message
    assert message.endswith("]")


def test_a_bad_label_in_the_map_is_refused():
    with pytest.raises(SelectorError, match=r'^values\[0\]\[app\]: Invalid value: "a\\"b": a valid label'):
        compile_label_selector(selector(app='a"b'))


# ── the string form ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", ""),
        (" \t", ""),
        ("a", "a"),
        ("!a", "!a"),
        ("! a", "!a"),
        ("a=b", "a=b"),
        ("a==b", "a==b"),
        ("a!=b", "a!=b"),
        (" a = b , c ", "a=b,c"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("a>1", "a>1"),
        ("a<5", "a<5"),
        ("a in (c,b,c)", "a in (b,c)"),
        ("a notin(b)", "a notin (b)"),
        ("a in ()", "a in ()"),
        ("a in (,)", "a in ()"),
        ("a in (b,,)", "a in (,b)"),
        ("a in (,b)", "a in (,b)"),
        ("in in (in,notin)", "in in (in,notin)"),
        ("notin", "notin"),
        ("x.y/z in (1),a", "a,x.y/z in (1)"),
    ],
)
def test_the_string_form_is_read_and_printed_as_kubectl_does(text, printed):
    assert str(parse_selector(text)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("a=!b", "unable to parse requirement: found '!', expected: identifier"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        (
            "a>b",
            (
                'unable to parse requirement: values[0]: Invalid value: "b": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ),
        ),
    ],
)
def test_a_malformed_string_is_refused_in_kubectls_words(text, message):
    with pytest.raises(SelectorError) as refusal:
        parse_selector(text)
    assert str(refusal.value) == message


def test_a_bad_key_in_a_string_is_named():
    with pytest.raises(SelectorError, match=r'^unable to parse requirement: <nil>: Invalid value: "-a": name part'):
        parse_selector("-a")


@pytest.mark.parametrize(
    ("text", "value", "matches"),
    [
        ("n>4", "5", True),
        ("n>5", "5", False),
        ("n<5", "-7", True),
        ("n>4", "+5", True),
        ("n>4", "007", True),
        ("n>4", "5.0", False),
        ("n>4", "", False),
        ("n>4", "9223372036854775807", True),
        ("n>4", "9223372036854775808", False),
        ("n>4", "0" * 5_000 + "5", True),
        ("n>4", "٥", False),
        ("n>4", None, False),
    ],
)
def test_numbers_compare_as_int64(text, value, matches):
    labels = {} if value is None else {"n": value}
    assert parse_selector(text).matches(labels) is matches


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────────────────

keys = st.sampled_from(["a", "b", "in", "x.y/z"])
values = st.sampled_from(["", "1", "2", "in", "notin", "A-b"])
label_maps = st.dictionaries(keys, values)
requirements = st.one_of(
    st.builds(
        lambda key, operator, some: Requirement(key, operator, tuple(sorted(some))),
        keys,
        st.sampled_from(["In", "NotIn"]),
        st.sets(values, min_size=1, max_size=3),
    ),
    st.builds(Requirement, keys, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        lambda key, operator, bound: Requirement(key, operator, (str(bound),)),
        keys,
        st.sampled_from(["Gt", "Lt"]),
        st.integers(0, 3),
    ),
)
selectors = st.lists(requirements, max_size=4).map(Selector)


@given(selectors)
def test_a_printed_selector_reads_back(one):
    assert parse_selector(str(one)) == one
    assert hash(parse_selector(str(one))) == hash(one)


@given(selectors)
def test_a_selector_survives_copying_and_pickling(one):
    for twin in (copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert twin == one
        assert hash(twin) == hash(one)
        assert str(twin) == str(one)
    assert pickle.loads(pickle.dumps(NOTHING)) == NOTHING


@given(selectors, label_maps)
def test_a_selector_matches_iff_each_requirement_does(one, labels):
    assert one.matches(labels) == all(requirement.matches(labels) for requirement in one.requirements)


@given(keys, st.sets(values, min_size=1), label_maps)
def test_not_in_is_the_opposite_of_in(key, some, labels):
    inside = Requirement(key, "In", tuple(sorted(some)))
    outside = Requirement(key, "NotIn", tuple(sorted(some)))
    assert inside.matches(labels) is not outside.matches(labels)


@given(label_maps, label_maps)
def test_a_map_matches_what_contains_it(some, labels):
    assert selector_from_map(some).matches(labels) == (some.items() <= labels.items())
    assert compile_label_selector(LabelSelector(match_labels=some)) == selector_from_map(some)


@given(st.text("ab=!(),<> in\t-/", max_size=16))
def test_any_text_is_a_selector_or_a_selector_error(text):
    try:
        read = parse_selector(text)
    except SelectorError:
        return
    assert parse_selector(str(read)) == read
