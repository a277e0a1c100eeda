"""The real kube-apiserver is asked to patch and apply; what it makes of every object, we must make of it too.

Every step takes the object as the real server has it, lets the server and us do the same to it, and compares:
the object (after cleaning and defaulting), who owns which field, and the words of every refusal.
"""

from __future__ import annotations

import copy
import json
from difflib import unified_diff
from random import Random
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.realserver.client import Client
from tests.realserver.fixtures import namespace, real_binaries, real_cluster

from kubesched.apiserver import codec
from kubesched.apiserver.apply import FieldManager, reset_paths, without_new_times
from kubesched.apiserver.defaulting import apply_defaults
from kubesched.apiserver.model import built_in, custom
from kubesched.apiserver.patch_json import json_patch
from kubesched.apiserver.patch_merge import merge_patch
from kubesched.apiserver.patch_strategic import strategic_merge_patch
from kubesched.apiserver.schema import Type, shape
from kubesched.apiserver.status import ApiError

__all__ = ["namespace", "real_binaries", "real_cluster"]

pytestmark = pytest.mark.realserver

Json = dict[str, Any]
SERVERS_OWN = ("namespace", "managedFields", "resourceVersion", "generation", "uid", "creationTimestamp")
APPLY, STRATEGIC, MERGE, JSON = (
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
    "application/merge-patch+json",
    "application/json-patch+json",
)


class Kind:
    def __init__(self, path: str, version: str, kind: str, struct: str) -> None:
        self.path, self.version, self.kind, self.struct = path, version, kind, struct
        self.fields = FieldManager(built_in(struct), version, kind, reset=reset_paths(("status",)))

    def clean(self, obj: Json) -> Json:
        """An object as it would be stored."""
        obj = copy.deepcopy(obj)
        obj = known(codec.clean(obj, self.version, self.kind, self.struct)[0], Type(self.struct))
        apply_defaults(self.struct, obj)
        return obj

    def normal(self, obj: Json) -> Json:
        """An object as it would be stored, without what tells two stores apart."""
        obj = self.clean(obj)
        for allocated in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            obj.get("spec", {}).pop(allocated, None)
        obj["metadata"] = {k: v for k, v in obj["metadata"].items() if k not in SERVERS_OWN}
        return obj


def known(value: Any, kind: Type) -> Any:
    """Without the fields that the real server drops because it does not know them."""
    if isinstance(value, list) and kind.containers:
        return [known(item, kind.element) for item in value]
    if isinstance(value, dict) and kind.containers:
        return {name: known(below, kind.element) for name, below in value.items()}
    if not isinstance(value, dict) or not kind.is_struct:
        return value
    fields = shape(kind.base).fields
    result = {name: known(value[name], fields[name].type) for name in value if name in fields}
    return {name: value[name] for name in ("kind", "apiVersion") if name in value} | result


DEPLOYMENT = Kind("/apis/apps/v1/namespaces/{}/deployments", "apps/v1", "Deployment", "apps.Deployment")
SERVICE = Kind("/api/v1/namespaces/{}/services", "v1", "Service", "core.Service")
CONFIG_MAP = Kind("/api/v1/namespaces/{}/configmaps", "v1", "ConfigMap", "core.ConfigMap")


# What is asked for ----------------------------------------------------------------------------------------


def some(luck: Random, choices: list[Any]) -> list[Any]:
    return luck.sample(choices, luck.randint(0, len(choices)))


def container(luck: Random, name: str, full: bool) -> Json:
    result: Json = {"name": name}
    if full or luck.random() < 0.6:
        result["image"] = luck.choice(["nginx", "nginx:2", "redis"])
    if luck.random() < 0.5:
        result["env"] = [{"name": n, "value": luck.choice("12")} for n in some(luck, ["A", "B", "C"])]
    if luck.random() < 0.4:
        ports = [{"containerPort": p} for p in some(luck, [80, 443, 8080])]
        if ports and luck.random() < 0.3:
            ports[0]["protocol"] = luck.choice(["TCP", "UDP"])
        if ports and luck.random() < 0.3:
            ports[-1]["name"] = luck.choice(["http", "web"])
        result["ports"] = ports
    if luck.random() < 0.3:
        result["args"] = some(luck, ["x", "y"])
    if luck.random() < 0.3:
        result["resources"] = {"limits": {"cpu": luck.choice(["1", "500m"])}}
    if luck.random() < 0.2:
        result["volumeMounts"] = [{"name": "v", "mountPath": m} for m in some(luck, ["/a", "/b"])]
    return result


