"""Whatever a client sends: an answer with a Status, never a 5xx, never an exception, and nothing half-applied."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apiserver.conftest import PODS, Cluster, make_cluster, node, pod

from kubesched.apiserver.kinds import BUILT_IN, Resource
from kubesched.apiserver.requests import Response, WatchStream

# The real server answers some of a client's mistakes with 500 or 504, and so do we, in its words.
ITS_OWN_5XX = (
    "resourceVersion should not be set on objects to be created",
    "does not contain declared merge key",
    "strconv.ParseUint",
    "failed to create typed patch object",
    "failed to decode managed fields",
    "Too large resource version",
    "unable to find api field",
    "does not exist",
    "unknown patch type",
    "expected a []interface {}, but received",
    "invalid patch format",
    "invalid internal object",
)

BODY_TYPES = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    "",
)
PATCH_TYPES = BODY_TYPES[3:7]
ACCEPTS = (
    "",
    "application/json",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "*/*;q=x",
)
QUERIES = (
    "dryRun=All",
    "dryRun=Some",
    "fieldManager=m",
    "fieldValidation=Strict",
    "fieldValidation=x",
    "force=true",
    "limit=2",
    "limit=-1",
    "limit=x",
    "continue=abc",
    "resourceVersion=1",
    "resourceVersion=-1",
    "resourceVersion=zz",
    "resourceVersionMatch=Exact",
    "labelSelector=a%20in%20(b,c)",
    "labelSelector=a%20in",
    "fieldSelector=metadata.name%3Dweb",
    "fieldSelector=spec.x%3D1",
    "watch=1",
    "sendInitialEvents=true",
    "allowWatchBookmarks=true",
    "timeoutSeconds=1",
    "gracePeriodSeconds=0",
    "propagationPolicy=Orphan",
    "%ff=%zz&&==",
)

names = st.sampled_from(["web", "n1", "default", "kube-system", "nope", "A_B", "..", "x" * 300, "", "ü", "a%2Fb"])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**70), max_value=2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["1", "500m", "-1Gi", "2026-01-01T00:00:00Z", "Always", "all", "x/y", "NoSchedule"]),
)
field_names = st.sampled_from(
    [
        *(
            "metadata",
            "spec",
            "status",
            "name",
            "labels",
            "annotations",
            "finalizers",
            "ownerReferences",
            "managedFields",
        ),
        *("containers", "resources", "requests", "cpu", "tolerations", "affinity", "nodeAffinity", "podAffinity"),
        *("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms", "matchExpressions", "labelSelector"),
        *("schedulingGates", "topologySpreadConstraints", "template", "selector", "matchLabels", "replicas", "taints"),
        *("conditions", "type", "key", "operator", "values", "target", "kind", "apiVersion", "uid", "resourceVersion"),
        *("$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers"),
        *("op", "path", "value", "from", "deletionTimestamp", "generateName", "data", "versions", "names", "schema"),
        *("preconditions", "gracePeriodSeconds", "propagationPolicy", "openAPIV3Schema", "properties"),
    ]
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(field_names, inner, max_size=4)),
    max_leaves=20,
)


def changed(base: Any, path: list[Any], value: Any) -> Any:
    """base with one value somewhere in it replaced."""
    if not path or not isinstance(base, dict | list) or not base:
        return value
    if isinstance(base, list):
        at = path[0] % len(base)
        return [changed(item, path[1:], value) if index == at else item for index, item in enumerate(base)]
    key = sorted(base)[path[0] % len(base)]
    return {**base, key: changed(base[key], path[1:], value)}


GOOD: dict[str, Any] = {
    "pods": pod("web", tolerations=[{"key": "a", "operator": "Exists"}], schedulingGates=[{"name": "g"}]),
    "nodes": node("n2", zone="a"),
    "deployments": {
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}},
        },
    },
    "customresourcedefinitions": {
        "metadata": {"name": "toys.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "toys", "kind": "Toy"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}},
                }
            ],
        },
    },
}
near_misses = st.builds(
    changed,
    st.sampled_from([GOOD[name] for name in sorted(GOOD)]),
    st.lists(st.integers(min_value=0, max_value=9), max_size=8),
    values,
)
bodies = st.one_of(
    near_misses.map(lambda value: json.dumps(value).encode()),
    values.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=40),
    st.sampled_from(
        [b"", b"{", b"[" * 5000, b'{"a":' * 300 + b"1" + b"}" * 300, b"k8s\x00\x0a\x05\x0a\x03abc", b"null"]
    ),
    st.binary(max_size=40).map(lambda raw: b"k8s\x00" + raw),
)
rows = st.sampled_from(BUILT_IN)


def url(row: Resource, namespace: str, name: str, subresource: str) -> str:
    base = f"/apis/{row.group_version}" if row.group else "/api/v1"
    if row.namespaced and namespace:
        base += f"/namespaces/{namespace}"
    return "/".join(part for part in (base, row.plural, name, subresource) if part)


def everything(cluster: Cluster) -> dict[str, Any]:
    """All stored objects, by where they are."""
    store = cluster.server.store
    return {f"{r} {s.key}": s.obj for r in store.resources() for s in store.list(r).items}


def check(cluster: Cluster, answer: Any) -> None:
    if isinstance(answer, WatchStream):
        answer.take()
        answer.close()
        return
    assert isinstance(answer, Response)
    if answer.status >= 500:
        message = answer.json()["message"]
        assert any(words in message for words in ITS_OWN_5XX), message
    if answer.status >= 400 and answer.content_type == "application/json":
        status = answer.json()
        assert status["kind"] == "Status"
        assert status["status"] == "Failure"
        assert status["message"]


@pytest.fixture(scope="module")
def shared() -> Cluster:
    cluster = make_cluster()
    cluster.create("/api/v1/nodes", node("n1"))
    cluster.pod("web")
    return cluster


@settings(max_examples=400)
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "FOO"]),
    row=rows,
    namespace=names,
    name=names,
    subresource=st.sampled_from(["", "", "", "status", "scale", "binding", "eviction", "log", "resize", "nope"]),
    query=st.lists(st.sampled_from(QUERIES), max_size=3),
    kind=st.sampled_from(BODY_TYPES),
    accept=st.sampled_from(ACCEPTS),
    body=bodies,
)
def test_no_request_breaks_the_server(
    shared: Cluster,
    method: str,
    row: Resource,
    namespace: str,
    name: str,
    subresource: str,
    query: list[str],
    kind: str,
    accept: str,
    body: bytes,
) -> None:
    headers = {"content-type": kind, "accept": accept}
    path = url(row, namespace, name, subresource)
    before = everything(shared)
    answer = shared.server.handle(method, path, "&".join(query), headers, body)
    check(shared, answer)
    if isinstance(answer, Response) and (answer.status >= 400 or method == "GET" or "dryRun=All" in query):
        assert everything(shared) == before


@settings(max_examples=300)
@given(
    kind=st.sampled_from(PATCH_TYPES),
    change=values,
    query=st.sampled_from(["", "fieldManager=m", "fieldManager=m&force=1"]),
)
def test_no_patch_breaks_a_pod(kind: str, change: Any, query: str) -> None:
    cluster = make_cluster()
    made = cluster.pod("web")
    answer = cluster.server.handle("PATCH", f"{PODS}/web", query, {"content-type": kind}, json.dumps(change).encode())
    check(cluster, answer)
    after = cluster.get(f"{PODS}/web")
    assert after["metadata"]["uid"] == made["metadata"]["uid"]
    assert after["metadata"]["name"] == "web"
    if answer.status >= 400:
        assert after == made


@settings(max_examples=300)
@given(body=near_misses)
def test_what_is_accepted_once_is_accepted_again_unchanged(body: Any) -> None:
    """Defaulting, cleaning and validation agree: an object that was stored can be written back and stays what it is."""
    cluster = make_cluster()
    for row in (r for r in BUILT_IN if r.plural in GOOD):
        collection = url(row, "default", "", "")
        answer = cluster.ask("POST", collection, body)
        check(cluster, answer)
        if answer.status != 201:
            continue
        made = answer.json()
        one = f"{collection}/{made['metadata']['name']}"
        stored = cluster.get(one)
        again = cluster.ask("PUT", one, stored)
        assert again.status == 200, again.body
        assert again.json() == stored


@given(text=st.text(max_size=40))
def test_any_selector_is_answered(shared: Cluster, text: str) -> None:
    from urllib.parse import quote

    for name in ("labelSelector", "fieldSelector"):
        check(shared, shared.server.handle("GET", PODS, f"{name}={quote(text)}"))


@given(path=st.text(max_size=30))
def test_any_path_is_answered(shared: Cluster, path: str) -> None:
    check(shared, shared.server.handle("GET", "/" + path))
    check(shared, shared.server.handle("GET", "/apis/apps/v1/" + path))
