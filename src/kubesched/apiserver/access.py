"""Who is asking, and whether they may: tokens, the review resources behind `kubectl auth`, and what is open to all.

Everyone who is let in may do everything: this is an API server on one's own machine.  Clients come in with a bearer
token, or with a certificate of the server's own CA; health checks need neither.  Tokens are compared in constant
time.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Any

from kubesched.apiserver import codec
from kubesched.apiserver.kinds import Resource
from kubesched.apiserver.options import write_options
from kubesched.apiserver.requests import ANONYMOUS, Request, Response, User, json_response
from kubesched.apiserver.status import unauthorized

Json = dict[str, Any]

OPEN_PATHS = frozenset(("/healthz", "/livez", "/readyz"))


class Authenticator:
    """Find out who sent a request.

    Args:
        tokens: bearer token → user.  Without any, and without requiring certificates, everybody is `everyone`.
        everyone: who callers without credentials are; None refuses them.
    """

    def __init__(self, tokens: Mapping[str, User], everyone: User | None = None) -> None:
        self._tokens = [(token.encode(), user) for token, user in tokens.items()]
        self._known: dict[str, User] = {}
        self._everyone = everyone

    def user_of_token(self, token: str) -> User | None:
        given, found = token.encode(), None
        for known, user in self._tokens:
            if hmac.compare_digest(given, known):
                found = user
        return found

    def authenticate(self, path: str, headers: Mapping[str, str], certificate: User | None = None) -> User:
        """Return who asks, or raise 401."""
        header = headers.get("authorization", "")
        if header[:7].lower() == "bearer ":
            user = self.user_of_token(header[7:].strip())
            if user is not None:
                return user
            raise unauthorized()
        if certificate is not None:
            return certificate
        if header:
            raise unauthorized()
        if self._everyone is not None:
            return self._everyone
        if path.rstrip("/") in OPEN_PATHS or path.startswith(("/livez/", "/readyz/")):
            return ANONYMOUS
        raise unauthorized()


# ── reviews: create-only resources that are answered and forgotten ──────────────────────────────────────────


def _self_subject(request: Request, obj: Json, authenticator: Authenticator) -> Json:
    return {**obj, "status": {"userInfo": request.user.info()}}


def _allowed(request: Request, obj: Json, authenticator: Authenticator) -> Json:
    return {**obj, "status": {"allowed": True, "reason": "everyone who is let in may do everything"}}


def _rules(request: Request, obj: Json, authenticator: Authenticator) -> Json:
    status = {
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    }
    return {**obj, "status": status}


def _token_review(request: Request, obj: Json, authenticator: Authenticator) -> Json:
    user = authenticator.user_of_token((obj.get("spec") or {}).get("token", ""))
    if user is None:
        return {**obj, "status": {"user": {}, "error": "invalid bearer token"}}
    return {**obj, "status": {"authenticated": True, "user": user.info()}}


_REVIEWS: dict[str, Callable[[Request, Json, Authenticator], Json]] = {
    "selfsubjectreviews": _self_subject,
    "selfsubjectaccessreviews": _allowed,
    "localsubjectaccessreviews": _allowed,
    "subjectaccessreviews": _allowed,
    "selfsubjectrulesreviews": _rules,
    "tokenreviews": _token_review,
}


def is_review(resource: Resource) -> bool:
    return resource.plural in _REVIEWS and not resource.is_custom


def review(request: Request, resource: Resource, authenticator: Authenticator) -> Response:
    """Answer a review."""
    write_options(request, "CreateOptions")
    obj = codec.read_resource(request, resource)
    obj.setdefault("metadata", {})
    return json_response(_REVIEWS[resource.plural](request, obj, authenticator), 201)
