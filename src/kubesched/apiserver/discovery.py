"""Tell clients what is served: discovery, the old way (a document a group) and the new (all in one).

kubectl asks /api and /apis for an APIGroupDiscoveryList and falls back to walking the groups; client-go's informers ask
for single groups.  All documents are derived from the Registry and kept until it changes, which it does whenever a
CustomResourceDefinition comes or goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.apiserver.kinds import Registry, Resource
from kubesched.apiserver.negotiation import clauses
from kubesched.apiserver.requests import Response, encode

Json = dict[str, Any]

AGGREGATED_GROUP = "apidiscovery.k8s.io"
_AGGREGATED_VERSIONS = ("v2", "v2beta1")


class Discovery:
    """The discovery documents of a registry."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._generation = -1
        self._documents: dict[str, bytes] = {}

    def _document(self, name: str, make: Callable[[], Json]) -> Response:
        if self._generation != self.registry.generation:
            self._generation = self.registry.generation
            self._documents.clear()
        if name not in self._documents:
            self._documents[name] = encode(make()) + b"\n"
        return Response(200, self._documents[name])

    def roots(self, path: str, accept: str, address: str = "") -> Response:
        """Answer /api ("api") or /apis ("apis")."""
        version = _aggregated_version(accept)
        if version:
            response = self._document(f"{path}:{version}", lambda: self._aggregated(path == "api", version))
            response.content_type = f"application/json;g={AGGREGATED_GROUP};v={version};as=APIGroupDiscoveryList"
            return response
        if path == "api":
            return self._document(f"api:{address}", lambda: _api_versions(address))
        return self._document("apis", self._group_list)

    def group(self, name: str) -> Response | None:
        """Answer /apis/<group>; None when it is not served."""
        versions = self.registry.groups().get(name)
        if not name or versions is None:
            return None
        return self._document(f"group:{name}", lambda: _group(name, list(versions), top=True))

    def resources(self, group: str, version: str) -> Response | None:
        """Answer /api/v1 or /apis/<group>/<version>; None when it is not served."""
        rows = self.registry.groups().get(group, {}).get(version)
        if rows is None:
            return None
        return self._document(f"resources:{group}/{version}", lambda: _resource_list(rows))

    def _group_list(self) -> Json:
        groups = [_group(name, list(versions)) for name, versions in self.registry.groups().items() if name]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}

    def _aggregated(self, core: bool, version: str) -> Json:
        items = []
        for name, versions in self.registry.groups().items():
            if core is bool(name):
                continue
            entries = [
                {"version": v, "resources": [_aggregated_resource(r) for r in rows], "freshness": "Current"}
                for v, rows in versions.items()
            ]
            items.append({"metadata": {"name": name} if name else {}, "versions": entries})
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"{AGGREGATED_GROUP}/{version}",
            "metadata": {},
            "items": items,
        }


def _aggregated_version(accept: str) -> str:
    """The version of aggregated discovery that is wanted, "" for the old documents."""
    for clause in clauses(accept):
        if clause.media != "application/json":
            continue
        if clause.param("as") == "APIGroupDiscoveryList" and clause.param("g") == AGGREGATED_GROUP:
            if clause.param("v") in _AGGREGATED_VERSIONS:
                return clause.param("v")
        elif not clause.params:
            return ""
    return ""


def _api_versions(address: str) -> Json:
    found: Json = {"kind": "APIVersions", "versions": ["v1"]}
    found["serverAddressByClientCIDRs"] = [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}]
    return found


def _group(name: str, versions: list[str], *, top: bool = False) -> Json:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    head: Json = {"kind": "APIGroup", "apiVersion": "v1"} if top else {}
    return {**head, "name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource_list(rows: list[Resource]) -> Json:
    found: list[Json] = []
    for row in rows:
        entry: Json = {
            "name": row.plural,
            "singularName": row.singular,
            "namespaced": row.namespaced,
            "kind": row.kind,
            "verbs": list(row.verbs),
        }
        if row.short_names:
            entry["shortNames"] = list(row.short_names)
        if row.categories:
            entry["categories"] = list(row.categories)
        found.append(entry)
        for sub in row.subresources.values():
            entry = {"name": f"{row.plural}/{sub.name}", "singularName": "", "namespaced": row.namespaced}
            if sub.group_version_kind is not None:
                group, version, kind = sub.group_version_kind
                if (group, version) != (row.group, row.version):
                    entry |= {"group": group, "version": version}
            else:
                kind = row.kind
            found.append({**entry, "kind": kind, "verbs": list(sub.verbs)})
    head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": rows[0].group_version}
    return {**head, "resources": found}


def _aggregated_resource(row: Resource) -> Json:
    own = {"group": row.group, "version": row.version} if row.is_custom else {"group": "", "version": ""}
    entry: Json = {
        "resource": row.plural,
        "responseKind": {**own, "kind": row.kind},
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular,
        "verbs": list(row.verbs),
    }
    if row.short_names:
        entry["shortNames"] = list(row.short_names)
    if row.categories:
        entry["categories"] = list(row.categories)
    subs: list[Json] = []
    for sub in row.subresources.values():
        kind = {**own, "kind": row.kind}
        if sub.group_version_kind is not None:
            group, version, name = sub.group_version_kind
            same = (group, version) == (row.group, row.version)
            kind = {**own, "kind": name} if same else {"group": group, "version": version, "kind": name}
        subs.append({"subresource": sub.name, "responseKind": kind, "verbs": list(sub.verbs)})
    if subs:
        entry["subresources"] = subs
    return entry
