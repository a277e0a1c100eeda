"""Quantities are exact: against recorded answers of Kubernetes, and against fractions as an oracle."""

from __future__ import annotations

import contextlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.quantity import (
    add,
    canonical,
    canonical_resource,
    compare,
    format_milli,
    format_units,
    is_extended_resource,
    is_scalar_resource,
    parse_milli,
    parse_units,
    resource_amount,
)

MAX = (1 << 63) - 1

# What resource.Quantity of k8s.io/apimachinery v0.36.4 answers: text, String(), Value(), MilliValue().
RECORDED = [
    ("0", "0", 0, 0),
    ("100m", "100m", 1, 100),
    ("1000m", "1", 1, 1000),
    ("0.5", "500m", 1, 500),
    ("1.5", "1500m", 2, 1500),
    ("1.25", "1250m", 2, 1250),
    ("1.125", "1.125", 2, 1125),
    ("0.125", "125m", 1, 125),
    ("1.500", "1.500", 2, 1500),
    ("2.0", "2", 2, 2000),
    ("10.00", "10", 10, 10000),
    ("1024Mi", "1Gi", 1073741824, 1073741824000),
    ("1.5Gi", "1536Mi", 1610612736, 1610612736000),
    ("1023Ki", "1023Ki", 1047552, 1047552000),
    ("2048Ki", "2Mi", 2097152, 2097152000),
    ("1.5Ki", "1536", 1536, 1536000),
    ("512", "512", 512, 512000),
    ("1024", "1024", 1024, 1024000),
    ("1500", "1500", 1500, 1500000),
    ("3000", "3k", 3000, 3000000),
    ("1000k", "1M", 1000000, 1000000000),
    ("1000000k", "1G", 1000000000, 1000000000000),
    ("128974848", "128974848", 128974848, 128974848000),
    ("129e6", "129e6", 129000000, 129000000000),
    ("123Mi", "123Mi", 128974848, 128974848000),
    ("1e3", "1e3", 1000, 1000000),
    ("1E3", "1E3", 1000, 1000000),
    ("1E+3", "1E+3", 1000, 1000000),
    ("10e2", "1e3", 1000, 1000000),
    ("1e-3", "1e-3", 1, 1),
    ("1E-2", "10e-3", 1, 10),
    ("1.5e3", "1500", 1500, 1500000),
    ("12.34e5", "12.34e5", 1234000, 1234000000),
    ("+5", "+5", 5, 5000),
    ("-5", "-5", -5, -5000),
    ("-0", "0", 0, 0),
    ("05", "05", 5, 5000),
    (".5", "500m", 1, 500),
    ("5.", "5.", 5, 5000),
    ("1.Gi", "1.Gi", 1073741824, 1073741824000),
    ("0.1m", "100u", 1, 1),
    ("0.1n", "1n", 1, 1),
    ("1500u", "1500u", 1, 2),
    ("0.0000000001", "1n", 1, 1),
    ("0.0001Ki", "102400u", 1, 103),
    ("0.9Ki", "921600m", 922, 921600),
    ("0.001Gi", "1073741824m", 1073742, 1073741824),
    ("1.1Gi", "1181116006400m", 1181116007, 1181116006400),
    ("-1.5Gi", "-1536Mi", -1610612736, -1610612736000),
    ("1024Ti", "1Pi", 1125899906842624, 1125899906842624000),
    ("1500000000000000000000n", "1500G", 1500000000000, 1500000000000000),
]


@pytest.mark.parametrize(("text", "printed", "units", "milli"), RECORDED, ids=[row[0] for row in RECORDED])
def test_reads_and_prints_as_kubernetes_does(text, printed, units, milli):
    assert (canonical(text), parse_units(text), parse_milli(text)) == (printed, units, milli)


@pytest.mark.parametrize(
    ("text", "units", "milli"),
    [
        ("9223372036854775807", MAX, MAX),
        ("9223372036854775808", MAX, MAX),
        ("-9223372036854775809", -MAX, -MAX),
        ("8Ei", MAX, MAX),
        ("7Ei", 7 << 60, MAX),
        ("1E", 10**18, MAX),
        ("1e21", MAX, MAX),
        ("1e999999999", MAX, MAX),
        ("-1e999999999", -MAX, -MAX),
        ("0e999999999", 0, 0),
        ("1e-999999999", 1, 1),
        ("0e-999999999", 0, 0),
        (10**40, MAX, MAX),
    ],
)
def test_an_amount_beyond_an_int64_stays_at_the_limit(text, units, milli):
    assert (parse_units(text), parse_milli(text)) == (units, milli)


