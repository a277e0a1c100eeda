"""What an actor is told, and what it wants done.

An actor works on whole JSON objects, addressed as the store does it: `resource` is "pods" or "apps/deployments",
`namespace` is "" for objects that live in none.  Events are told in the past tense, effects in the imperative.

Whoever drives an actor tells it of its own writes before it ticks it again: an actor looks at its view of the
cluster, and what it has just created must be in there.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

from msgspec import Struct

Json = dict[str, Any]

# ── in ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Seen(Struct, frozen=True):
    """An object came (old is None), changed, or went (new is None)."""

    resource: str
    old: Json | None
    new: Json | None

    @property
    def last(self) -> Json:
        """The object as it is, or as it was in the end."""
        found = self.new if self.new is not None else self.old
        assert found is not None, "something was seen"
        return found


class Refused(Struct, frozen=True):
    """An effect was not carried out, and why, in the API server's words."""

    effect: Effect
    reason: str
    message: str = ""


class Tick(Struct, frozen=True):
    """Nothing new: fire due timers, do one unit of work."""


Event: TypeAlias = Seen | Refused | Tick

# ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Create(Struct, frozen=True):
    """Create an object; `cause` is on whose behalf, the key that is looked at again where this fails."""

    resource: str
    obj: Json
    cause: Hashable = None


class Change(Struct, frozen=True):
    """Merge a change into an object (RFC 7386), or into its status; only if it still has this uid."""

    resource: str
    namespace: str
    name: str
    body: Json
    uid: str = ""
    subresource: str = ""
    cause: Hashable = None


class Delete(Struct, frozen=True):
    """Delete an object, if it still has this uid."""

    resource: str
    namespace: str
    name: str
    uid: str = ""
    grace: int | None = None
    propagation: str | None = None
    cause: Hashable = None


class Finalize(Struct, frozen=True):
    """Say that a namespace is empty: its own finalizers are taken off, and so it goes."""

    name: str
    cause: Hashable = None


Effect: TypeAlias = Create | Change | Delete | Finalize


def change(
    resource: str, obj: Json, body: Json, *, subresource: str = "", cause: Hashable = None
) -> Change:
    """Change this very object."""
    meta = obj["metadata"]
    return Change(resource, meta.get("namespace", ""), meta["name"], body, meta["uid"], subresource, cause)


def delete(
    resource: str, obj: Json, *, grace: int | None = None, propagation: str | None = None
) -> Delete:
    """Delete this very object."""
    meta = obj["metadata"]
    return Delete(resource, meta.get("namespace", ""), meta["name"], meta["uid"], grace, propagation)
