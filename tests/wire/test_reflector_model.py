"""Whatever goes wrong in whatever order: when it stops, the reflector has told exactly what is there."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wire.scripted import Half, Script, bookmark, page, pod, trouble

from kubesched.api.kinds import KNOWN
from kubesched.core.messages import Observed
from kubesched.wire.exchange import Chunk, Closed, Exchange, Request, Response, Unanswered
from kubesched.wire.reflector import Reflector

CONVERGED_WITHIN = 60  # seconds of virtual time after the last fault


class Server:
    """A log of changes, of which the beginning may be forgotten; and one client."""

    def __init__(self, streams: bool) -> None:
        self.at = 10
        self.floor = 0
        self.objects: dict[str, dict[str, Any]] = {}
        self.log: list[dict[str, Any]] = []
        self.births = 0
        self.stream: Request | None = None  # open, and told everything up to `told`
        self.told = 0
        self.snapshot: list[dict[str, Any]] = []
        self.snapshot_at = 0
        exchange = Exchange()
        self.client = Script(Reflector(KNOWN["Pod"], exchange, Half(), streams=streams), exchange).start()

    # ── what happens in the cluster ──────────────────────────────────────────────────────────────────────────

    def write(self, name: str) -> None:
        self.at += 1
        old = self.objects.get(name)
        if old is None:
            self.births += 1
        uid = f"{name}-{self.births}" if old is None else old["metadata"]["uid"]
        self.objects[name] = pod(name, self.at, uid)
        self.log.append({"type": "ADDED" if old is None else "MODIFIED", "object": self.objects[name]})

    def delete(self, name: str) -> None:
        old = self.objects.pop(name, None)
        if old is not None:
            self.at += 1
            last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.at)}}
            self.log.append({"type": "DELETED", "object": last})

    def compact(self) -> None:
        self.floor = self.at

    # ── what the client gets ─────────────────────────────────────────────────────────────────────────────────

    def serve(self) -> None:
        """Answer what is asked, as a healthy server does."""
        client = self.client
        for request in list(client.asked.values()):
            if request is self.stream:
                continue
            query = dict(request.query)
            if "watch" not in query:
                self._serve_page(request, query)
            elif "sendInitialEvents" in query:
                self._open(request)
                objects = [{"type": "ADDED", "object": one} for one in self.objects.values()]
                self.told = self.at
                self.send(*objects, bookmark(self.at, end=True))
            elif int(query["resourceVersion"]) < self.floor:
                client.refuse(410, reason="Expired")
            else:
                self.told = int(query["resourceVersion"])
                self._open(request)

    def _serve_page(self, request: Request, query: dict[str, str]) -> None:
        start = int(query.get("continue", 0))
        if not start:
            self.snapshot, self.snapshot_at = list(self.objects.values()), self.at
        elif self.snapshot_at < self.floor:
            self.client.refuse(410, reason="Expired")
            return
        end = start + 2 if "limit" in query else len(self.snapshot)
        more = str(end) if end < len(self.snapshot) else ""
        self.client.answer(page(self.snapshot_at, *self.snapshot[start:end], proceed=more))

    def _open(self, request: Request) -> None:
        self.stream = request
        self.client.reply(Response(200), request)

    def send(self, *events: dict[str, Any]) -> None:
        for event in events:
            if self.is_open:
                self.client.reply(Chunk(json.dumps(event).encode() + b"\n"), self.stream)

    @property
    def is_open(self) -> bool:
        if self.stream is not None and not any(one is self.stream for one in self.client.asked.values()):
            self.stream = None
        return self.stream is not None

    def deliver(self, count: int) -> None:
        """Tell the open stream what it has not been told."""
        news = [event for event in self.log if int(event["object"]["metadata"]["resourceVersion"]) > self.told]
        for event in news[:count]:
            self.told = int(event["object"]["metadata"]["resourceVersion"])
            self.send(event)

    def fault(self, what: str, amount: int) -> None:
        client = self.client
        if what == "silence":
            client.after(71)
        elif what == "wait":
            client.after(amount)
        elif self.is_open and self.stream is not None:
            self._break(what, amount, self.stream)
        else:
            for request in list(client.asked.values()):
                client.reply(Response(410 + amount) if what == "error" else Unanswered(what), request)

    def _break(self, what: str, amount: int, stream: Request) -> None:
        client = self.client
        match what:
            case "cut":
                if self.log:
                    line = json.dumps(self.log[-1]).encode() + b"\n"
                    client.reply(Chunk(line[: amount * 9]), stream)
                client.reply(Closed("cut"), stream)
            case "garbage":
                client.reply(Chunk(b"<html>\n"), stream)
            case "error":
                self.send(trouble((410, 500, 429, 504)[amount % 4]))
            case "again":
                self.send(*self.log[-amount:])
            case "unanswered":
                client.reply(Closed("reset"), stream)


FAULTS = ("cut", "garbage", "error", "again", "unanswered", "silence", "wait")
STEPS = st.one_of(
    st.tuples(st.sampled_from(["write", "write", "delete"]), st.sampled_from("abcde")),
    st.tuples(st.sampled_from(["serve", "deliver", "compact"]), st.integers(1, 4)),
    st.tuples(st.sampled_from(FAULTS), st.integers(0, 12)),
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(streams=st.booleans(), steps=st.lists(STEPS, max_size=60))
def test_what_was_told_is_what_is_there(streams: bool, steps: list[tuple[str, Any]]) -> None:
    server = Server(streams)
    for what, amount in steps:
        match what:
            case "write":
                server.write(amount)
            case "delete":
                server.delete(amount)
            case "compact":
                server.compact()
            case "serve":
                server.serve()
            case "deliver":
                server.deliver(amount)
            case _:
                server.fault(what, amount)
    healed = server.client.now
    for _ in range(CONVERGED_WITHIN):
        server.serve()
        server.deliver(1000)
        server.client.after(1)
        server.send(bookmark(server.at))
    assert server.client.machine.synced
    assert server.client.machine.reached == server.at, (server.client.now - healed) / 1e9
    assert _told(server.client) == {
        name: one["metadata"]["resourceVersion"] for name, one in server.objects.items()
    }


def _told(client: Script) -> dict[str, str]:
    """What a listener believes; it must never hear what makes no sense."""
    believed: dict[str, tuple[str, int]] = {}
    for event in client.events:
        if not isinstance(event, Observed):
            continue
        meta = event.obj.metadata
        before = believed.get(meta.name)
        if event.gone:
            assert before is not None, f"the end of {meta.name} was told, and it was not there"
            assert before[0] == meta.uid, "the end of one was told of another"
            del believed[meta.name]
        else:
            at = int(meta.resource_version)
            assert before is None or (before[0] == meta.uid and before[1] < at), f"{meta.name} {before} {at}"
            believed[meta.name] = (meta.uid, at)
    return {name: str(at) for name, (_, at) in believed.items()}
