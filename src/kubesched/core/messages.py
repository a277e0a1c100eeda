"""What goes in and what comes out: everything that can happen to a scheduler, and everything it can want.

Events are told in the past tense, effects in the imperative.  Every effect has an id and is answered by one
Completed with that id; an answer that never comes is the world's to turn into a failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NewType, TypeAlias

from msgspec import Struct

from kubesched.api.objects import Object, PodCondition
from kubesched.api.time import Duration
from kubesched.framework.steps import Answer, Request

EffectId = NewType("EffectId", int)


# ── in ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Observed(Struct, frozen=True, tag=True, tag_field="event", omit_defaults=True):
    """The API server told of an object, or of its end.  What it was before, our own mirror knows."""

    obj: Object
    gone: bool = False


class Synced(Struct, frozen=True, tag=True, tag_field="event", omit_defaults=True):
    """The first complete view of these kinds has been told; scheduling may begin when all have."""

    kinds: tuple[str, ...] = ()


class Completed(Struct, frozen=True, tag=True, tag_field="event", omit_defaults=True):
    """An effect came back."""

    effect: EffectId
    answer: Answer = Answer()


class Commanded(Struct, frozen=True, tag=True, tag_field="event", omit_defaults=True):
    """An operator's word: about a pod by `namespace/name`, or about the scheduler as a whole."""

    verb: Literal["activate", "allow", "reject", "flush", "drain"]
    pod: str = ""


class Tick(Struct, frozen=True, tag=True, tag_field="event"):
    """Nothing new: fire due timers, do one unit of work."""


Event: TypeAlias = Observed | Synced | Completed | Commanded | Tick


# ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Effect(Struct, frozen=True, tag=True, tag_field="effect", kw_only=True, omit_defaults=True):
    """Something to be done.  `cause` is the journal position of the event that led here."""

    id: EffectId
    cause: int

    @classmethod
    def match(cls, **fields: object) -> Like:
        """What equals every effect of this type that has these fields, whatever its others are."""
        return Like(cls, fields)


class Like:
    """Equal to any effect of a type with the fields that are named: `Bind.match(node="n1") in effects`.

    As every pattern it is equal to unequal things, and so has no hash.
    """

    def __init__(self, kind: type[Effect], fields: Mapping[str, object]) -> None:
        unknown = fields.keys() - set(kind.__struct_fields__)
        assert not unknown, f"{kind.__name__} has no field {sorted(unknown)}"
        self.kind = kind
        self.fields = fields

    def __eq__(self, other: object) -> bool:
        return type(other) is self.kind and all(getattr(other, name) == value for name, value in self.fields.items())

    def __repr__(self) -> str:
        return f"{self.kind.__name__}.match({', '.join(f'{name}={value!r}' for name, value in self.fields.items())})"


class Bind(Effect, frozen=True, tag=True):
    """Bind a pod.  Fenced: it must fail unless the pod still has this uid and, where given, this version."""

    pod: str
    uid: str
    node: str
    resource_version: str = ""


class PatchPod(Effect, frozen=True, tag=True):
    """Change a pod's status: its PodScheduled condition, the node it was promised, or both.

    Where a version is given it must fail unless the pod still has it.
    """

    pod: str
    uid: str
    condition: PodCondition | None = None
    nominated_node_name: str | None = None
    resource_version: str = ""


class ReadPod(Effect, frozen=True, tag=True):
    """Read a pod as it is now, not as some cache remembers it."""

    pod: str
    uid: str


class Evict(Effect, frozen=True, tag=True):
    """Make a pod go: say why in its DisruptionTarget condition, then delete it."""

    pod: str
    uid: str
    message: str
    grace: Duration | None = None


class Publish(Effect, frozen=True, tag=True):
    """An Event for people to read."""

    regarding: str
    uid: str
    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str
    reporter: str
    related: str = ""
    kind: str = "Pod"


class Call(Effect, frozen=True, tag=True):
    """A request that a hook yielded, or a question to an extender."""

    step: Request


AnyEffect: TypeAlias = Bind | PatchPod | ReadPod | Evict | Publish | Call
