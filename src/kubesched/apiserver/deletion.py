"""Decide what a DELETE does: remove at once, or mark the object and wait for grace and finalizers.

Three things can hold a deletion back.  Kinds that die gracefully (pods) are given seconds to do so, which a
second DELETE may shorten but not lengthen.  Finalizers hold until their owners have taken them off; the
propagation policies Orphan and Foreground are themselves finalizers, addressed to the garbage collector.
And a kind may have more of its own (a Namespace keeps finalizers in its spec).

These are functions from objects to objects; the store performs what they say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubesched.api.time import Instant, format_rfc3339, parse_rfc3339
from kubesched.apiserver.preconditions import Preconditions
from kubesched.apiserver.stored import Stored

Json = dict[str, Any]

GraceRule = Callable[[Json, int | None], int]
"""(object, requested gracePeriodSeconds or None) -> the seconds of grace, for kinds that have any."""

Removable = Callable[[Json], bool]
"""Tells whether an object without metadata.finalizers may go (a Namespace has more in its spec)."""

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The parts of meta/v1 DeleteOptions that the store acts on."""

    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str | None = None  # Orphan, Background, Foreground; None is Background
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a delete came to: the object as it now is (or last was), and whether it is gone."""

    stored: Stored
    gone: bool


@dataclass(frozen=True, slots=True)
class Marked:
    """What is to be done with an object that somebody deletes.

    obj: its new state, or None when it need not be written.  remove: whether it goes right away.
    """

    obj: Json | None
    remove: bool


def pod_grace(pod: Json, requested: int | None) -> int:
    """Return the grace of a pod: what was asked, else its own; none if nothing of it runs anywhere."""
    spec = pod.get("spec") or {}
    seconds = requested
    if seconds is None:
        seconds = spec.get("terminationGracePeriodSeconds", 0)
    # A pod without a node has no kubelet that would end it, and one that has ended needs no time to.
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    return 1 if seconds < 0 else int(seconds)


def mark(
    obj: Json,
    now: int,
    requested: int | None,
    propagation: str | None,
    grace: GraceRule | None,
    removable: Removable | None,
) -> Marked:
    """Say what a DELETE with this grace period and propagation policy makes of an object."""
    meta: Json = obj["metadata"]
    if requested is not None and requested < 0:
        requested = 1
    if grace is None:
        return _mark_plain(obj, meta, now, propagation, removable)
    if "deletionTimestamp" in meta:
        if not meta.get("deletionGracePeriodSeconds"):
            return _mark_plain(obj, meta, now, propagation, removable)
        return _shorten(obj, meta, requested, removable)
    seconds = grace(obj, requested)
    new = _with_finalizers(meta, propagation)
    new["deletionTimestamp"] = format_rfc3339(Instant(now + seconds * _SECOND))
    new["deletionGracePeriodSeconds"] = seconds
    marked = {**obj, "metadata": _bumped(new)}
    return Marked(marked, seconds == 0 and not is_held(marked, removable))


def _shorten(obj: Json, meta: Json, requested: int | None, removable: Removable | None) -> Marked:
    """A second DELETE of something that is dying: it may only be given less time."""
    granted = meta["deletionGracePeriodSeconds"]
    if requested is None or requested >= granted:
        return Marked(None, False)
    due = parse_rfc3339(meta["deletionTimestamp"]) + (requested - granted) * _SECOND
    new = {**meta, "deletionTimestamp": format_rfc3339(Instant(due)), "deletionGracePeriodSeconds": requested}
    marked = {**obj, "metadata": new}
    return Marked(marked, requested == 0 and not is_held(marked, removable))


def _mark_plain(obj: Json, meta: Json, now: int, propagation: str | None, removable: Removable | None) -> Marked:
    """Kinds without grace are marked only if something holds them."""
    new = _with_finalizers(meta, propagation)
    if not is_held({**obj, "metadata": new}, removable):
        return Marked(None, True)
    if "deletionTimestamp" not in meta:
        new = _bumped({**new, "deletionTimestamp": format_rfc3339(Instant(now))})
    elif parse_rfc3339(meta["deletionTimestamp"]) > now:
        new["deletionTimestamp"] = format_rfc3339(Instant(now))
    new["deletionGracePeriodSeconds"] = 0
    return Marked({**obj, "metadata": new}, False)


def _bumped(meta: Json) -> Json:
    """Being deleted is news to controllers, so the generation (of kinds that have one) goes up."""
    if meta.get("generation"):
        meta["generation"] += 1
    return meta


def _with_finalizers(meta: Json, propagation: str | None) -> Json:
    """Return a copy of the metadata with the finalizer that the propagation policy stands for."""
    new = dict(meta)
    old: list[str] = meta.get("finalizers") or []
    # Without a policy in the request the one already on the object stays.
    wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND, "Background": None}
    chosen = wanted[propagation] if propagation in wanted else next((f for f in old if f in (ORPHAN, FOREGROUND)), None)
    finalizers = [f for f in old if f not in (ORPHAN, FOREGROUND)]
    if chosen is not None:
        finalizers.append(chosen)
    if finalizers:
        if sorted(finalizers) != sorted(old):
            new["finalizers"] = finalizers
    else:
        new.pop("finalizers", None)
    return new


def is_held(obj: Json, removable: Removable | None) -> bool:
    """Whether finalizers, or what the kind adds to them, keep an object."""
    return bool(obj["metadata"].get("finalizers")) or (removable is not None and not removable(obj))


def is_finished(old: Json, new: Json, removable: Removable | None) -> bool:
    """Whether an update took away the last thing that held an object being deleted."""
    meta = old["metadata"]
    return "deletionTimestamp" in meta and not meta.get("deletionGracePeriodSeconds") and not is_held(new, removable)