def test_binary_amounts_are_cut_at_the_limit_when_printed():
    assert canonical("16Ei") == "9223372036854775807"
    assert canonical("7Ei") == "7Ei"


def test_amounts_beyond_the_last_suffix_keep_their_zeros():
    assert canonical("1000E") == "1000E"
    assert canonical("100000000000000000000000") == "100000E"


JUNK = [
    "",
    " ",
    "+",
    "-",
    ".",
    "+.",
    "m",
    "Ki",
    "1.2.3",
    "1 Gi",
    "1GB",
    "1gi",
    "1mi",
    "1K",
    "1e",
    "1e+",
    "1ee3",
    "1e3.5",
    "1_000",
    "0x10",
    "NaN",
    "nan",
    "inf",
    "-inf",
    "Infinity",
    "--1",
    "1-",
    "½",
    "١",
    "1\x00",
    "1Gi\n1",
    "1e99999999999",
    "9" * 300,
    "1" + "0" * 100_000,
]


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: repr(junk[:12]))
@pytest.mark.parametrize("reads", [parse_units, parse_milli, canonical, canonical_resource])
def test_what_is_no_quantity_is_refused_by_name(reads, junk):
    with pytest.raises(ValueError) as refusal:
        reads(junk)
    assert repr(junk)[:12] in str(refusal.value)
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("junk", [float("nan"), float("inf"), float("-inf"), True, False, None, 10**5000], ids=type)
def test_numbers_that_are_no_amounts_are_refused(junk):
    with pytest.raises(ValueError):
        parse_units(junk)


def test_a_boolean_is_refused_even_after_the_equal_number_was_read():
    assert parse_units(1) == 1
    with pytest.raises(ValueError, match="True is not a quantity"):
        parse_units(True)


def test_numbers_are_read_like_their_texts():
    assert parse_milli(2) == 2000
    assert parse_milli(0.1) == 100
    assert parse_milli(1e-7) == 1
    assert parse_units(1e16) == 10**16
    assert canonical(0.5) == "500m"


def test_surrounding_blanks_are_stripped_as_an_api_server_does():
    assert parse_units(" 1Gi\n") == 1 << 30


def test_cpu_counts_in_thousandths_and_all_else_in_units():
    assert resource_amount("cpu", "1.5") == 1500
    assert resource_amount("memory", "1.5Ki") == 1536
    assert resource_amount("example.com/gpu", "500m") == 1


@pytest.mark.parametrize(
    ("text", "kept"),
    [("0.1n", "1m"), ("1500u", "2m"), ("-1500u", "-2m"), ("1.125", "1.125"), ("0.5", "500m"), ("1e-5", "1e-3")],
)
def test_a_resource_list_holds_nothing_finer_than_a_thousandth(text, kept):
    assert canonical_resource(text) == kept


@pytest.mark.parametrize(
    ("units", "text"),
    [
        (0, "0"),
        (1, "1"),
        (1500, "1500"),
        (3000, "3k"),
        (1024, "1Ki"),
        (1 << 31, "2Gi"),
        (-(1 << 20), "-1Mi"),
        (1024000, "1024k"),
        (1 << 70, "1024Ei"),
    ],
)
def test_whole_amounts_print_short_and_exact(units, text):
    assert format_units(units) == text


@pytest.mark.parametrize(
    ("milli", "text"), [(0, "0"), (1500, "1500m"), (2000, "2"), (-250, "-250m"), (3_000_000, "3k")]
)
def test_thousandths_print_as_cpu(milli, text):
    assert format_milli(milli) == text


# ── laws ─────────────────────────────────────────────────────────────────────────────────────────────────────

