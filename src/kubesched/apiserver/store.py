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
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Any, Protocol

import msgspec

from kubesched.api.time import Instant, format_rfc3339
from kubesched.apiserver import status
from kubesched.apiserver.deletion import (
    DeleteOptions,
    Deletion,
    GraceRule,
    Marked,
    Removable,
    is_finished,
    mark,
    pod_grace,
)
from kubesched.apiserver.metadata import first_metadata, kept_metadata, new_uid, same_json, with_suffix
from kubesched.apiserver.preconditions import Preconditions, check_delete_preconditions, check_preconditions
from kubesched.apiserver.stored import Stored, object_key
from kubesched.apiserver.table import Listing, Table, decode_continue
from kubesched.apiserver.watch import History, Watch, WatchEvent

__all__ = [
    "DeleteOptions",
    "Deletion",
    "GraceRule",
    "Journal",
    "Json",
    "Listing",
    "Matches",
    "Preconditions",
    "Removable",
    "Store",
    "Stored",
    "Watch",
    "WatchEvent",
    "pod_grace",
]

Json = dict[str, Any]
Matches = Callable[[Json], bool]
"""Tells whether an object is selected (labels, fields, whatever the caller composes)."""

Bump = bool | Callable[[Json, Json], bool]
"""Whether a change raises metadata.generation: a flag, or a function of (stored, new)."""

GENERATE_NAME_ATTEMPTS = 8
FIRST_REVISION = 1


Deletions = list[Deletion]


class Journal(Protocol):
    """Where writes are made durable; see kubesched.apiserver.persistence."""

    def put(self, revision: int, resource: str, namespace: str, name: str, body: bytes) -> None:
        """Write an object; a failure is raised and nothing has happened."""

    def remove(self, revision: int, resource: str, namespace: str, name: str) -> None:
        """Remove an object; a failure is raised and nothing has happened."""

    def batch(self) -> AbstractContextManager[None]:
        """Commit the writes inside together."""

    def load(self) -> tuple[int, Iterator[tuple[str, str, str, int, bytes]]]:
        """Return the revision to go on from, and (resource, namespace, name, revision, body) of every object."""

    def close(self) -> None:
        """Let go of the files."""