def deployment(luck: Random, name: str, full: bool) -> Json:
    """A wish: full enough to be created, or only some of it."""
    names = some(luck, ["a", "b", "c"]) or ["a"]
    pod: Json = {"containers": [container(luck, n, full) for n in names]}
    if full or luck.random() < 0.5:
        pod["volumes"] = [{"name": "v", "emptyDir": {}}]
    if luck.random() < 0.4:
        pod["nodeSelector"] = {k: luck.choice("12") for k in some(luck, ["zone", "disk"])}
    if luck.random() < 0.3:
        pod["tolerations"] = [{"key": k, "operator": "Exists"} for k in some(luck, ["t1", "t2"])]
    if luck.random() < 0.3:
        pod["hostAliases"] = [{"ip": ip, "hostnames": some(luck, ["h", "i"])} for ip in some(luck, ["1.2.3.4", "::1"])]
    labels = {"app": "x"} | {k: luck.choice("12") for k in some(luck, ["l1", "l2"])}
    spec: Json = {"template": {"metadata": {"labels": labels}, "spec": pod}}
    if full or luck.random() < 0.3:
        spec["selector"] = {"matchLabels": {"app": "x"}}
    if luck.random() < 0.5:
        spec["replicas"] = luck.randint(1, 3)
    if luck.random() < 0.3:
        spec["strategy"] = luck.choice([{"type": "Recreate"}, {"rollingUpdate": {"maxSurge": luck.choice([1, "25%"])}}])
    return obj("apps/v1", "Deployment", name, luck, spec=spec)


def service(luck: Random, name: str, full: bool) -> Json:
    ports = [{"port": p, "name": f"p{p}"} for p in some(luck, [80, 443, 8080])]
    for port in ports:
        if luck.random() < 0.4:
            port["protocol"] = luck.choice(["TCP", "UDP"])
        if luck.random() < 0.3:
            port["targetPort"] = luck.choice([1, "web"])
    if full and not ports:
        ports = [{"port": 80, "name": "p80"}]
    spec: Json = {"ports": ports, "clusterIP": "None"}
    if luck.random() < 0.5:
        spec["selector"] = {k: luck.choice("12") for k in some(luck, ["a", "b"])}
    return obj("v1", "Service", name, luck, spec=spec)


def config_map(luck: Random, name: str, full: bool) -> Json:
    return obj("v1", "ConfigMap", name, luck, data={k: luck.choice("123") for k in some(luck, ["a", "b", "c.d", "e"])})


def obj(version: str, kind: str, name: str, luck: Random, **fields: Any) -> Json:
    meta: Json = {"name": name}
    if luck.random() < 0.5:
        meta["labels"] = {k: luck.choice("12") for k in some(luck, ["x", "y"])}
    if luck.random() < 0.3:
        meta["annotations"] = {k: luck.choice("12") for k in some(luck, ["m", "n"])}
    if luck.random() < 0.2:
        meta["finalizers"] = some(luck, ["example.com/a", "example.com/b"])
    return {"apiVersion": version, "kind": kind, "metadata": meta, **fields}


WIDGET_SCHEMA: Json = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "ratio": {"type": "number"},
                "on": {"type": "boolean"},
                "port": {"x-kubernetes-int-or-string": True},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "level"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "level": {"type": "integer", "default": 1},
                            "color": {"type": "string"},
                        },
                    },
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "steps": {"type": "array", "items": {"type": "string"}},
                "pair": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                },
                "loose": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "quotas": {"type": "object", "additionalProperties": {"type": "integer"}},
            },
        },
    },
}
WIDGET_CRD: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": WIDGET_SCHEMA}},
        ],
    },
}


