"""The embedded API server: one function from requests to answers, without sockets.

`ApiServer.handle` is what the HTTP face calls for every request and what the simulator and tests call directly; there
is no shorter way in, so nothing is proved on a path that users do not take.  It is synchronous: a request is done,
wholly or not at all, before the next one begins, and so needs no locks.

    server = ApiServer(Store(now=clock, luck=Random(1)), now=clock)
    server.bootstrap()
    server.handle("POST", "/api/v1/namespaces/default/pods", body=b'{"metadata":{"name":"web"},…}')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kubesched.apiserver import access, codec, crd, openapi, scale
from kubesched.apiserver.admission import SYSTEM_PRIORITY_CLASSES, Rules
from kubesched.apiserver.binding import bind
from kubesched.apiserver.conversion import built_in_registry
from kubesched.apiserver.discovery import Discovery
from kubesched.apiserver.eviction import evict
from kubesched.apiserver.objects import Objects
from kubesched.apiserver.options import delete_options, write_options
from kubesched.apiserver.requests import (
    ADMIN,
    Answer,
    Query,
    Request,
    Response,
    User,
    WatchStream,
    encode,
    error_response,
    json_response,
    not_a_page,
    text_response,
)
from kubesched.apiserver.rest import Rest, Target
from kubesched.apiserver.status import (
    ApiError,
    bad_request,
    method_not_allowed,
    too_large,
    unknown_resource,
)
from kubesched.apiserver.store import Store

Json = dict[str, Any]

GIT_VERSION = "v1.36.4"
BODY_BYTES_MAX = 3 * 1024 * 1024
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_WRITES = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class ApiServer:
    """A Kubernetes API over a store.

    Args:
        store: where objects are kept.
        now: the current instant in nanoseconds since the epoch; the store's own.
        rules: which optional admission is in force.
        authenticator: who may come in; None lets everybody in (callers in the same process).
        address: host:port as discovery shows it.
    """

    def __init__(
        self,
        store: Store,
        *,
        now: Callable[[], int],
        rules: Rules | None = None,
        authenticator: access.Authenticator | None = None,
        address: str = "127.0.0.1:6443",
    ) -> None:
        self.store = store
        self.registry = built_in_registry()
        self.objects = Objects(store, rules or Rules(), now)
        self.rest = Rest(self.objects)
        self.authenticator = authenticator or access.Authenticator({}, everyone=ADMIN)
        self.address = address
        self.discovery = Discovery(self.registry)
        self.openapi = openapi.OpenApi(self.registry, GIT_VERSION)
        self.definitions = crd.Definitions(self.registry, store, now)
        self.definitions.load()

    def bootstrap(self) -> None:
        """Make what every cluster has from the start; what is there already stays."""
        for name in NAMESPACES:
            self._make("namespaces", {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}})
        for name, value, text in SYSTEM_PRIORITY_CLASSES:
            group_version = "scheduling.k8s.io/v1"
            obj = {"kind": "PriorityClass", "apiVersion": group_version, "metadata": {"name": name}}
            self._make("scheduling.k8s.io/priorityclasses", {**obj, "value": value, "description": text})
        meta = {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}}
        port = int(self.address.rpartition(":")[2] or 6443)
        spec = {"ports": [{"name": "https", "port": 443, "targetPort": port}]}
        self._make("services", {"kind": "Service", "apiVersion": "v1", "metadata": meta, "spec": spec}, "default")

    def _make(self, storage: str, obj: Json, namespace: str = "") -> None:
        resource = self.registry.by_storage(storage)
        if resource is not None and self.store.find(storage, namespace, obj["metadata"]["name"]) is None:
            cleaned, _ = codec.clean(obj, resource.group_version, resource.kind, resource.shape)
            self.objects.create(resource, cleaned, namespace, "")

    # requests --------------------------------------------------------------------------------------

    def handle(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes | Json = b"",
        certificate: User | None = None,
    ) -> Answer:
        """Answer a request; headers have lower-case names.  A dict as body is sent as JSON.

        Never raises for what a client did wrong: that is a Response with a Status in it.
        """
        headers = headers or {}
        if "?" in path:
            path, _, query = path.partition("?")
        try:
            user = self.authenticator.authenticate(path, headers, certificate)
            raw = body if isinstance(body, bytes) else encode(body)
            if len(raw) > BODY_BYTES_MAX:
                raise too_large(f"limit is {BODY_BYTES_MAX}")
            request = Request(method, path, Query(query), headers, raw, user)
            answer = self._route(request)
        except ApiError as error:
            return error_response(error)
        if request.warnings:
            answer.warnings = request.warnings
        return answer

    def _route(self, request: Request) -> Answer:
        segments = request.segments()
        head = segments[0] if segments else ""
        if head == "api" and len(segments) > 2 and segments[1] == "v1":
            return self._resource(request, "", "v1", segments[2:])
        if head == "apis" and len(segments) > 3:
            return self._resource(request, segments[1], segments[2], segments[3:])
        if request.method not in ("GET", "HEAD"):
            if head in ("api", "apis", "openapi", "version"):
                raise method_not_allowed()
            return not_a_page()
        return self._page(request, head, segments) or not_a_page()

    def _page(self, request: Request, head: str, segments: list[str]) -> Response | None:
        """What is served besides resources."""
        accept = request.headers.get("accept", "")
        match head, segments[1:]:
            case "", _:
                return json_response({"paths": self._page_paths()})
            case "api" | "apis", []:
                return self.discovery.roots(head, accept, self.address)
            case "api", ["v1"]:
                return self.discovery.resources("", "v1")
            case "api", _:
                return None
            case "apis", [group]:
                return self.discovery.group(group)
            case "apis", [group, version]:
                found = self.discovery.resources(group, version)
                if found is None and group in self.registry.groups():
                    raise unknown_resource()
                return found
            case "openapi", rest:
                return openapi.respond(self.openapi, rest, accept)
            case "version", []:
                return json_response(version_info())
            case "metrics", []:
                return text_response(self._metrics())
            case "healthz" | "livez" | "readyz", rest:
                return _health(head, rest, verbose="verbose" in request.query)
        return None

    def _metrics(self) -> str:
        """What there is, in the exposition format of Prometheus."""
        lines = [
            "# HELP apiserver_storage_objects Number of stored objects by resource.",
            "# TYPE apiserver_storage_objects gauge",
            *(
                f'apiserver_storage_objects{{resource="{name}"}} {self.store.count(name)}'
                for name in self.store.resources()
            ),
            "# HELP apiserver_longrunning_requests Number of open watches.",
            "# TYPE apiserver_longrunning_requests gauge",
            f'apiserver_longrunning_requests{{verb="WATCH"}} {self.store.watchers()}',
            "# HELP etcd_resource_revision The revision of the latest write.",
            "# TYPE etcd_resource_revision counter",
            f"etcd_resource_revision {self.store.revision}",
        ]
        return "\n".join(lines) + "\n"

    def _page_paths(self) -> list[str]:
        paths = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz"]
        paths.append("/version")
        for group, versions in self.registry.groups().items():
            if group:
                paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return sorted(paths)

    # resources -------------------------------------------------------------------------------------

    def _resource(self, request: Request, group: str, version: str, parts: list[str]) -> Answer:
        watch = parts[0] == "watch" and len(parts) > 1
        if watch:
            parts = parts[1:]
        target = self._target(request, group, version, parts)
        if target is None:
            return not_a_page()
        if target.subresource and target.subresource != "status":
            return self._subresource(request, target)
        return self._verb(request, target, watch)

    def _target(self, request: Request, group: str, version: str, parts: list[str]) -> Target | None:
        """What the path names; None when the whole group is unknown."""
        namespace: str | None = None
        if parts[0] == "namespaces" and len(parts) > 2:
            inner = self.registry.find(group, version, parts[2])
            if group or inner is not None or parts[2] not in ("status", "finalize"):
                namespace, parts = parts[1], parts[2:]
        resource = self.registry.find(group, version, parts[0])
        if resource is None:
            if group and group not in self.registry.groups():
                return None
            raise unknown_resource()
        name = parts[1] if len(parts) > 1 else ""
        subresource = parts[2] if len(parts) > 2 else ""
        if len(parts) > 3 and subresource not in ("proxy", "exec", "attach", "log", "portforward"):
            raise unknown_resource()
        if resource.namespaced is (namespace is None) and (name or not resource.namespaced):
            raise unknown_resource()
        if subresource and subresource not in resource.subresources:
            raise unknown_resource()
        return Target(resource, namespace, name, subresource)

    def _verb(self, request: Request, target: Target, watch: bool) -> Answer:
        resource, rest = target.resource, self.rest
        verb = _verb_of(request, target)
        verbs = resource.subresources[target.subresource].verbs if target.subresource else resource.verbs
        if verb not in verbs:
            raise method_not_allowed()
        if access.is_review(resource):
            return access.review(request, resource, self.authenticator)
        match verb:
            case "get":
                return rest.get(request, target)
            case "list":
                if watch or request.query.flag("watch"):
                    return rest.watch(request, target)
                return rest.list(request, target)
            case "create":
                if resource.namespaced and target.namespace is None:
                    raise method_not_allowed()
                if resource.shape == "core.Binding":
                    return self._create_binding(request, target)
                answer: Response = rest.create(request, target)
            case "update":
                answer = rest.update(request, target)
            case "patch":
                answer = rest.patch(request, target)
            case "delete":
                if resource.shape == crd.SHAPE and not delete_options(request).dry_run:
                    self.definitions.empty(target.name)
                answer = rest.delete(request, target)
            case _:
                answer = rest.delete_collection(request, target)
        if resource.shape == crd.SHAPE and answer.status < 300:
            self.definitions.changed(target.name or answer.json()["metadata"]["name"])
        elif resource.is_custom:
            self.definitions.settle(resource)
        return answer

    # subresources ----------------------------------------------------------------------------------

    def _subresource(self, request: Request, target: Target) -> Answer:
        resource, name = target.resource, target.subresource
        verb = _WRITES.get(request.method, "get" if request.method in ("GET", "HEAD") else "")
        sub = resource.subresources[name]
        if name in ("exec", "attach", "portforward"):
            node = self.rest.find(target).obj["spec"].get("nodeName")
            if not node:
                raise bad_request(f"pod {target.name} does not have a host assigned")
            raise bad_request(f"{name} needs a kubelet: node {node} has none")
        if verb not in sub.verbs:
            raise method_not_allowed()
        match name:
            case "scale":
                return self._scale(request, target, verb)
            case "binding":
                return self._bind(request, target.place, target.name, "Binding", "v1", "core.Binding")
            case "eviction":
                return self._evict(request, target)
            case "log":
                return self._log(request, target)
            case "token":
                return self._token(request, target)
            case "finalize":
                return self._finalize(request, target)
        # resize, ephemeralcontainers, approval: the object itself, by another door.
        if verb == "get":
            return self.rest.get(request, target)
        return self.rest.update(request, target) if verb == "update" else self.rest.patch(request, target)

    def _scale(self, request: Request, target: Target, verb: str) -> Response:
        stored = self.rest.find(target)
        if verb == "get":
            return scale.show(target.resource, stored)
        change = scale.update if verb == "update" else scale.patch
        return change(self.objects, request, target.resource, stored)

    def _create_binding(self, request: Request, target: Target) -> Response:
        options = write_options(request, "CreateOptions")
        binding = codec.read_resource(request, target.resource)
        meta = binding.get("metadata") or {}
        meta.pop("uid", None)  # kept from kube-apiserver: by this door a binding is not fenced by the uid
        name = meta.get("name", "")
        return json_response(bind(self.objects, target.place, name, binding, dry_run=options.dry_run), 201)

    def _bind(self, request: Request, namespace: str, name: str, kind: str, group_version: str, shape: str) -> Response:
        options = write_options(request, "CreateOptions")
        mode = codec.field_validation(request.query)
        binding = codec.read_object(request, group_version, kind, shape, mode)
        return json_response(bind(self.objects, namespace, name, binding, dry_run=options.dry_run), 201)

    def _evict(self, request: Request, target: Target) -> Response:
        options = write_options(request, "CreateOptions")
        mode = codec.field_validation(request.query)
        eviction = codec.read_object(request, "policy/v1", "Eviction", "policy.Eviction", mode)
        found = evict(self.objects, target.place, target.name, eviction, dry_run=options.dry_run)
        return json_response(found, 201)

    def _log(self, request: Request, target: Target) -> Response:
        """Nobody writes logs here; an empty one is what a container has that says nothing."""
        pod = self.rest.find(target).obj
        names = [c.get("name") for c in pod["spec"].get("containers") or ()]
        names += [c.get("name") for c in pod["spec"].get("initContainers") or ()]
        wanted = request.query.get("container")
        if wanted and wanted not in names:
            raise bad_request(f"container {wanted} is not valid for pod {target.name}")
        if not wanted and len(names) > 1:
            choices = " ".join(map(str, names))
            raise bad_request(f"a container name must be specified for pod {target.name}, choose one of: [{choices}]")
        return text_response("", 200) if pod["spec"].get("nodeName") else Response(204)

    def _token(self, request: Request, target: Target) -> Response:
        self.rest.find(target)
        raise bad_request("service account tokens are not issued here: use the token of the kubeconfig")

    def _finalize(self, request: Request, target: Target) -> Response:
        """Take a namespace's own finalizers off; without any it goes, if it was to go."""
        options = write_options(request, "UpdateOptions")
        obj = self.objects.read(request, target.resource)
        finalizers = (obj.get("spec") or {}).get("finalizers")
        old = self.rest.find(target)

        def finalize(current: Json) -> Json:
            spec = {**(current.get("spec") or {}), "finalizers": finalizers or []}
            if not finalizers:
                del spec["finalizers"]
            return {**current, "spec": spec}

        stored = self.store.guaranteed_update(
            "namespaces",
            "",
            old.name,
            finalize,
            removable=lambda found: not (found.get("spec") or {}).get("finalizers"),
            dry_run=options.dry_run,
        )
        return self.rest.show(request, target.resource, stored)

    def close(self) -> None:
        """End every watch and close the store."""
        self.store.close()


def _verb_of(request: Request, target: Target) -> str:
    method = request.method
    if method in ("GET", "HEAD"):
        if method == "HEAD":
            raise method_not_allowed()
        return "get" if target.name else "list"
    verb = _WRITES.get(method, "")
    if verb == "create":
        return "create" if not target.name else ""
    if target.name:
        return verb
    return "deletecollection" if verb == "delete" else ""


def version_info() -> Json:
    """The version that is spoken here."""
    major, minor = GIT_VERSION.removeprefix("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "kubesched",
        "platform": "python",
    }


def _health(name: str, rest: list[str], *, verbose: bool) -> Response | None:
    if rest not in ([], ["ping"]):
        return None
    return text_response(f"[+]ping ok\n{name} check passed\n" if verbose else "ok")


def decode(answer: Answer) -> Any:
    """The JSON of a finished answer; a convenience for callers in the same process."""
    if isinstance(answer, WatchStream):
        raise TypeError("a watch has events, not a body")
    return msgspec.json.decode(answer.body) if answer.body else None
