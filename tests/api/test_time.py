"""Instants and durations: what Go reads and prints, and nothing it would refuse."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.time import (
    Duration,
    Instant,
    format_duration,
    format_micro,
    format_rfc3339,
    milliseconds,
    minutes,
    parse_duration,
    parse_rfc3339,
    seconds,
)

SECOND = 1_000_000_000

# What time.Duration.String of Go prints, and time.ParseDuration reads.
DURATIONS = [
    (0, "0s"),
    (1, "1ns"),
    (1_500, "1.5µs"),
    (2_000, "2µs"),
    (100_000_000, "100ms"),
    (1_100_000, "1.1ms"),
    (1_500_000_000, "1.5s"),
    (9 * SECOND, "9s"),
    (60 * SECOND, "1m0s"),
    (900 * SECOND, "15m0s"),
    (3_600 * SECOND, "1h0m0s"),
    (3_661 * SECOND + 1, "1h1m1.000000001s"),
    (-90 * SECOND, "-1m30s"),
    ((1 << 63) - 1, "2562047h47m16.854775807s"),
    (-(1 << 63), "-2562047h47m16.854775808s"),
]


@pytest.mark.parametrize(("duration", "text"), DURATIONS)
def test_durations_print_and_read_as_in_go(duration, text):
    assert format_duration(Duration(duration)) == text
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("0", 0),
        ("-0", 0),
        ("+5s", 5 * SECOND),
        ("1h2m3.5s", 3_723 * SECOND + 500_000_000),
        ("300ms", 300_000_000),
        (".5s", 500_000_000),
        ("1.s", SECOND),
        ("-1.5h", -5_400 * SECOND),
        ("1us1µs1μs", 3_000),
        ("1s1h", 3_601 * SECOND),
        ("0.3333333333333333333h", 1_200 * SECOND),
        ("0000000000000000000000001s", SECOND),
        ("-9223372036854775808ns", -(1 << 63)),
    ],
)
def test_durations_are_read_as_go_reads_them(text, duration):
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "junk",
    [
        "",
        "+",
        "-",
        "s",
        ".s",
        "1",
        "1.5",
        "10 s",
        "1s ",
        "1d",
        "1S",
        "--1s",
        "1.2.3s",
        "1e3s",
        "١s",
        "9223372036854775808ns",
        "9" * 50 + "h",
        "1h9223372036854775807ns",
        "-9223372036854775809ns",
    ],
)
def test_what_is_no_duration_is_refused_by_name(junk):
    with pytest.raises(ValueError) as refusal:
        parse_duration(junk)
    assert repr(junk)[:20] in str(refusal.value)


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_printed_duration_reads_back(duration):
    assert parse_duration(format_duration(Duration(duration))) == duration


@given(st.text("0123456789.hmsnuµ+- ", max_size=12))
def test_any_text_is_a_duration_or_a_value_error(text):
    with contextlib.suppress(ValueError):
        assert -(1 << 63) <= parse_duration(text) < 1 << 63


def test_units_make_nanoseconds():
    assert seconds(3) == 3 * SECOND
    assert seconds(0.1) == 100_000_000
    assert minutes(5) == 300 * SECOND
    assert minutes(0.5) == 30 * SECOND
    assert milliseconds(1.5) == 1_500_000
    assert isinstance(seconds(0.5), int)


@pytest.mark.parametrize("count", [float("nan"), float("inf"), float("-inf")])
def test_an_endless_duration_is_refused(count):
    with pytest.raises(ValueError, match="finite"):
        seconds(count)


# ── instants ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-03-01T12:30:00Z", 1_772_368_200 * SECOND),
        ("2026-03-01T12:30:00.5Z", 1_772_368_200 * SECOND + 500_000_000),
        ("2026-03-01T12:30:00,5Z", 1_772_368_200 * SECOND + 500_000_000),
        ("2026-03-01T12:30:00.123456Z", 1_772_368_200 * SECOND + 123_456_000),
        ("2026-03-01T12:30:00.1234567899Z", 1_772_368_200 * SECOND + 123_456_789),
        ("2026-03-01T13:30:00+01:00", 1_772_368_200 * SECOND),
        ("2026-03-01T04:45:00-07:45", 1_772_368_200 * SECOND),
        ("2026-03-01T12:30:00-00:00", 1_772_368_200 * SECOND),
        ("2024-02-29T00:00:00Z", 1_709_164_800 * SECOND),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("0001-01-01T00:00:00Z", -62_135_596_800 * SECOND),
        ("2026-03-01T9:30:00Z", 1_772_357_400 * SECOND),
    ],
)
def test_times_are_read_as_kubernetes_reads_them(text, instant):
    assert parse_rfc3339(text) == instant


@pytest.mark.parametrize(
    "junk",
    [
        "",
        "now",
        "2026-03-01",
        "2026-03-01 12:30:00Z",
        "2026-03-01T12:30:00",
        "2026-03-01t12:30:00z",
        "2026-03-01T12:30Z",
        "2026-3-01T12:30:00Z",
        "2026-13-01T12:30:00Z",
        "2026-02-29T12:30:00Z",
        "2026-03-01T24:00:00Z",
        "2026-03-01T12:60:00Z",
        "2026-03-01T12:30:60Z",
        "2026-03-01T12:30:00.Z",
        "2026-03-01T12:30:00+25:00",
        "2026-03-01T12:30:00+0100",
        "0000-01-01T00:00:00Z",
        "2026-03-01T12:30:00Z\n",
        "١٩٧٠-01-01T00:00:00Z",
        "x" * 10_000,
    ],
)
def test_what_is_no_time_is_refused_by_name(junk):
    with pytest.raises(ValueError) as refusal:
        parse_rfc3339(junk)
    assert repr(junk)[:20] in str(refusal.value)
    assert len(str(refusal.value)) < 200


def test_times_are_printed_in_whole_seconds_or_microseconds():
    instant = Instant(1_772_368_200 * SECOND + 999_999_999)
    assert format_rfc3339(instant) == "2026-03-01T12:30:00Z"
    assert format_micro(instant) == "2026-03-01T12:30:00.999999Z"


def test_times_before_1970_are_cut_off_downwards():
    assert format_rfc3339(Instant(-1)) == "1969-12-31T23:59:59Z"
    assert format_micro(Instant(-1)) == "1969-12-31T23:59:59.999999Z"


def test_a_time_that_no_calendar_shows_is_refused():
    beyond = parse_rfc3339("9999-12-31T23:59:59-01:00")
    with pytest.raises(ValueError, match="years 1 to 9999"):
        format_rfc3339(beyond)


INSTANTS = st.integers(-62_135_596_800 * SECOND, 253_402_300_800 * SECOND - 1).map(Instant)


@given(INSTANTS)
def test_a_printed_time_reads_back_to_its_own_precision(instant):
    assert parse_rfc3339(format_rfc3339(instant)) == instant // SECOND * SECOND
    assert parse_rfc3339(format_micro(instant)) == instant // 1_000 * 1_000


@given(INSTANTS, INSTANTS)
def test_printed_times_sort_as_the_instants_do(left, right):
    assert (format_micro(left) < format_micro(right)) == (left // 1_000 < right // 1_000)


@given(st.integers(0, 23), st.integers(0, 59), INSTANTS.filter(lambda i: abs(i) < 10**18))
def test_an_offset_moves_the_clock_and_not_the_instant(hours, odd_minutes, instant):
    text = format_micro(instant)[:-1]
    shift = (hours * 60 + odd_minutes) * 60 * SECOND
    base = parse_rfc3339(text + "Z")
    assert parse_rfc3339(f"{text}+{hours:02d}:{odd_minutes:02d}") == base - shift
    assert parse_rfc3339(f"{text}-{hours:02d}:{odd_minutes:02d}") == base + shift