class CustomKind(Kind):
    def __init__(self) -> None:
        self.path, self.version, self.kind = "/apis/example.com/v1/namespaces/{}/widgets", "example.com/v1", "Widget"
        self.fields = FieldManager(custom(WIDGET_SCHEMA), self.version, self.kind)

    def clean(self, obj: Json) -> Json:
        obj = without_nulls(obj)
        for part in obj.get("spec", {}).get("parts") or []:
            part.setdefault("level", 1)
        obj["metadata"] = codec.clean({"metadata": obj["metadata"]}, "v1", "ConfigMap", "core.ConfigMap")[0]["metadata"]
        return obj


def without_nulls(value: Any) -> Any:
    """Custom resources drop the nulls their schema does not allow; of what is in `loose` it knows nothing."""
    if isinstance(value, dict):
        return {
            name: below if name == "loose" else without_nulls(below)
            for name, below in value.items()
            if below is not None
        }
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


WIDGET = CustomKind()


def widget(luck: Random, name: str, full: bool) -> Json:
    anything: Json = {
        "size": luck.randint(0, 3),
        "ratio": luck.choice([1, 1.5]),
        "on": luck.random() < 0.5,
        "port": luck.choice([80, "http"]),
        "tags": some(luck, ["x", "y", "z"]),
        "steps": some(luck, ["1", "2"]),
        "pair": {k: luck.choice("12") for k in some(luck, ["a", "b"])},
        "loose": {"deep": {k: luck.choice([1, "s", [1, 2]]) for k in some(luck, ["p", "q"])}, "list": [1]},
        "quotas": {k: luck.randint(1, 2) for k in some(luck, ["cpu", "mem"])},
        "parts": parts(luck),
    }
    return obj("example.com/v1", "Widget", name, luck, spec={k: anything[k] for k in some(luck, list(anything))})


def parts(luck: Random) -> list[Json]:
    items: list[Json] = []
    for name, level in some(luck, [("a", None), ("a", 2), ("b", 1), ("b", None)]):
        if level is None and any((item["name"], item.get("level", 1)) == (name, 1) for item in items):
            continue
        if level == 1 and any(item["name"] == name and "level" not in item for item in items):
            continue
        items.append({"name": name, **({"level": level} if level else {}), "color": luck.choice(["red", "blue"])})
    return items


KINDS = [(DEPLOYMENT, deployment), (SERVICE, service), (CONFIG_MAP, config_map), (WIDGET, widget)]


def directed(luck: Random, patch: Json) -> Json:
    """Sprinkle a strategic patch with directives, nulls, and at most one fault: of several any may be told."""
    spec = patch.get("spec", {}).get("template", {}).get("spec", {})
    containers = spec.get("containers", [])
    fault = luck.choice(["", "", "", "order", "directive", "key", "retain"])
    if containers and luck.random() < 0.4:
        order = luck.sample(["a", "b", "c"], 3)
        spec["$setElementOrder/containers"] = [{"name": n} for n in order]
        if fault != "order":
            containers.sort(key=lambda c: order.index(c["name"]))
    if luck.random() < 0.3:
        containers.append({"name": luck.choice("abc"), "$patch": luck.choice(["delete", "replace"])})
    for item in containers:
        if luck.random() < 0.2:
            item["env"] = [{"name": "A", "$patch": "delete"}, {"name": "B", "value": "9"}]
        if luck.random() < 0.1:
            item["ports"] = None
    if "strategy" in patch.get("spec", {}) and luck.random() < 0.5:
        patch["spec"]["strategy"] = {"$retainKeys": ["type"], "type": "Recreate"}
    if luck.random() < 0.2:
        patch["metadata"]["labels"] = {"$patch": "replace", "r": "1"}
    if luck.random() < 0.2:
        patch["metadata"].pop("finalizers", None)  # both at once happen in any order
        patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = ["example.com/a"]
    if fault == "directive":
        containers.append({"name": "a", "$patch": "eat"})
    elif fault == "key" and containers:
        containers.append({"image": "z"})
    elif fault == "retain" and "spec" in patch:
        patch["spec"]["$retainKeys"] = []
    return patch


