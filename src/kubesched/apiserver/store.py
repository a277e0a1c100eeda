"""Keep every object of a cluster, number every change, and tell whoever watches.

Clients of a Kubernetes API lean on a few promises that have nothing to do with kinds: one strictly
increasing revision for all writes, optimistic concurrency by resourceVersion, lists that are a
snapshot at a revision, watches that continue such a list without a gap, finalizers that hold a
deletion back.  The Store keeps those promises for JSON objects of any kind.  What a field means,
which values are valid and what is defaulted is decided above; that half hands in finished objects
and the few answers the store needs (does this change bump the generation, how long is the grace
period) as arguments.

Addresses: ``resource`` is the plural for the core group ("pods") and "group/plural" for the others
("apps/deployments"); ``namespace`` is "" for cluster-scoped objects.

Objects are immutable once stored: never change a dict that came out of the store, build a new one
(``{**old, "spec": new_spec}``).  Versions share their unchanged parts, so a write costs O(1) however
large the store is.  The store never mutates what it is given either; it may keep references to it.

One thread drives a Store.  It has no lock, reads no clock and rolls no dice of its own: ``now`` and
``luck`` are injected, so the same store serves the HTTP server and virtual time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from kubesched.apiserver.watch import Watch

Json = dict[str, Any]
Matches = Callable[[Json], bool]
"""Tells whether an object is selected (labels, fields, whatever the caller composes)."""

Removable = Callable[[Json], bool]
"""Tells whether an object without metadata.finalizers may go (a Namespace has more in its spec)."""

GraceRule = Callable[[Json, int | None], int]
"""(object, requested gracePeriodSeconds or None) -> the seconds of grace, for kinds that have any."""

GENERATE_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


class Stored:
    """One version of one object, with its encodings made once and shared.

    obj:       the whole object, kind and apiVersion included.  Immutable.
    revision:  the revision of the write that made it (0 for the result of a dry run).
    encoded(): its JSON bytes, cached.
    item():    its JSON bytes without kind and apiVersion, as items of built-in lists are sent, cached.
    """

    __slots__ = ("_encoded", "_item", "key", "namespace", "name", "obj", "revision")


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What must hold of the stored object for a write to happen; None means no demand."""

    uid: str | None = None
    resource_version: str | None = None


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
class Listing:
    """One page of a list; every page of one list reports the same resource_version."""

    items: list[Stored]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None


class Journal(Protocol):
    """Where writes are made durable; see kubesched.apiserver.persistence."""

    def put(self, revision: int, resource: str, namespace: str, name: str, body: bytes) -> None: ...
    def remove(self, revision: int, resource: str, namespace: str, name: str) -> None: ...
    def batch(self) -> AbstractContextManager[None]: ...
    def load(self) -> tuple[int, Iterator[tuple[str, bytes]]]: ...
    def close(self) -> None: ...


