"""What a pre_bind or bind hook yields instead of waiting.

Some plugins must talk to the API server before a pod may be bound.  They cannot wait — nothing in the pure half
waits — so the hook is a generator: it yields a Step, the core turns it into an effect, and the hook goes on with
the Answer when it comes.  A hook that has nothing to ask returns a Status.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from kubesched.api.objects import Object
from kubesched.api.time import Duration
from kubesched.cluster.objects import Objects
from kubesched.framework.errors import shown, words
from kubesched.framework.status import Status


class Failure(Struct, frozen=True, omit_defaults=True):
    """Why a request failed, and whether it may have been carried out all the same."""

    reason: str  # the API server's word (`Conflict`, `NotFound` …), or `Timeout`, `Unreachable`
    message: str = ""
    code: int = 0
    applied: Literal["no", "unknown"] = "no"
    retry_after: Duration = Duration(0)


class Answer(Struct, frozen=True, omit_defaults=True):
    """What came back for a Step: an object, data, or a failure."""

    obj: Object | None = None
    data: Any = None
    failure: Failure | None = None

    @property
    def ok(self) -> bool:
        return self.failure is None


class Patch(Struct, frozen=True, tag=True, tag_field="step", omit_defaults=True):
    """Merge a change into an object; `resource_version` makes it conditional."""

    kind: str
    key: str
    body: Mapping[str, Any]
    resource_version: str = ""
    subresource: str = ""


class Create(Struct, frozen=True, tag=True, tag_field="step", omit_defaults=True):
    kind: str
    key: str
    body: Mapping[str, Any]


class Delete(Struct, frozen=True, tag=True, tag_field="step", omit_defaults=True):
    kind: str
    key: str
    uid: str = ""


class HttpPost(Struct, frozen=True, tag=True, tag_field="step", omit_defaults=True):
    """Ask an extender: a URL of the operator's configuration, by the number of that extender."""

    extender: int
    verb: str
    body: Any


class BindPod(Struct, frozen=True, tag=True, tag_field="step", omit_defaults=True):
    """Bind the pod of this flight to its node, fenced by the core."""

    node: str


class WaitFor(Struct, frozen=True):
    """Look at the cluster whenever it changes, until `look` answers or the time is up.  Never leaves the core.

    The answer's `data` is the Status `look` returned; when the time is up it is a failure, `Timeout`.
    """

    look: Callable[[Objects], Status | None]
    timeout: Duration
    what: str


Request: TypeAlias = Patch | Create | Delete | HttpPost  # what becomes a Call effect as it is
Step: TypeAlias = Request | BindPod | WaitFor
Steps: TypeAlias = Generator[Step, Answer, Status]

_REQUESTS = (Patch, Create, Delete, HttpPost, BindPod)


def fault_of(step: object) -> str:
    """What is wrong with something a hook yielded; empty for a Step that can be carried out and written down."""
    if type(step) is BindPod and type(step.node) is str:
        return ""  # as nearly every step of all
    if isinstance(step, WaitFor):
        return _fault_of_wait(step.look, step.timeout, step.what)
    if not isinstance(step, _REQUESTS):
        return f"a hook yields Steps, not {shown(step)}"
    try:
        msgspec.json.decode(msgspec.json.encode(step), type=type(step))
    except Exception as problem:  # whatever its fields do when they are looked at
        return f"a {type(step).__name__} that cannot be carried out: {words(problem)}"
    return ""


def _fault_of_wait(look: object, timeout: object, what: object) -> str:
    if not callable(look):
        return "a WaitFor needs a look to call"
    if not is_duration(timeout):
        return f"a WaitFor needs a timeout in nanoseconds, not {shown(timeout)}"
    return "" if isinstance(what, str) else f"a WaitFor says what it waits for, not {shown(what)}"


def is_duration(value: object) -> bool:
    """Whether a value can be a Duration: whole nanoseconds, none of them negative."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
