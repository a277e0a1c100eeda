"""Text from strangers takes one line and does nothing to a terminal."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from kubesched.framework.plain import FIELD_AT_MOST, plain


@given(text=st.text())
def test_whatever_it_is_it_takes_one_line_and_controls_nothing(text: str) -> None:
    said = plain(text)
    assert len(said.splitlines()) <= 1
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") for c in said)


@given(text=st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=FIELD_AT_MOST))
def test_words_stay_as_they_are(text: str) -> None:
    assert plain(text) == text


def test_a_name_cannot_colour_a_terminal_nor_turn_a_line_round() -> None:
    assert plain("web\x1b[31m\n\u202e7") == r"web\x1b[31m\n\u202e7"


def test_a_long_text_is_cut_and_shows_it() -> None:
    assert plain("x" * 5000) == "x" * (FIELD_AT_MOST - 1) + "…"
    assert plain("x" * 10, at_most=4) == "xxx…"
