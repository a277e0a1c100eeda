"""Effects become requests, answers become Completed; in order, in time, and not too many at once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from tests.wire.scripted import START, Half, Script, pod

from kubesched.api.objects import Pod, PodCondition
from kubesched.api.time import milliseconds, seconds
from kubesched.core.messages import AnyEffect, Bind, Call, Completed, Evict, PatchPod, Publish, ReadPod
from kubesched.framework.steps import Answer, Create, Delete, Failure, HttpPost, Patch
from kubesched.wire.exchange import MERGE_PATCH, STRATEGIC_PATCH, Exchange, Request, Unanswered
from kubesched.wire.performer import (
    AT_ONCE,
    AT_ONCE_LOW,
    EVENTS_AT_ONCE,
    EVENTS_BESIDE_BINDINGS,
    EVENTS_MAX,
    Performer,
)

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def performer(**how: Any) -> Script:
    exchange = Exchange()
    how.setdefault("qps", -1.0)
    return Script(Performer(exchange, Half(), host="host-1", **how), exchange)


def perform(s: Script, *effects: AnyEffect) -> Script:
    s.machine.perform(effects, s.now)
    return s.look()


def bind(number: int = 1, pod: str = "default/web", **fields: Any) -> Any:
    return Bind(id=number, cause=0, pod=pod, uid="u1", node="n1", resource_version="7", **fields)  # type: ignore[arg-type]


def patch(number: int = 1, pod: str = "default/web", **fields: Any) -> Any:
    return PatchPod(id=number, cause=0, pod=pod, uid="u1", **fields)  # type: ignore[arg-type]


def read(number: int = 1, pod: str = "default/web") -> Any:
    return ReadPod(id=number, cause=0, pod=pod, uid="u1")  # type: ignore[arg-type]


def evict(number: int = 1, pod: str = "default/web", **fields: Any) -> Any:
    return Evict(id=number, cause=0, pod=pod, uid="u1", message="to make room", **fields)  # type: ignore[arg-type]


def call(step: Any, number: int = 1) -> Any:
    return Call(id=number, cause=0, step=step)  # type: ignore[arg-type]


def publish(number: int = 1, note: str = "Successfully assigned", about: str = "default/web", **fields: Any) -> Any:
    said = {"type": "Normal", "reason": "Scheduled", "action": "Binding", "reporter": "default-scheduler", **fields}
    return Publish(id=number, cause=0, regarding=about, uid="u1", note=note, **said)  # type: ignore[arg-type]


def answers(s: Script) -> dict[int, Answer]:
    """What was completed since the last time, by the number of the effect."""
    done = {event.effect: event.answer for event in s.events if isinstance(event, Completed)}
    s.events.clear()
    return done  # type: ignore[return-value]


def answer(s: Script) -> Answer:
    [only] = answers(s).values()
    return only


def body(request: Request) -> Any:
    return json.loads(request.body)


# ── bindings ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_binding_carries_the_uid_and_the_version_it_was_decided_on() -> None:
    s = perform(performer(), bind())
    assert (s.request.method, s.request.path) == ("POST", "/api/v1/namespaces/default/pods/web/binding")
    assert body(s.request) == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "web", "namespace": "default", "uid": "u1", "resourceVersion": "7"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }
    s.answer({"kind": "Status", "status": "Success"}, 201)
    assert answers(s) == {1: Answer()}


@pytest.mark.parametrize(
    ("code", "reason", "applied"),
    [
        (400, "BadRequest", "no"),
        (403, "Forbidden", "no"),
        (404, "NotFound", "no"),
        (409, "Conflict", "no"),
        (413, "RequestEntityTooLarge", "no"),
        (422, "Invalid", "no"),
        (500, "InternalError", "unknown"),
        (503, "ServiceUnavailable", "unknown"),
        (504, "Timeout", "unknown"),
        (302, "", "no"),
    ],
)
@pytest.mark.parametrize("with_status", [True, False])
def test_a_refusal_was_not_carried_out_and_a_failure_perhaps_was(
    code: int, reason: str, applied: str, with_status: bool
) -> None:
    s = perform(performer(), bind())
    s.refuse(code, "the server's words", reason) if with_status else s.answer(b"<html>", code)
    failure = answer(s).failure
    assert failure is not None
    assert (failure.reason, failure.code, failure.applied) == (reason, code, applied)
    assert failure.message == ("the server's words" if with_status else f"the server answered {code}: <html>")


def test_a_connection_that_was_never_made_carried_nothing_out() -> None:
    s = perform(performer(), bind()).reply(Unanswered("connection refused", "no"))
    assert answer(s).failure == Failure("Unreachable", "connection refused", applied="no")


def test_a_timeout_after_sending_leaves_it_unknown() -> None:
    s = perform(performer(), bind()).reply(Unanswered("no answer within 5 s"))
    assert answer(s).failure == Failure("Timeout", "no answer within 5 s", applied="unknown")


def test_the_answer_to_a_binding_need_not_make_sense_to_be_a_success() -> None:
    s = perform(performer(), bind()).answer(b"\x00", 201)
    assert answer(s) == Answer()


def test_too_many_requests_are_repeated_as_the_server_asks_and_hold_no_place() -> None:
    s = perform(performer(), bind()).refuse(429, retryAfterSeconds=3)
    assert answers(s) == {}
    assert s.asked == {}
    assert s.wait == 3
    s.after(3).answer({}, 201)
    assert answers(s) == {1: Answer()}


def test_but_not_for_ever() -> None:
    s = perform(performer(), bind())
    for _ in range(11):
        s.refuse(429)
        s.after(s.wait or 0)
    failure = answer(s).failure
    assert failure is not None
    assert (failure.reason, failure.applied) == ("TooManyRequests", "no")


# ── a pod's status ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_condition_is_merged_into_the_status_of_that_very_pod() -> None:
    condition = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="no room")
    s = perform(performer(), patch(condition=condition, nominated_node_name="n2", resource_version="9"))
    assert (s.request.method, s.request.path) == ("PATCH", "/api/v1/namespaces/default/pods/web/status")
    assert s.request.content_type == STRATEGIC_PATCH
    assert body(s.request) == {
        "metadata": {"uid": "u1", "resourceVersion": "9"},
        "status": {
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
            ],
            "nominatedNodeName": "n2",
        },
    }
    s.answer(pod("web", 10, "u1"))
    found = answer(s).obj
    assert isinstance(found, Pod)
    assert found.metadata.resource_version == "10"


def test_a_promise_that_is_withdrawn_is_taken_out() -> None:
    s = perform(performer(), patch(nominated_node_name=""))
    assert body(s.request) == {"metadata": {"uid": "u1"}, "status": {"nominatedNodeName": None}}


def test_a_pod_made_again_under_the_same_name_is_not_the_one_that_was_meant() -> None:
    s = perform(performer(), patch(nominated_node_name="n1"))
    s.refuse(422, "field is immutable", "Invalid", causes=[{"reason": "FieldValueInvalid", "field": "metadata.uid"}])
    failure = answer(s).failure
    assert failure is not None
    assert failure.reason == "NotFound"


def test_a_pod_is_read_from_the_server_and_not_from_a_cache() -> None:
    s = perform(performer(), read())
    assert (s.request.method, s.request.path, s.request.query) == ("GET", "/api/v1/namespaces/default/pods/web", ())
    s.answer(pod("web", 12, "u1", nodeName="n1"))
    found = answer(s).obj
    assert isinstance(found, Pod)
    assert found.spec.node_name == "n1"


def test_a_read_that_fails_changed_nothing() -> None:
    for got in (Unanswered("timeout"), Unanswered("refused", "no")):
        failure = answer(perform(performer(), read()).reply(got)).failure
        assert failure is not None
        assert failure.applied == "no"
    failure = answer(perform(performer(), read()).answer(b"<html>")).failure
    assert failure is not None
    assert failure.reason == "Garbled"
    failure = answer(perform(performer(), read()).refuse(500)).failure
    assert failure is not None
    assert failure.applied == "no"


# ── evictions ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_victim_is_told_why_and_then_deleted() -> None:
    s = perform(performer(), evict(grace=seconds(7)))
    [condition] = body(s.request)["status"]["conditions"]
    assert condition["type"] == "DisruptionTarget"
    assert condition["reason"] == "PreemptionByScheduler"
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    s.answer(pod("web", 8, "u1"))
    assert (s.request.method, s.request.path) == ("DELETE", "/api/v1/namespaces/default/pods/web")
    assert body(s.request)["preconditions"] == {"uid": "u1"}
    assert body(s.request)["gracePeriodSeconds"] == 7
    s.answer({"kind": "Pod"})
    assert answers(s) == {1: Answer()}


def test_a_victim_that_is_gone_already_is_not_found() -> None:
    s = perform(performer(), evict()).refuse(404, reason="NotFound")
    assert answer(s).failure == Failure("NotFound", "no", 404)


@pytest.mark.parametrize("refused", ["the reason", "the deletion"])
def test_a_victim_that_is_refused_for_a_conflict_is_gone_only_if_another_is_in_its_place(refused: str) -> None:
    def asked() -> Script:
        s = perform(performer(), evict())
        s = (s.answer(pod("web", 8, "u1")) if refused == "the deletion" else s).refuse(409, "uid", "Conflict")
        assert (s.request.method, s.request.path) == ("GET", "/api/v1/namespaces/default/pods/web")
        return s

    gone, conflict = Failure("NotFound", "uid", 409), Failure("Conflict", "uid", 409)
    assert answer(asked().answer(pod("web", 9, "u2"))).failure == gone
    assert answer(asked().refuse(404, reason="NotFound")).failure == gone
    assert answer(asked().answer(pod("web", 9, "u1"))).failure == conflict
    assert answer(asked().answer(b"<html>")).failure == conflict


def test_a_victim_whose_status_nobody_may_write_is_deleted_all_the_same() -> None:
    s = perform(performer(), evict()).refuse(422, reason="Invalid")
    assert s.request.method == "DELETE"
    assert "gracePeriodSeconds" not in body(s.request)


def test_a_victim_we_may_not_touch_is_left() -> None:
    assert not answer(perform(performer(), evict()).refuse(403, reason="Forbidden")).ok


# ── what hooks ask for ───────────────────────────────────────────────────────────────────────────────────────


def test_a_patch_merges_and_may_be_conditional() -> None:
    step = Patch("PersistentVolumeClaim", "default/data", {"metadata": {"annotations": {"a": "b"}}}, "4")
    s = perform(performer(), call(step))
    assert (s.request.method, s.request.path) == ("PATCH", "/api/v1/namespaces/default/persistentvolumeclaims/data")
    assert s.request.content_type == MERGE_PATCH
    assert body(s.request) == {"metadata": {"annotations": {"a": "b"}, "resourceVersion": "4"}}
    meta = {"name": "data", "namespace": "default", "resourceVersion": "5"}
    s.answer({"kind": "PersistentVolumeClaim", "metadata": meta})
    found = answer(s).obj
    assert found is not None
    assert found.metadata.resource_version == "5"


def test_a_patch_of_a_subresource_and_without_a_condition() -> None:
    s = perform(performer(), call(Patch("PersistentVolume", "vol", {"status": {}}, subresource="status")))
    assert s.request.path == "/api/v1/persistentvolumes/vol/status"
    assert body(s.request) == {"status": {}}


def test_an_object_is_created_where_its_key_says() -> None:
    s = perform(performer(), call(Create("ResourceClaim", "default/gpu", {"spec": {}})))
    assert s.request.path == "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    assert body(s.request) == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {},
    }


def test_a_deletion_names_the_uid() -> None:
    s = perform(performer(), call(Delete("ReplicaSet", "default/rs", "u9")))
    assert (s.request.method, s.request.path) == ("DELETE", "/apis/apps/v1/namespaces/default/replicasets/rs")
    assert body(s.request)["preconditions"] == {"uid": "u9"}


def test_a_kind_nobody_knows_is_no_request() -> None:
    s = perform(performer(), call(Create("Wish", "default/w", {})))
    assert s.asked == {}
    failure = answer(s).failure
    assert failure is not None
    assert "Wish" in failure.message


# ── extenders ────────────────────────────────────────────────────────────────────────────────────────────────


def asked_extender() -> Script:
    return perform(performer(extenders={2: seconds(3)}), call(HttpPost(2, "filter", {"NodeNames": ["n1"]})))


def test_an_extender_is_asked_by_its_number_and_given_its_time() -> None:
    s = asked_extender()
    assert (s.request.extender, s.request.path, s.request.timeout) == (2, "filter", seconds(3))
    assert body(s.request) == {"NodeNames": ["n1"]}
    assert s.request.bytes_max == 16 << 20
    s.answer({"NodeNames": []}, content_type="application/json; charset=utf-8")
    assert answer(s) == Answer(data={"NodeNames": []})


@pytest.mark.parametrize(
    ("raw", "content", "status"),
    [
        (b"{}", "text/html", 200),
        (b"{}", "", 200),
        (b'{"score": NaN}', "application/json", 200),
        (b"[" * 100_000, "application/json", 200),
        (b"", "application/json", 200),
        (b"{}", "application/json", 302),
        (b"{}", "application/json", 500),
    ],
)
def test_an_extender_that_answers_something_else_has_failed(raw: bytes, content: str, status: int) -> None:
    assert not answer(asked_extender().answer(raw, status, content_type=content)).ok


def test_an_extender_that_may_have_bound_leaves_it_unknown() -> None:
    failure = answer(asked_extender().reply(Unanswered("timeout"))).failure
    assert failure is not None
    assert failure.applied == "unknown"


# ── order, places, rate ──────────────────────────────────────────────────────────────────────────────────────


def paths(requests: Iterable[Request]) -> list[str]:
    return [request.path.removeprefix("/api/v1/namespaces/default/pods/") for request in requests]


def test_requests_about_one_pod_do_not_overtake_each_other() -> None:
    s = perform(performer(), patch(1, nominated_node_name="n1"), patch(2, nominated_node_name=""))
    perform(s, bind(3, "default/other"))
    first, other = s.asked.values()
    assert paths([first, other]) == ["web/status", "other/binding"]
    assert body(first)["status"] == {"nominatedNodeName": "n1"}
    s.answer(pod("web", 8, "u1"), to=first)
    assert body(list(s.asked.values())[-1])["status"] == {"nominatedNodeName": None}


def test_a_pause_keeps_the_others_about_the_same_pod_waiting() -> None:
    s = perform(performer(), patch(1, nominated_node_name="n1"), patch(2, nominated_node_name=""))
    s.refuse(429, retryAfterSeconds=2)
    assert s.asked == {}
    s.after(2)
    assert body(s.request)["status"] == {"nominatedNodeName": "n1"}


def test_bindings_go_first_and_keep_places_for_themselves() -> None:
    s = performer()
    perform(s, *(patch(i, f"default/p{i}", nominated_node_name="n") for i in range(1, 200)))
    assert len(s.asked) == AT_ONCE_LOW
    perform(s, *(bind(1000 + i, f"default/b{i}") for i in range(100)))
    assert len(s.asked) == AT_ONCE
    assert sum(path.endswith("/binding") for path in paths(s.asked.values())) == AT_ONCE - AT_ONCE_LOW
    status = next(request for request in s.asked.values() if request.path.endswith("/status"))
    s.answer(pod("p", 1), to=status)
    assert list(s.asked.values())[-1].path.endswith("/binding")


def test_what_settles_a_binding_is_as_urgent_as_one() -> None:
    s = performer(qps=1.0, burst=1)
    perform(s, patch(1, "default/a", nominated_node_name="n"), patch(2, "default/b", nominated_node_name="n"))
    perform(s, evict(3, "default/c"), read(4, "default/d"), patch(5, "default/e", resource_version="3"))
    order = []
    for _ in range(5):
        order += paths([s.request])
        s.answer({}, 500).after(1)
    assert order == ["a/status", "d", "e/status", "c/status", "b/status"]


def test_the_rate_is_kept_after_the_burst() -> None:
    s = performer(qps=10.0, burst=5)
    perform(s, *(bind(i, f"default/b{i}") for i in range(1, 31)))
    assert len(s.asked) == 5
    assert s.wait == pytest.approx(0.1)
    s.after(0.1)
    assert len(s.asked) == 6
    s.after(1.0)
    assert len(s.asked) == 16
    for request in list(s.asked.values()):
        s.answer({}, 201, to=request)
    assert len(s.asked) == 0
    s.after(0.5)
    assert len(s.asked) == 5
    s.after(60)
    assert answers(s).keys() == set(range(1, 17))


def test_how_long_each_waited_for_its_turn_goes_with_it() -> None:
    s = performer(qps=10.0, burst=2)
    perform(s, *(bind(n, f"default/web-{n}") for n in range(4)))
    s.after(1.0)
    assert [one.waited for one in s.asked.values()] == [0, 0, milliseconds(100), milliseconds(200)]


def test_one_that_is_repeated_waits_anew() -> None:
    s = perform(performer(qps=10.0, burst=1), bind())
    s.refuse(429, retryAfterSeconds=3)
    s.after(5.0)
    assert s.request.waited == 0


def test_a_pause_fills_the_burst_again() -> None:
    s = performer(qps=10.0, burst=5)
    perform(s, *(bind(i, f"default/b{i}") for i in range(1, 6))).after(0.25)
    perform(s, *(bind(i, f"default/b{i}") for i in range(6, 20)))
    assert len(s.asked) == 7


def test_nothing_is_sent_while_nothing_may_be_written() -> None:
    allowed = [False]
    s = performer(may_write=lambda now: allowed[0])
    perform(s, bind())
    assert s.asked == {}
    assert s.wait is None  # nothing is due: whoever allows it again comes by
    allowed[0] = True
    s.machine.tick(s.now)
    assert len(s.look().asked) == 1


def test_before_letting_go_only_what_is_on_its_way_or_settles_a_binding_is_brought_to_an_end() -> None:
    s = performer(qps=10.0, burst=1)
    perform(s, bind(1, "default/sent"), bind(2, "default/unsent"), read(3, "default/asked"), patch(4, "default/told"))
    assert s.machine.hush(s.now) == 2
    s.look()
    gone = answers(s)
    assert gone.keys() == {2, 4}
    assert {one.failure.applied for one in gone.values() if one.failure is not None} == {"no"}
    s.answer({}, 201)
    assert s.after(1).request.method == "GET", "nobody but the one who bound it asks what became of a binding"
    perform(s, bind(5, "default/late"))
    assert 5 in answers(s)


def test_it_knows_whether_everything_has_been_answered() -> None:
    s = perform(performer(), bind(1), publish(2))
    assert (len(s.machine), s.machine.idle) == (1, False)
    binding, event = s.asked.values()
    s.answer({}, 201, to=binding)
    assert (len(s.machine), s.machine.idle) == (0, False)
    s.answer({}, 201, to=event)
    assert s.machine.idle


# ── Events ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_event_looks_like_kube_schedulers() -> None:
    s = perform(performer(), publish(related="default/other"))
    assert (s.request.method, s.request.path) == ("POST", EVENTS)
    event = body(s.request)
    name = event["metadata"].pop("name")
    assert name == f"web.{START:x}"
    assert event == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host-1",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "web", "uid": "u1"},
        "related": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "other"},
        "note": "Successfully assigned",
        "type": "Normal",
    }


def test_two_events_of_one_moment_have_names_of_their_own() -> None:
    s = perform(performer(), publish(1, "one"), publish(2, "two"))
    one, two = (body(request)["metadata"]["name"] for request in s.asked.values())
    assert one != two


def test_the_name_of_an_event_is_never_too_long() -> None:
    s = perform(performer(), publish(about=f"default/{'x' * 230 + '.' * 23}"))
    name = body(s.request)["metadata"]["name"]
    assert len(name) <= 253
    assert ".." not in name


def test_the_same_again_becomes_a_series() -> None:
    s = perform(performer(), publish(1)).answer({}, 201)
    perform(s.after(10), publish(2))
    assert s.request.method == "PATCH"
    assert s.request.path.startswith(f"{EVENTS}/web.")
    assert body(s.request) == {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:10.000000Z"}}
    s.answer({})
    for number in range(3, 9):  # counted, and not written each time
        perform(s.after(10), publish(number))
        assert s.asked == {}
    assert answers(s).keys() == set(range(1, 9))
    s.after(minutes := 7 * 60)
    assert body(s.request) == {"series": {"count": 8, "lastObservedTime": "2026-01-01T00:01:10.000000Z"}}
    s.answer({}).after(minutes)
    assert s.asked == {}
    perform(s, publish(9))
    assert s.request.method == "POST"


def test_the_second_does_not_overtake_the_first() -> None:
    s = perform(performer(), publish(1), publish(2))
    assert s.request.method == "POST"
    assert s.answer({}, 201).request.method == "PATCH"


def test_something_else_about_the_same_pod_is_an_event_of_its_own() -> None:
    s = perform(performer(), publish(1, "0/3 nodes fit"), publish(2, "0/4 nodes fit"))
    assert [request.method for request in s.asked.values()] == ["POST", "POST"]


def test_a_series_whose_event_has_expired_is_made_anew() -> None:
    s = perform(performer(), publish(1)).answer({}, 201)
    perform(s.after(5), publish(2)).refuse(404)
    assert s.request.method == "POST"
    assert body(s.request)["series"]["count"] == 2


def test_a_long_series_is_written_now_and_then_so_that_it_does_not_expire() -> None:
    s = perform(performer(), publish(1)).answer({}, 201)
    written = 0
    for number in range(2, 100):
        perform(s.after(60), publish(number))
        while s.asked:
            written += 1
            s.answer({})
    assert written == 4  # the second, and then every half hour


def test_an_event_nobody_takes_is_tried_for_two_minutes() -> None:
    s = perform(performer(), publish(1))
    tries = 0
    while not s.machine.idle:
        tries += 1
        s.reply(Unanswered("refused", "no"))
        s.after(11.25)
    assert tries == 12
    assert not answer(s).ok


def test_an_event_that_is_refused_is_not_tried_again() -> None:
    s = perform(performer(), publish(1)).refuse(403)
    assert s.asked == {}
    assert not answer(s).ok


def test_events_wait_in_a_lane_of_their_own_and_are_dropped_before_they_pile_up() -> None:
    s = performer()
    perform(s, *(publish(i, about=f"default/p{i}") for i in range(1, EVENTS_MAX + 101)))
    assert len(s.asked) == EVENTS_AT_ONCE
    assert len(answers(s)) == 100
    assert [bool(remark.text) for remark in s.remarks] == [True] + [False] * 99  # counted each time, and said once
    assert s.what() == ["dropped"] * 100
    perform(s, bind(5000))
    assert len(s.asked) == EVENTS_AT_ONCE + 1


def test_few_events_are_written_while_bindings_are_under_way_and_more_as_soon_as_there_are_none() -> None:
    s = perform(performer(), bind(1))
    perform(s, *(publish(i, about=f"default/p{i}") for i in range(2, 100)))
    binding, *events = s.asked.values()
    assert len(events) == EVENTS_BESIDE_BINDINGS
    s.answer({}, 201, to=events[0])
    assert len(s.asked) == 1 + EVENTS_BESIDE_BINDINGS
    s.answer({}, 201, to=binding)
    assert len(s.asked) == EVENTS_AT_ONCE


def test_what_was_said_is_not_remembered_for_ever() -> None:
    s = performer()
    for i in range(1, 5001):
        perform(s, publish(i, about=f"default/p{i}")).answer({}, 201)
    assert len(s.machine._announcer._said) <= 4096
    s.after(8 * 60)
    assert s.machine._announcer._said == {}
    assert s.wait is None
