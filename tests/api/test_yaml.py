"""Plain scalars: what is a number, a boolean, nothing, or just text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.yaml import meaning


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("yes", True),
        ("On", True),
        ("n", False),
        ("FALSE", False),
        ("0", 0),
        ("+5", 5),
        ("-0", 0),
        ("1_000", 1000),
        ("1_", 1),
        ("1__2", 12),
        ("0x1F", 31),
        ("0x_1f", 31),
        ("-0x10", -16),
        ("0b101", 5),
        ("010", 8),
        ("0o17", 15),
        ("00", 0),
        ("08", 8.0),
        ("1.5", 1.5),
        ("-.5", -0.5),
        ("3.", 3.0),
        ("1e3", 1000.0),
    ],
)
def test_what_stands_for_something_else(text: str, meant: object) -> None:
    assert meaning(text) == meant
    assert type(meaning(text)) is type(meant)


@pytest.mark.parametrize(
    "text",
    ["0x", "0x_", "0b", "-", "+", ".", "-_", "1.2.3", "500m", "2026-01-01", "١٢", "1" * 41, "_1", ".inf"],
)
def test_what_is_only_text(text: str) -> None:
    assert meaning(text) == text


@given(st.text(alphabet="0123456789abcxof_+-.eE", max_size=45))
def test_nothing_that_looks_like_a_number_is_too_much(text: str) -> None:
    meaning(text)