def json_steps(luck: Random, old: Json, values: list[Any]) -> list[Json]:
    # Not clusterIP: what a Service once had of it comes back after the patch.
    places = [
        path
        for path in leaves({k: v for k, v in old.items() if k in ("spec", "data")})
        if path not in ("/spec", "/spec/clusterIP")
    ]
    places += [
        "/metadata/labels/x",
        "/metadata/annotations",
        "/data/new",
        "/spec/template/spec/containers/-",
        "/nope/x",
    ]
    steps = []
    for _ in range(luck.randint(1, 3)):
        path = luck.choice(places)
        value = luck.choice(values)
        steps.append({"op": luck.choice(["add", "replace", "remove", "test", "copy", "move"]), "path": path,
                      "value": value, "from": luck.choice(places)})  # fmt: skip
    return steps


def leaves(value: Any, path: str = ""):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
        yield from leaves(below, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")


# How it is compared ---------------------------------------------------------------------------------------


class Story:
    """One object of the real server, and what happened to it."""

    def __init__(self, client: Client, kind: Kind, namespace: str, name: str) -> None:
        self.client, self.kind, self.name = client, kind, name
        self.collection = kind.path.format(namespace)
        self.old: Json | None = None

    def send(self, method: str, body: Any, content_type: str, **query: str):
        path = self.collection if method == "POST" else f"{self.collection}/{self.name}"
        return self.client.request(method, f"{path}?{urlencode(query)}", body, content_type=content_type)

    def agree(self, answer, ours: Json | ApiError, context: Any) -> None:
        """The server's answer and ours are the same; then go on from the server's."""
        theirs = answer.json
        if answer.status not in (200, 201):
            if isinstance(ours, ApiError):
                assert (theirs["code"], theirs["message"]) == (ours.code, ours.message), context
                assert causes(theirs) == causes(ours.to_status()), context
                assert theirs.get("reason", "") == ours.reason, context
            else:
                # Whatever the outcome was, validation did not like it.
                assert theirs["code"] in (400, 409, 422), (theirs["message"], json.dumps(self.old), json.dumps(context))
                assert theirs["message"] != "the server rejected our request due to an error in our request", context
            return
        assert not isinstance(ours, ApiError), (ours, context)
        assert not difference(self.kind.normal(ours), self.kind.normal(theirs)), context
        assert not difference(owners(ours), owners(theirs)), context
        self.old = theirs

    def now(self, answer) -> str:
        times = [e["time"] for e in (answer.json.get("metadata") or {}).get("managedFields") or [] if "time" in e]
        return max(times, default="2020-01-01T00:00:00Z")


def owners(obj: Json) -> list[Json]:
    return obj["metadata"].get("managedFields") or []


def causes(status: Json) -> Any:
    """The details, without the order of causes: the real server tells conflicts of several managers in any order."""
    details = dict(status.get("details") or {})
    details["causes"] = sorted(json.dumps(cause) for cause in details.get("causes", []))
    return details


def difference(ours: Any, theirs: Any) -> str:
    """Where two objects differ, readable; "" where they do not."""
    if ours == theirs:
        return ""
    one, other = (json.dumps(value, indent=1, sort_keys=True).splitlines() for value in (ours, theirs))
    return "\n".join(unified_diff(one, other, "ours", "the real server's", lineterm="", n=6))


def attempt(call) -> Any:
    try:
        return call()
    except ApiError as error:
        return error


@pytest.fixture(scope="module")
def widgets(real_cluster) -> None:
    client = real_cluster.client()
    client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGET_CRD)
    client.until(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "widgets.example.com",
        lambda crd: {"Established": "True"}.items() <= {c["type"]: c["status"] for c in conditions(crd)}.items(),
    )


