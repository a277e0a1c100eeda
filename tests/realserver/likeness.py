"""Two API servers are asked the same, and what they answer is compared: status, reason, message, every object whole.

A sequence of requests is drawn from a seed (drawing.py beside this file) before anybody is asked, so every server gets
the same one.  What only the server knows, a uid or a resourceVersion, is a placeholder that is filled in from the
server's own object just before the request is sent.  What two servers cannot agree on, such as times, uids, random
names, is masked, and nothing else is.

Anything with a function from a request to a status and a body can be compared: the real kube-apiserver over HTTPS, the
embedded server over HTTPS or called in process, and the store a simulation runs on.
"""

from __future__ import annotations

import copy
import http.client
import json
import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from kubesched.apiserver.requests import Response
from kubesched.apiserver.server import ApiServer

Json = dict[str, Any]

# method, path, query, content type, body → status, body
Ask = Callable[[str, str, str, str, bytes], tuple[int, bytes]]

UID, VERSION = "@uid", "@version"
AGENT = {"User-Agent": "kubesched-tests"}
JSON, MERGE, STRATEGIC, STEPS, APPLY = (
    "application/json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)


@dataclass(frozen=True)
class Edit:
    """One value in an object replaced; `value` None takes it away."""

    path: tuple[str | int, ...]
    value: Any


@dataclass(frozen=True)
class Asked:
    """One request.

    base: the path of the object that placeholders are filled in from; with `edits` the body is that object, changed.
    """

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: Any = None
    content_type: str = JSON
    base: str = ""
    edits: tuple[Edit, ...] = ()

    def __str__(self) -> str:
        query = f"?{urlencode(self.query)}" if self.query else ""
        body = self.body if self.body is not None else list(self.edits) or ""
        kind = self.content_type.removeprefix("application/") if self.method == "PATCH" else ""
        return f"{self.method} {self.path}{query} {kind} {_shown(body)}"


def _shown(body: Any) -> str:
    return repr(body) if isinstance(body, bytes) else json.dumps(body, default=str)


@dataclass(frozen=True)
class Seen:
    """What a server answered, without what is its own."""

    status: int
    answer: Any

    @property
    def lines(self) -> list[str]:
        return f"{self.status}\n{json.dumps(self.answer, indent=1, sort_keys=True)}".splitlines()


def play(ask: Ask, sequence: Iterable[Asked]) -> list[Seen]:
    """Ask a server everything, in order."""
    return [_seen(ask, one) for one in sequence]


def _seen(ask: Ask, one: Asked) -> Seen:
    body = one.body
    if one.base:
        status, raw = ask("GET", one.base, "", JSON, b"")
        found = json.loads(raw) if status == 200 else {}
        body = edited(found, one.edits) if one.edits and found else filled(body, found.get("metadata", {}))
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    status, answer = ask(one.method, quote(one.path, safe="/:%"), urlencode(one.query), one.content_type, raw)
    return Seen(status, normal(read(answer)))


def read(answer: bytes) -> Any:
    """JSON where it is JSON, text where it is not."""
    try:
        return json.loads(answer)
    except ValueError:
        return answer.decode(errors="replace")


def filled(body: Any, metadata: Json) -> Any:
    """The body with its placeholders filled in."""
    if isinstance(body, dict):
        return {key: filled(value, metadata) for key, value in body.items()}
    if isinstance(body, list):
        return [filled(value, metadata) for value in body]
    known = {UID: metadata.get("uid", "none"), VERSION: metadata.get("resourceVersion", "1")}
    return known.get(body, body) if isinstance(body, str) else body


def edited(obj: Json, edits: Sequence[Edit]) -> Json:
    """The object with some values replaced; what is on no path that exists stays as it is."""
    result = copy.deepcopy(obj)
    for edit in edits:
        at: Any = result
        for key in edit.path[:-1]:
            if isinstance(at, list) and isinstance(key, int) and key < len(at):
                at = at[key]
            elif isinstance(at, dict):
                at = at.setdefault(str(key), {})
            else:
                break
        else:
            last = edit.path[-1]
            if isinstance(at, dict):
                at.pop(str(last), None)
                if edit.value is not None:
                    at[str(last)] = edit.value
            elif isinstance(at, list) and isinstance(last, int) and last < len(at):
                at[last] = edit.value
    return result


# ── what is a server's own ──────────────────────────────────────────────────────────────────────────────────

_ALLOCATED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
_PLACE = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_OWN = {"uid": "UID", "resourceVersion": "VERSION", "continue": "TOKEN"}
_MASKS = (
    (re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "TIME"),
    (re.compile(r"\b([Mm]ade-\d+-)[bcdfghjklmnpqrstvwxz2456789]{5}\b"), r"\1XXXXX"),
    (re.compile(r"(resource ?[vV]ersion:? \(?)\d+"), r"\1N"),
    (re.compile(r"(ResourceVersion in record \()\d+"), r"\1N"),
    (re.compile(r"current: \d+"), "current: N"),
    (re.compile(r"in object meta: \d+"), "in object meta: N"),
    (re.compile(r"\n(@@ |- |\+ )[\s\S]*"), "\nCHANGES"),  # two objects compared, each server in its own way
    (re.compile("^Used for system critical pods .*"), "FOR THE SYSTEM"),
)


def normal(value: Any, key: str = "") -> Any:
    """A value without what tells two servers apart."""
    if isinstance(value, dict):
        if value.get("kind") == "Status":
            value = _sorted_causes(value)
        if "containers" in (value.get("spec") or {}):
            value = {**value, "metadata": _without_place(value.get("metadata") or {})}
        if key == "metadata":
            value = {name: below for name, below in value.items() if name != "managedFields"}
        if "clusterIP" in value:
            value = {name: below for name, below in value.items() if name not in _ALLOCATED}
        return {name: normal(below, name) for name, below in value.items()}
    if isinstance(value, list):
        return [normal(item) for item in value]
    if not isinstance(value, str):
        return value
    if key in _OWN and value:
        return _OWN[key]
    for pattern, instead in _MASKS:
        value = pattern.sub(instead, value)
    return value


def _without_place(metadata: Json) -> Json:
    """A pod's metadata without the labels of its node: the real server may not have heard of the node yet."""
    labels = {name: text for name, text in (metadata.get("labels") or {}).items() if name not in _PLACE}
    rest = {name: below for name, below in metadata.items() if name != "labels"}
    return {**rest, "labels": labels} if labels else rest


def _sorted_causes(status: Json) -> Json:
    """Several faults are found in any order; the message repeats them."""
    details = status.get("details") or {}
    causes = details.get("causes")
    if not causes:
        return status
    ordered = sorted(causes, key=lambda cause: [cause.get(name, "") for name in ("field", "reason", "message")])
    return {**status, "message": "", "details": {**details, "causes": ordered}}


# ── who can be asked ────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def over_https(url: str, trust: ssl.SSLContext, token: str) -> Iterator[Ask]:
    """A server at the other end of a connection, which is kept open."""
    address = urlsplit(url)
    assert address.hostname is not None
    connection = http.client.HTTPSConnection(address.hostname, address.port, context=trust, timeout=30)

    def ask(method: str, path: str, query: str, content_type: str, body: bytes) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {token}", "Accept": JSON, "Content-Type": content_type, **AGENT}
        connection.request(method, f"{path}?{query}" if query else path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    with closing(connection):
        yield ask


def in_process(server: ApiServer) -> Ask:
    """The embedded server, called."""

    def ask(method: str, path: str, query: str, content_type: str, body: bytes) -> tuple[int, bytes]:
        headers = {"content-type": content_type, "accept": JSON, **{key.lower(): text for key, text in AGENT.items()}}
        answer = server.handle(method, path, query, headers, body)
        assert isinstance(answer, Response)
        return answer.status, answer.body

    return ask


# ── the verdict ─────────────────────────────────────────────────────────────────────────────────────────────


def differences(
    sequence: Sequence[Asked], theirs: Sequence[Seen], ours: Sequence[Seen], *, words: bool = False
) -> list[str]:
    """Every request that was not answered alike, and how the answers differ; with `words`, also in their sentences."""
    found = []
    for number, (one, their, our) in enumerate(zip(sequence, theirs, ours, strict=True)):
        if their != our and (words or essence(their) != essence(our)):
            changes = unified_diff(their.lines, our.lines, "theirs", "ours", lineterm="", n=2)
            found.append("\n".join([f"request {number}: {one}", *changes]))
    return found


def essence(seen: Seen) -> Seen:
    """An answer without the sentences of a refusal."""
    answer = seen.answer
    if not isinstance(answer, dict) or answer.get("kind") != "Status":
        return seen
    details = {name: value for name, value in (answer.get("details") or {}).items() if name != "causes"}
    return Seen(seen.status, {"reason": answer.get("reason"), "code": answer.get("code"), "details": details})
