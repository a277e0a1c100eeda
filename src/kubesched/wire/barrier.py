"""A new leader first catches up with the old one.

Whoever takes over may look at a view that lags behind: pods the old leader bound a moment ago still seem to wait, and
their room seems free.  So the version of each kind is read once, from the server and not from a cache, and nothing is
scheduled before every view has got there.  Versions of one kind are comparable since Kubernetes 1.35, so a view that
is large and busy gets there by itself, within milliseconds; how others do is in `Reflector.hurry`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from kubesched.api.time import Instant, seconds
from kubesched.wire.decoding import Garbled
from kubesched.wire.exchange import Exchange, Luck, Number, Reply, Request, Response
from kubesched.wire.patience import Backoff
from kubesched.wire.reflector import Reflector
from kubesched.wire.status import status_of


class Barrier:
    """Passed once every view has reached what the server said when it was raised."""

    def __init__(self, reflectors: Iterable[Reflector], exchange: Exchange, luck: Luck) -> None:
        self._reflectors = {reflector.kind.name: reflector for reflector in reflectors}
        self._exchange, self._luck = exchange, luck
        self._backoffs: Mapping[str, Backoff] = {name: Backoff(luck) for name in self._reflectors}
        self._targets: dict[str, int] = {}
        self._asking: dict[str, Number] = {}
        self._again: dict[str, Instant] = {}
        self.begun = False

    def begin(self, now: Instant) -> None:
        """From now on nothing passes that has not reached this moment."""
        self.begun = True
        self._targets.clear()
        for name in self._reflectors:
            self._ask(name, now)

    @property
    def passed(self) -> bool:
        """Whether every view has got there."""
        return self.begun and all(
            name in self._targets and reflector.synced and reflector.reached >= self._targets[name]
            for name, reflector in self._reflectors.items()
        )

    def tick(self, now: Instant) -> None:
        for name in [name for name, due in self._again.items() if due <= now]:
            del self._again[name]
            self._ask(name, now)

    @property
    def deadline(self) -> Instant | None:
        return min(self._again.values(), default=None)

    def _ask(self, name: str, now: Instant) -> None:
        path = self._reflectors[name].kind.path()
        request = Request(method="GET", path=path, query=(("limit", "1"),), timeout=seconds(10))
        if name in self._asking:
            self._exchange.abandon(self._asking[name])
        self._asking[name] = self._exchange.send(request, partial(self._hear, name))

    def _hear(self, name: str, reply: Reply, now: Instant) -> None:
        del self._asking[name]
        reflector = self._reflectors[name]
        if isinstance(reply, Response) and reply.status == 404 and reflector.kind.group:
            self._targets[name] = 0  # a kind that nobody serves has no news
            return
        try:
            if not isinstance(reply, Response) or reply.status != 200:
                raise Garbled(status_of(reply).message if isinstance(reply, Response) else "no answer")
            self._targets[name] = reflector.reader.version(reply.body)
        except Garbled as problem:
            self._exchange.remark("warning", name, "barrier", f"cannot learn where the server is: {problem}")
            self._again[name] = Instant(now + self._backoffs[name].next(now))
        else:
            reflector.hurry(self._targets[name], now)
