"""A scheduler on a server, driven in the test's own thread until something has happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.api.kinds import KNOWN
from kubesched.assemble import build
from kubesched.core.core import Core
from kubesched.drive import Tap, drive
from kubesched.live.access import Access
from kubesched.live.remote import RemoteWorld
from kubesched.live.transport import HttpTransport
from kubesched.wire.exchange import Remark

LOOK_EVERY = 0.1  # seconds
GIVE_UP_AFTER = 90.0  # seconds; a test that needs them has failed


class Running:
    """A RemoteWorld, a default core, and everything they said."""

    def __init__(self, access: Access, *, identity: str = "test", **how: Any) -> None:
        self.remarks: list[Remark] = []
        self.transport = HttpTransport(access)
        how.setdefault("kinds", KNOWN.values())
        how.setdefault("qps", -1.0)
        self.world = RemoteWorld(self.transport, identity=identity, listen=self.remarks.append, **how)
        self.core: Core = build(wait_for=self.world.client.waits_for)

    def until(self, enough: Callable[[], bool]) -> Running:
        """Drive until something holds; it is looked at after everything that happens, and ten times a second."""
        loop, end = self.world.loop, self.world.loop.time() + GIVE_UP_AFTER

        def look() -> None:
            nonlocal glance
            self.world.wake()
            glance = loop.call_later(LOOK_EVERY, look)

        glance = loop.call_later(LOOK_EVERY, look)
        drive(Tap(self.core), _Until(self.world, lambda: enough() or loop.time() > end))
        glance.cancel()
        said = "\n".join(f"{one.level} {one.about} {one.what}: {one.text}" for one in self.remarks)
        assert loop.time() <= end, f"it did not happen; this was said:\n{said}"
        return self

    def to_the_end(self) -> Running:
        """Let go of the Lease, and drive until it is over."""
        self.world.drain(lambda: not self.core.flights)
        return self.until(lambda: False)

    def what(self) -> list[str]:
        return [remark.what for remark in self.remarks]

    def close(self) -> None:
        self.world.close()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Until:
    """A world that is at its end when something holds."""

    def __init__(self, world: RemoteWorld, enough: Callable[[], bool]) -> None:
        self._world, self._enough = world, enough
        self.perform, self.take = world.perform, world.take

    @property
    def now(self) -> Any:
        return self._world.now

    def sleep(self, until: Any) -> bool:
        return not self._enough() and self._world.sleep(until)
