"""Requests that each meet one rule of kube-apiserver, chosen where what is drawn would meet it too rarely.

Most objects break several rules at once: all of them are told in one refusal, and every sentence is compared.
"""

from __future__ import annotations

from typing import Any

from tests.realserver.likeness import APPLY, MERGE, STEPS, STRATEGIC, Asked, Edit

Json = dict[str, Any]

CORE, APPS, BATCH = "/api/v1", "/apis/apps/v1", "/apis/batch/v1"
STORAGE, DEVICES, HERE = "/apis/storage.k8s.io/v1", "/apis/resource.k8s.io/v1", "namespaces/here"
PODS, NODES, VOLUMES = f"{CORE}/{HERE}/pods", f"{CORE}/nodes", f"{CORE}/persistentvolumes"
JOBS, SLICES, CLAIMS = f"{BATCH}/{HERE}/jobs", f"{DEVICES}/resourceslices", f"{DEVICES}/{HERE}/resourceclaims"
BAD_LABELS = {"bad key!": "x", "k": "-x-"}


def _post(path: str, body: Any, **query: str) -> Asked:
    return Asked("POST", path, query, body)


def _put(path: str, *edits: tuple[str, Any], **query: str) -> Asked:
    """The object with some values changed; a path is dotted, numbers are places in lists."""
    made = tuple(
        Edit(tuple(int(step) if step.isdigit() else step for step in at.split(".")), value) for at, value in edits
    )
    return Asked("PUT", path, query, base=path.removesuffix("/status"), edits=made)


def _merge(path: str, body: Any, **query: str) -> Asked:
    return Asked("PATCH", path, query, body, MERGE)


def named(name: str, **rest: Any) -> Json:
    return {"metadata": {"name": name}, **rest}


def pod(name: str = "p", **spec: Any) -> Json:
    return named(name, spec={"containers": [{"name": "c", "image": "nginx:1"}], **spec})


def _templates(spec: Json) -> list[Asked]:
    """A pod spec in a pod, and as the template of everything that has one."""
    full = {"containers": [{"name": "c", "image": "nginx:1"}], **spec}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": full}
    selected = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    ending = {**template, "spec": {**full, "restartPolicy": "Never"}}
    cron = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": ending}}}
    return [
        _post(PODS, {"metadata": {"name": "spread", "labels": {"app": "a"}}, "spec": full}),
        _post(f"{APPS}/{HERE}/replicasets", named("spread", spec=selected)),
        _post(f"{APPS}/{HERE}/deployments", named("spread", spec=selected)),
        _post(f"{APPS}/{HERE}/daemonsets", named("spread", spec=selected)),
        _post(f"{APPS}/{HERE}/statefulsets", named("spread", spec={**selected, "serviceName": "s"})),
        _post(f"{CORE}/{HERE}/replicationcontrollers", named("spread", spec={"template": template})),
        _post(f"{CORE}/{HERE}/podtemplates", named("spread", template=template)),
        _post(JOBS, named("spread", spec={"template": ending})),
        _post(f"{BATCH}/{HERE}/cronjobs", named("spread", spec=cron)),
    ]


_SPREAD = {"maxSkew": 1, "topologyKey": "a b", "whenUnsatisfiable": "DoNotSchedule"}
_APP = {"labelSelector": {"matchLabels": {"app": "a"}}}
_EXPRESSION = {
    "labelSelector": {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "app", "operator": "Exists"}]}
}
_NEAR = {"topologyKey": "zone", "matchLabelKeys": ["app"]}


def _near(term: Json) -> Json:
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**_NEAR, **term}]}}}