class Store:
    """The objects of one cluster; see the module's docstring for its rules.

    Args:
        now: the current instant in nanoseconds since the epoch.
        luck: source of uids and generateName suffixes (random.Random(seed) or SystemRandom()).
        journal: makes writes durable before they are answered; None keeps all in memory.
        history: how many changes per resource are kept for watches and for snapshots.
    """

    def __init__(
        self, *, now: Callable[[], int], luck: Random, journal: Journal | None = None, history: int = 8192
    ) -> None:
        self._now = now
        self._luck = luck
        self._journal = journal
        self._history_capacity = history
        self._tables: dict[str, Table] = {}
        self._floor = self._revision = FIRST_REVISION
        self._second = -1
        self._second_text = ""
        if journal is not None:
            self._load(journal)

    def _load(self, journal: Journal) -> None:
        revision, objects = journal.load()
        self._floor = self._revision = max(revision, FIRST_REVISION)
        for resource, namespace, name, at, body in objects:
            self._table(resource).load(Stored(msgspec.json.decode(body), namespace, name, at, body))

    # reading ---------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The revision of the latest write; a fresh store stands at 1."""
        return self._revision

    def find(self, resource: str, namespace: str, name: str) -> Stored | None:
        """Return the object, or None."""
        table = self._tables.get(resource)
        return table.objects.get(object_key(namespace, name)) if table is not None else None

    def get(self, resource: str, namespace: str, name: str, *, resource_version: str = "") -> Stored:
        """Return the object; 404 when missing, 504 when resource_version lies in the future."""
        self._not_future(_parse_version(resource_version))
        stored = self.find(resource, namespace, name)
        if stored is None:
            raise status.not_found(resource, name)
        return stored

    def resources(self) -> list[str]:
        """Return the resources that have or had objects, sorted."""
        return sorted(self._tables)

    def count(self, resource: str, namespace: str | None = None) -> int:
        """Return how many objects there are, in one namespace or in all (None)."""
        table = self._tables.get(resource)
        return table.count(namespace) if table is not None else 0

    def changes(self, resource: str) -> int:
        """Return how often a resource has changed; the same number means that nothing has."""
        return self._table(resource).history.end

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
        ignored), N with match "NotOlderThan" at least N, with "Exact" (or with no match and a limit,
        a rule kept from before there were matches) the snapshot at N.
        Raises 410 Expired when the snapshot is no longer in the history, 504 for a revision in the
        future, 400 for a broken token or revision.
        """
        table = self._table(resource)
        current = self._revision
        if continue_token:
            return self._continue(table, namespace, matches, limit, continue_token, resource_version)
        version = _parse_version(resource_version)
        self._not_future(version)
        exact = resource_version_match == "Exact" or (not resource_version_match and limit > 0 and version > 0)
        if exact:
            return table.page(namespace, matches, limit, "", version, paging=False)
        if resource_version == "0":
            limit = 0
        if limit:
            return table.page(namespace, matches, limit, "", current, paging=False)
        items = table.all(namespace)
        if matches is not None:
            items = [stored for stored in items if matches(stored.obj)]
        return Listing(items, str(current))

    def _continue(
        self, table: Table, namespace: str | None, matches: Matches | None, limit: int, token: str, version: str
    ) -> Listing:
        start, revision = decode_continue(token, namespace)
        if version not in ("", "0"):
            raise status.bad_request("specifying resource version is not allowed when using continue")
        if revision < 0:
            revision = self._revision
        self._not_future(revision)
        return table.page(namespace, matches, limit, start, revision, paging=True)

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
        raised: the watch holds one ERROR event with 410 Expired and is closed, as on the wire; so is
        one in the future with send_initial_events (504).  Only a malformed one is raised (400).
        capacity: how many changes it may lag behind before it is cut off with 410; the history's
        capacity in any case.
        """
        version = _parse_version(resource_version)
        table = self._table(resource)
        watch = Watch(
            table.history,
            current=lambda: self._revision,
            namespace=namespace,
            name=name,
            matches=matches,
            kind=kind,
            bookmarks=bookmarks,
            capacity=capacity,
            on_ready=on_ready,
        )
        if send_initial_events and version > self._revision:
            watch.fail(status.future_resource_version(version, self._revision))
        elif send_initial_events or (send_initial_events is None and version == 0):
            watch.begin_with(table.all(namespace), self._revision if send_initial_events else None)
        elif version == 0:
            watch.begin_after(self._revision)
        elif version < table.history.floor:
            watch.fail(status.too_old(version, table.history.floor))
        else:
            watch.begin_after(version)
        return watch

    # writing ---------------------------------------------------------------------------------------

    def generate_name(self, resource: str, namespace: str, prefix: str) -> str:
        """Return prefix and five random letters, a name free at this moment; 409 after eight misses."""
        name = prefix
        for _ in range(GENERATE_NAME_ATTEMPTS):
            name = with_suffix(prefix, self._luck)
            if self.find(resource, namespace, name) is None:
                return name
        raise status.generate_name_conflict(resource, name)

    def create(
        self,
        resource: str,
        obj: Json,
        *,
        generation: int | None = 1,
        dry_run: bool = False,
        finish: Callable[[Json], None] | None = None,
    ) -> Stored:
        """Store a new object and return it.

        Name and namespace are taken from obj.metadata (generateName is completed); uid,
        resourceVersion, creationTimestamp and generation (None: kinds that have none) are set over
        whatever the client sent; selfLink, deletionTimestamp and deletionGracePeriodSeconds dropped.
        finish may change the object once its metadata is complete (a Job's selector holds its uid).
        Raises 409 AlreadyExists; 500 when obj carries a resourceVersion.
        """
        given: Json = obj.get("metadata") or {}
        version = str(given.get("resourceVersion") or "")
        if version.isdecimal() and int(version):  # what is no number is nothing, as in the real server
            raise status.plain("resourceVersion should not be set on objects to be created")
        namespace: str = given.get("namespace") or ""
        name: str = given.get("name") or ""
        if not name:
            if not given.get("generateName"):
                raise status.bad_request("name or generateName is required")
            name = self.generate_name(resource, namespace, given["generateName"])
        self._must_be_free(resource, namespace, name)
        meta = first_metadata(given, name, namespace, new_uid(self._luck), self._timestamp(), generation)
        new = {**obj, "metadata": meta}
        if finish is not None:
            finish(new)
        if dry_run:
            del meta["resourceVersion"]
            return Stored(new, namespace, name, 0)
        return self._add(resource, new, meta)

    def restore(self, resource: str, obj: Json) -> Stored:
        """Store an object as it was in another cluster: uid, times and generation are kept, only its version is new.

        Raises 409 AlreadyExists.
        """
        given: Json = obj["metadata"]
        namespace, name = given.get("namespace") or "", given["name"]
        self._must_be_free(resource, namespace, name)
        uid = given.get("uid") or new_uid(self._luck)
        stamp = given.get("creationTimestamp") or self._timestamp()
        meta = {**given, "name": name, "uid": uid, "creationTimestamp": stamp}
        return self._add(resource, {**obj, "metadata": meta}, meta)

    def _must_be_free(self, resource: str, namespace: str, name: str) -> None:
        standing = self.find(resource, namespace, name)
        if standing is not None:
            error = status.already_exists(resource, standing.name)
            if "deletionTimestamp" in standing.obj["metadata"]:
                error.message = f"object is being deleted: {error.message}"
            raise error

    def _add(self, resource: str, obj: Json, meta: Json) -> Stored:
        """Write a first version whose metadata is meta, a fresh dict."""
        stored = self._next(resource, obj, meta, meta.get("namespace") or "", meta["name"])
        self._table(resource).add(stored)
        return stored

    def _next(self, resource: str, obj: Json, meta: Json, namespace: str, name: str) -> Stored:
        """Number a write and make it durable."""
        revision = self._revision + 1
        meta["resourceVersion"] = str(revision)
        stored = Stored(obj, namespace, name, revision)
        if self._journal is not None:
            self._journal.put(revision, resource, namespace, name, stored.encoded())
        self._revision = revision
        return stored

    def update(
        self,
        resource: str,
        namespace: str,
        name: str,
        obj: Json,
        *,
        bump: Bump = False,
        removable: Removable | None = None,
        dry_run: bool = False,
    ) -> Stored:
        """Replace an object; obj.metadata.resourceVersion, if not empty, must be the stored one.

        bump decides whether metadata.generation (if the object has one) goes up: a flag, or a
        function of (stored, new).  uid, creationTimestamp, deletionTimestamp and generation stay the
        server's.  A change that changes nothing returns the stored version: no event, no revision.
        Emptying the finalizers of an object whose deletion awaits nothing else removes it; what is
        returned then is the object as it was asked for.
        """
        current = self.get(resource, namespace, name)
        return self._replace(resource, current, obj, bump, removable, dry_run)

    def guaranteed_update(
        self,
        resource: str,
        namespace: str,
        name: str,
        change: Callable[[Json], Json],
        *,
        preconditions: Preconditions | None = None,
        bump: Bump = False,
        removable: Removable | None = None,
        dry_run: bool = False,
    ) -> Stored:
        """Apply change(stored object) -> new object atomically; otherwise as `update`.

        change may raise an ApiError to refuse; the object returned may carry the stored
        resourceVersion, or none.  An older one is a conflict.  It must not write to the same object.
        """
        current = self.get(resource, namespace, name)
        if preconditions is not None:
            check_preconditions(resource, current, preconditions, dry_run=dry_run)
        return self._replace(resource, current, change(current.obj), bump, removable, dry_run)

    def _replace(
        self, resource: str, current: Stored, obj: Json, bump: Bump, removable: Removable | None, dry_run: bool
    ) -> Stored:
        old, given = current.obj["metadata"], obj.get("metadata") or {}
        wanted_uid = given.get("uid") or old["uid"]
        if wanted_uid != old["uid"]:
            raise status.precondition_failed(resource, current.namespace, current.name, "UID", wanted_uid, old["uid"])
        if given.get("resourceVersion", "") not in ("", "0", old["resourceVersion"]):
            raise status.conflict(resource, current.name)
        meta = kept_metadata(old, given)
        new = {**obj, "metadata": meta}
        if bump is True or (bump is not False and bump(current.obj, new)):
            meta["generation"] = old.get("generation", 0) + 1
        if same_json(current.obj, new):
            return current
        if is_finished(current.obj, new, removable):
            if not dry_run:
                self._remove(resource, current)
            return Stored(new, current.namespace, current.name, 0 if dry_run else self._revision)
        if dry_run:
            return Stored(new, current.namespace, current.name, 0)
        return self._put(resource, current, new, meta)

    def _put(self, resource: str, current: Stored, obj: Json, meta: Json) -> Stored:
        """Write a new version whose metadata is meta, a fresh dict."""
        stored = self._next(resource, obj, meta, current.namespace, current.name)
        self._tables[resource].replace(stored, current)
        return stored

    def _remove(self, resource: str, current: Stored) -> Stored:
        revision = self._revision + 1
        if self._journal is not None:
            self._journal.remove(revision, resource, current.namespace, current.name)
        self._revision = revision
        return self._tables[resource].remove(current, revision)

    def delete(
        self,
        resource: str,
        namespace: str,
        name: str,
        options: DeleteOptions | None = None,
        *,
        grace: GraceRule | None = None,
        removable: Removable | None = None,
        prepare: Callable[[Json], Json] | None = None,
    ) -> Deletion:
        """Delete an object, or mark it as being deleted while grace or finalizers hold it.

        grace is given for kinds that die gracefully (pods: pod_grace).  propagationPolicy Foreground
        and Orphan add the finalizer a garbage collector must take off.  The generation (if the object
        has one) goes up when deletionTimestamp is first set.  prepare changes the object in the same
        write that marks it (Namespace: phase Terminating).
        """
        options = options or DeleteOptions()
        current = self.get(resource, namespace, name)
        if options.preconditions is not None:
            check_delete_preconditions(resource, current, options.preconditions)
        marked = mark(
            current.obj, self._now(), options.grace_period_seconds, options.propagation_policy, grace, removable
        )
        if prepare is not None and marked.obj is not None:
            marked = Marked(prepare(marked.obj), marked.remove)
        if options.dry_run:
            shown = current if marked.obj is None else Stored(marked.obj, namespace, name, 0)
            return Deletion(shown, marked.remove)
        if marked.obj is not None and not same_json(current.obj, marked.obj):
            meta = dict(marked.obj["metadata"])
            current = self._put(resource, current, {**marked.obj, "metadata": meta}, meta)
        return Deletion(self._remove(resource, current), True) if marked.remove else Deletion(current, False)

    def delete_collection(
        self,
        resource: str,
        namespace: str | None = None,
        options: DeleteOptions | None = None,
        *,
        matches: Matches | None = None,
        grace: GraceRule | None = None,
        removable: Removable | None = None,
        prepare: Callable[[Json], Json] | None = None,
    ) -> Deletions:
        """Delete every selected object as `delete` would; objects that vanish meanwhile are skipped."""
        done: Deletions = []
        for stored in self.list(resource, namespace, matches=matches).items:
            if self.find(resource, stored.namespace, stored.name) is None:
                continue
            rules: dict[str, Any] = {"grace": grace, "removable": removable, "prepare": prepare}
            done.append(self.delete(resource, stored.namespace, stored.name, options, **rules))
        return done

    def batch(self) -> AbstractContextManager[None]:
        """Group the writes inside into one durable commit; acknowledge them when it has ended."""
        return self._journal.batch() if self._journal is not None else nullcontext()

    # housekeeping ----------------------------------------------------------------------------------

    def bookmark(self) -> None:
        """Queue a BOOKMARK at the current revision for every watch that asked for them."""
        for resource in sorted(self._tables):
            for watch in list_of(self._tables[resource].history.watches):
                watch.bookmark()

    def compact(self, revision: int | None = None) -> None:
        """Forget history up to revision (None: all of it); older watches and tokens get 410."""
        upto = self._revision if revision is None else min(revision, self._revision)
        self._floor = max(self._floor, upto)
        for table in self._tables.values():
            table.history.compact(upto)

    def watchers(self, resource: str | None = None) -> int:
        """Return how many watches are open."""
        tables = self._tables.values() if resource is None else [self._table(resource)]
        return sum(len(table.history.watches) for table in tables)

    def close(self) -> None:
        """End every watch and close the journal."""
        for table in self._tables.values():
            for watch in list_of(table.history.watches):
                watch.close()
        if self._journal is not None:
            self._journal.close()

    # what it is made of -----------------------------------------------------------------------------

    def _table(self, resource: str) -> Table:
        table = self._tables.get(resource)
        if table is None:
            table = self._tables[resource] = Table(History(self._history_capacity, self._floor))
        return table

    def _not_future(self, version: int) -> None:
        if version > self._revision:
            raise status.future_resource_version(version, self._revision)

    def _timestamp(self) -> str:
        """The current second as text; most writes share one with their neighbours."""
        second = self._now() // 1_000_000_000
        if second != self._second:
            self._second, self._second_text = second, format_rfc3339(Instant(second * 1_000_000_000))
        return self._second_text


list_of = list  # inside Store, `list` is a method


def _parse_version(text: str) -> int:
    if text in ("", "0"):
        return 0
    if not (text.isascii() and text.isdigit()):
        why = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise status.bad_request(f"invalid resource version: {why}")
    return int(text)
