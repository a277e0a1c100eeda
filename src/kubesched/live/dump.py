"""Objects of another cluster, taken over as they were: what `kubectl get -o yaml` (or json) printed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.status import ApiError
from kubesched.explain.documents import UnreadableFile, parts

Json = dict[str, Any]

_MADE_ANEW = frozenset(("Event", "Lease", "Endpoints", "EndpointSlice"))


def read_objects(path: Path) -> list[Json]:
    """Every object in a file, whole.  Raises UnreadableFile."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableFile(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    found: list[Json] = []
    for part in parts(data, str(path), unread=()):
        obj = part.data
        if isinstance(obj, (bytes, msgspec.Raw)):
            try:
                obj = msgspec.json.decode(obj)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise UnreadableFile(f"{part.where}: is not JSON: {error}") from None
        if not isinstance(obj, dict) or not isinstance(obj.get("metadata", {}), dict):
            raise UnreadableFile(f"{part.where}: is no Kubernetes object")
        obj = {"apiVersion": "v1", **({"kind": part.kind} if part.kind else {}), **obj}
        if not isinstance(obj.get("kind"), str):
            raise UnreadableFile(f"{part.where}: does not say its kind; kubectl get -o yaml prints it")
        found.append(obj)
    return found


class Restored:
    """What became of a dump: how many objects of each kind are there now, and what was left out, in words."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.left_out: dict[str, int] = {}

    def lines(self) -> Iterator[str]:
        yield "loaded " + ", ".join(f"{count} {kind}" for kind, count in sorted(self.counts.items()))
        yield from (f"left out: {why} ({count})" for why, count in sorted(self.left_out.items()))


def restore(server: ApiServer, objects: Iterable[Json]) -> Restored:
    """Store objects as they were in another cluster: status, uid, owners.

    An owner that is not part of the dump is forgotten, or its dependents would be collected as garbage at once.  What
    a cluster makes anew all the time (Events, Leases, endpoints) is left out.
    """
    restored = Restored()
    objects = list(objects)
    uids = {obj.get("metadata", {}).get("uid") for obj in objects}
    order = {"CustomResourceDefinition": 0, "Namespace": 1}
    for obj in sorted(objects, key=lambda obj: order.get(obj["kind"], 2)):
        why = _restore(server, obj, uids)
        counts = restored.left_out if why else restored.counts
        name = why or obj["kind"]
        counts[name] = counts.get(name, 0) + 1
    return restored


def _restore(server: ApiServer, obj: Json, uids: set[Any]) -> str:
    """Store one object; why not, where it is left out."""
    kind = obj["kind"]
    if kind in _MADE_ANEW:
        return f"{kind}, which a cluster makes by itself"
    group, _, version = str(obj.get("apiVersion", "v1")).rpartition("/")
    row = server.registry.find_kind(group, version, kind)
    if row is None:
        return f"{kind} in {obj.get('apiVersion')}, which is not served here"
    meta = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    refs = [ref for ref in meta.pop("ownerReferences", None) or () if ref.get("uid") in uids]
    if refs:
        meta["ownerReferences"] = refs
    if row.namespaced:
        _namespace_for(server, meta.get("namespace") or "default")
    try:
        server.objects.restore(row, {**obj, "metadata": meta})
    except ApiError as error:
        return "what is here already" if error.reason == "AlreadyExists" else f"{kind}: {error.message}"
    if kind == "CustomResourceDefinition":
        server.definitions.changed(meta["name"])
    return ""


def _namespace_for(server: ApiServer, name: str) -> None:
    """A dump of pods need not hold their namespaces."""
    if server.store.find("namespaces", "", name) is None:
        server.handle("POST", "/api/v1/namespaces", body={"metadata": {"name": name}})