_HUGE = {"name": "c", "image": "nginx:1", "resources": {"limits": {"cpu": "1", "hugepages-2Mi": "4Mi"}}}
_WHOLE_PODS = (
    {"resources": {"requests": {"cpu": "1"}}, "containers": [_HUGE]},
    {"resources": {"limits": {"cpu": "0.5", "hugepages-2Mi": "2Mi"}}, "containers": [_HUGE]},
    {"resources": {"requests": {"hugepages-2Mi": "1"}}},
    {"resources": {"requests": {"storage": "1", "example.com/gpu": "1", "odd": "1", "a b": "-1"}}},
    {
        "resources": {
            "requests": {"cpu": "2"},
            "limits": {"cpu": "1", "example.com/gpu": "1"},
            "claims": [{"name": "x"}],
        }
    },
    {"resources": {"requests": {"cpu": "2"}}, "os": {"name": "windows"}},
)
_CLAIMS = {
    "resourceClaims": [{"name": "x", "resourceClaimName": "c"}],
    "containers": [
        {"name": "c", "image": "i", "resources": {"claims": [{"name": "x"}, {"name": "x"}, {"name": "y"}, {}]}},
        {"name": "d", "image": "i", "resources": {"claims": [{"name": "x", "request": "A"}, {"name": "x"}]}},
        {"name": "e", "image": "i", "resources": {"requests": {"a b": "1", "odd": "1", "x/y/z": "1"}}},
    ],
}
_RATHER = {"weight": 1, "preference": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["-1"]}]}}
_REUSED_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def _driver(name: str, **rest: Any) -> Json:
    return {"name": name, "nodeID": "n0", **rest}


_DRIVER = f"{STORAGE}/csidrivers/driver.example.com"
_CSI_NODE = f"{STORAGE}/csinodes/n0"
_REUSED = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
_TWICE = {"hostPath": {"path": "/x"}, "nfs": {"server": "s", "path": "/x"}, "csi": {"driver": "d", "volumeHandle": "h"}}


def _slice(name: str = "s", **spec: Any) -> Json:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return named(name, spec={"driver": "gpu.example.com", "pool": pool, "nodeName": "n0", **spec})


def _claim(name: str, *requests: Json, **devices: Any) -> Json:
    return named(name, spec={"devices": {"requests": list(requests), **devices}})


def _exactly(name: str, **rest: Any) -> Json:
    return {"name": name, "exactly": {"deviceClassName": "gpu.example.com", **rest}}


_DEVICES = [
    {"name": "Not_A_Name", "attributes": {"a": {}, "b/c d": {"string": "x"}, "/e": {"int": 1}, "x/": {"bool": True}}},
    {"name": "d", "attributes": {"v": {"version": "1.x"}, "w": {"version": "1.2.3-a+b"}, "none": {}}},
    {"name": "d", "attributes": {"long": {"string": "x" * 65}}, "capacity": {"not an id": {"value": "1"}}},
    {"name": "placed", "nodeName": "n0"},
]
_COUNTERS = [
    {"name": "Bad_Name", "counters": {"Bad_Key": {"value": "1"}}},
    {"name": "c"},
    {"name": "c"},
    {"counters": {}},
]