class Store:
    """The objects of one cluster; see the module's docstring for its rules.

    Args:
        now: the current instant in nanoseconds since the epoch.
        luck: source of uids and generateName suffixes (random.Random(seed) or SystemRandom()).
        journal: makes writes durable before they are answered; None keeps all in memory.
        history: how many events per resource are kept for watches and for snapshots.
    """

    def __init__(
        self, *, now: Callable[[], int], luck: Random, journal: Journal | None = None, history: int = 8192
    ) -> None: ...

    # reading ---------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The revision of the latest write; a fresh store stands at 1."""
        raise NotImplementedError

    def find(self, resource: str, namespace: str, name: str) -> Stored | None:
        """Return the object, or None."""
        raise NotImplementedError

    def get(self, resource: str, namespace: str, name: str, *, resource_version: str = "") -> Stored:
        """Return the object; 404 when missing, 504 when resource_version lies in the future."""
        raise NotImplementedError

    def resources(self) -> list[str]:
        """Return the resources that have or had objects, sorted."""
        raise NotImplementedError

    def count(self, resource: str, namespace: str | None = None) -> int:
        """Return how many objects there are, in one namespace or in all (None)."""
        raise NotImplementedError

    def list(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        matches: Matches | None = None,
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
        resource_version_match: str = "",
    ) -> Listing:
        """Return a consistent page of objects, sorted by namespace/name as etcd sorts them.

        namespace None means all of them.  resource_version: "" latest, "0" any (limit is then
        ignored), N with match "NotOlderThan" (or none) at least N, with "Exact" the snapshot at N.
        Raises 410 Expired when the snapshot is no longer in the history, 504 for a revision in the
        future, 400 for a broken token or revision.
        """
        raise NotImplementedError

    def watch(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        matches: Matches | None = None,
        name: str | None = None,
        resource_version: str = "",
        send_initial_events: bool | None = None,
        bookmarks: bool = False,
        kind: tuple[str, str] = ("", ""),
        capacity: int | None = None,
        on_ready: Callable[[], None] | None = None,
    ) -> Watch:
        """Return a Watch: what exists (unset or "0", or send_initial_events), then what changes.

        kind is (apiVersion, kind) for bookmark objects.  name narrows to one object cheaply (what
        fieldSelector metadata.name=x becomes).  A resource_version older than the history is not
        raised: the watch holds one ERROR event with 410 Expired and is closed, as on the wire.
        capacity: how many events it may lag behind before it is cut off with 410.
        """
        raise NotImplementedError

    # writing ---------------------------------------------------------------------------------------

    def create(self, resource: str, obj: Json, *, generation: int | None = 1, dry_run: bool = False) -> Stored:
        """Store a new object and return it.

        Name and namespace are taken from obj.metadata (generateName is completed); uid,
        resourceVersion, creationTimestamp and generation (None: kinds that have none) are set over
        whatever the client sent; selfLink, deletionTimestamp and deletionGracePeriodSeconds dropped.
        Raises 409 AlreadyExists; 500 when obj carries a resourceVersion.
        """
        raise NotImplementedError

    def update(
        self,
        resource: str,
        namespace: str,
        name: str,
        obj: Json,
        *,
        bump: bool | Callable[[Json, Json], bool] = False,
        removable: Removable | None = None,
        dry_run: bool = False,
    ) -> Stored:
        """Replace an object; obj.metadata.resourceVersion, if not empty, must be the stored one.

        bump decides whether metadata.generation (if the object has one) goes up: a flag, or a
        function of (stored, new).  uid, creationTimestamp, deletionTimestamp and generation stay the
        server's.  A change that changes nothing returns the stored version: no event, no revision.
        Emptying the finalizers of an object whose deletion awaits nothing else removes it.
        """
        raise NotImplementedError

    def guaranteed_update(
        self,
        resource: str,
        namespace: str,
        name: str,
        change: Callable[[Json], Json],
        *,
        preconditions: Preconditions | None = None,
        bump: bool | Callable[[Json, Json], bool] = False,
        removable: Removable | None = None,
        dry_run: bool = False,
    ) -> Stored:
        """Apply change(stored object) -> new object atomically; otherwise as `update`.

        change may raise an ApiError to refuse; the object returned may carry the stored
        resourceVersion, or none.  An older one is a conflict.
        """
        raise NotImplementedError

    def delete(
        self,
        resource: str,
        namespace: str,
        name: str,
        options: DeleteOptions | None = None,
        *,
        grace: GraceRule | None = None,
        removable: Removable | None = None,
        bump: bool = True,
        prepare: Callable[[Json], Json] | None = None,
    ) -> Deletion:
        """Delete an object, or mark it as being deleted while grace or finalizers hold it.

        grace is given for kinds that die gracefully (pods: kubesched.apiserver.deletion.pod_grace).
        propagationPolicy Foreground and Orphan add the finalizer a garbage collector must take off.
        bump: the generation goes up when deletionTimestamp is first set (if the object has one).
        prepare: changes the object in the same write that marks it (Namespace: phase Terminating).
        """
        raise NotImplementedError

    def delete_collection(
        self,
        resource: str,
        namespace: str | None = None,
        options: DeleteOptions | None = None,
        *,
        matches: Matches | None = None,
        grace: GraceRule | None = None,
        removable: Removable | None = None,
        bump: bool = True,
        prepare: Callable[[Json], Json] | None = None,
    ) -> list[Deletion]:
        """Delete every selected object as `delete` would; objects that vanish meanwhile are skipped."""
        raise NotImplementedError

    def batch(self) -> AbstractContextManager[None]:
        """Group the writes inside into one durable commit; they are acknowledged when it ends."""
        raise NotImplementedError

    # housekeeping ----------------------------------------------------------------------------------

    def bookmark(self) -> None:
        """Queue a BOOKMARK at the current revision for every watch that asked for them."""
        raise NotImplementedError

    def compact(self, revision: int | None = None) -> None:
        """Forget history up to revision (None: all of it); older watches and tokens get 410."""
        raise NotImplementedError

    def close(self) -> None:
        """End every watch and close the journal."""
        raise NotImplementedError