def conditions(crd: Json) -> list[Json]:
    found: list[Json] | None = crd.get("status", {}).get("conditions")
    return found or []  # null until somebody has a word to say


@pytest.mark.parametrize("seed", range(40))
def test_the_real_server_makes_the_same_of_it(real_cluster, widgets, namespace: str, seed: int) -> None:
    luck = Random(seed)
    kind, wish_for = KINDS[seed % len(KINDS)]
    story = Story(real_cluster.client(), kind, namespace, f"it-{seed}")
    for step in range(14):
        manager = luck.choice(["m1", "m2", "kubectl"])
        verbs = ["apply"] * 4 + ["put", "merge", "json"] + ["strategic"] * (2 if kind is not WIDGET else 0)
        verbs = verbs if story.old is not None else ["create"]
        verb = "apply" if story.old is None and luck.random() < 0.5 else luck.choice(verbs)
        wish = wish_for(luck, story.name, full=story.old is None or luck.random() < 0.5)
        if verb in ("create", "put") and luck.random() < 0.4:
            remember_as_kubectl(wish)
        take_step(story, verb, wish, manager, luck, (seed, step, verb, manager, wish))
    if story.old is not None:
        story.client.patch(f"{story.collection}/{story.name}", {"metadata": {"finalizers": None}})


def remember_as_kubectl(wish: Json) -> None:
    """What `kubectl apply` without --server-side leaves behind."""
    text = json.dumps(wish, sort_keys=True, separators=(",", ":")) + "\n"
    wish["metadata"].setdefault("annotations", {})["kubectl.kubernetes.io/last-applied-configuration"] = text


def take_step(story: Story, verb: str, wish: Json, manager: str, luck: Random, context: Any) -> None:
    kind, old = story.kind, story.old
    if verb == "apply":
        force = luck.random() < 0.4
        answer = story.send("PATCH", wish, APPLY, fieldManager=manager, force=str(force).lower())
        now = story.now(answer)
        ours = attempt(lambda: kind.fields.apply(old, wish, manager, force=force, now=now))
        if old is not None and not isinstance(ours, ApiError):
            ours = without_new_times(old, kind.clean(ours))
        story.agree(answer, ours, (context, force))
        return
    if verb == "create":
        answer = story.send("POST", wish, "application/json", fieldManager=manager)
        story.agree(answer, kind.fields.update(None, kind.normal(wish), manager, story.now(answer)), context)
        return
    assert old is not None
    if verb == "put":
        new: Any = merge_patch(wish, {"metadata": {"managedFields": old["metadata"].get("managedFields")}})
        answer = story.send("PUT", new, "application/json", fieldManager=manager)
    elif verb == "strategic":
        patch = directed(luck, {k: v for k, v in wish.items() if k not in ("kind", "apiVersion")})
        context = (*context, patch)
        new = attempt(lambda: strategic_merge_patch(old, patch, kind.struct))
        answer = story.send("PATCH", patch, STRATEGIC, fieldManager=manager)
    elif verb == "merge":
        patch = {k: v for k, v in wish.items() if k not in ("kind", "apiVersion")}
        patch["metadata"]["labels"] = {"x": None, "y": "7"}
        new = merge_patch(old, patch)
        answer = story.send("PATCH", patch, MERGE, fieldManager=manager)
    else:
        # What becomes of a null in a custom resource is for its own schema to say.
        values = ["1", 1, {"name": "z", "image": "z"}, *([None] if kind is not WIDGET else [])]
        steps = json_steps(luck, old, values)
        context = (*context, steps)
        new = attempt(lambda: json_patch(old, steps))
        answer = story.send("PATCH", steps, JSON, fieldManager=manager)
    if isinstance(new, ApiError) or answer.status != 200:
        story.agree(answer, new, context)
        return
    cleaned = kind.normal(new)
    cleaned["metadata"]["managedFields"] = old["metadata"].get("managedFields")
    ours = kind.fields.update(old, cleaned, manager, story.now(answer))
    story.agree(answer, without_new_times(old, ours), context)
