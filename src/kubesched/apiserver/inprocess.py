"""The API server for callers in the same process: verbs instead of requests, objects instead of bytes.

Every write goes through `ApiServer.handle`, the door that clients on the network use, so it is validated, defaulted
and admitted like theirs.  Only reading is short: the store's objects are handed out as they are, not to be changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubesched.api.kinds import KNOWN, Kind
from kubesched.api.time import Instant, format_rfc3339
from kubesched.apiserver.kinds import Resource
from kubesched.apiserver.requests import JSON_TYPE, Response, User
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.status import ApiError, bad_request, not_found
from kubesched.apiserver.store import Watch

Json = dict[str, Any]

MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"


class InProcess:
    """One caller of an API server.  Raises ApiError where it refuses.

    Args:
        name: who calls; the field manager of what it writes.
        kinds: what a scheduler reads, by kind.
    """

    def __init__(
        self, server: ApiServer, name: str = "kubesched", kinds: Mapping[str, Kind] = KNOWN
    ) -> None:
        self.server, self.store, self.kinds = server, server.store, kinds
        self._user = User(f"system:{name}", ("system:masters", "system:authenticated"))
        self._agent = name
        self._resources: dict[str, Resource] = {}
        self._generation = -1

    def request(self, method: str, path: str, body: Json | None = None, content_type: str = JSON_TYPE) -> Json:
        """Any request; the decoded answer."""
        headers = {"user-agent": self._agent, "content-type": content_type}
        answer = self.server.handle(method, path, "", headers, b"" if body is None else body, self._user)
        assert isinstance(answer, Response), "a watch is asked for with `watch`"
        told: Json = answer.json() if answer.body else {}
        if answer.status >= 400:
            reason, message = told.get("reason", ""), told.get("message", "")
            raise ApiError(answer.status, reason, message, told.get("details"))
        return told

    # by resource: what actors speak ------------------------------------------------------------------

    def create_in(self, resource: str, obj: Json) -> Json:
        """Create an object of a resource ("apps/deployments")."""
        return self.request("POST", self._path(resource, obj["metadata"].get("namespace", "")), obj)

    def change(self, resource: str, namespace: str, name: str, body: Json, uid: str, subresource: str) -> Json:
        """Merge a change into an object, or into one of its subresources; only if it has this uid."""
        if uid:
            body = {**body, "metadata": {**body.get("metadata", {}), "uid": uid}}
        return self.request("PATCH", self._path(resource, namespace, name, subresource), body, MERGE)

    def remove(
        self,
        resource: str,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace: int | None = None,
        propagation: str | None = None,
    ) -> None:
        """Delete an object of a resource."""
        options: Json = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if propagation:
            options["propagationPolicy"] = propagation
        self.request("DELETE", self._path(resource, namespace, name), options)

    def finalize(self, name: str) -> None:
        """Say that a namespace is empty."""
        found = self.store.get("namespaces", "", name).obj
        spec = {key: value for key, value in (found.get("spec") or {}).items() if key != "finalizers"}
        self.request("PUT", f"/api/v1/namespaces/{name}/finalize", {**found, "spec": spec})

    def _path(self, resource: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
        if self._generation != self.server.registry.generation:
            self._generation = self.server.registry.generation
            self._resources = {}
        row = self._resources.get(resource)
        if row is None:
            row = self.server.registry.by_storage(resource)
            if row is None:
                raise not_found(resource, name)
            self._resources[resource] = row
        return _path_of(row, namespace, name, subresource)

    # by kind: what people and schedulers speak -------------------------------------------------------

    def create(self, obj: Mapping[str, Any]) -> Json:
        """Create an object; in `default` where it names no namespace."""
        row = self._row(str(obj.get("kind", "")), str(obj.get("apiVersion", "")))
        namespace = (obj.get("metadata") or {}).get("namespace") or "default"
        made = {"apiVersion": row.group_version, **obj}
        return self.request("POST", _path_of(row, namespace if row.namespaced else ""), made)

    def find(self, kind: str, namespace: str, name: str) -> Json | None:
        row = self._row(kind)
        found = self.store.find(row.storage, _place(row, namespace), name)
        return None if found is None else found.obj

    def get(self, kind: str, namespace: str, name: str) -> Json:
        row = self._row(kind)
        return self.store.get(row.storage, _place(row, namespace), name).obj

    def list(self, kind: str, namespace: str | None = None) -> list[Json]:
        return [stored.obj for stored in self.store.list(self._row(kind).storage, namespace).items]

    def patch(self, kind: str, namespace: str, name: str, body: Mapping[str, Any], resource_version: str = "") -> Json:
        """Merge a change into an object (RFC 7386); its status is patched where the body has one."""
        row = self._row(kind)
        body = dict(body)
        if resource_version:
            body["metadata"] = {**body.get("metadata", {}), "resourceVersion": resource_version}
        subresource = "status" if "status" in body and row.has_status else ""
        return self.request("PATCH", _path_of(row, _place(row, namespace), name, subresource), body, MERGE)

    def delete(self, kind: str, namespace: str, name: str, *, uid: str = "", grace: int | None = None) -> None:
        row = self._row(kind)
        self.remove(row.storage, _place(row, namespace), name, uid=uid, grace=grace)

    def watch(self, kind: str, on_ready: Callable[[], None]) -> Watch:
        return self.store.watch(self.resource_of(kind), on_ready=on_ready)

    def resource_of(self, kind: str) -> str:
        """Where the store keeps a kind."""
        return self._row(kind).storage

    def _row(self, kind: str, group_version: str = "") -> Resource:
        known = self.kinds.get(kind)
        if known is not None and group_version in ("", known.api_version):
            row = self.server.registry.find(known.group, known.version, known.plural)
            if row is not None:
                return row
        for candidate in self.server.registry:
            found: Resource = candidate
            if found.kind == kind and group_version in ("", found.group_version) and not found.conversion:
                return found
        what = f"{kind} in {group_version}" if group_version else kind or "an object without a kind"
        raise bad_request(f"no such kind is served: {what}")

    # pods --------------------------------------------------------------------------------------------

    def bind(self, namespace: str, name: str, node: str, uid: str = "", resource_version: str = "") -> Json:
        """Bind a pod to a node; the pod as it then is."""
        meta = {"name": name, "namespace": namespace}
        if uid:
            meta["uid"] = uid
        if resource_version:
            meta["resourceVersion"] = resource_version
        target = {"kind": "Node", "name": node}
        body: Json = {"kind": "Binding", "apiVersion": "v1", "metadata": meta, "target": target}
        self.request("POST", f"/api/v1/namespaces/{namespace}/pods/{name}/binding", body)
        return self.store.get("pods", namespace, name).obj

    def say(
        self,
        namespace: str,
        name: str,
        uid: str,
        condition: Json | None = None,
        nominated: str | None = None,
        resource_version: str = "",
    ) -> Json:
        """Change a pod's status: a condition, the node it was promised, or both."""
        meta = {"uid": uid}
        if resource_version:
            meta["resourceVersion"] = resource_version
        status: Json = {}
        if condition is not None:
            status["conditions"] = [condition]
        if nominated is not None:
            status["nominatedNodeName"] = nominated or None
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        return self.request("PATCH", path, {"metadata": meta, "status": status}, STRATEGIC)

    def evict(self, namespace: str, name: str, uid: str, message: str, grace: int | None = None) -> None:
        """Say why a pod has to go, and delete it: what a scheduler does to a victim."""
        now = format_rfc3339(Instant(self.server.objects.now()))
        reason = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": message}
        self.say(namespace, name, uid, {**reason, "lastTransitionTime": now})
        self.remove("pods", namespace, name, uid=uid, grace=grace)


def _place(row: Resource, namespace: str) -> str:
    return (namespace or "default") if row.namespaced else ""


def _path_of(row: Resource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    root = f"/apis/{row.group_version}" if row.group else f"/api/{row.version}"
    within = f"/namespaces/{namespace}" if row.namespaced and namespace else ""
    return "/".join([f"{root}{within}/{row.plural}", *filter(None, (name, subresource))])
