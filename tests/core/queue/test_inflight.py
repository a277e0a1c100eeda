"""The log of what happens while pods are being tried: complete for those in it, and nothing more."""

import pytest
from tests.core.queue.bench import NODE_ADD, NODE_LABEL, POD_DELETE, pod

from kubesched.core.queue.inflight import InFlight
from kubesched.framework.errors import InternalError


def test_with_nothing_in_flight_nothing_is_written_down():
    log = InFlight()
    log.record(NODE_ADD, None, None)
    assert not log.events


def test_a_pod_is_told_what_happened_after_it_had_left():
    log = InFlight()
    log.start(pod("a"))
    log.record(NODE_ADD, None, None)
    log.start(pod("b"))
    log.record(POD_DELETE, None, None)
    assert [h.event for h in log.since("uid-a")] == [NODE_ADD, POD_DELETE]
    assert [h.event for h in log.since("uid-b")] == [POD_DELETE]


def test_events_go_when_the_oldest_pod_that_could_ask_has_gone():
    log = InFlight()
    log.start(pod("a"))
    log.record(NODE_ADD, None, None)
    log.start(pod("b"))
    log.record(POD_DELETE, None, None)
    log.start(pod("c"))
    log.record(NODE_LABEL, None, None)
    log.end("uid-b")
    assert [h.event for h in log.events] == [NODE_ADD, POD_DELETE, NODE_LABEL]  # a may still ask
    log.end("uid-a")
    assert [h.event for h in log.events] == [NODE_LABEL]
    assert [h.event for h in log.since("uid-c")] == [NODE_LABEL]
    log.end("uid-c")
    assert not log.events
    assert len(log) == 0


def test_ending_twice_or_for_a_stranger_changes_nothing():
    log = InFlight()
    log.start(pod("a"))
    log.record(NODE_ADD, None, None)
    log.end("uid-stranger")
    assert len(log.events) == 1
    log.end("uid-a")
    log.end("uid-a")
    assert not log.events


def test_a_pod_cannot_be_in_flight_twice():
    log = InFlight()
    log.start(pod("a"))
    with pytest.raises(InternalError, match="default/a"):
        log.start(pod("a"))


def test_pods_of_one_name_and_two_uids_are_two_pods():
    log = InFlight()
    log.start(pod("a", uid="old"))
    log.record(NODE_ADD, None, None)
    log.start(pod("a", uid="new"))
    log.end("old")
    assert "new" in log
    assert log.since("new") == []
    assert not log.events


def test_the_log_stays_small_while_pods_come_and_go():
    log = InFlight()
    for turn in range(1_000):
        log.start(pod(f"p{turn}"))
        for _ in range(10):
            log.record(NODE_ADD, None, None)
        if turn >= 3:
            log.end(f"uid-p{turn - 3}")
        assert len(log.events) <= 40
