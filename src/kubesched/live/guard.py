"""Who may ask a scheduler: health anybody, everything else those who prove who they are and are allowed to.

Two ways to prove it.  A token of this process, in a file that its owner alone can read: it opens everything, and is
what `kubesched explain` and `kubesched queue` use on the same machine.  Or whatever the cluster accepts: a bearer
token is shown to the API server in a TokenReview, a client certificate must be signed by an authority we were given;
then a SubjectAccessReview says whether this user may `get` the path.  When nobody can be asked, the answer is no.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from kubesched.framework.errors import WorldError

ALWAYS = ("/healthz", "/readyz", "/livez")
_CACHED_AT_MOST = 1024
_TTL = 10.0


class Denied(Exception):
    """No; `code` and `reason` as Kubernetes has them."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        self.code, self.reason = code, reason
        super().__init__(message)


class Visitor(NamedTuple):
    """What somebody shows: a bearer token, a client certificate (as the ssl module tells it), or neither."""

    token: str
    certificate: Mapping[str, Any]


class Person(NamedTuple):
    """Who somebody is."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Any] = {}


class Reviewer(Protocol):
    """Asks the API server.  Raises WorldError."""

    async def who(self, token: str) -> Person | None:
        """Whose token this is; None for nobody's."""
        ...

    async def may(self, person: Person, verb: str, path: str) -> bool: ...


class Guard:
    """Decides who may ask.

    Args:
        token: of this process; empty for none.
        reviewer: asks the API server; None where there is nobody to ask.
        always: paths for everybody; one that ends in `/*` stands for all below it.
        ttl: for how many seconds an answer of the API server holds.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        token: str = "",
        reviewer: Reviewer | None = None,
        always: Iterable[str] = ALWAYS,
        ttl: float = _TTL,
    ) -> None:
        self._clock, self._token, self._reviewer, self._ttl = clock, token, reviewer, ttl
        self._always = tuple(always)
        self._known: dict[Any, tuple[float, Any]] = {}

    async def admit(self, visitor: Visitor, verb: str, path: str) -> None:
        """Let the visitor pass.  Raises Denied."""
        if any(path == free or (free.endswith("/*") and path.startswith(free[:-1])) for free in self._always):
            return
        if self._token and visitor.token and hmac.compare_digest(visitor.token.encode(), self._token.encode()):
            return
        person = await self._identify(visitor)
        if person is None:
            raise Denied(401, "Unauthorized", _WHO if not (visitor.token or visitor.certificate) else "Unauthorized")
        if not await self._may(person, verb, path):
            raise Denied(403, "Forbidden", f'forbidden: User "{person.name}" cannot {verb} path "{path}"')

    async def _identify(self, visitor: Visitor) -> Person | None:
        if visitor.token:
            if self._reviewer is None:
                return None
            token = visitor.token
            person: Person | None = await self._ask(("who", token), lambda reviewer: reviewer.who(token))
            return person
        return person_of(visitor.certificate)

    async def _may(self, person: Person, verb: str, path: str) -> bool:
        if self._reviewer is None:
            return False
        question = ("may", person.name, person.groups, verb, path)
        allowed: bool = await self._ask(question, lambda reviewer: reviewer.may(person, verb, path))
        return allowed

    async def _ask(self, question: Any, ask: Callable[[Reviewer], Any]) -> Any:
        assert self._reviewer is not None
        now = self._clock()
        until, answer = self._known.get(question, (now, None))
        if until > now:
            return answer
        try:
            answer = await ask(self._reviewer)
        except WorldError as problem:
            message = f"the API server cannot be asked who may do this: {problem}"
            raise Denied(503, "ServiceUnavailable", message) from None
        if len(self._known) >= _CACHED_AT_MOST:
            self._known.clear()  # somebody is trying tokens; remembering their failures is not worth memory
        self._known[question] = (now + self._ttl, answer)
        return answer


_WHO = "say who you are: a bearer token, or a client certificate"


def person_of(certificate: Mapping[str, Any]) -> Person | None:
    """Whom a client certificate names: its common name, and its organizations as groups."""
    names: dict[str, list[str]] = {}
    for part in certificate.get("subject", ()):
        for kind, value in part:
            names.setdefault(kind, []).append(value)
    common = names.get("commonName", [""])[-1]
    groups = (*names.get("organizationName", ()), "system:authenticated")
    return Person(common, groups) if common else None
