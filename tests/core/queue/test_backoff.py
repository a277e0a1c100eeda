"""How long a pod is left alone, and when exactly it is let go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.queue.bench import SECOND, at, pod

from kubesched.api.time import Duration, seconds
from kubesched.core.queue.backoff import Backoff
from kubesched.framework.queued import QueuedPod

DEFAULT = Backoff(seconds(1), seconds(10))
EXACT = Backoff(seconds(1), seconds(10), by_the_second=False)


def failed(times: int = 0, errors: int = 0, since: float = 0) -> QueuedPod:
    queued = QueuedPod(pod("a"), at(since), 1)
    queued.unschedulable_count, queued.errors_in_a_row = times, errors
    return queued


@pytest.mark.parametrize(
    ("initial", "longest", "expected"),
    [
        (1, 10, [0, 1, 2, 4, 8, 10, 10]),
        (1, 32, [0, 1, 2, 4, 8, 16, 32, 32]),
        (1, 33, [0, 1, 2, 4, 8, 16, 32, 33, 33]),
        (10, 5, [0, 5, 5]),  # a first step beyond the limit is the limit
        (0, 10, [0, 0, 0]),
        (1, 0, [0, 0, 0]),
    ],
)
def test_the_backoff_doubles_up_to_its_limit(initial, longest, expected):
    rule = Backoff(seconds(initial), seconds(longest))
    assert [rule.duration(failures) for failures in range(len(expected))] == [s * SECOND for s in expected]


@pytest.mark.parametrize("failures", [63, 64, 65, 1_000, 2**31])
def test_no_number_of_failures_overflows(failures):
    assert DEFAULT.duration(failures) == seconds(10)
    assert Backoff(seconds(1), Duration(2**63 - 1)).duration(failures) == 2**63 - 1


@given(st.integers(1, 10**12), st.integers(1, 10**12), st.integers(1, 80))
def test_the_backoff_never_shrinks_and_never_exceeds_its_limit(initial, longest, failures):
    rule = Backoff(Duration(initial), Duration(longest))
    assert rule.duration(failures) <= rule.duration(failures + 1) <= longest


@pytest.mark.parametrize(
    ("times", "errors", "since", "expected"),
    [
        (0, 0, 0.3, None),
        (1, 0, 0.0, 1),
        (1, 0, 0.3, 1),  # 1.3 is cut to the second
        (1, 0, 0.999999999, 1),
        (3, 0, 0.5, 4),
        (9, 0, 0.5, 10),
        (0, 2, 0.5, 2),
        (5, 1, 0.5, 1),  # errors in a row count for themselves
    ],
)
def test_a_backoff_ends_at_a_whole_second(times, errors, since, expected):
    until = DEFAULT.until(failed(times, errors, since))
    assert until == (at(expected) if expected is not None else None)


def test_the_end_of_a_backoff_is_worked_out_once():
    queued = failed(1, since=0.3)
    assert DEFAULT.until(queued) == at(1)
    queued.unschedulable_count = 5
    assert DEFAULT.until(queued) == at(1)


def test_a_limit_of_zero_means_no_backing_off():
    rule = Backoff(seconds(1), seconds(0))
    assert rule.until(failed(3)) is None
    assert not rule.holds(failed(3), at(0))


@pytest.mark.parametrize(("now", "expected"), [(0.3, True), (1.0, True), (1.999999999, True), (2.0, False), (7, False)])
def test_a_pod_is_held_until_the_second_after_its_end(now, expected):
    assert DEFAULT.holds(failed(1, since=0.3), at(now)) is expected


def test_a_pod_that_never_failed_is_not_held():
    assert not DEFAULT.holds(failed(), at(0))


def test_without_cutting_the_end_is_exact_and_looked_for_every_second_from_the_start():
    rule = Backoff(seconds(1), seconds(10), by_the_second=False)
    rule.start = at(0.4)
    queued = failed(1, since=0.3)
    assert rule.until(queued) == at(1.3)
    assert rule.holds(queued, at(1.3))
    assert not rule.holds(queued, at(1.300000001))
    assert rule.release(queued) == at(1.4)
    assert rule.release(failed(1, since=0.4)) == at(2.4)  # at the very tick it is not yet over


@given(st.integers(0, 10**12), st.integers(1, 12), st.sampled_from((DEFAULT, EXACT)))
def test_the_release_is_the_first_tick_at_which_the_pod_is_not_held(since, times, rule):
    queued = QueuedPod(pod("a"), at(0), 1)
    queued.added = since
    queued.unschedulable_count = times
    release = rule.release(queued)
    assert release % SECOND == 0
    assert not rule.holds(queued, release)
    assert rule.holds(queued, release - SECOND)
