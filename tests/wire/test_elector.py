"""The Lease, held as client-go holds it; and nobody leads who might have been given up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.wire.scripted import START, Half, Script

from kubesched.api.time import format_micro, seconds
from kubesched.wire.elector import Elector, LeaseOptions
from kubesched.wire.exchange import Chunk, Exchange, Response, Unanswered

PATH = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


def stand(identity: str = "me", **options: Any) -> Script:
    exchange = Exchange()
    return Script(Elector(identity, LeaseOptions(**options), exchange, Half()), exchange).start()


def lease(holder: str = "other", version: int = 10, **spec: Any) -> dict[str, Any]:
    record = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 15,
        "acquireTime": "2025-12-31T23:00:00.000000Z",
        "renewTime": "2025-12-31T23:59:59.000000Z",
        "leaseTransitions": 4,
        **spec,
    }
    meta = {"name": "kube-scheduler", "namespace": "kube-system", "resourceVersion": str(version), "uid": "u"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": record}


def sent(s: Script) -> dict[str, Any]:
    """The Lease in the request under way."""
    body: dict[str, Any] = json.loads(s.request.body)
    return body


def accept(s: Script, version: int = 11) -> Script:
    """The server stores what was sent."""
    body = sent(s)
    return s.answer({**body, "metadata": {**body["metadata"], "resourceVersion": str(version), "uid": "u"}})


def leading(**options: Any) -> Script:
    s = stand(**options)
    s.refuse(404, reason="NotFound")
    accept(s)
    assert s.machine.leading
    s.what()
    return s


def stamp(s: Script) -> str:
    return format_micro(s.now)


# ── coming to lead ───────────────────────────────────────────────────────────────────────────────────────────


def test_where_there_is_no_lease_it_is_made() -> None:
    s = stand()
    assert (s.request.method, s.request.path) == ("GET", PATH)
    s.refuse(404, reason="NotFound")
    assert (s.request.method, s.request.path) == ("POST", PATH.rpartition("/")[0])
    assert sent(s) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        "spec": {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 0,
        },
    }
    assert not s.machine.leading
    accept(s)
    assert s.machine.leading
    assert s.what() == ["leading"]


def test_a_lease_that_was_let_go_is_taken_at_once() -> None:
    s = stand().answer(lease("", leaseDurationSeconds=1))
    assert s.request.method == "PUT"
    body = sent(s)
    assert body["metadata"]["resourceVersion"] == "10"  # so that of two who try, one fails
    assert body["spec"]["leaseTransitions"] == 5
    assert body["spec"]["acquireTime"] == stamp(s)
    assert accept(s).machine.leading


def test_what_others_wrote_into_the_lease_is_kept() -> None:
    theirs = lease("", strategy="OldestEmulationVersion")
    theirs["metadata"]["labels"] = {"team": "infra"}
    body = sent(stand().answer(theirs))
    assert body["metadata"]["labels"] == {"team": "infra"}
    assert body["spec"]["strategy"] == "OldestEmulationVersion"


def test_a_lease_that_is_held_is_watched() -> None:
    s = stand().answer(lease("other"))
    assert s.request.streams
    assert s.query["fieldSelector"] == "metadata.name=kube-scheduler"
    assert s.query["resourceVersion"] == "10"
    assert s.wait == 15  # from when we saw it, whatever the record says of the time
    assert s.what() == ["leader"]


def test_the_clock_of_the_leader_does_not_matter() -> None:
    for renewed in ("2001-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z", None, "soon"):
        s = stand().answer(lease("other", renewTime=renewed))
        assert s.wait == 15
        assert not s.machine.leading


def watched(s: Script, version: int, holder: str = "other", kind: str = "MODIFIED") -> Script:
    line = json.dumps({"type": kind, "object": lease(holder, version, renewTime=format_micro(s.now))}).encode()
    stream = next(request for request in s.asked.values() if request.streams)
    return s.reply(Chunk(line + b"\n"), stream)


def test_each_renewal_that_is_seen_begins_the_time_anew() -> None:
    s = stand().answer(lease("other")).reply(Response(200))
    for version in range(11, 20):
        watched(s.after(2), version)
        assert s.wait == 15
    assert len(s.asked) == 1


def test_a_dead_leader_is_succeeded_when_its_time_is_up() -> None:
    s = stand().answer(lease("other")).reply(Response(200))
    watched(s.after(2), 11)
    s.after(14.9)
    assert all(request.streams for request in s.asked.values())
    s.after(0.1)
    read = next(request for request in s.asked.values() if not request.streams)
    s.answer(lease("other", 11, renewTime=format_micro(START + seconds(2))), to=read)
    write = next(request for request in s.asked.values() if not request.streams)
    assert write.method == "PUT"
    s.answer(lease("me", 12), to=write)
    assert s.machine.leading
    assert (s.now - START) / 1e9 == 17
    assert not any(request.streams for request in s.asked.values())


def test_a_leader_that_lets_go_is_succeeded_at_once() -> None:
    s = stand().answer(lease("other")).reply(Response(200)).after(3)
    watched(s, 11, holder="")
    write = next(request for request in s.asked.values() if not request.streams)
    assert write.method == "PUT"
    assert (s.now - START) / 1e9 == 3


def test_of_two_who_try_one_fails_and_waits() -> None:
    s = stand().answer(lease("")).refuse(409, reason="Conflict")
    assert s.request.method == "GET"
    s.answer(lease("another", 12))
    assert s.request.streams
    assert not s.machine.leading


def test_a_watch_that_died_without_a_word_is_found_out() -> None:
    s = stand().answer(lease("other")).reply(Response(200)).after(15)
    read = next(request for request in s.asked.values() if not request.streams)
    s.answer(lease("other", 18, renewTime="2026-01-01T00:00:14.000000Z"), to=read)
    assert len(s.abandoned) == 1
    assert s.query["resourceVersion"] == "18"
    assert s.wait == 15


def test_who_may_not_watch_polls() -> None:
    s = stand().answer(lease("other")).refuse(403)
    assert s.asked == {}
    assert s.wait == pytest.approx(3.2)  # 2 s, and half of up to a fifth more than as much again
    s.after(3.2).answer(lease("other", 11, renewTime="2026-01-01T00:00:03.000000Z"))
    assert s.asked == {}
    assert s.wait == pytest.approx(3.2)
    assert s.what() == ["leader", "unwatched"]


@pytest.mark.parametrize("end", [b"nonsense\n", b'{"type":"ERROR","object":{"code":410}}\n', b"[]\n", b"x" * (1 << 21)])
def test_a_watch_that_breaks_is_begun_again_from_a_read(end: bytes) -> None:
    s = stand().answer(lease("other")).reply(Response(200)).reply(Chunk(end))
    s.after(s.wait or 0)
    assert s.request.method == "GET"
    assert not s.request.streams
    s.answer(lease("other", 30, renewTime="2026-01-01T00:00:02.000000Z"))
    assert s.query["resourceVersion"] == "30"


def test_a_lease_that_is_deleted_is_made_anew() -> None:
    s = stand().answer(lease("other")).reply(Response(200))
    watched(s, 11, kind="DELETED")
    s.after(s.wait or 0).refuse(404)
    assert s.request.method == "POST"


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"kind":"Pod"}', b'{"kind":"Lease","spec":7}', b"<html>"])
def test_an_answer_that_is_no_lease_is_asked_for_again(body: bytes) -> None:
    s = stand().answer(body)
    assert s.what() == ["failed"]
    assert s.after(s.wait or 0).request.method == "GET"


def test_a_lease_without_a_record_is_free() -> None:
    empty = lease()
    del empty["spec"]
    assert sent(stand().answer(empty))["spec"]["leaseTransitions"] == 1


def test_nothing_is_taken_before_the_server_has_said_so() -> None:
    s = stand().answer(lease("")).reply(Unanswered("timeout"))
    assert not s.machine.leading
    s.after(s.wait or 0).answer(lease("me", 12))  # it had been carried out after all
    assert not s.machine.leading
    assert s.request.method == "PUT"
    body = sent(s)["spec"]
    assert body["leaseTransitions"] == 4  # we were the holder already
    assert accept(s).machine.leading


def test_an_answer_that_comes_when_it_is_worth_nothing_any_more_does_not_lead() -> None:
    s = stand().answer(lease(""))
    s.now += seconds(10)  # the machine that answered slept for so long
    accept(s)
    assert not s.machine.leading
    assert s.request.method == "GET"


# ── leading ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_lease_is_renewed_every_retry_period() -> None:
    s = leading()
    for version in range(20, 30):
        assert s.wait == 2
        s.after(2)
        body = sent(s)
        assert body["spec"]["renewTime"] == stamp(s)
        assert body["spec"]["acquireTime"] == "2026-01-01T00:00:00.000000Z"
        assert body["spec"]["leaseTransitions"] == 0
        accept(s, version)
    assert s.what() == []


def test_the_request_for_it_ends_before_the_deadline_does() -> None:
    assert leading().after(2).request.timeout == seconds(5)


def test_who_cannot_renew_stops_leading_at_the_deadline_and_not_a_moment_later() -> None:
    s = leading()
    while s.machine.leading:
        for request in list(s.asked.values()):
            s.reply(Unanswered("no route to host", "no"), request)
        s.after(s.wait or 0)
    assert (s.now - START) / 1e9 == 10
    assert s.machine.standing == "lost"
    assert s.what()[-1] == "lost"
    assert s.asked == {}
    assert s.wait is None


def test_the_deadline_counts_from_when_the_last_renewal_was_sent() -> None:
    s = leading().after(2)
    s.after(4)
    accept(s)
    assert s.machine.leads_until == START + seconds(12)


def test_a_renewal_whose_answer_was_lost_is_looked_up() -> None:
    s = leading().after(2).reply(Unanswered("timeout"))
    s.after(s.wait or 0).refuse(409, reason="Conflict")
    assert s.request.method == "GET"
    s.answer(lease("me", 15))
    assert s.request.method == "PUT"
    assert accept(s).machine.leading


def test_who_sees_somebody_else_hold_it_stops_at_once() -> None:
    s = leading().after(2).refuse(409, reason="Conflict").answer(lease("another", 15))
    assert s.machine.standing == "lost"
    assert "another" in s.remarks[-1].text


def test_a_lease_deleted_under_the_leader_is_made_anew() -> None:
    s = leading().after(2).refuse(404).refuse(404)
    assert s.request.method == "POST"
    assert accept(s).machine.leading


def test_a_lost_elector_stays_lost() -> None:
    s = leading()
    s.machine.tick(START + seconds(11))
    s.look()
    s.machine.stop(s.now)
    s.look()
    assert s.machine.standing == "lost"
    assert s.asked == {}


def test_short_leases_are_as_short_as_they_say() -> None:
    s = leading(duration=seconds(4), renew_deadline=seconds(3), retry_period=seconds(0.5))
    assert s.wait == 0.5
    s.after(0.5)
    assert sent(s)["spec"]["leaseDurationSeconds"] == 4
    s.after(2.5)
    assert s.machine.standing == "lost"


# ── letting go ───────────────────────────────────────────────────────────────────────────────────────────────


def test_letting_go_is_written_as_client_go_writes_it() -> None:
    s = leading().after(1)
    s.machine.stop(s.now)
    s.look()
    spec = sent(s)["spec"]
    assert spec == {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": stamp(s),
        "renewTime": stamp(s),
        "leaseTransitions": 0,
    }
    accept(s)
    assert s.machine.standing == "released"
    assert s.wait is None


def test_who_only_waited_has_nothing_to_let_go() -> None:
    s = stand().answer(lease("other"))
    s.machine.stop(s.now)
    s.look()
    assert s.machine.standing == "released"
    assert s.asked == {}


def test_letting_go_is_tried_again() -> None:
    s = leading()
    s.machine.stop(s.now)
    s.look().refuse(409, reason="Conflict").answer(lease("me", 20))
    assert sent(s)["metadata"]["resourceVersion"] == "20"
    assert accept(s).machine.standing == "released"


def test_letting_go_is_not_tried_for_ever() -> None:
    s = leading()
    s.machine.stop(s.now)
    s.look()
    tries = 0
    while s.asked:
        s.reply(Unanswered("nobody there"))
        tries += 1
    assert tries == 4
    assert s.machine.standing == "released"


def test_what_somebody_else_holds_by_now_is_not_let_go() -> None:
    s = leading()
    s.machine.stop(s.now)
    s.look().refuse(409).answer(lease("another", 20))
    assert s.machine.standing == "released"
    assert s.asked == {}