def _device_rules() -> list[Asked]:
    pool = {"name": "a b/c", "generation": -1, "resourceSliceCount": 0}
    return [
        _post(SLICES, _slice(pool=pool, driver="-bad-")),
        _post(SLICES, _slice(pool={"generation": 1}, driver="")),
        _post(SLICES, _slice(driver="d" * 64, nodeName="")),
        _post(SLICES, _slice(nodeName="N_0", allNodes=False, nodeSelector={"nodeSelectorTerms": []})),
        _post(
            SLICES,
            _slice(nodeName=None, perDeviceNodeSelection=True, devices=[{"name": "d"}, {"name": "e", "nodeName": ""}]),
        ),
        _post(
            SLICES,
            _slice(
                nodeName=None, perDeviceNodeSelection=True, devices=[{"name": "d", "nodeName": "n", "allNodes": True}]
            ),
        ),
        _post(SLICES, _slice(devices=_DEVICES)),
        _post(SLICES, _slice(sharedCounters=_COUNTERS)),
        _post(SLICES, _slice(devices=[{"name": f"d{number}"} for number in range(129)])),
        _post(SLICES, _slice(driver="GPU.example.com", devices=[{"name": "d"}])),
        _put(f"{SLICES}/s", ("spec.driver", "other"), ("spec.pool.name", "q"), ("spec.nodeName", "n1")),
        _put(f"{SLICES}/s", ("spec.pool.generation", -2)),
        _post(CLAIMS, _claim("c", _exactly("a"), _exactly("a"), {"name": "b"}, _exactly("Not_A_Name"))),
        _post(CLAIMS, _claim("c", {"name": "a", "firstAvailable": [{"name": "x"}, {"name": "x"}]})),
        _post(CLAIMS, _claim("c", {**_exactly("a"), "firstAvailable": [{"name": "x", "deviceClassName": "y"}]})),
        _post(CLAIMS, _claim("c", _exactly("a", deviceClassName="Not_A_Name", allocationMode="All", count=2))),
        _post(CLAIMS, _claim("c", _exactly("a", allocationMode="Some", count=-1), _exactly("b", count=-1))),
        _post(
            CLAIMS, _claim("c", _exactly("a"), constraints=[{}, {"requests": ["z", "a", "a"], "matchAttribute": "x"}])
        ),
        _post(CLAIMS, _claim("c", _exactly("a"), constraints=[{"requests": ["a/b/c", "B"], "matchAttribute": "d/x"}])),
        _post(
            CLAIMS,
            _claim("c", _exactly("a"), config=[{}, {"requests": ["z"], "opaque": {"driver": "", "parameters": {}}}]),
        ),
        _post(CLAIMS, _claim("c", *[_exactly(f"a{number}") for number in range(33)])),
        _post(
            f"{DEVICES}/{HERE}/resourceclaimtemplates",
            named("t", spec={"spec": {"devices": {"requests": [{"name": "a"}]}}}),
        ),
        _post(
            f"{DEVICES}/deviceclasses",
            named("c", spec={"selectors": [{}], "config": [{}], "extendedResourceName": "cpu"}),
        ),
        _post(f"{DEVICES}/deviceclasses", {"metadata": {"generateName": "Made-1-"}, "spec": {}}),
    ]


