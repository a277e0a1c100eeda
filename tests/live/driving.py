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

GIVE_UP_AFTER = 60.0  # seconds; a test that needs them has failed


class Running:
    """A RemoteWorld, a default core, and everything they said."""

    def __init__(self, access: Access, *, identity: str = "test", **how: Any) -> None:
        self.remarks: list[Remark] = []
        self.transport = HttpTransport(access)
        how.setdefault("kinds", KNOWN.values())
        how.setdefault("qps", -1.0)
        self.world = RemoteWorld(self.transport, identity=identity, listen=self.remarks.append, **how)
        self.core: Core = build(wait_for=self.world.client.waits_for)
        self._enough: Callable[[], bool] = lambda: False

    def until(self, enough: Callable[[], bool]) -> Running:
        """Drive until something holds."""
        self._enough = enough
        gave_up: list[bool] = []

        def give_up() -> None:
            gave_up.append(True)
            self.world.wake()

        alarm = self.world.loop.call_later(GIVE_UP_AFTER, give_up)
        drive(Tap(self.core), _Until(self.world, lambda: enough() or bool(gave_up)))
        alarm.cancel()
        said = "\n".join(f"{one.level} {one.about} {one.what}: {one.text}" for one in self.remarks)
        assert not gave_up, f"it did not happen; this was said:\n{said}"
        return self

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
