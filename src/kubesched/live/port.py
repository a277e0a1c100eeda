"""The port of `kubesched run`: opened with a certificate and a guard, announced to its owner, and closed again."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from kubesched.apiserver.kubeconfig import make_token
from kubesched.framework.errors import ConfigError
from kubesched.live import contact
from kubesched.live.certificate import Serving
from kubesched.live.contact import Contact
from kubesched.live.guard import Guard
from kubesched.live.listening import Writer
from kubesched.live.reviewing import ApiReviewer
from kubesched.live.serving import Answers, Face
from kubesched.live.transport import HttpTransport
from kubesched.live.wishes import Wish, access_of
from kubesched.telemetry import logs

REFRESH_EVERY = 60.0  # seconds between two looks at the serving certificate
_EVERYWHERE = ("0.0.0.0", "::", "")


class Port:
    """Where a running scheduler can be asked.

    Args:
        transport: to the API server, in the scheduler's own name.
    """

    def __init__(self, wish: Wish, answers: Answers, transport: HttpTransport, writer: Writer) -> None:
        self._wish, self._writer, self._transport = wish, writer, transport
        serve = wish.serve
        assert serve.port is not None, "a port has a number"
        self._serving = Serving(serve.certificate, names=[serve.address, socket.gethostname()])
        self._token = make_token()
        self._others: list[HttpTransport] = []
        reviewer = ApiReviewer(self._as(serve.authentication), self._as(serve.authorization))
        guard = Guard(time.monotonic, token=self._token, reviewer=reviewer, always=serve.always, ttl=serve.ttl)
        self._face = Face(answers, guard, self._serving.context, host=serve.address, port=serve.port)
        self._left: Path | None = None

    def _as(self, path: str) -> HttpTransport:
        """In whose name to review visitors: of a kubeconfig, or our own."""
        if not path:
            return self._transport
        self._others.append(HttpTransport(access_of(path, self._wish), self._transport.loop))
        return self._others[-1]

    async def open(self, schedulers: Iterable[str]) -> None:
        """Listen, and leave word for our owner.  Raises ConfigError."""
        face, serve = self._face, self._wish.serve
        try:
            await face.start()
        except OSError as problem:
            # asyncio puts a sentence of its own there; only a name that is not found has no number the system knows
            number = problem.errno or 0
            why = os.strerror(number) if number > 0 else problem.strerror or str(problem)
            remedy = "choose another with --secure-port, or 0 for none"
            raise ConfigError("", f"cannot serve on {serve.address}:{serve.port}: {why.lower()}", remedy) from None
        url = f"https://127.0.0.1:{face.port}" if serve.address in _EVERYWHERE else face.url
        authority = self._serving.authority.decode()
        self._left = contact.leave(
            Contact(url=url, token=self._token, authority=authority, pid=os.getpid(), schedulers=tuple(schedulers))
        )
        self._writer.say(logs.SERVING, address=face.url, contact=str(self._left or "none could be left"))
        self._look_again()

    async def close(self) -> None:
        if self._left is not None:
            with suppress(OSError):
                self._left.unlink()
        await self._face.stop()
        for transport in self._others:
            await transport.close()

    def _look_again(self) -> None:
        """The certificate may have been renewed."""
        try:
            self._serving.refresh()
        except ConfigError as problem:
            self._writer.say(logs.FAILED, what="serving with the new certificate", err=str(problem))
        self._transport.loop.call_later(REFRESH_EVERY, self._look_again)