def _storage_rules() -> list[Asked]:
    tokens = [
        {"audience": "a", "expirationSeconds": 5},
        {"audience": "a"},
        {"audience": "b", "expirationSeconds": 2**33},
    ]
    odd = {"tokenRequests": tokens, "volumeLifecycleModes": ["Odd"], "fsGroupPolicy": "Odd"}
    return [
        _post(f"{STORAGE}/csidrivers", named("driver.example.com", spec={})),
        _merge(_DRIVER, {"spec": {"attachRequired": False, "volumeLifecycleModes": ["Ephemeral"]}}),
        _put(_DRIVER, ("spec.storageCapacity", True)),
        _post(f"{STORAGE}/csidrivers", named("odd.example.com", spec=odd)),
        _post(
            f"{STORAGE}/csidrivers",
            named(
                "odd.example.com", spec={"nodeAllocatableUpdatePeriodSeconds": 9, "serviceAccountTokenInSecrets": True}
            ),
        ),
        _post(
            f"{STORAGE}/csinodes",
            named(
                "n9", spec={"drivers": [_driver("-1"), _driver("d" * 64), _driver(""), _driver("UPPER.example.com")]}
            ),
        ),
        _post(
            f"{STORAGE}/csinodes",
            named(
                "n9", spec={"drivers": [{"name": "a"}, _driver("b", nodeID="n" * 257, topologyKeys=["a b", "k", "k"])]}
            ),
        ),
        _post(f"{STORAGE}/csinodes", named("n0", spec={"drivers": [_driver("a", allocatable={"count": 1})]})),
        _put(_CSI_NODE, ("spec.drivers.0.allocatable.count", 5)),
        _put(_CSI_NODE, ("spec.drivers.0.allocatable.count", -5)),
        _post(f"{STORAGE}/csinodes", named("none", spec={"drivers": []})),
        Asked(
            "PATCH",
            f"{STORAGE}/csinodes/none",
            {"fieldManager": "a"},
            {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", **named("none", spec={"drivers": []})},
            APPLY,
        ),
        _post(f"{STORAGE}/storageclasses", named("fast", provisioner="a/b", parameters={"a": "b"})),
        _put(
            f"{STORAGE}/storageclasses/fast",
            *(
                ("provisioner", "x y"),
                ("parameters", {"": "c"}),
                ("reclaimPolicy", "Odd"),
                ("volumeBindingMode", "Odd"),
            ),
        ),
        _post(f"{STORAGE}/volumeattributesclasses", named("silver", driverName="", parameters={"": "x"})),
        _post(f"{STORAGE}/volumeattributesclasses", named("silver", driverName="d.example.com")),
        _post(f"{STORAGE}/volumeattributesclasses", named("gold", driverName="d.example.com", parameters={"a": "b"})),
        _put(f"{STORAGE}/volumeattributesclasses/gold", ("driverName", "e"), ("parameters", {"a": "c"})),
        _post(f"{STORAGE}/volumeattachments", named("a", spec={"attacher": "-", "source": {}, "nodeName": "N_0"})),
        _post(
            f"{STORAGE}/volumeattachments",
            named("a", spec={"attacher": "a", "source": {"persistentVolumeName": ""}, "nodeName": "n0"}),
        ),
        _post(
            f"{STORAGE}/{HERE}/csistoragecapacities",
            named("c", storageClassName="fast", capacity="-1", maximumVolumeSize="-1"),
        ),
        _post(f"{STORAGE}/{HERE}/csistoragecapacities", named("c", storageClassName="fast", capacity="1Gi")),
        _put(
            f"{STORAGE}/{HERE}/csistoragecapacities/c",
            *(("storageClassName", "slow"), ("nodeTopology", {"matchLabels": {"a": "b"}}), ("capacity", "-1")),
        ),
        _post(VOLUMES, named("v", spec={**_REUSED, **_TWICE})),
        _post(VOLUMES, named("v", spec={**_REUSED, "local": {"path": "/a/../b"}, "volumeMode": "Odd"})),
        _post(VOLUMES, named("v", spec={**_REUSED, "local": {}, "nodeAffinity": {}})),
        _post(VOLUMES, named("v", spec={**_REUSED, "nfs": {}, "accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]})),
        _post(VOLUMES, named("v", spec={**_REUSED, "csi": {"driver": "-"}, "capacity": {"storage": "0", "cpu": "-1"}})),
        _post(
            VOLUMES,
            named("v", spec={**_REUSED, "hostPath": {"path": "//"}, "persistentVolumeReclaimPolicy": "Recycle"}),
        ),
        _post(VOLUMES, named("v", spec={**_REUSED, "hostPath": {"path": "/x"}})),
        _put(f"{VOLUMES}/v", ("spec.volumeMode", "Block"), ("spec.accessModes", ["Odd"])),
        _put(f"{VOLUMES}/v/status", ("status", {"phase": "Available"})),
        _put(f"{VOLUMES}/v/status", ("status", {"phase": "Available"})),
        _put(f"{VOLUMES}/v/status", ("status", {"phase": "Bound", "lastPhaseTransitionTime": "2026-01-01T00:00:00Z"})),
    ]


def _job_rules() -> list[Asked]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "nginx:1"}]}}
    at, container = f"{JOBS}/j", "spec.template.spec.containers.0"
    waiting = named("w", spec={"template": template, "suspend": True})
    indexed = named("i", spec={"template": template, "completionMode": "Indexed", "completions": 2, "parallelism": 2})
    return [
        _post(JOBS, named("j", spec={"template": template, "completions": 2})),
        _put(at, ("spec.completions", 3), ("spec.backoffLimit", -1)),
        _post(JOBS, named("n" * 64, spec={"template": template})),
        _post(JOBS, named("n" * 62, spec={**indexed["spec"]})),
        _post(JOBS, waiting),
        _put(
            f"{JOBS}/w",
            (f"{container}.resources", {"requests": {"cpu": "1"}}),
            ("spec.template.spec.nodeSelector", {"a": "b"}),
        ),
        _post(JOBS, indexed),
        _put(f"{JOBS}/i", ("spec.completions", 5)),
        _put(f"{JOBS}/i", ("spec.completions", 5), ("spec.parallelism", 5)),
        Asked("GET", JOBS, {"fieldSelector": "spec.x=1"}),
        Asked("GET", SLICES, {"fieldSelector": "spec.x=1"}),
        Asked("GET", PODS, {"fieldSelector": "spec.x=1"}),
    ]


