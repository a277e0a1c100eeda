"""One of several schedulers works at a time: the one that holds the Lease, as client-go's elector would hold it.

The record is client-go's own, so kubesched and kube-scheduler may stand for the same Lease.  So are the rules: nobody
trusts another's clock.  Whoever waits notes when it *saw* the record change, and takes over when nothing has changed
for as long as the record says.  Whoever leads writes every `retry_period`, and stops leading when no write has
succeeded for `renew_deadline`, counted from when the last one was sent: before anybody else can think it dead.

One thing is better than in client-go: whoever waits watches the Lease instead of polling it.  It knows at once that
the leader has let go, and waits no longer than it must when the leader has died.  Where it may not watch, it polls.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from kubesched.api.time import Duration, Instant, format_micro, seconds
from kubesched.framework.plain import plain
from kubesched.wire.exchange import Chunk, Exchange, Level, Luck, Number, Reply, Request, Response
from kubesched.wire.frames import Lines, LineTooLong
from kubesched.wire.status import UNREADABLE, status_of

JITTER = 1.2  # of client-go: a failed try is repeated after one retry period and up to as much and a fifth again
WATCH_SECONDS = 300
LEASE_BYTES_MAX = 1 << 20
STOPS_MAX = 4  # tries to let go

Standing = Literal["waiting", "leading", "lost", "released"]


class LeaseOptions(Struct, frozen=True, kw_only=True):
    """Which Lease, and how patient everybody is; the defaults are kube-scheduler's."""

    namespace: str = "kube-system"
    name: str = "kube-scheduler"
    duration: Duration = seconds(15)
    renew_deadline: Duration = seconds(10)
    retry_period: Duration = seconds(2)

    @property
    def collection(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"


class Elector:
    """Stands for a Lease until it leads, leads until it stops or fails; a lost elector stays lost.

    Args:
        identity: who we are, different for every process that stands.
    """

    def __init__(self, identity: str, options: LeaseOptions, exchange: Exchange, luck: Luck) -> None:
        self.identity, self.options = identity, options
        self.standing: Standing = "waiting"
        self.holder = ""  # as last seen
        self._exchange, self._luck = exchange, luck
        self._lease: dict[str, Any] | None = None  # as last seen; fields we do not know are kept
        self._seen_at = Instant(0)  # when it last changed, by our own clock
        self._renewed_at = Instant(0)  # when the write that made or kept us leader was sent
        self._sent_at = Instant(0)
        self._asking: Number | None = None  # a read or write of the Lease
        self._try_at: Instant | None = None
        self._stream: Number | None = None
        self._lines = Lines(LEASE_BYTES_MAX)
        self._may_watch = True
        self._stops = 0  # how often letting go was tried

    # ── what a host calls ────────────────────────────────────────────────────────────────────────────────────

    def start(self, now: Instant) -> None:
        self._read(now)

    def stop(self, now: Instant) -> None:
        """Let go of the Lease, so that the next may take over at once.  Whatever it guards must have ended."""
        if self.standing in ("lost", "released"):
            return
        self._forget_requests()
        if self.leading:
            self._stops = 1
            self._write(now, "")
        else:
            self.standing = "released"

    def tick(self, now: Instant) -> None:
        """Do what is due."""
        if self.leading and now >= self.leads_until:
            self._lose("it could not be renewed in time")
        elif self._try_at is not None and self._try_at <= now:
            self._try_at = None
            self._try(now)

    @property
    def deadline(self) -> Instant | None:
        """When `tick` is needed by itself."""
        due = [self._try_at] if self._try_at is not None else []
        due += [self.leads_until] if self.leading else []
        return min(due, default=None)

    @property
    def leading(self) -> bool:
        return self.standing == "leading"

    @property
    def leads_until(self) -> Instant:
        """No write may begin at this moment or later, unless the Lease has been renewed by then."""
        return Instant(self._renewed_at + self.options.renew_deadline)

    # ── reading, and judging what was read ───────────────────────────────────────────────────────────────────

    def _try(self, now: Instant) -> None:
        if self._asking is None:
            if self.leading:
                self._write(now, self.identity)
            else:
                self._read(now)

    def _read(self, now: Instant) -> None:
        request = Request(method="GET", path=self.options.path, timeout=self._timeout, bytes_max=LEASE_BYTES_MAX)
        self._asking = self._exchange.send(request, self._hear_read)

    def _hear_read(self, reply: Reply, now: Instant) -> None:
        self._asking = None
        lease = _lease_in(reply.body) if isinstance(reply, Response) and reply.status == 200 else None
        if isinstance(reply, Response) and reply.status == 404 and not self._stops:
            self._lease, self.holder = None, ""
            self._write(now, self.identity)
        elif lease is None:
            self._fail(now, "read", reply)
        else:
            if self._look(lease, now):
                self._close_stream()  # it should have told us: perhaps it is dead
            self._decide(now)

    def _look(self, lease: dict[str, Any], now: Instant) -> bool:
        """Take note of a record; what counts is when we see it change."""
        changed = self._lease is None or lease["spec"] != self._lease["spec"]
        if changed:
            self._seen_at = now
        self._lease = lease
        holder = _text(lease["spec"].get("holderIdentity"))
        if holder != self.holder and holder and holder != self.identity:
            self._remark("info", "leader", f"{plain(holder, 256)} leads")
        self.holder = holder
        return changed

    def _decide(self, now: Instant) -> None:
        mine = self.holder == self.identity
        if self._stops:
            self._let_go(now, again=mine)
        elif self.leading and self.holder and not mine:
            self._lose(f"{plain(self.holder, 256)} has taken it")
        elif mine or not self.holder or now >= self._expires:
            self._write(now, self.identity)
        else:
            self._await(now)

    @property
    def _expires(self) -> Instant:
        """When whoever holds the Lease counts as dead, unless we see it change before."""
        assert self._lease is not None
        return Instant(self._seen_at + seconds(_number(self._lease["spec"].get("leaseDurationSeconds"))))

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────

    def _await(self, now: Instant) -> None:
        """Somebody else leads: be there when that ends."""
        self._try_at = self._expires
        if self._stream is None and self._may_watch:
            self._watch()
        elif not self._may_watch:
            self._try_at = min(self._expires, self._soon(now))

    def _watch(self) -> None:
        assert self._lease is not None
        query = (
            ("watch", "true"),
            ("fieldSelector", f"metadata.name={self.options.name}"),
            ("resourceVersion", _text(self._lease["metadata"].get("resourceVersion"))),
            ("timeoutSeconds", str(WATCH_SECONDS)),
        )
        path = self.options.collection
        self._lines = Lines(LEASE_BYTES_MAX)
        request = Request(method="GET", path=path, query=query, streams=True, timeout=self._timeout)
        self._stream = self._exchange.send(request, self._hear_watch)

    def _hear_watch(self, reply: Reply, now: Instant) -> None:
        match reply:
            case Response(200):
                pass
            case Chunk(data):
                self._hear_lines(data, now)
            case _:
                self._stream = None
                if isinstance(reply, Response) and reply.status in (401, 403, 404, 405):
                    self._may_watch = False
                    self._remark("info", "unwatched", f"the Lease is polled, for it may not be watched: {_said(reply)}")
                self._poll(now)

    def _hear_lines(self, data: bytes, now: Instant) -> None:
        stream = self._stream
        try:
            for line in self._lines.feed(data):
                lease = _lease_told(line)
                if lease is None:
                    raise LineTooLong("it was deleted, or the watch is over")
                self._look(lease, now)
                if self._asking is None:
                    self._decide(now)
                if self._stream is not stream:
                    return
        except LineTooLong:
            self._close_stream()
            self._poll(now)

    def _poll(self, now: Instant) -> None:
        """Look again in a while, as client-go does; sooner where the leader's time is up before."""
        if self._asking is None:
            soon = self._soon(now)
            self._try_at = soon if self._try_at is None else min(self._try_at, soon)

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────

    def _write(self, now: Instant, holder: str) -> None:
        """Become leader, stay it, or let go; it fails if the record has changed since we saw it."""
        self._sent_at = now
        old = self._lease
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **(old or {})}
        lease["spec"] = self._spec({} if old is None else dict(old["spec"]), holder, format_micro(now))
        if old is None:
            lease["metadata"] = {"name": self.options.name, "namespace": self.options.namespace}
        request = Request(
            method="PUT" if old else "POST",
            path=self.options.path if old else self.options.collection,
            body=msgspec.json.encode(lease),
            timeout=self._timeout,
            bytes_max=LEASE_BYTES_MAX,
        )
        self._asking = self._exchange.send(request, self._hear_write)

    def _spec(self, spec: dict[str, Any], holder: str, stamp: str) -> dict[str, Any]:
        """The record as client-go writes it when it acquires, renews and releases."""
        transitions = _number(spec.get("leaseTransitions"))
        if holder != self.holder or not spec:
            spec["acquireTime"] = stamp
            transitions += bool(holder) and self._lease is not None
        spec["leaseTransitions"] = transitions
        spec["holderIdentity"], spec["renewTime"] = holder, stamp
        spec["leaseDurationSeconds"] = self.options.duration // 1_000_000_000 if holder else 1
        return spec

    def _hear_write(self, reply: Reply, now: Instant) -> None:
        self._asking = None
        lease = _lease_in(reply.body) if isinstance(reply, Response) and reply.status in (200, 201) else None
        if lease is None:
            code = reply.status if isinstance(reply, Response) else 0
            if code == 409 or (code == 404 and self._lease is not None):  # changed, or deleted: look again
                self._read(now)
            else:
                self._fail(now, "write", reply)
            return
        self._look(lease, now)
        if self._stops:
            self._let_go(now, again=False)
        elif now >= self._sent_at + self.options.renew_deadline:
            self._read(now)  # the answer took so long that it is worth nothing
        else:
            self._renewed(now)

    def _renewed(self, now: Instant) -> None:
        self._renewed_at = self._sent_at
        self._try_at = Instant(self._sent_at + self.options.retry_period)
        if not self.leading:
            self._close_stream()
            self.standing = "leading"
            self._remark("info", "leading", f"{self.identity} leads")

    # ── ends and failures ────────────────────────────────────────────────────────────────────────────────────

    def _fail(self, now: Instant, what: str, reply: Reply) -> None:
        self._remark("warning", "failed", f"cannot {what} {self.options.namespace}/{self.options.name}: {_said(reply)}")
        if self._stops:
            self._let_go(now, again=True)
        elif self.leading:
            self._try_at = max(now, Instant(self._sent_at + self.options.retry_period))
        else:
            self._try_at = self._soon(now)

    def _let_go(self, now: Instant, again: bool) -> None:
        """It is let go, or `again`: perhaps not yet."""
        if again and self._stops < STOPS_MAX:
            self._stops += 1
            if self.holder == self.identity:
                self._write(now, "")
            else:
                self._read(now)
        else:
            self.standing = "released"
            self._try_at = None
            self._remark("info", "released", "somebody else may lead now")

    def _lose(self, why: str) -> None:
        self._forget_requests()
        self.standing = "lost"
        self._remark("error", "lost", f"{self.identity} leads no more: {why}")

    def _forget_requests(self) -> None:
        self._close_stream()
        self._try_at = None
        if self._asking is not None:
            self._exchange.abandon(self._asking)
            self._asking = None

    def _close_stream(self) -> None:
        if self._stream is not None:
            self._exchange.abandon(self._stream)
            self._stream = None

    def _soon(self, now: Instant) -> Instant:
        period = self.options.retry_period
        return Instant(now + period + int(period * JITTER * self._luck.random()))

    @property
    def _timeout(self) -> Duration:
        return Duration(self.options.renew_deadline // 2)

    def _remark(self, level: Level, what: str, text: str) -> None:
        self._exchange.remark(level, "Lease", what, text)


# ── the record ───────────────────────────────────────────────────────────────────────────────────────────────


class _Told(Struct):
    type: str
    object: msgspec.Raw


def _lease_in(body: bytes) -> dict[str, Any] | None:
    """The Lease in an answer, with a spec and metadata in any case; None where there is none."""
    try:
        lease = msgspec.json.decode(body)
    except UNREADABLE:
        return None
    if not isinstance(lease, dict) or lease.get("kind") != "Lease":
        return None
    parts = {part: lease.get(part) or {} for part in ("metadata", "spec")}
    return {**lease, **parts} if all(isinstance(part, dict) for part in parts.values()) else None


def _lease_told(line: bytes) -> dict[str, Any] | None:
    try:
        told = msgspec.json.decode(line, type=_Told)
    except UNREADABLE:
        return None
    return _lease_in(bytes(told.object)) if told.type in ("ADDED", "MODIFIED") else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else 0


def _said(reply: Reply) -> str:
    if not isinstance(reply, Response):
        return getattr(reply, "why", "") or "no answer"
    status = status_of(reply)
    mend = {
        401: "check the token or certificate",
        403: "grant get, create, update and watch of leases.coordination.k8s.io",
        404: "the namespace must exist",
    }
    return status.message + (f" ({mend[status.code]})" if status.code in mend else "")
