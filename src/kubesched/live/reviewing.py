"""Questions to the API server that are not about scheduling: who somebody is, what somebody may, what we may.

Each is one small POST with an answer to be read at once; whoever asks has a coroutine to wait in.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from kubesched.framework.errors import Unreachable, WorldError
from kubesched.live.guard import Person
from kubesched.live.role import Right
from kubesched.wire.exchange import Request, Response, Unanswered

Json = dict[str, Any]

_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"


class Asker(Protocol):
    """Who carries a single request out."""

    async def ask(self, request: Request) -> Response | Unanswered: ...


class ApiReviewer:
    """Shows tokens to the API server, and asks it what their bearers may do.

    Args:
        authentication, authorization: in whose name; usually the same.
    """

    def __init__(self, authentication: Asker, authorization: Asker) -> None:
        self._authentication, self._authorization = authentication, authorization

    async def who(self, token: str) -> Person | None:
        """Whose token this is; None for nobody's.  Raises WorldError."""
        told = await review(self._authentication, _AUTHENTICATION, "TokenReview", {"token": token})
        if not told.get("authenticated"):
            return None
        user = told.get("user") or {}
        groups = tuple(user.get("groups") or ())
        return Person(str(user.get("username", "")), groups, str(user.get("uid", "")), user.get("extra") or {})

    async def may(self, person: Person, verb: str, path: str) -> bool:
        spec: Json = {
            "user": person.name,
            "groups": list(person.groups),
            "uid": person.uid,
            "extra": dict(person.extra),
            "nonResourceAttributes": {"verb": verb, "path": path},
        }
        told = await review(self._authorization, _AUTHORIZATION, "SubjectAccessReview", spec)
        return bool(told.get("allowed"))


async def have(asker: Asker, right: Right, verb: str, namespace: str = "") -> bool:
    """Whether we ourselves may do this.  Raises WorldError."""
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
        "verb": verb,
        "namespace": namespace,
        "name": right.names[0] if right.names else "",
    }
    told = await review(asker, _AUTHORIZATION, "SelfSubjectAccessReview", {"resourceAttributes": attributes})
    return bool(told.get("allowed"))


async def review(asker: Asker, group: str, kind: str, spec: Json) -> Json:
    """Have something reviewed; the status that comes back.  Raises WorldError."""
    body = msgspec.json.encode({"apiVersion": f"{group}/v1", "kind": kind, "spec": spec})
    got = await asker.ask(Request(method="POST", path=f"/apis/{group}/v1/{kind.lower()}s", body=body))
    if isinstance(got, Unanswered):
        raise Unreachable(got.why)
    if not 200 <= got.status < 300:
        raise WorldError(f"{kind}: the API server answered {got.status}: {message_of(got)}")
    try:
        told = msgspec.json.decode(got.body)["status"]
    except (msgspec.DecodeError, LookupError, TypeError):
        raise WorldError(f"{kind}: the answer of the API server cannot be read") from None
    return told if isinstance(told, dict) else {}


def message_of(got: Response) -> str:
    """What a refusal says."""
    try:
        told = msgspec.json.decode(got.body)
    except msgspec.DecodeError:
        return got.body[:200].decode(errors="replace")
    return str(told.get("message", "")) if isinstance(told, dict) else str(told)
