"""The verbs of the API on any resource: get, list, watch, create, update, patch, delete.

A Target says what a path means; a verb turns a Request and a Target into a Response, or a WatchStream that goes on.
How objects are shown (as themselves, as Tables, as bare metadata) is decided from the Accept header and is the same for
every verb.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import yaml

from kubesched.apiserver import admission, patching, tables
from kubesched.apiserver.deletion import pod_grace
from kubesched.apiserver.kinds import Resource
from kubesched.apiserver.negotiation import PARTIAL, PARTIAL_LIST, TABLE, YAML, Wanted, negotiate
from kubesched.apiserver.objects import Objects, removable, terminating
from kubesched.apiserver.options import (
    ListOptions,
    WriteOptions,
    delete_options,
    list_options,
    selection,
    write_options,
)
from kubesched.apiserver.requests import Request, Response, WatchStream, encode
from kubesched.apiserver.status import ApiError, not_found, split_resource, too_many_requests
from kubesched.apiserver.store import DeleteOptions, Deletion, Stored
from kubesched.apiserver.watch import BOOKMARK, ERROR, Watch, WatchEvent

Json = dict[str, Any]

META = "meta.k8s.io/v1"
WATCHERS_MAX = 10_000
WATCH_SECONDS = 1800
WATCH_LAG_MAX = 10_000
_LINES_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Target:
    """What a path points at; namespace None is all of them, name "" the collection."""

    resource: Resource
    namespace: str | None = None
    name: str = ""
    subresource: str = ""

    @property
    def place(self) -> str:
        """The namespace as the store has it."""
        return self.namespace or ""


class Rest:
    """The verbs, over one store."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.store = objects.store

    # reading ---------------------------------------------------------------------------------------

    def find(self, target: Target) -> Stored:
        """Return the stored object of a target, or raise 404."""
        stored = self.store.find(target.resource.storage, target.place, target.name)
        if stored is None:
            raise not_found(_address(target.resource), target.name)
        return stored

    def get(self, request: Request, target: Target) -> Response:
        wanted = negotiate(request.headers.get("accept", ""))
        version = request.query.get("resourceVersion")
        if version:
            stored = self.store.get(target.resource.storage, target.place, target.name, resource_version=version)
        else:
            stored = self.find(target)
        return self.show(request, target.resource, stored, wanted)

    def list(self, request: Request, target: Target) -> Response:
        resource, query = target.resource, request.query
        wanted = negotiate(request.headers.get("accept", ""))
        options = list_options(query, watch=False)
        chosen = selection(query, resource)
        listing = self.store.list(
            resource.storage,
            target.namespace if resource.namespaced else None,
            matches=chosen.matches,
            limit=options.limit,
            continue_token=options.continue_token,
            resource_version=options.resource_version,
            resource_version_match=options.match,
        )
        meta: Json = {"resourceVersion": listing.resource_version}
        if listing.continue_token:
            meta["continue"] = listing.continue_token
            if listing.remaining is not None and chosen.matches is None:
                meta["remainingItemCount"] = listing.remaining
        return self._show_list(request, resource, listing.items, meta, wanted)

    def watch(self, request: Request, target: Target) -> WatchStream:
        resource, query = target.resource, request.query
        wanted = negotiate(request.headers.get("accept", ""))
        options = list_options(query, watch=True)
        chosen = selection(query, resource)
        if self.store.watchers() >= WATCHERS_MAX:
            raise too_many_requests("too many watches are open, please try again later", 1)
        watch = self.store.watch(
            resource.storage,
            target.namespace if resource.namespaced else None,
            matches=None if chosen.name is not None and _only_name(query) else chosen.matches,
            name=target.name or chosen.name,
            resource_version=options.resource_version,
            send_initial_events=options.send_initial_events,
            bookmarks=options.bookmarks,
            kind=(resource.group_version, resource.kind),
            capacity=WATCH_LAG_MAX,
        )
        # Clients come back at different moments: a herd that lists again all at once is what the spread is for.
        spread = WATCH_SECONDS + self.store.watchers() * 37 % WATCH_SECONDS
        return _stream(watch, self._line(request, resource, wanted), options, options.timeout or spread)

    # showing ---------------------------------------------------------------------------------------

    def show(
        self, request: Request, resource: Resource, stored: Stored, wanted: Wanted | None = None, status: int = 200
    ) -> Response:
        """Answer with one object."""
        wanted = wanted or negotiate(request.headers.get("accept", ""))
        if wanted == _PLAIN and resource.conversion is None and stored.revision:
            return Response(status, stored.encoded())
        obj: Any = self._own_view(resource, stored)
        if wanted.shape == TABLE:
            obj = self._table(request, resource, [stored], {"resourceVersion": stored.resource_version})
        elif wanted.shape == PARTIAL:
            obj = _partial(obj)
        return _encoded(obj, wanted, status)

    def _own_view(self, resource: Resource, stored: Stored) -> Json:
        """The object in the version that was asked for."""
        obj = stored.obj
        if not stored.revision and not obj["metadata"].get("resourceVersion"):
            obj = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}}
        return obj if resource.conversion is None else resource.conversion.from_stored(obj)

    def _show_list(
        self, request: Request, resource: Resource, items: Sequence[Stored], meta: Json, wanted: Wanted
    ) -> Response:
        if wanted.shape == TABLE:
            return _encoded(self._table(request, resource, items, meta), wanted)
        if wanted.shape in (PARTIAL, PARTIAL_LIST):
            shown = [_partial(stored.obj) for stored in items]
            head = {"kind": PARTIAL_LIST, "apiVersion": META, "metadata": meta}
            return _encoded({**head, "items": shown}, wanted)
        head = {"kind": f"{resource.kind}List", "apiVersion": resource.group_version, "metadata": meta}
        if wanted == _PLAIN and resource.conversion is None:
            parts = [s.encoded() for s in items] if resource.is_custom else [s.item() for s in items]
            return Response(200, b'%b,"items":[%b]}\n' % (encode(head)[:-1], b",".join(parts)))
        views = [self._own_view(resource, stored) for stored in items]
        if not resource.is_custom:
            views = [{k: v for k, v in view.items() if k not in ("kind", "apiVersion")} for view in views]
        return _encoded({**head, "items": views}, wanted)

    def _table(self, request: Request, resource: Resource, items: Sequence[Stored], meta: Json) -> Json:
        include = request.query.get("includeObject") or "Metadata"
        return tables.table(resource, [self._own_view(resource, s) for s in items], meta, include, self.objects.now())

    def _line(self, request: Request, resource: Resource, wanted: Wanted) -> Callable[[WatchEvent], bytes]:
        """How an event becomes a line of the stream."""
        if wanted.shape == TABLE:
            return self._table_line(request, resource)
        if wanted.shape in (PARTIAL, PARTIAL_LIST):
            return lambda event: event.line() if event.type == ERROR else _line(event.type, _partial(event.obj))
        conversion = resource.conversion
        if conversion is None:
            return lambda event: event.line()
        return lambda event: (
            event.line() if event.stored is None else _line(event.type, conversion.from_stored(event.obj))
        )

    def _table_line(self, request: Request, resource: Resource) -> Callable[[WatchEvent], bytes]:
        first = True

        def line(event: WatchEvent) -> bytes:
            nonlocal first
            if event.type == ERROR:
                return event.line()
            items = [] if event.type == BOOKMARK else [event.stored]
            meta = {"resourceVersion": event.obj["metadata"]["resourceVersion"]}
            table = self._table(request, resource, [s for s in items if s is not None], meta)
            if not first:
                table["columnDefinitions"] = None
            if items:
                first = False
            return _line(event.type, table)

        return line

    # writing ---------------------------------------------------------------------------------------

    def create(self, request: Request, target: Target) -> Response:
        options = write_options(request, "CreateOptions")
        obj = self.objects.read(request, target.resource)
        return self._created(request, target, obj, options)

    def _created(self, request: Request, target: Target, obj: Json, options: WriteOptions) -> Response:
        stored = self.objects.create(
            target.resource, obj, target.place, target.name, writer=options.writer, dry_run=options.dry_run
        )
        return self.show(request, target.resource, stored, status=201)

    def update(self, request: Request, target: Target) -> Response:
        resource = target.resource
        options = write_options(request, "UpdateOptions")
        obj = self.objects.read(request, resource)
        old = self.store.find(resource.storage, target.place, target.name)
        if old is None:
            if not resource.create_on_update or target.subresource:
                _check_name(obj, target)
                raise not_found(_address(resource), target.name)
            obj.get("metadata", {}).pop("resourceVersion", None)
            return self._created(request, target, obj, options)
        stored = self.objects.replace(
            resource, old, obj, target.subresource, writer=options.writer, dry_run=options.dry_run
        )
        return self.show(request, resource, stored)

    def patch(self, request: Request, target: Target) -> Response:
        stored, created = patching.patch(self.objects, request, target)
        return self.show(request, target.resource, stored, status=201 if created else 200)

    def delete(self, request: Request, target: Target) -> Response:
        resource = target.resource
        options = _chosen(resource, delete_options(request))
        admission.check_delete(resource, target.name)
        if self.store.find(resource.storage, target.place, target.name) is None:
            raise not_found(_address(resource), target.name)
        deletion = self.store.delete(resource.storage, target.place, target.name, options, **_deletion_rules(resource))
        if not deletion.gone or resource.returned:
            return self.show(request, resource, deletion.stored)
        return _encoded(_deleted(resource, deletion), negotiate(request.headers.get("accept", "")))

    def delete_collection(self, request: Request, target: Target) -> Response:
        resource = target.resource
        options = _chosen(resource, delete_options(request))
        chosen = selection(request.query, resource)
        place = target.namespace if resource.namespaced else None
        before = self.store.list(resource.storage, place, matches=chosen.matches).items  # what is shown in the end
        self.store.delete_collection(
            resource.storage,
            place,
            options,
            matches=chosen.matches,
            **_deletion_rules(resource),
        )
        meta = {"resourceVersion": str(self.store.revision)}
        wanted = negotiate(request.headers.get("accept", ""))
        return self._show_list(request, resource, before, meta, wanted)


