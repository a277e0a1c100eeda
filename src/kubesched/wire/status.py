"""What an API server says when it says no: a Status, in the body of an answer or at the end of a watch.

Answers come from proxies and load balancers too, so a body that is no Status is nothing unusual: then the number of
the answer has to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
from msgspec import Struct

from kubesched.api.time import Duration, seconds
from kubesched.framework.plain import plain
from kubesched.framework.steps import Failure
from kubesched.wire.exchange import Response

RETRY_AFTER_MAX: Duration = seconds(60)  # nobody may tell us to sleep for a day

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class StatusCause(Struct, frozen=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Struct, frozen=True, rename="camel"):
    kind: str = ""
    retry_after_seconds: int = 0
    causes: tuple[StatusCause, ...] = ()


class Status(Struct, frozen=True):
    """metav1.Status, as far as a client acts on it."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails | None = None

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        return () if self.details is None else self.details.causes

    @property
    def expired(self) -> bool:
        """The version asked for is no longer remembered."""
        return self.code == 410 or self.reason in ("Expired", "Gone")

    @property
    def ahead(self) -> bool:
        """The version asked for has not reached this server yet."""
        return any(cause.reason == "ResourceVersionTooLarge" for cause in self.causes) or (
            self.code == 504 and "Too large resource version" in self.message
        )

    @property
    def throttled(self) -> bool:
        return self.code == 429 or self.reason == "TooManyRequests"


_REASONS: Mapping[int, str] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class _Kind(Struct, frozen=True):
    kind: str = ""


def read_status(body: bytes) -> Status:
    """The Status in a body; an empty one where there is none."""
    try:
        if msgspec.json.decode(body, type=_Kind).kind == "Status":
            return msgspec.json.decode(body, type=Status)
    except UNREADABLE:
        pass
    return Status()


def status_of(response: Response) -> Status:
    """What an answer that is no success says, with a code and a reason in any case."""
    found = read_status(response.body)
    code = response.status
    reason = found.reason or _REASONS.get(code, "")
    page = plain(response.body[:200].decode(errors="replace").strip())  # a gateway's, perhaps
    answered = f"the server answered {code}" + (f": {page}" if page else "")
    return Status(code, reason, found.message or answered, found.details)


def retry_after(response: Response, status: Status) -> Duration:
    """How long the server wants to be left alone; 0 where it does not say."""
    header = response.headers.get("retry-after", "").strip()
    asked = int(header) if header.isdecimal() and len(header) < 10 else 0
    if not asked and status.details is not None:
        asked = max(0, status.details.retry_after_seconds)
    return Duration(min(seconds(asked), RETRY_AFTER_MAX))


def failure_of(response: Response, *, reads: bool) -> Failure:
    """A refusal as the core hears of it.

    A server that fails (5xx) may have carried a write out before it did; one that refuses (4xx) has not.
    """
    status = status_of(response)
    applied: Literal["no", "unknown"] = "unknown" if response.status >= 500 and not reads else "no"
    # A patch with the uid of a pod that was deleted and made again: the pod that was meant is gone.
    another = status.code == 422 and any(cause.field == "metadata.uid" for cause in status.causes)
    reason = "NotFound" if another else status.reason
    return Failure(reason, status.message, status.code, applied, retry_after(response, status))
