"""What the core may want to be reminded of: a value with one method, so that a timer is data and not a closure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from kubesched.api.time import Duration, format_duration
from kubesched.framework.tools import Judge

if TYPE_CHECKING:
    from kubesched.core.core import Core


class Reminder(Protocol):
    def fire(self, core: Core) -> None: ...


class PermitTimeout(Struct, frozen=True):
    """A plugin asked for patience and it is used up: Kubernetes rejects."""

    uid: str
    plugin: str
    waited: Duration

    def fire(self, core: Core) -> None:
        text = f"rejected due to timeout after waiting {format_duration(self.waited)} at plugin {self.plugin}"
        core.flying.judge(Judge("reject", self.plugin, self.uid, text))


class LaterJudge(Struct, frozen=True):
    """A plugin wished a waiting pod to be allowed or rejected after a while."""

    judge: Judge

    def fire(self, core: Core) -> None:
        core.flying.judge(self.judge)


class GoOn(Struct, frozen=True):
    """A flight paused."""

    uid: str
    token: int

    def fire(self, core: Core) -> None:
        core.flying.wake(self.uid, self.token)


class LookTimeout(Struct, frozen=True):
    """A flight waited for something in the cluster long enough."""

    uid: str
    token: int

    def fire(self, core: Core) -> None:
        core.flying.give_up_looking(self.uid, self.token)


class SayAgain(Struct, frozen=True):
    """A pod's status could not be written; worth another try."""

    uid: str
    tries: int
    about_promise: bool

    def fire(self, core: Core) -> None:
        core.failing.say_again(self.uid, self.tries, self.about_promise)
