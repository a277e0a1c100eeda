"""What an effect becomes on the wire: one request, or a few, and what their answers mean to the core.

Each effect is a plan, a generator that yields requests and is given what came back.  It ends with the Answer the core
is waiting for.  A refusal (4xx) was surely not carried out; a failure of the server (5xx) or of the network perhaps
was, and the core must find out.  Too many requests (429) is neither: the plan waits as long as the server asks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from kubesched.api.kinds import KNOWN, Kind
from kubesched.api.objects import Invalid, Object
from kubesched.api.time import Duration, Instant, format_rfc3339, milliseconds, seconds
from kubesched.core.messages import Bind, Evict, PatchPod, ReadPod
from kubesched.framework.plain import plain
from kubesched.framework.steps import Answer, Create, Delete, Failure, HttpPost, Patch
from kubesched.wire.decoding import Garbled, Reader
from kubesched.wire.exchange import MERGE_PATCH, STRATEGIC_PATCH, Request, Response, Unanswered
from kubesched.wire.status import UNREADABLE, failure_of, retry_after, status_of

THROTTLED_TIMES = 10  # of client-go: then a 429 is an answer
EXTENDER_TYPES = ("application/json", "text/plain")  # the second is what Go sends for JSON unless told otherwise
POD = KNOWN["Pod"]

Json: TypeAlias = dict[str, Any]


class Pause(Struct, frozen=True):
    """Go on after a while."""

    delay: Duration


Got: TypeAlias = Response | Unanswered
Plan: TypeAlias = Generator[Request | Pause, Got | None, Answer]


class Plans:
    """Makes plans.

    Args:
        kinds: that a Call may name, besides those everybody knows.
        timeout: of a request to the API server.
        extenders: how long each extender may take, by its number.
    """

    def __init__(self, kinds: Mapping[str, Kind], timeout: Duration, extenders: Mapping[int, Duration]) -> None:
        self._kinds = {**KNOWN, **kinds}
        self._timeout = timeout
        self._extenders = extenders
        self._readers: dict[str, Reader] = {}

    # ── pods ─────────────────────────────────────────────────────────────────────────────────────────────────

    def bind(self, effect: Bind, now: Instant) -> Plan:
        namespace, name = split(effect.pod)
        meta = {"name": name, "namespace": namespace, "uid": effect.uid}
        if effect.resource_version:
            meta["resourceVersion"] = effect.resource_version
        target = {"apiVersion": "v1", "kind": "Node", "name": effect.node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        got = yield from self._ask("POST", POD.path(namespace, name, "binding"), binding)
        return Answer(failure=_failure(got))

    def patch_pod(self, effect: PatchPod, now: Instant) -> Plan:
        status: Json = {}
        if effect.condition is not None:
            status["conditions"] = [msgspec.to_builtins(effect.condition)]
        if effect.nominated_node_name is not None:
            status["nominatedNodeName"] = effect.nominated_node_name or None
        got = yield from self._patch_status(effect.pod, effect.uid, status, effect.resource_version)
        return self._object(got, POD)

    def _patch_status(self, pod: str, uid: str, status: Json, resource_version: str = "") -> _Asking:
        namespace, name = split(pod)
        meta = {"uid": uid, **({"resourceVersion": resource_version} if resource_version else {})}
        path = POD.path(namespace, name, "status")
        return (yield from self._ask("PATCH", path, {"metadata": meta, "status": status}, STRATEGIC_PATCH))

    def read_pod(self, effect: ReadPod, now: Instant) -> Plan:
        namespace, name = split(effect.pod)
        got = yield from self._ask("GET", POD.path(namespace, name))
        return self._object(got, POD, reads=True)

    def evict(self, effect: Evict, now: Instant) -> Plan:
        """Say why in the pod's status, then delete it: both of this very pod."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": effect.message,
            "lastTransitionTime": format_rfc3339(now),
        }
        got = yield from self._patch_status(effect.pod, effect.uid, {"conditions": [condition]})
        failure = _failure(got)
        if failure is None or failure.reason == "Invalid":  # a status that may not be written shall not protect a pod
            namespace, name = split(effect.pod)
            options: Json = {"preconditions": {"uid": effect.uid}}
            if effect.grace is not None:
                options["gracePeriodSeconds"] = effect.grace // 1_000_000_000
            got = yield from self._ask("DELETE", POD.path(namespace, name), _delete(options))
            failure = _failure(got)
        if failure is not None and failure.reason == "Conflict":
            failure = yield from self._whether_gone(effect, failure)
        return Answer(failure=failure)

    def _whether_gone(self, effect: Evict, conflict: Failure) -> Generator[Request | Pause, Got | None, Failure]:
        """Another pod in its place is one reason to be refused among others; whoever took it for gone would wait."""
        namespace, name = split(effect.pod)
        seen = self._object((yield from self._ask("GET", POD.path(namespace, name))), POD, reads=True)
        there = seen.obj is not None and seen.obj.metadata.uid == effect.uid
        gone = not there if seen.failure is None else seen.failure.reason == "NotFound"
        return Failure("NotFound", conflict.message, conflict.code) if gone else conflict

    # ── what hooks ask for ───────────────────────────────────────────────────────────────────────────────────

    def call(self, step: Patch | Create | Delete | HttpPost) -> Plan:
        if isinstance(step, HttpPost):
            return (yield from self._ask_extender(step))
        kind = self._kinds.get(step.kind)
        if kind is None:
            return Answer(failure=Failure("BadRequest", f"{step.kind} is no kind this scheduler knows"))
        namespace, name = split(step.key)
        match step:
            case Patch(_, _, body, version, subresource):
                sent = {**body, "metadata": {**(body.get("metadata") or {}), "resourceVersion": version}}
                path = kind.path(namespace, name, subresource)
                got = yield from self._ask("PATCH", path, sent if version else dict(body), MERGE_PATCH)
                return self._object(got, kind)
            case Create(_, _, body):
                meta = {"name": name, **({"namespace": namespace} if kind.namespaced else {})}
                obj = {**body, "apiVersion": kind.api_version, "kind": kind.name}
                obj["metadata"] = {**meta, **(body.get("metadata") or {})}
                return self._object((yield from self._ask("POST", kind.path(namespace), obj)), kind)
            case Delete(_, _, uid):
                options = {"preconditions": {"uid": uid}} if uid else {}
                got = yield from self._ask("DELETE", kind.path(namespace, name), _delete(options))
                return Answer(failure=_gone(_failure(got)) if uid else _failure(got))

    def _ask_extender(self, step: HttpPost) -> Plan:
        timeout = self._extenders.get(step.extender, seconds(5))
        body = msgspec.json.encode(step.body)
        request = Request(method="POST", path=step.verb, body=body, timeout=timeout, extender=step.extender)
        got = yield request
        if not isinstance(got, Response):
            return Answer(failure=_failure(got))
        if got.status != 200:
            return Answer(failure=failure_of(got, reads=False))
        content = got.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content not in EXTENDER_TYPES:
            return Answer(failure=Failure("Garbled", f"the extender answered {plain(content, 64)!r}, not JSON"))
        try:
            return Answer(data=msgspec.json.decode(got.body))
        except UNREADABLE as error:
            return Answer(failure=Failure("Garbled", f"the extender's answer is no JSON: {plain(error, 200)}"))

    # ── asking ───────────────────────────────────────────────────────────────────────────────────────────────

    def _ask(self, method: Any, path: str, body: Json | None = None, content_type: str = "application/json") -> _Asking:
        """One request, repeated while the server is too busy."""
        sent = b"" if body is None else msgspec.json.encode(body)
        request = Request(method=method, path=path, body=sent, content_type=content_type, timeout=self._timeout)
        return (yield from ask(request))

    def _object(self, got: Got | None, kind: Kind, reads: bool = False) -> Answer:
        failure = _failure(got, reads)
        if failure is not None or not isinstance(got, Response):
            return Answer(failure=failure)
        reader = self._readers.setdefault(kind.name, Reader(kind))
        try:
            view: Any = reader.object(got.body)
        except Garbled as garbled:
            # A write was carried out, whatever the answer looks like; a read that brought nothing is none.
            return Answer(failure=Failure("Garbled", str(garbled))) if reads else Answer()
        found: Object = view
        if isinstance(found, Invalid):
            return Answer(failure=Failure("Garbled", found.error)) if reads else Answer()
        return Answer(obj=found)


