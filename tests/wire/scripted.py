"""A machine on a script: the test is the server and the clock."""

from __future__ import annotations

import json
from typing import Any, Self

from kubesched.api.time import Instant, parse_rfc3339, seconds
from kubesched.core.messages import Event, Observed
from kubesched.wire.exchange import Actions, Chunk, Closed, Exchange, Number, Remark, Reply, Request, Response

START: Instant = parse_rfc3339("2026-01-01T00:00:00Z")


class Half:
    """Luck that is always in the middle."""

    def random(self) -> float:
        return 0.5


class Script:
    """What a machine asked and told, and how to answer it.

    Give it a machine of one exchange; `ask` is what is under way, oldest first.
    """

    def __init__(self, machine: Any, exchange: Exchange) -> None:
        self.machine, self.exchange = machine, exchange
        self.now = START
        self.asked: dict[Number, Request] = {}
        self.abandoned: list[Request] = []
        self.events: list[Event] = []
        self.remarks: list[Remark] = []

    # ── time ─────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> Self:
        self.machine.start(self.now)
        return self.look()

    def after(self, delay: float) -> Self:
        """Let time pass, in the steps the machine asks for."""
        end = Instant(self.now + seconds(delay))
        while (due := self.machine.deadline) is not None and due <= end:
            self.now = max(self.now, due)
            self.machine.tick(self.now)
            self.look()
            if self.machine.deadline is not None and self.machine.deadline <= self.now and due >= self.machine.deadline:
                raise AssertionError(f"the machine is due at {due} for ever")
        self.now = end
        return self

    @property
    def wait(self) -> float | None:
        """How many seconds until the machine wants to be called."""
        due = self.machine.deadline
        return None if due is None else (due - self.now) / 1e9

    # ── the server's side ────────────────────────────────────────────────────────────────────────────────────

    @property
    def request(self) -> Request:
        """The only request under way."""
        assert len(self.asked) == 1, [f"{one.method} {one.path} {dict(one.query)}" for one in self.asked.values()]
        return next(iter(self.asked.values()))

    @property
    def query(self) -> dict[str, str]:
        return dict(self.request.query)

    def reply(self, reply: Reply, to: Request | None = None) -> Self:
        """Answer the only request under way, or the one that is named."""
        request = self.request if to is None else to
        number = next(number for number, one in self.asked.items() if one is request)
        more = isinstance(reply, Chunk) or (isinstance(reply, Response) and request.streams and reply.status == 200)
        if not more:
            del self.asked[number]
        self.exchange.receive(number, reply, self.now)
        return self.look()

    def answer(self, body: Any = None, status: int = 200, to: Request | None = None, **headers: str) -> Self:
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return self.reply(Response(status, {k.replace("_", "-"): v for k, v in headers.items()}, raw), to)

    def refuse(self, code: int, message: str = "no", reason: str = "", **details: Any) -> Self:
        return self.answer(status_body(code, message, reason, **details), code)

    def lines(self, *events: Any) -> Self:
        """Say something on the stream, opening it first if need be."""
        return self.reply(Chunk(b"".join(json.dumps(event).encode() + b"\n" for event in events)))

    def close(self, why: str = "") -> Self:
        return self.reply(Closed(why))

    # ── what came of it ──────────────────────────────────────────────────────────────────────────────────────

    def look(self) -> Self:
        actions: Actions = self.exchange.take()
        for number in actions.abandoned:
            self.abandoned.append(self.asked.pop(number))
        self.asked.update(actions.requests)
        for number in actions.abandoned:
            self.asked.pop(number, None)
        self.events += actions.events
        self.remarks += actions.remarks
        return self

    def told(self) -> list[str]:
        """What the core was told since the last time, in short: `+a/1`, `-a/1`, `Synced Pod`."""
        said = [short(event) for event in self.events]
        self.events.clear()
        return said

    def what(self) -> list[str]:
        """The remarks since the last time, by their word."""
        said = [remark.what for remark in self.remarks]
        self.remarks.clear()
        return said


def short(event: Event) -> str:
    match event:
        case Observed(obj, gone):
            kind = "?" if type(obj).__name__ == "Invalid" else ""
            return f"{'-' if gone else '+'}{kind}{obj.metadata.name}/{obj.metadata.resource_version}"
    return f"Synced {' '.join(event.kinds)}" if hasattr(event, "kinds") else type(event).__name__


def status_body(code: int, message: str = "no", reason: str = "", **details: Any) -> dict[str, Any]:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message}
    return {**body, "reason": reason, **({"details": details} if details else {})}


def pod(name: str, version: int, uid: str = "", **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": spec}


def added(name: str, version: int, uid: str = "", **spec: Any) -> dict[str, Any]:
    return {"type": "ADDED", "object": pod(name, version, uid, **spec)}


def modified(name: str, version: int, uid: str = "", **spec: Any) -> dict[str, Any]:
    return {"type": "MODIFIED", "object": pod(name, version, uid, **spec)}


def deleted(name: str, version: int, uid: str = "", **spec: Any) -> dict[str, Any]:
    return {"type": "DELETED", "object": pod(name, version, uid, **spec)}


def bookmark(version: int, end: bool = False) -> dict[str, Any]:
    meta: dict[str, Any] = {"resourceVersion": str(version)}
    if end:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {"type": "BOOKMARK", "object": {"kind": "Pod", "apiVersion": "v1", "metadata": meta}}


def trouble(code: int, message: str = "no", reason: str = "", **details: Any) -> dict[str, Any]:
    return {"type": "ERROR", "object": status_body(code, message, reason, **details)}


def page(version: int, *pods: dict[str, Any], proceed: str = "") -> dict[str, Any]:
    meta = {"resourceVersion": str(version), **({"continue": proceed} if proceed else {})}
    items = [{key: value for key, value in one.items() if key not in ("kind", "apiVersion")} for one in pods]
    return {"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items}