_PLAIN = Wanted()


def _address(resource: Resource) -> str:
    """The resource as errors name it, in the group that was asked."""
    return f"{resource.group}/{resource.plural}" if resource.group else resource.plural


def _only_name(query: Any) -> bool:
    return not query.get("labelSelector") and "," not in query.get("fieldSelector")


def _check_name(obj: Json, target: Target) -> None:
    name = obj.get("metadata", {}).get("name", "")
    if name and name != target.name:
        raise ApiError(
            400, "BadRequest", f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )


# Kept from kube-apiserver: what these have made stays, where nobody says what is to become of it.
_ORPHANING = ("batch.Job", "core.ReplicationController")


def _chosen(resource: Resource, options: DeleteOptions) -> DeleteOptions:
    if options.propagation_policy is None and resource.shape in _ORPHANING:
        return replace(options, propagation_policy="Orphan")
    return options


def _deletion_rules(resource: Resource) -> dict[str, Any]:
    if resource.shape == "core.Pod":
        return {"grace": pod_grace}
    if resource.shape == "core.Namespace":
        return {"removable": removable(resource), "prepare": terminating}
    return {}


def _deleted(resource: Resource, deletion: Deletion) -> Json:
    """The Status that says an object is gone."""
    group, plural = split_resource(_address(resource))
    details: Json = {"name": deletion.stored.name}
    if group:
        details["group"] = group
    details |= {"kind": plural, "uid": deletion.stored.uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _partial(obj: Json) -> Json:
    return {"kind": PARTIAL, "apiVersion": META, "metadata": obj["metadata"]}


def _line(kind: str, obj: Json) -> bytes:
    return encode({"type": kind, "object": obj}) + b"\n"


def _encoded(obj: Json, wanted: Wanted, status: int = 200) -> Response:
    if wanted.media == YAML:
        dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
        return Response(status, yaml.dump(obj, Dumper=dumper, allow_unicode=True).encode(), YAML)
    return Response(status, encode(obj) + b"\n")


def _stream(watch: Watch, line: Callable[[WatchEvent], bytes], options: ListOptions, timeout: int) -> WatchStream:
    """A Watch as a stream of lines."""

    def set_on_ready(call: Callable[[], None]) -> None:
        watch.on_ready = call

    return WatchStream(
        take=lambda: [line(event) for event in watch.take(_LINES_AT_ONCE)],
        is_closed=lambda: watch.closed,
        close=watch.close,
        bookmark=watch.bookmark if options.bookmarks else None,
        set_on_ready=set_on_ready,
        timeout=timeout,
    )
