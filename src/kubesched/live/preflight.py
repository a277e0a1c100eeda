"""Before anything else: is there an API server, does it let us in, and may we do what we will have to do?

Where waiting helps - it is not up yet, it is busy - we wait and say so.  Where it does not - it does not accept our
credentials, it cannot prove who it is - we end with a sentence instead of a thousand retries.  Missing rights are all
named at once, with the command that prints what is needed; they can be granted while we wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kubesched.framework.errors import KubeschedError, WorldError
from kubesched.framework.plain import plain
from kubesched.live.reviewing import Asker, have, message_of
from kubesched.live.role import Right
from kubesched.wire.exchange import Request, Response

_FIRST, _AT_MOST = 0.5, 10.0  # seconds between two tries
_PROBE = "/version"


class NotLetIn(KubeschedError):
    """The API server will not have us, and waiting would not change that."""


class Needed(NamedTuple):
    """A right, and the namespace it is needed in; everywhere where that is empty."""

    right: Right
    namespace: str = ""


async def reach(
    asker: Asker, server: str, waiting: Callable[[str, float], None]
) -> None:
    """Wait until the API server answers us.  Raises NotLetIn.

    Args:
        waiting: told why we wait, and for how many seconds.
    """
    delay = _FIRST
    while True:
        got = await asker.ask(Request(method="GET", path=_PROBE))
        if isinstance(got, Response) and got.status in (200, 403):
            return  # 403: not even its version may be seen, but it knows who we are
        if isinstance(got, Response) and got.status == 401:
            problem = f"{server} does not accept our credentials (401: {plain(message_of(got), 200)})"
            raise NotLetIn(f"{problem}; the token or certificate may have expired, or be of another cluster")
        if isinstance(got, Response):
            why = f"it answers {got.status}: {plain(message_of(got), 200)}"
        else:
            why = got.why
            if getattr(got, "doubted", False):
                remedy = "give certificate-authority of the right cluster, or tls-server-name"
                raise NotLetIn(f"{server}: {why}; {remedy}")
        waiting(why, delay)
        await asyncio.sleep(delay)
        delay = min(delay * 2, _AT_MOST)


async def missing(asker: Asker, needed: Iterable[Needed]) -> list[str]:
    """The rights we need and have not, as `list nodes`.  Nothing where we cannot find out."""
    questions = [(one, verb) for one in needed for verb in one.right.verbs]
    answers = await asyncio.gather(
        *(have(asker, one.right, verb, one.namespace) for one, verb in questions), return_exceptions=True
    )
    lacking = []
    for (one, verb), answer in zip(questions, answers, strict=True):
        if isinstance(answer, WorldError):
            return []
        if isinstance(answer, BaseException):
            raise answer
        if not answer:
            right = one.right
            resource = f"{right.resource}.{right.group}" if right.group else right.resource
            lacking.append(f"{verb} {resource}" + (f" in {one.namespace}" if one.namespace else ""))
    return lacking