def _admission_rules() -> list[Asked]:
    """What admission forbids, of objects that have a name and of those that have none yet."""
    limit = {"type": "Container", "max": {"cpu": "1"}}
    greedy = {"containers": [{"name": "c", "image": "nginx:1", "resources": {"requests": {"cpu": "2"}}}]}
    wrong: list[Json] = [{"priorityClassName": "nobody"}, {"overhead": {"cpu": "1"}}, greedy]
    metas: list[Json] = [{"name": "p"}, {}]
    return [
        _post(f"{CORE}/{HERE}/limitranges", named("m", spec={"limits": [limit]})),
        *(_post(PODS, {**pod(**spec), "metadata": meta}) for spec in wrong for meta in metas),
        _post(PODS, {**pod(priorityClassName="nobody"), "metadata": {"generateName": "p-"}}),
    ]


def _metadata_rules() -> list[Asked]:
    """Everything wrong with the metadata of every kind, twice: of a new object, and of a changed one."""
    patch = {"metadata": {"labels": BAD_LABELS, "uid": "somebody-else", "finalizers": ["a b", "unqualified"]}}
    asked = []
    for path, body in _OF_EVERY_KIND.items():
        wrong = {**body, "metadata": {**body["metadata"], "labels": BAD_LABELS, "finalizers": ["a b", "unqualified"]}}
        asked += [_post(path, wrong), _post(path, body), _merge(f"{path}/{body['metadata']['name']}", patch)]
    return asked


