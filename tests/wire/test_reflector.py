"""The reflector keeps one kind in view, whatever the server and the network do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.wire.scripted import (
    Half,
    Script,
    added,
    bookmark,
    deleted,
    modified,
    page,
    pod,
    trouble,
)

from kubesched.api.kinds import KNOWN
from kubesched.wire.exchange import Chunk, Closed, Exchange, Response, Unanswered
from kubesched.wire.frames import LINE_BYTES_MAX
from kubesched.wire.reflector import SMALL, Reflector

PODS = "/api/v1/pods"


def reflect(kind: str = "Pod", *, streams: bool = True) -> Script:
    exchange = Exchange()
    return Script(Reflector(KNOWN[kind], exchange, Half(), streams=streams), exchange).start()


def following(*names: str, at: int = 100, streams: bool = True) -> Script:
    """A reflector that has its first view: these pods, versions from 1, and everything up to 100."""
    s = reflect(streams=streams)
    pods = [pod(name, i) for i, name in enumerate(names, start=1)]
    if streams:
        s.answer().lines(*({"type": "ADDED", "object": one} for one in pods), bookmark(at, end=True))
    else:
        s.answer(page(at, *pods)).answer()
    s.told()
    s.what()
    return s


def relisted(s: Script) -> bool:
    """Whether it asks for a new view."""
    return "sendInitialEvents" in s.query or "watch" not in s.query


# ── the first view ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_view_is_streamed() -> None:
    s = reflect()
    assert s.request.path == PODS
    assert s.request.streams
    assert s.query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "450",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed",
    }
    s.answer().lines(added("a", 3), added("b", 9))
    assert s.told() == ["+a/3", "+b/9"]  # at once: there is nothing older to keep
    s.lines(bookmark(12, end=True))
    assert s.told() == ["Synced Pod"]
    s.lines(modified("a", 13), deleted("b", 14), added("c", 15))
    assert s.told() == ["+a/13", "-b/14", "+c/15"]
    assert s.machine.reached == 15


def test_only_pods_are_selected_by_their_phase() -> None:
    assert "fieldSelector" not in reflect("Node").query


@pytest.mark.parametrize("code", [400, 405, 422])
def test_a_server_that_refuses_to_stream_is_listed_in_pages(code: int) -> None:
    s = reflect().refuse(code, "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")
    assert s.query == {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed", "limit": "500"}
    s.answer(page(7, pod("a", 1)))
    assert s.told() == ["+a/1", "Synced Pod"]
    assert s.query["resourceVersion"] == "7"
    s.answer().lines(trouble(410)).answer(page(8, pod("a", 1)))
    assert "sendInitialEvents" not in s.query  # it is not asked again


def test_a_server_that_ignores_the_wish_for_initial_events_is_listed_in_pages() -> None:
    s = reflect().answer().lines(added("a", 1), bookmark(5))
    assert "watch" not in s.query
    assert s.answer(page(6, pod("a", 1))).told() == ["+a/1", "Synced Pod"]


def test_pages_are_put_together() -> None:
    s = reflect(streams=False)
    s.answer(page(50, pod("a", 1), proceed="next"))
    assert s.told() == []
    assert s.query["continue"] == "next"
    s.answer(page(50, pod("b", 2), proceed="last"))
    assert s.query["continue"] == "last"
    s.answer(page(50, pod("c", 3)))
    assert s.told() == ["+a/1", "+b/2", "+c/3", "Synced Pod"]
    assert s.query["resourceVersion"] == "50"


def test_an_empty_kind_is_synced_too() -> None:
    assert reflect("Node").answer().lines(bookmark(4, end=True)).told() == ["Synced Node"]
    s = reflect("Node", streams=False)
    assert s.answer({"metadata": {"resourceVersion": "3"}, "items": None}).told() == ["Synced Node"]


def test_version_0_is_never_asked_for() -> None:
    """Whatever happens: 0 means "whatever you have", and that may be an hour old."""
    s = following("a")
    asked = []
    for event in [trouble(410), trouble(504, "Too large resource version: 9, current: 3"), trouble(500)]:
        s.lines(event)
        while not s.asked:
            s.after(1)
        asked.append(s.query)
        s.answer()
        if relisted(s):
            s.lines(added("a", 1), bookmark(200, end=True))
    assert [query.get("resourceVersion") for query in asked] == [None, None, "200"]


def test_a_first_view_that_is_cut_off_is_asked_for_again_and_then_in_pages() -> None:
    s = reflect().answer().lines(added("a", 1)).close("reset")
    assert s.told() == ["+a/1"]
    s.after(2).answer().lines(added("a", 1)).close("reset")
    assert s.told() == []
    s.after(5)
    assert "watch" not in s.query
    s.answer(page(9, pod("b", 2)))
    assert s.told() == ["-a/1", "+b/2", "Synced Pod"]


# ── going on ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_watch_the_server_ends_goes_on_from_the_last_version() -> None:
    s = following("a").lines(modified("a", 130)).after(5).close()
    assert s.query["resourceVersion"] == "130"
    assert s.wait == 70  # at once: that is how watches end


@pytest.mark.parametrize("end", [Closed("reset by peer"), Closed("eof"), Closed("")])
def test_however_a_watch_ends_it_goes_on_from_the_last_version(end: Closed) -> None:
    s = following("a").lines(bookmark(222)).after(5).reply(end)
    assert s.query["resourceVersion"] == "222"


def test_half_a_line_at_the_end_is_asked_for_again() -> None:
    s = following("a")
    line = json.dumps(modified("a", 140)).encode()
    s.reply(Chunk(line[:50])).after(3).close()
    assert s.told() == []
    assert s.query["resourceVersion"] == "100"
    s.answer().reply(Chunk(line + b"\n"))
    assert s.told() == ["+a/140"]


def test_a_refused_connection_is_tried_again_with_growing_patience_and_keeps_its_version() -> None:
    s = following("a").after(5).close()
    waits = []
    for _ in range(7):
        s.reply(Unanswered("connection refused", "no"))
        waits.append(s.wait)
        s.after(waits[-1])
        assert s.query["resourceVersion"] == "100"
    assert waits == [1.2, 2.4, 4.8, 9.6, 19.2, 22.5, 22.5]  # half of the jitter; never more than 30 s
    assert s.what() == ["unreachable"] * 7
    s.answer().lines(modified("a", 101)).after(5).close().reply(Unanswered("refused"))
    assert s.wait == 1.2


def test_too_many_requests_are_waited_out_as_long_as_the_server_says() -> None:
    s = following("a").after(5).close().refuse(429, retryAfterSeconds=17)
    assert s.wait == 17
    assert s.after(17).query["resourceVersion"] == "100"
    s.answer(b"slow down", 429, retry_after="9")
    assert s.wait == 9
    s.after(9).answer(b"", 429)
    assert s.wait is not None
    assert s.wait < 6
    assert s.what() == ["throttled"] * 3


def test_nobody_may_send_us_to_sleep_for_a_day() -> None:
    assert following("a").after(5).close().answer(b"", 429, retry_after="86400").wait == 60


def test_silence_is_a_dead_connection() -> None:
    s = following("a").after(60).lines(bookmark(120))
    s.after(69)
    assert s.abandoned == []
    s.after(1)
    assert [request.path for request in s.abandoned] == [PODS]
    assert s.query["resourceVersion"] == "120"
    assert s.what() == ["quiet"]


def test_silence_before_the_first_view_is_complete_counts_too() -> None:
    s = reflect().answer().lines(added("a", 1)).after(75)
    assert len(s.abandoned) == 1
    assert relisted(s)


def test_half_a_line_now_and_then_is_not_silence() -> None:
    s = following("a")
    for piece in (b'{"type":', b'"ADDED",', b'"object":'):
        s.after(50).reply(Chunk(piece))
    assert s.abandoned == []


def test_a_watch_that_ends_at_once_is_not_asked_for_in_a_rush() -> None:
    s = following("a").after(5).close()
    for wait in (1.2, 2.4, 4.8):
        s.answer().close()
        assert s.wait == pytest.approx(wait)
        s.after(wait)
    assert s.what() == ["short"] * 3
    s.answer().lines(modified("a", 101)).close()  # short, but it told something
    assert s.wait == 70


# ── 410, in all five places, and other ways to be out of step ────────────────────────────────────────────────


def new_view(s: Script) -> list[str]:
    """Give it a new view in which `a` has changed, `b` is gone and `c` is new."""
    assert relisted(s)
    s.told()
    if s.request.streams:
        s.answer().lines(added("a", 150), added("c", 160), bookmark(200, end=True))
    else:
        s.answer(page(200, pod("a", 150), pod("c", 160)))
    return s.told()


DIFFERENCE = ["-b/2", "+a/150", "+c/160"]


def test_410_when_the_watch_is_asked_for() -> None:
    s = following("a", "b").after(5).close().refuse(410, "too old resource version: 100 (150)", "Expired")
    assert new_view(s) == DIFFERENCE


def test_410_in_the_middle_of_the_watch() -> None:
    s = following("a", "b").lines(modified("b", 120), trouble(410, "too old resource version", "Expired"))
    assert s.told() == ["+b/120"]
    assert new_view(s) == ["-b/120", "+a/150", "+c/160"]


def test_410_to_a_list() -> None:
    s = following("a", "b", streams=False).lines(trouble(410)).refuse(410, reason="Expired")
    while not s.asked:
        s.after(1)
    assert new_view(s) == DIFFERENCE


def test_410_while_paging_asks_for_everything_at_once() -> None:
    s = following("a", "b", streams=False).lines(trouble(410))
    s.answer(page(180, pod("x", 1), proceed="token")).refuse(410, "The provided continue parameter is too old")
    while not s.asked:
        s.after(1)
    assert "limit" not in s.query
    assert "continue" not in s.query
    assert new_view(s) == DIFFERENCE  # and nothing of the page before


def test_410_to_a_streamed_view() -> None:
    s = following("a", "b").lines(trouble(410)).refuse(410, reason="Expired")
    while not s.asked:
        s.after(1)
    assert new_view(s) == DIFFERENCE


def test_a_410_that_does_not_go_away_is_no_tight_loop() -> None:
    s = following("a").lines(trouble(410))
    for _ in range(20):
        if s.asked:
            s.refuse(410, reason="Expired")
        else:
            s.after(s.wait or 0)
    assert (s.now - following("a").now) / 1e9 > 60


def test_a_version_the_server_has_not_reached_is_given_up() -> None:
    """A server behind the one we asked before."""
    s = following("a", "b").after(5).close()
    s.refuse(504, "Too large resource version: 100, current: 90", "Timeout", causes=[
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ])  # fmt: skip
    assert new_view(s) == DIFFERENCE
    assert "ahead" in s.what()


def test_a_list_from_the_past_is_refused() -> None:
    s = following("a", "b", streams=False).lines(modified("a", 300), trouble(410))
    s.told()
    s.answer(page(250, pod("a", 1), pod("ghost", 2)))
    assert s.told() == []
    assert s.what()[-1] == "stale"
    s.after(s.wait or 0).answer(page(301, pod("a", 300)))
    assert s.told() == ["-b/2"]


def test_a_streamed_view_from_the_past_is_refused_and_nothing_of_it_told() -> None:
    s = following("a", "b").lines(modified("a", 300), trouble(410))
    s.told()
    s.answer().lines(added("a", 1), added("ghost", 2), bookmark(250, end=True))
    assert s.told() == []
    assert s.machine.reached == 300
    s.after(s.wait or 0)
    assert relisted(s)


def test_a_server_that_fails_at_our_version_again_and_again_is_asked_for_a_new_view() -> None:
    s = following("a", "b").after(5).close()
    tries = 0
    while not relisted(s):
        tries += 1
        s.refuse(500, "etcdserver: no leader", "InternalError")
        s.after(s.wait or 0)
    assert tries == 4
    assert new_view(s) == DIFFERENCE


# ── what is told ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_namesake_is_one_gone_and_one_come() -> None:
    s = following("a").lines(modified("a", 150, uid="another"))
    assert s.told() == ["-a/1", "+a/150"]
    s.lines(trouble(410)).answer().lines(added("a", 190, uid="third"), bookmark(200, end=True))
    assert s.told() == ["-a/150", "+a/190"]


def test_the_end_of_a_namesake_before_is_no_end() -> None:
    s = following().lines(added("a", 150, uid="new"))
    s.told()
    s.lines({"type": "DELETED", "object": pod("a", 90, uid="old")})
    assert s.told() == []


def test_duplicates_are_told_once_and_counted() -> None:
    s = following("a").lines(modified("a", 150), modified("a", 150), modified("a", 120), deleted("b", 151))
    assert s.told() == ["+a/150"]
    assert s.what() == ["duplicate"] * 3


def test_a_watch_that_goes_back_in_time_does_not_raise_the_dead() -> None:
    s = following("a", "b").lines(deleted("b", 150))
    s.told()
    s.lines(added("b", 120))
    assert s.told() == []
    assert s.what() == ["travelled"]
    assert relisted(s)


def test_a_bookmark_only_moves_the_version() -> None:
    s = following("a").lines(bookmark(170), bookmark(160))
    assert s.told() == []
    assert s.machine.reached == 170


def test_a_deletion_is_told_with_the_last_words_of_the_object() -> None:
    s = following("a").lines(deleted("a", 150, nodeName="n1"))
    [event] = s.events
    assert event.gone  # type: ignore[union-attr]
    assert event.obj.spec.node_name == "n1"  # type: ignore[union-attr]


# ── what cannot be read ──────────────────────────────────────────────────────────────────────────────────────


def test_an_object_that_cannot_be_read_is_told_as_invalid_and_the_watch_goes_on() -> None:
    s = following("a").lines(added("bad", 150, priority="high"), added("c", 151))
    assert s.told() == ["+?bad/150", "+c/151"]
    assert s.what() == ["unreadable"]
    s.lines(modified("bad", 152, priority=3), deleted("c", 153))
    assert s.told() == ["+bad/152", "-c/153"]


def test_in_a_page_too() -> None:
    s = reflect(streams=False).answer(page(9, pod("bad", 1, containers=7), pod("b", 2)))
    assert s.told() == ["+?bad/1", "+b/2", "Synced Pod"]


def test_the_end_of_an_object_is_told_even_if_its_last_words_cannot_be_read() -> None:
    s = following("a").lines(deleted("a", 150, priority="high"))
    assert s.told() == ["-a/1"]


def test_nulls_are_read_as_go_reads_them() -> None:
    s = following().lines(added("a", 150, containers=None, nodeSelector=None, priority=None))
    assert s.told() == ["+a/150"]


@pytest.mark.parametrize(
    "line",
    [
        b"<html><body>504 Gateway Time-out</body></html>",
        b"{}",
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":{"kind":"Pod"}}',
        b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"x","resourceVersion":"abc"}}}',
        b'{"type":"ADDED","object":[1,2,3]}',
        b'{"type":"ADDED","object":"pod"}',
        b'{"type":7,"object":{}}',
        b"[" * 100_000,
        b'{"type":"ADDED","object":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}",
        b'{"type":"ADDED","object":{"metadata":{"name":"\xff\xfe","resourceVersion":"4"}}}',
        b'{"type":"BOOKMARK","object":{"metadata":{}}}',
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"' + b"9" * 5000 + b'"}}}',
        b'{"type":"SURPRISE","object":{"kind":"Pod","metadata":{"name":"x","resourceVersion":"4"}}}',
        b"\x00" * 64,
    ],
    ids=range(15),
)
def test_a_line_without_sense_ends_the_stream_and_met_twice_asks_for_a_new_view(line: bytes) -> None:
    s = following("a", "b").reply(Chunk(line + b"\n"))
    assert s.what() == ["garbled"]
    assert len(s.abandoned) == 1
    s.after(s.wait or 0)
    assert s.query["resourceVersion"] == "100"
    s.answer().reply(Chunk(line + b"\n"))
    s.after(s.wait or 0)
    assert new_view(s) == DIFFERENCE


def test_nonsense_now_and_then_does_not_cost_a_new_view() -> None:
    s = following("a")
    for version in (150, 151, 152):
        s.reply(Chunk(b"<html>\n"))
        s.after(s.wait or 0).answer().lines(modified("a", version))
    assert s.told() == ["+a/150", "+a/151", "+a/152"]
    assert s.what() == ["garbled"] * 3


def test_an_unknown_kind_of_event_is_not_passed_over() -> None:
    """Its version must not count as seen: there may be a change in it that we did not understand."""
    s = following("a").lines({"type": "MERGED", "object": pod("a", 150)})
    assert s.machine.reached == 100


def test_an_object_of_another_kind_is_left_aside_and_does_not_move_the_version() -> None:
    s = following("a").lines({"type": "ADDED", "object": {**pod("x", 150), "kind": "Node"}}, modified("a", 140))
    assert s.told() == ["+a/140"]
    assert s.what() == ["foreign"]
    assert s.machine.reached == 140


def test_a_list_without_sense_is_asked_for_again() -> None:
    s = reflect(streams=False)
    nowhere = b'{"items":[],"metadata":{"resourceVersion":"0"}}'
    for body in (b"", b"no", b"[]", b'{"items":[{}]}', nowhere, b'{"items":7}'):
        s.answer(body)
        assert s.what() == ["garbled"]
        s.after(s.wait or 0)
    assert s.answer(page(3)).told() == ["Synced Pod"]


def test_a_line_without_end_is_not_kept() -> None:
    s = following("a")
    piece = b"x" * (1 << 20)
    for _ in range(LINE_BYTES_MAX // len(piece)):
        s.reply(Chunk(piece))
    assert s.abandoned == []
    s.reply(Chunk(piece))
    assert len(s.abandoned) == 1
    assert s.what() == ["garbled"]


def test_a_line_of_three_megabytes_is_read() -> None:
    s = following()
    big = added("big", 150)
    big["object"]["metadata"]["annotations"] = {"a": "x" * (3 << 20)}
    raw = json.dumps(big).encode() + b"\n"
    for at in range(0, len(raw), 65536):
        s.reply(Chunk(raw[at : at + 65536]))
    assert s.told() == ["+big/150"]


def test_frames_may_be_cut_anywhere() -> None:
    events = (added("a", 150), modified("a", 151), deleted("a", 152))
    raw = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    for size in (*range(1, 40), 97, 500):
        s = following()
        for at in range(0, len(raw), size):
            s.reply(Chunk(raw[at : at + size]))
        assert s.told() == ["+a/150", "+a/151", "-a/152"], size


# ── a server that does not let us ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("code", "what", "mend"),
    [(401, "unauthorized", "token or certificate"), (403, "forbidden", "grant get, list and watch of pods")],
)
def test_who_may_not_look_is_told_what_to_do_and_tries_again(code: int, what: str, mend: str) -> None:
    s = reflect().refuse(code, 'pods is forbidden: User "x" cannot list resource "pods"')
    [remark] = s.remarks
    assert remark.what == what
    assert mend in remark.text
    assert s.after(s.wait or 0).answer().lines(bookmark(5, end=True)).told() == ["Synced Pod"]


def test_a_kind_nobody_serves_is_taken_as_none_and_looked_for_again() -> None:
    s = reflect("DeviceClass").answer(b"404 page not found\n", 404)
    assert s.told() == ["Synced DeviceClass"]
    assert s.what() == ["unserved"]
    assert s.wait == 30
    s.after(30).answer(b"404 page not found\n", 404)
    assert s.what() == []
    device: dict[str, Any] = {"kind": "DeviceClass", "metadata": {"name": "gpu", "resourceVersion": "7"}}
    s.after(30).answer().lines({"type": "ADDED", "object": device}, bookmark(9, end=True))
    assert s.told() == ["+gpu/7"]


def test_a_server_without_pods_is_no_api_server() -> None:
    s = reflect().answer(b"<html>", 404)
    assert s.told() == []
    assert "is this the address" in s.remarks[0].text


def test_a_redirect_is_not_followed() -> None:
    s = reflect().answer(b"", 302, location="https://elsewhere/")
    assert s.what() == ["failed"]
    assert s.asked == {}


def test_a_page_that_does_not_get_through_is_asked_for_in_smaller_pieces() -> None:
    s = reflect(streams=False)
    limits = []
    for _ in range(4):
        limits.append(s.query["limit"])
        s.reply(Unanswered("the answer is longer than 268435456 bytes")).after(s.wait or 0)
    assert limits == ["500", "250", "125", "62"]
    s.answer(page(3)).answer().lines(trouble(410))
    assert s.query["limit"] == "500"


# ── being in a hurry ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_small_view_in_a_hurry_is_made_anew() -> None:
    s = following("a", "b")
    s.machine.hurry(150, s.now)
    s.look()
    assert new_view(s) == DIFFERENCE
    assert s.machine.reached == 200
    assert s.query["timeoutSeconds"] == "450"


def test_a_large_view_in_a_hurry_asks_for_a_watch_that_ends_soon() -> None:
    """The server sends a bookmark two seconds before the end it was given."""
    s = following(*(f"p{i}" for i in range(SMALL + 1)), at=5000)
    s.machine.hurry(5050, s.now)
    s.look()
    assert s.query["timeoutSeconds"] == "3"
    assert s.query["resourceVersion"] == "5000"
    s.answer().after(1).lines(bookmark(5060)).after(2).close()
    assert s.machine.reached == 5060
    assert s.query["timeoutSeconds"] == "450"


def test_who_is_there_already_need_not_hurry() -> None:
    s = following("a")
    s.machine.hurry(100, s.now)
    s.look()
    assert s.abandoned == []


def test_late_answers_to_what_was_given_up_do_no_harm() -> None:
    s = following("a")
    [number] = s.asked
    s.after(70)
    for late in (Chunk(b'{"type":"ADDED","object":{}}\n'), Response(500), Closed("late"), Unanswered("late")):
        s.exchange.receive(number, late, s.now)
    s.look()
    assert s.told() == []
    assert s.query["resourceVersion"] == "100"
