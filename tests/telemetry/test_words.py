"""A record in words: one line each, one word for every state and every cause, whatever a pod is called."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.api.time import Instant, parse_rfc3339, seconds
from kubesched.core.lifecycle import MOVES
from kubesched.framework.records import Record, State
from kubesched.telemetry.words import HAPPENED, PLACES, STATE_WORDS, moment, picture, places, sentence, story

START = parse_rfc3339("2026-01-01T00:00:00Z")


def record(cause="placed", note="node-3", pod="default/web-7", state=State.RESERVED, at=START):
    return Record(1, at, pod, f"uid-of-{pod}", State.TRYING, state, cause, 1, note)


def test_a_move_is_a_sentence():
    assert sentence(record()) == "default/web-7 is placed on node-3"


def test_every_cause_has_a_sentence_and_every_sentence_a_cause():
    assert {cause for _, cause in MOVES} == set(HAPPENED)


def test_every_state_has_a_word():
    assert set(STATE_WORDS) == set(State)
    assert len(set(STATE_WORDS.values())) == len(STATE_WORDS)


def test_what_nobody_told_is_said_to_be_that():
    assert sentence(record("hinted", note="")) == "default/web-7 is woken by nobody who told, and backs off a little"


def test_times_are_seconds_of_a_run_or_dates():
    assert moment(START)(Instant(START + seconds(3))) == "    3.000s"
    assert moment(None)(START) == "2026-01-01T00:00:00.000000Z"
    assert story([record()], START) == ["    0.000s  default/web-7 is placed on node-3"]


def test_a_picture_has_a_box_for_each_pod_and_counts_the_rest():
    drawn = picture({"active": [], "parked": [f"p{i}" for i in range(14)]})
    assert drawn[0] == "active ▏·"
    assert drawn[1].startswith("parked ▏[p0][p1]")
    assert drawn[1].endswith("[p11] … and 2 more")


@pytest.mark.parametrize("state", [state for states in PLACES.values() for state in states])
def test_a_pod_is_drawn_where_its_state_is(state):
    found = places([record(state=State.TRYING), record(state=state)])
    assert [name for name, pods in found.items() if pods] == [name for name, at in PLACES.items() if state in at]


STRANGE = ["a\nb", "\x1b]0;title\x07", "\u202eevil", "\u2028", "\ud800", "x" * 5000]
WILD = st.text(max_size=40) | st.sampled_from(STRANGE)


@given(st.sampled_from(sorted(HAPPENED)), WILD, WILD)
def test_one_record_is_one_harmless_line(cause, name, note):
    [line] = story([record(cause, note, pod=name)])
    assert len(line.splitlines()) == 1
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in line)


@given(WILD)
def test_a_box_is_one_harmless_line(name):
    [line] = picture({"active": [name]})
    assert len(line.splitlines()) == 1