_SELECTED = {
    "selector": {"matchLabels": {"app": "a"}},
    "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}},
}
_TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "nginx:1"}]}}
_ROLE = {"kind": "ClusterRole", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_OF_EVERY_KIND: dict[str, Json] = {
    PODS: pod("m"),
    NODES: named("m"),
    f"{CORE}/namespaces": named("m"),
    f"{CORE}/{HERE}/configmaps": named("m"),
    f"{CORE}/{HERE}/secrets": named("m"),
    f"{CORE}/{HERE}/services": named("m", spec={"ports": [{"port": 80}]}),
    f"{CORE}/{HERE}/endpoints": named("m"),
    f"{CORE}/{HERE}/serviceaccounts": named("m"),
    f"{CORE}/{HERE}/resourcequotas": named("m"),
    f"{CORE}/{HERE}/limitranges": named("m"),
    f"{CORE}/{HERE}/podtemplates": named("m", template=_SELECTED["template"]),
    f"{CORE}/{HERE}/replicationcontrollers": named("m", spec={"template": _SELECTED["template"]}),
    f"{CORE}/{HERE}/persistentvolumeclaims": named(
        "m", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    ),
    VOLUMES: named("m", spec={**_REUSED, "hostPath": {"path": "/x"}}),
    f"{APPS}/{HERE}/deployments": named("m", spec=_SELECTED),
    f"{APPS}/{HERE}/replicasets": named("m", spec=_SELECTED),
    f"{APPS}/{HERE}/daemonsets": named("m", spec=_SELECTED),
    f"{APPS}/{HERE}/statefulsets": named("m", spec={**_SELECTED, "serviceName": "s"}),
    f"{APPS}/{HERE}/controllerrevisions": named("m", revision=1, data={}),
    JOBS: named("m", spec={"template": _TEMPLATE}),
    f"{BATCH}/{HERE}/cronjobs": named(
        "m", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": _TEMPLATE}}}
    ),
    f"/apis/policy/v1/{HERE}/poddisruptionbudgets": named("m", spec={"minAvailable": 1}),
    "/apis/scheduling.k8s.io/v1/priorityclasses": named("m", value=1),
    "/apis/node.k8s.io/v1/runtimeclasses": named("m", handler="runsc"),
    f"/apis/coordination.k8s.io/v1/{HERE}/leases": named("m", spec={}),
    f"/apis/discovery.k8s.io/v1/{HERE}/endpointslices": named("m", addressType="IPv4", endpoints=[]),
    f"/apis/networking.k8s.io/v1/{HERE}/networkpolicies": named("m", spec={"podSelector": {}}),
    f"/apis/networking.k8s.io/v1/{HERE}/ingresses": named(
        "m", spec={"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
    ),
    "/apis/networking.k8s.io/v1/ingressclasses": named("m", spec={"controller": "example.com/c"}),
    f"/apis/autoscaling/v2/{HERE}/horizontalpodautoscalers": named(
        "m", spec={"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 2}
    ),
    f"{_RBAC}/clusterroles": named("m"),
    f"{_RBAC}/clusterrolebindings": named("m", roleRef=_ROLE),
    f"{_RBAC}/{HERE}/roles": named("m"),
    f"{_RBAC}/{HERE}/rolebindings": named("m", roleRef=_ROLE),
    f"{STORAGE}/storageclasses": named("m", provisioner="a/b"),
    f"{STORAGE}/csinodes": named("m", spec={"drivers": []}),
    f"{STORAGE}/csidrivers": named("m", spec={}),
    f"{STORAGE}/{HERE}/csistoragecapacities": named("m", storageClassName="fast"),
    f"{STORAGE}/volumeattachments": named(
        "m", spec={"attacher": "a", "source": {"persistentVolumeName": "v"}, "nodeName": "n0"}
    ),
    f"{STORAGE}/volumeattributesclasses": named("m", driverName="a", parameters={"a": "b"}),
    f"{DEVICES}/deviceclasses": named("m", spec={}),
    CLAIMS: _claim("m", _exactly("a")),
    f"{DEVICES}/{HERE}/resourceclaimtemplates": named("m", spec={"spec": {}}),
    SLICES: _slice("m"),
}


def _json_rules() -> list[Asked]:
    """Values of the wrong type, which are refused by the name that the type has in Go."""
    return [
        _post(PODS, pod(os={"name": {}})),
        _post(PODS, pod(containers=[{"name": "c", "image": "i", "resources": {"limits": True}}])),
        _post(PODS, pod(containers=[{"name": "c", "image": "i", "imagePullPolicy": 3}])),
        _post(PODS, pod(volumes=[{"name": "v", "hostPath": {"path": "/x", "type": 3}}])),
        _post(PODS, pod(volumes=[{"name": "v", "hostPath": 3}])),
        _post(PODS, {"metadata": {"name": "p", "uid": 3}}),
        _post(f"{CORE}/{HERE}/services", named("s", spec={"ports": [{"port": 80, "targetPort": 1.5}]})),
        _post(PODS, {"metadata": 3}),
        _post(f"{CORE}/{HERE}/persistentvolumeclaims", named("c", spec={"accessModes": "Always"})),
        _post(f"{CORE}/{HERE}/persistentvolumeclaims", named("c", spec={"accessModes": [["x"]]})),
        _post(VOLUMES, named("v", spec={"csi": True})),
        _post(SLICES, _slice(devices=[{"name": "d", "attributes": 3}])),
        _post(CLAIMS, _claim("c", _exactly("a", allocationMode=3))),
        _post(f"{STORAGE}/storageclasses", named("c", provisioner="p", volumeBindingMode={})),
        _post(
            f"/apis/autoscaling/v2/{HERE}/horizontalpodautoscalers",
            named("h", spec={"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 2, "metrics": [3]}),
        ),
    ]


def _option_rules() -> list[Asked]:
    both = {"dryRun": "Some", "fieldValidation": "Maybe"}
    return [
        _post(PODS, pod(), **both),
        _merge(f"{PODS}/p", {}, **both),
        Asked("PATCH", f"{PODS}/p", both, pod(), APPLY),
        _post(NODES, named("n")),
        _put(f"{NODES}/n", ("metadata.uid", "somebody-else"), dryRun="All"),
        _put(f"{NODES}/n", ("metadata.uid", "somebody-else")),
        _post(PODS, pod("dry")),
        _post(
            f"{PODS}/dry/binding", {"metadata": {"uid": "other"}, "target": {"kind": "Node", "name": "n"}}, dryRun="All"
        ),
    ]


def _pod_rules() -> list[Asked]:
    host = {"hostNetwork": True, "containers": [{"name": "c", "image": "nginx:1", "ports": [{"containerPort": 80}]}]}
    tiny = {"resources": {"requests": {"cpu": "0.0001"}}, "containers": [{"name": "c", "image": "nginx:1"}]}
    seconds = {"tolerations": [{"key": "k", "effect": "NoSchedule", "tolerationSeconds": 5}]}
    keyed = {"topologySpreadConstraints": [{**_SPREAD, "matchLabelKeys": ["a b", "app"]}]}
    spread = {"topologySpreadConstraints": [{**_SPREAD, **_EXPRESSION, "matchLabelKeys": ["app"]}]}
    at = f"{PODS}/changing"
    return [
        *_templates({"topologySpreadConstraints": [_SPREAD]}),
        *_templates(_near(_APP)),
        *_templates(_near(_EXPRESSION)),
        *_templates(_near({})),
        *_templates(keyed),
        *_templates(spread),
        *_templates(host),
        *_templates(tiny),
        *(_post(PODS, pod(**spec)) for spec in (*_WHOLE_PODS, _CLAIMS)),
        _post(PODS, pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_RATHER]}})),
        Asked("PATCH", f"{PODS}/new", {"fieldManager": "a"}, pod("new", overhead={"cpu": "1.5.5"}), APPLY),
        _post(f"{CORE}/{HERE}/persistentvolumeclaims", named("v", spec={**_REUSED_CLAIM})),
        _put(f"{CORE}/{HERE}/persistentvolumeclaims/v", ("spec.resources.requests.storage", "-1")),
        _put(f"{CORE}/{HERE}/persistentvolumeclaims/v", ("spec.volumeMode", "Block")),
        _merge(
            f"{APPS}/{HERE}/replicasets/spread",
            {"spec": {"template": {"spec": {"topologySpreadConstraints": [_SPREAD]}}}},
        ),
        _post(PODS, pod("gated", schedulingGates=[{"name": "example.com/g"}])),
        _put(f"{PODS}/gated", ("spec.schedulingGates", None)),
        _post(PODS, pod("gated-too", schedulingGates=[{"name": "example.com/g"}])),
        _merge(f"{PODS}/gated-too", {"spec": {"schedulingGates": []}}),
        _post(PODS, pod("changing", activeDeadlineSeconds=60)),
        _put(at, ("spec.containers.0.image", "")),
        _put(at, ("spec.containers.0.image", " x "), ("spec.activeDeadlineSeconds", -1)),
        _put(at, ("spec.activeDeadlineSeconds", 90), ("spec.nodeName", "n0")),
        Asked("PATCH", at, {}, {"spec": seconds}, STRATEGIC),
        Asked(
            "PATCH",
            at,
            {},
            [
                {"op": "add", "path": "/metadata/uid", "value": "x"},
                {"op": "add", "path": "/spec/nodeName", "value": "n0"},
            ],
            STEPS,
        ),
        _post(f"{CORE}/{HERE}/services", named("ip", spec={"ports": [{"port": 80}]})),
        Asked("PATCH", f"{CORE}/{HERE}/services/ip", {}, {"spec": {"clusterIP": "None"}}, MERGE),
        _post(
            f"/apis/policy/v1/{HERE}/poddisruptionbudgets",
            {"metadata": {"name": "b", "labels": BAD_LABELS}, "spec": {"maxUnavailable": -1}},
        ),
    ]


NAMESPACE = Asked("POST", f"{CORE}/namespaces", body=named("here"))
RULES: dict[str, list[Asked]] = {
    "pods": _pod_rules(),
    "storage": _storage_rules(),
    "devices": _device_rules(),
    "jobs": _job_rules(),
    "admission": _admission_rules(),
    "metadata": _metadata_rules(),
    "types": _json_rules(),
    "options": _option_rules(),
}
