"""Files with objects of a cluster: what `kubectl get -o yaml` (or json) printed, and manifests people write.

One document or many, single objects or Lists, YAML or JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from kubesched.apiserver.codec import Undecodable, read_json, read_yaml
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.status import ApiError
from kubesched.framework.errors import KubeschedError

Json = dict[str, Any]

_DOCUMENT = re.compile(rb"^---(?:[ \t].*)?$", re.MULTILINE)
_NODES_MAX = 50_000_000
_SERVED_ANEW = frozenset(("Event", "Lease", "Endpoints", "EndpointSlice"))


class DumpError(KubeschedError):
    """A file of objects that cannot be used; says which, where, and what to do."""

    exit_status = 2


def read_objects(path: Path) -> list[Json]:
    """Every object in a file.  Raises DumpError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DumpError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    found: list[Json] = []
    for number, document in enumerate(_documents(data), start=1):
        where = f"{path}, document {number}" if number > 1 else str(path)
        try:
            value = read_json(document) if document.lstrip()[:1] == b"{" else read_yaml(document, _NODES_MAX)
        except Undecodable as error:
            raise DumpError(f"{where}: {error}") from None
        found += _flattened(value, where)
    if not found:
        raise DumpError(f"{path}: there is no object in it; write what `kubectl get nodes -o yaml` prints")
    return found


def _documents(data: bytes) -> Iterator[bytes]:
    if data.lstrip()[:1] == b"{":
        yield data
        return
    for part in _DOCUMENT.split(data):
        if any(line.strip() and not line.lstrip().startswith(b"#") for line in part.splitlines()):
            yield part


def _flattened(value: Any, where: str) -> list[Json]:
    if value is None:
        return []
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise DumpError(f"{where}: not a Kubernetes object: it has no kind")
    items = value.get("items")
    if value["kind"].endswith("List") and isinstance(items, list):
        kind, version = value["kind"].removesuffix("List"), value.get("apiVersion", "v1")
        named = [{"apiVersion": version, "kind": kind, **one} if isinstance(one, dict) else one for one in items]
        return [obj for at, one in enumerate(named) for obj in _flattened(one, f"{where}, items[{at}]")]
    return [value]


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
    if kind in _SERVED_ANEW:
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
