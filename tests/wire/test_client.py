"""The whole client: who leads may schedule, after catching up; who does not lead writes nothing."""

from __future__ import annotations

import json
from typing import Any, Self

from tests.wire.scripted import START, Half, Script, bookmark, page, pod
from tests.wire.test_elector import lease

from kubesched.api.kinds import KNOWN
from kubesched.api.time import Instant, seconds
from kubesched.core.messages import Bind
from kubesched.wire.client import Client
from kubesched.wire.elector import LeaseOptions
from kubesched.wire.exchange import Actions, Chunk, Number, Reply, Request, Response, Unanswered

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class Collected:
    """A client whose Actions are collected, as a machine and its exchange would be."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._actions: list[Actions] = []

    def start(self, now: Instant) -> None:
        self._actions.append(self.client.start(now))

    def tick(self, now: Instant) -> None:
        self._actions.append(self.client.tick(now))

    def stop(self, now: Instant) -> None:
        self._actions.append(self.client.stop(now))

    def perform(self, effects: Any, now: Instant) -> None:
        self._actions.append(self.client.perform(effects, now))

    def receive(self, number: Number, reply: Reply, now: Instant) -> None:
        self._actions.append(self.client.receive(number, reply, now))

    @property
    def deadline(self) -> Instant | None:
        return self.client.deadline

    def take(self) -> Actions:
        whole = Actions([], [], [], [])
        for actions in self._actions:
            whole.requests += actions.requests
            whole.abandoned += actions.abandoned
            whole.events += actions.events
            whole.remarks += actions.remarks
        self._actions.clear()
        return whole


class Whole(Script):
    """A client on a script; `to` finds requests by what they are about."""

    client: Client

    def to(self, what: str, *, streams: bool | None = None) -> Request:
        found = [
            request
            for request in self.asked.values()
            if request.path.endswith(what) and (streams is None or request.streams is streams)
        ]
        assert found, [request.path for request in self.asked.values()]
        return found[-1]

    def paths(self) -> list[str]:
        return sorted(request.path.rpartition("/")[2] for request in self.asked.values())

    def sees(self, kind: str, at: int, *pods: dict[str, Any]) -> Self:
        """The first view of a kind, complete at a version."""
        stream = self.to(kind, streams=True)
        self.reply(Response(200), stream)
        events = [*({"type": "ADDED", "object": one} for one in pods), bookmark(at, end=True)]
        for event in events:
            self.hears(kind, event)
        return self

    def hears(self, kind: str, event: dict[str, Any]) -> Self:
        return self.reply(Chunk(json.dumps(event).encode() + b"\n"), self.to(kind, streams=True))

    def leads(self) -> Self:
        """The server gives us the Lease."""
        self.answer(lease(""), to=self.to("kube-scheduler"))
        self.answer(lease("me", 11), to=self.to("kube-scheduler"))
        return self

    def is_at(self, kind: str, at: int) -> Self:
        """The server says where it is."""
        self.answer(page(at), to=self.to(kind, streams=False))
        return self


def client(*, kinds: tuple[str, ...] = ("Node", "Pod"), **how: Any) -> Whole:
    how.setdefault("qps", -1.0)
    whole = Client([KNOWN[name] for name in kinds], Half(), identity="me", **how)
    collected = Collected(whole)
    script = Whole(collected, collected)  # type: ignore[arg-type]
    script.client = whole
    script.start()
    return script


def bind(number: int = 1) -> Any:
    return Bind(id=number, cause=0, pod=f"default/p{number}", uid="u", node="n", resource_version="3")  # type: ignore[arg-type]


def perform(s: Whole, *effects: Any) -> Whole:
    s.machine.perform(effects, s.now)
    s.look()
    return s


# ── without a Lease ──────────────────────────────────────────────────────────────────────────────────────────


def test_without_a_lease_it_waits_for_its_views_alone() -> None:
    s = client()
    assert s.client.waits_for == ("Node", "Pod")
    assert s.paths() == ["nodes", "pods"]
    s.sees("nodes", 4).sees("pods", 5, pod("a", 3))
    assert s.told() == ["Synced Node", "+a/3", "Synced Pod"]
    assert s.client.leading
    assert perform(s, bind()).to("binding").timeout == seconds(5)


def test_without_a_lease_it_is_over_when_it_is_stopped() -> None:
    s = client()
    assert not s.client.over
    s.machine.stop(s.now)
    assert s.client.over
    assert not s.client.lost


# ── with one ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_standby_watches_and_waits() -> None:
    s = client(lease=LeaseOptions())
    assert s.client.waits_for == ("Node", "Pod", "Lease")
    s.answer(lease("other"), to=s.to("kube-scheduler"))
    s.sees("nodes", 4).sees("pods", 5, pod("a", 3))
    assert s.told() == ["Synced Node", "+a/3", "Synced Pod"]
    assert not s.client.leading
    assert not s.client.may_write(s.now)
    perform(s, bind())
    assert s.paths() == ["leases", "nodes", "pods"]


def test_a_new_leader_catches_up_before_it_schedules() -> None:
    s = client(lease=LeaseOptions()).sees("nodes", 50).sees("pods", 50).leads()
    s.told()
    assert s.client.leading
    probes = [request for request in s.asked.values() if dict(request.query) == {"limit": "1"}]
    assert sorted(request.path for request in probes) == ["/api/v1/nodes", "/api/v1/pods"]
    s.is_at("nodes", 50)
    assert s.told() == []
    s.is_at("pods", 60)
    assert s.told() == []
    s.sees("pods", 61, pod("bound-by-the-old-leader", 58, nodeName="n1"))
    assert s.told() == ["+bound-by-the-old-leader/58", "Synced Lease"]
    s.hears("pods", bookmark(62))
    assert s.told() == []


def test_a_leader_without_a_view_yet_is_held_until_it_has_one_that_is_new_enough() -> None:
    s = client(kinds=("Pod",), lease=LeaseOptions()).leads().is_at("pods", 70)
    assert s.told() == []
    s.sees("pods", 65)
    assert s.told() == ["Synced Pod"]
    s.sees("pods", 69)  # made anew, and still not there: then a bookmark has to come
    assert dict(s.to("pods").query)["timeoutSeconds"] == "3"
    s.reply(Response(200), s.to("pods")).hears("pods", bookmark(71))
    assert s.told() == ["Synced Lease"]


def test_a_server_that_does_not_say_where_it_is_is_asked_again() -> None:
    s = client(kinds=("Pod",), lease=LeaseOptions()).sees("pods", 50).leads()
    s.told()
    for got in (Unanswered("timeout"), Response(500), Response(200, {}, b"<html>"), Response(403)):
        s.reply(got, s.to("pods", streams=False))
        assert s.told() == []
        assert s.what()[-1] == "barrier"
        s.after(1)
        while not any(not request.streams and request.path.endswith("pods") for request in s.asked.values()):
            s.answer(lease("me", 20), to=s.to("kube-scheduler")) if "kube-scheduler" in s.paths() else s.after(0.5)
    assert s.is_at("pods", 50).told() == ["Synced Lease"]


def test_a_kind_nobody_serves_holds_nobody_up() -> None:
    s = client(kinds=("DeviceClass",), lease=LeaseOptions())
    s.answer(b"404 page not found", 404, to=s.to("deviceclasses")).leads()
    s.answer(b"404 page not found", 404, to=s.to("deviceclasses"))
    assert s.told() == ["Synced DeviceClass", "Synced Lease"]


def test_writes_end_before_anybody_else_can_lead() -> None:
    s = client(lease=LeaseOptions()).leads()
    request = perform(s, bind()).to("binding")
    latest_start = s.client.elector.leads_until  # type: ignore[union-attr]
    assert latest_start + request.timeout < START + LeaseOptions().duration
    assert request.timeout == seconds(4.5)


def test_no_write_begins_when_the_lease_could_not_be_renewed() -> None:
    s = client(lease=LeaseOptions()).leads()
    s.now = Instant(START + seconds(10))
    assert "binding" not in perform(s, bind()).paths()


def test_who_has_lost_the_lease_is_over() -> None:
    s = client(lease=LeaseOptions()).sees("nodes", 4).sees("pods", 5).leads()
    perform(s, bind(1))
    s.after(10)
    assert s.client.over
    assert s.client.lost
    assert s.wait is None
    before = s.paths()
    perform(s, bind(2))
    assert s.paths() == before


def test_stopping_lets_go() -> None:
    s = client(lease=LeaseOptions()).leads()
    s.machine.stop(s.now)
    s.look()
    assert json.loads(s.to("kube-scheduler").body)["spec"]["holderIdentity"] == ""
    assert not s.client.over
    s.answer(lease("", 12), to=s.to("kube-scheduler"))
    assert s.client.over
    assert not s.client.lost


def test_it_may_watch_nothing_before_it_leads() -> None:
    s = client(lease=LeaseOptions(), idle_until_leading=True)
    assert s.paths() == ["kube-scheduler"]
    s.leads()
    assert s.paths() == ["nodes", "nodes", "pods", "pods"]  # the views, and where the server is


def test_everything_a_machine_is_due_for_is_done() -> None:
    s = client(lease=LeaseOptions())
    assert s.wait == 70
    s.answer(lease("other"), to=s.to("kube-scheduler"))
    assert s.wait == 15
    s.sees("nodes", 4).sees("pods", 5)
    perform(s.after(9), bind())
    s.after(6)
    assert s.to("kube-scheduler", streams=False).method == "GET"
