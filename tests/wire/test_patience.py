"""Waits double and are forgotten; a bucket lets so many through a second."""

from __future__ import annotations

from random import Random

import pytest
from tests.wire.scripted import START, Half

from kubesched.api.time import Duration, Instant, seconds
from kubesched.wire.patience import Backoff, Bucket


def test_waits_double_up_to_half_a_minute() -> None:
    backoff = Backoff(Random(1))
    waits = [backoff.next(START) / 1e9 for _ in range(200)]
    assert 0.8 <= waits[0] < 1.6
    assert 1.6 <= waits[1] < 3.2
    assert all(15 <= wait < 30 for wait in waits[6:])
    assert len(set(waits)) == 200  # nobody comes back at the same time as the others


def test_failures_long_ago_are_forgotten() -> None:
    backoff = Backoff(Half())
    for _ in range(5):
        backoff.next(START)
    assert backoff.next(Instant(START + seconds(60))) == seconds(22.5)
    assert backoff.next(Instant(START + seconds(181))) == seconds(1.2)


def test_a_wait_is_at_least_what_the_server_asked_for() -> None:
    assert Backoff(Half()).next(START, seconds(40)) == seconds(40)


@pytest.mark.parametrize(("qps", "burst", "passed"), [(10.0, 1, 101), (10.0, 50, 150), (0.0, 0, 60), (1e3, 5, 10005)])
def test_a_bucket_lets_through_its_burst_and_then_its_rate(qps: float, burst: int, passed: int) -> None:
    bucket, now, count = Bucket(qps, burst), START, 0
    while now <= START + seconds(10):
        if bucket.free_at <= now:
            bucket.take(now)
            count += 1
        else:
            now = bucket.free_at
    assert count == passed


def test_a_rate_below_zero_is_none() -> None:
    bucket = Bucket(-1.0, 1)
    for _ in range(1000):
        assert bucket.free_at <= START
        bucket.take(START)


def test_a_pause_fills_the_bucket_up_to_its_burst() -> None:
    bucket = Bucket(10.0, 5)
    for _ in range(5):
        bucket.take(START)
    later = Instant(START + Duration(seconds(3600)))
    for _ in range(5):
        assert bucket.free_at <= later
        bucket.take(later)
    assert bucket.free_at > later