_Asking: TypeAlias = Generator[Request | Pause, Got | None, Got | None]


def ask(request: Request) -> _Asking:
    """A request, repeated while the answer is 429."""
    got = yield request
    for _ in range(THROTTLED_TIMES):
        if not (isinstance(got, Response) and got.status == 429):
            break
        yield Pause(retry_after(got, status_of(got)) or milliseconds(1000))
        got = yield request
    return got


def _delete(options: Json) -> Json:
    return {"apiVersion": "v1", "kind": "DeleteOptions", **options}


def _failure(got: Got | None, reads: bool = False) -> Failure | None:
    """What went wrong, if anything did."""
    if isinstance(got, Response):
        return None if 200 <= got.status < 300 else failure_of(got, reads=reads)
    why, applied = ("no answer", "unknown") if got is None else (got.why, got.applied)
    if applied == "no" or reads:
        return Failure("Unreachable", why, applied="no")
    return Failure("Timeout", why, applied="unknown")


def _gone(failure: Failure | None) -> Failure | None:
    """A deletion that names a uid and meets another object: the one that was meant is gone."""
    if failure is not None and failure.reason == "Conflict":
        return Failure("NotFound", failure.message, failure.code)
    return failure


def split(key: str) -> tuple[str, str]:
    """`namespace/name` → both."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


Performing: TypeAlias = Callable[[Any, Instant], Plan]
