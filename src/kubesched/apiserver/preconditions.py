"""Write only if the object is still the one that was meant: by uid, and by version.

Whoever decided something about an object decided it about one uid and one resourceVersion.  A write that
carries them is fenced: it does nothing to an object of the same name that came later, or that has changed since.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.apiserver import status
from kubesched.apiserver.stored import Stored


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What must hold of the stored object for a write to happen; None means no demand."""

    uid: str | None = None
    resource_version: str | None = None


def check_preconditions(resource: str, current: Stored, wanted: Preconditions, *, dry_run: bool = False) -> None:
    """Refuse with 409 in the words of the storage, as bindings and updates do."""
    for what, demand, found in (
        ("UID", wanted.uid, current.uid),
        ("ResourceVersion", wanted.resource_version, current.resource_version),
    ):
        if demand is not None and demand != found:
            at = (current.namespace, current.name)
            raise status.precondition_failed(resource, *at, what, demand, found, dry_run=dry_run)


def check_delete_preconditions(resource: str, current: Stored, wanted: Preconditions) -> None:
    """Refuse with 409 as DELETE does: it names the kind, not the resource, and says what may have happened."""
    group, _ = status.split_resource(resource)
    kind = current.obj.get("kind", "")
    shown = f"{group}/{kind}" if group else kind
    for what, demand, found, guess in (
        ("UID", wanted.uid, current.uid, "deleted and then recreated"),
        ("ResourceVersion", wanted.resource_version, current.resource_version, "modified"),
    ):
        if demand is not None and demand != found:
            raise status.conflict(
                shown,
                current.name,
                f"the {what} in the precondition ({demand}) does not match the {what} in record ({found}). "
                f"The object might have been {guess}",
            )