POWERS_OF_TEN = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
EXPONENTS = {"e3": 3, "E-4": -4, "e+12": 12, "e-12": -12, "E0": 0}
POWERS_OF_TWO = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
SCALE = {
    **{suffix: Fraction(10) ** power for suffix, power in (POWERS_OF_TEN | EXPONENTS).items()},
    **{suffix: Fraction(2) ** power for suffix, power in POWERS_OF_TWO.items()},
}


@st.composite
def written(draw) -> tuple[str, Fraction]:
    """A quantity as text, and what it is worth by the definition alone (at most a billionth fine, and capped)."""
    sign = draw(st.sampled_from(["", "-", "+"]))
    whole = draw(st.integers(0, 10 ** draw(st.sampled_from([1, 3, 9, 18, 25]))))
    places = draw(st.text("0123456789", max_size=13))
    suffix = draw(st.sampled_from(list(SCALE)))
    digits = f"{whole}.{places}" if places else str(whole)
    worth = Fraction(digits) * SCALE[suffix]
    worth = Fraction(-(-worth * 10**9 // 1), 10**9)
    if suffix.endswith("i"):
        worth = min(worth, Fraction(MAX))
    return f"{sign}{digits}{suffix}", -worth if sign == "-" else worth


def away_from_zero(worth: Fraction) -> int:
    size = min(-(-abs(worth) // 1), MAX)
    return -size if worth < 0 else size


@given(written())
def test_amounts_are_rounded_away_from_zero_and_capped(case):
    text, worth = case
    assert parse_units(text) == away_from_zero(worth)
    assert parse_milli(text) == away_from_zero(worth * 1000)


@given(written(), written())
def test_comparing_is_comparing_the_worth(left, right):
    assert compare(left[0], right[0]) == (left[1] > right[1]) - (left[1] < right[1])


@given(written(), written())
def test_a_sum_is_worth_what_its_parts_are_worth(left, right):
    billionths = (left[1] + right[1]) * 10**9
    assert billionths.denominator == 1
    total = add(left[0], right[0])
    if not total.endswith("i") or abs(billionths) < MAX * 10**9:  # a binary text beyond the limit reads back cut
        assert compare(total, f"{billionths.numerator}n") == 0


@given(written())
def test_printing_loses_nothing_and_is_stable(case):
    text, _ = case
    printed = canonical(text)
    assert compare(printed, text) == 0
    assert canonical(printed) == printed


@given(st.integers(-MAX, MAX))
def test_formatted_amounts_read_back(amount):
    assert parse_units(format_units(amount)) == amount
    assert parse_milli(format_milli(amount)) == amount


@given(st.text(max_size=20) | st.text("0123456789.+-eEinumkKMGTP", max_size=12))
def test_any_text_is_a_quantity_or_a_value_error(text):
    with contextlib.suppress(ValueError):
        assert -MAX <= parse_units(text) <= MAX


def test_a_sum_is_printed_in_the_style_of_its_left_part():
    assert add("1Gi", "1Gi") == "2Gi"
    assert add("0", "1Gi") == "1Gi"
    assert add("500m", "0.5") == "1"
    assert add("1", "1Gi") == "1073741825"
    assert add("1e3", "1") == "1001"


def test_huge_amounts_compare_without_being_written_out():
    assert compare("1e999999999", "2e999999998") == 1
    assert compare("-1e999999999", "1") == -1
    assert compare("1e999999999", "10e999999998") == 0
    assert compare("0e999999999", "0") == 0


def test_summands_too_far_apart_are_refused():
    with pytest.raises(ValueError, match="too far apart"):
        add("1e999999999", "1")


# ── resource names ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("cpu", False, False),
        ("memory", False, False),
        ("pods", False, False),
        ("ephemeral-storage", False, False),
        ("gpu", False, False),
        ("example.com/gpu", True, True),
        ("nvidia.com/gpu", True, True),
        ("kubernetes.io/thing", False, True),
        ("sub.kubernetes.io/thing", False, True),
        ("requests.example.com/gpu", False, False),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-csi-x", False, True),
        ("example.com/", False, False),
        ("example.com/a/b", False, False),
        ("Example.com/gpu", False, False),
        ("example.com/" + "x" * 64, False, False),
    ],
)
def test_resource_names_are_sorted_as_the_scheduler_sorts_them(name, extended, scalar):
    assert (is_extended_resource(name), is_scalar_resource(name)) == (extended, scalar)
