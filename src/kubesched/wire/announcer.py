"""Events for people, as kube-scheduler publishes them: one object for the first, a count for those that follow.

An Event that says the same again within six minutes becomes a series: the object that is there gets a count, and
after the second time it is only written again when the series ends, or every half hour so that it does not expire.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from kubesched.api.kinds import KNOWN
from kubesched.api.time import Duration, Instant, format_micro, minutes, seconds
from kubesched.core.messages import Publish
from kubesched.framework.steps import Answer, Failure
from kubesched.wire.exchange import MERGE_PATCH, Luck, Request, Response
from kubesched.wire.plans import Pause, Plan, ask, split

SERIES_ENDS_AFTER: Duration = minutes(6)
REFRESH_EVERY: Duration = minutes(30)
LOOK_EVERY: Duration = minutes(1)
TRIES = 12
TRY_AGAIN_AFTER: Duration = seconds(10)  # and up to a quarter more, by luck
REMEMBERED_MAX = 4096
NAME_MAX = 236  # of 253: the rest is the time

Json = dict[str, Any]


class Said(Struct, gc=False):
    """An Event that is there, and how often it would have been said since.

    Thousands are remembered, so the object is kept as it was sent.
    """

    namespace: str
    name: str
    event: bytes
    first: Instant
    last: Instant
    written_at: Instant
    count: int = 1
    written: int = 1

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def collection(self) -> str:
        return f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"

    @property
    def series(self) -> Json:
        return {"count": self.count, "lastObservedTime": format_micro(self.last)}


class Announcer:
    """Makes Events, and remembers the latest of each kind.

    Args:
        host: where we run; with the reporter's name it says which instance speaks.
    """

    def __init__(self, host: str, timeout: Duration, luck: Luck) -> None:
        self._host, self._timeout, self._luck = host, timeout, luck
        self._said: dict[tuple[str, ...], Said] = {}
        self._stamp = 0
        self._look_at: Instant | None = None

    @property
    def deadline(self) -> Instant | None:
        return self._look_at

    def publish(self, effect: Publish, now: Instant) -> tuple[str, Plan] | None:
        """What to do, and to which Event; None where counting is enough."""
        about = (effect.kind, effect.regarding, effect.uid, effect.related)
        key = (*about, effect.type, effect.reason, effect.action, effect.note, effect.reporter)
        said = self._said.get(key)
        if said is None:
            event = self._event(effect, now)
            namespace, name = event["metadata"]["namespace"], event["metadata"]["name"]
            said = Said(namespace, name, msgspec.json.encode(event), first=now, last=now, written_at=now)
            self._remember(key, said, now)
            return said.key, self._create(said)
        said.count += 1
        said.last = now
        return (said.key, self._count(said, now)) if said.count == 2 else None

    def tick(self, now: Instant) -> list[tuple[str, Plan]]:
        """Series that have ended, or are about to be forgotten by the server, are written once more."""
        if self._look_at is None or self._look_at > now:
            return []
        due: list[tuple[str, Plan]] = []
        for key, said in list(self._said.items()):
            ended = said.last + SERIES_ENDS_AFTER < now
            if ended:
                del self._said[key]
            if said.count > 1 and (said.count > said.written if ended else said.written_at + REFRESH_EVERY < now):
                due.append((said.key, self._count(said, now)))
        self._look_at = Instant(now + LOOK_EVERY) if self._said else None
        return due

    def _remember(self, key: tuple[str, ...], said: Said, now: Instant) -> None:
        if len(self._said) >= REMEMBERED_MAX:
            del self._said[next(iter(self._said))]
        self._said[key] = said
        if self._look_at is None:
            self._look_at = Instant(now + LOOK_EVERY)

    # ── plans ────────────────────────────────────────────────────────────────────────────────────────────────

    def _create(self, said: Said) -> Plan:
        return self._insist(Request(method="POST", path=said.collection, body=said.event, timeout=self._timeout))

    def _count(self, said: Said, now: Instant) -> Plan:
        """Write how often it has been said; where the Event has expired, make it again."""
        said.written, said.written_at = said.count, now
        path = f"{said.collection}/{said.name}"
        body = msgspec.json.encode({"series": said.series})
        request = Request(method="PATCH", path=path, body=body, content_type=MERGE_PATCH, timeout=self._timeout)
        answer = yield from self._insist(request)
        if answer.failure is not None and answer.failure.reason == "NotFound":
            said.event = msgspec.json.encode({**msgspec.json.decode(said.event), "series": said.series})
            answer = yield from self._create(said)
        return answer

    def _insist(self, request: Request) -> Plan:
        """Try for two minutes while nobody answers; what the server refuses is not tried again."""
        why = ""
        for _ in range(TRIES):
            got = yield from ask(request)
            if isinstance(got, Response) and got.status < 500:
                refused = {404: "NotFound", 409: "AlreadyExists"}.get(got.status, "Refused")
                return Answer() if got.status < 300 else Answer(failure=Failure(refused, code=got.status))
            why = f"the server answered {got.status}" if isinstance(got, Response) else getattr(got, "why", "")
            yield Pause(Duration(TRY_AGAIN_AFTER + int(TRY_AGAIN_AFTER * self._luck.random() / 4)))
        return Answer(failure=Failure("Unreachable", why, applied="unknown"))

    # ── the object ───────────────────────────────────────────────────────────────────────────────────────────

    def _event(self, effect: Publish, now: Instant) -> Json:
        namespace, name = split(effect.regarding)
        self._stamp = max(now, self._stamp + 1)  # two at the same moment have different names all the same
        called = f"{name[:NAME_MAX].rstrip('-.')}.{self._stamp:x}"
        event: Json = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": called, "namespace": namespace or "default"},
            "eventTime": format_micro(now),
            "reportingController": effect.reporter,
            "reportingInstance": f"{effect.reporter}-{self._host}"[:128],
            "action": effect.action,
            "reason": effect.reason,
            "regarding": _reference(effect.kind, effect.regarding, effect.uid),
            "note": effect.note,
            "type": effect.type,
        }
        if effect.related:
            event["related"] = _reference("Pod", effect.related, "")
        return event


def _reference(kind: str, key: str, uid: str) -> Json:
    namespace, name = split(key)
    known = KNOWN.get(kind)
    parts = {"apiVersion": known.api_version if known else "", "namespace": namespace, "uid": uid}
    return {"kind": kind, "name": name, **{part: value for part, value in parts.items() if value}}
