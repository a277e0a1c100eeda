"""Server-side apply without a server: ownership, conflicts, what goes and what stays, and the laws of field sets."""

from __future__ import annotations

import copy
import json
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver import typed
from kubesched.apiserver.apply import FieldManager, reset_paths, without_new_times
from kubesched.apiserver.fieldset import FieldSet, key_element, shown
from kubesched.apiserver.model import DEDUCED, Model, built_in, custom
from kubesched.apiserver.status import ApiError

Json = dict[str, Any]
EARLY, LATE = "2026-11-18T19:26:52Z", "2026-11-18T19:26:53Z"

DEPLOYMENTS = FieldManager(built_in("apps.Deployment"), "apps/v1", "Deployment", reset=reset_paths(("status",)))
DEPLOYMENT_STATUS = FieldManager(
    built_in("apps.Deployment"), "apps/v1", "Deployment", "status", reset_paths(("spec",), ("metadata", "labels"))
)
CONFIG_MAPS = FieldManager(built_in("core.ConfigMap"), "v1", "ConfigMap")


def config_map(data: Json | None = None, **meta: Any) -> Json:
    obj: Json = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a", **meta}}
    return obj if data is None else {**obj, "data": data}


def deployment(replicas: int = 2, value: str = "1", **meta: Any) -> Json:
    container = {
        "env": [{"name": "A", "value": value}],
        "image": "nginx",
        "name": "c",
        "ports": [{"containerPort": 80}],
    }
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"labels": {"app": "web"}, "name": "web", "namespace": "default", **meta},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }


def defaulted(obj: Json) -> Json:
    """What the API server makes of the deployment above before it stores it."""
    obj = copy.deepcopy(obj)
    for container in obj["spec"]["template"]["spec"]["containers"]:
        container.update(resources={}, imagePullPolicy="Always")
        for port in container["ports"]:
            port["protocol"] = "TCP"
    obj["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    obj["spec"]["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    obj["status"] = {}
    return obj


def owners(obj: Json) -> dict[tuple[str, str], Json]:
    return {(e["manager"], e["operation"]): e["fieldsV1"] for e in obj["metadata"].get("managedFields", [])}


def refused(call) -> ApiError:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value


# following writes -----------------------------------------------------------------------------------------


def test_a_create_is_followed_field_by_field_as_the_real_server_follows_it() -> None:
    """Recorded: kubectl apply, then kubectl apply --server-side of the same deployment."""
    created = DEPLOYMENTS.update(None, defaulted(deployment()), "kubectl-client-side-apply", EARLY)
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "kubectl-client-side-apply",
            "operation": "Update",
            "apiVersion": "apps/v1",
            "time": EARLY,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    "f:replicas": {},
                    "f:selector": {},
                    "f:strategy": {
                        "f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}},
                        "f:type": {},
                    },
                    "f:template": {
                        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                        "f:spec": {
                            "f:containers": {
                                'k:{"name":"c"}': {
                                    ".": {},
                                    "f:env": {".": {}, 'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
                                    "f:image": {},
                                    "f:imagePullPolicy": {},
                                    "f:name": {},
                                    "f:ports": {
                                        ".": {},
                                        'k:{"containerPort":80,"protocol":"TCP"}': {
                                            ".": {},
                                            "f:containerPort": {},
                                            "f:protocol": {},
                                        },
                                    },
                                    "f:resources": {},
                                }
                            },
                            "f:restartPolicy": {},
                        },
                    },
                },
            },
        }
    ]


def test_applied_fields_are_listed_in_the_servers_order() -> None:
    fields = DEPLOYMENTS.apply(None, deployment(), "kubectl", force=False, now=EARLY)["metadata"]["managedFields"][0]
    assert json.dumps(fields["fieldsV1"], separators=(",", ":")) == (
        '{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":'
        '{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\\"name\\":\\"c\\"}":{".":{},"f:env":{'
        '"k:{\\"name\\":\\"A\\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:name":{},"f:ports":{'
        '"k:{\\"containerPort\\":80,\\"protocol\\":\\"TCP\\"}":{".":{},"f:containerPort":{}}}}}}}}}'
    )
    assert list(fields) == ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"]


def test_whoever_changes_a_field_takes_it_from_those_who_had_it() -> None:
    old = CONFIG_MAPS.update(None, config_map({"a": "1", "b": "1"}), "m1", EARLY)
    new = CONFIG_MAPS.update(old, config_map({"a": "2", "b": "1"}), "m2", LATE)
    assert owners(new) == {
        ("m1", "Update"): {"f:data": {".": {}, "f:b": {}}},
        ("m2", "Update"): {"f:data": {"f:a": {}}},
    }
    assert [e["time"] for e in new["metadata"]["managedFields"]] == [EARLY, LATE]


def test_removed_fields_belong_to_nobody() -> None:
    old = CONFIG_MAPS.update(None, config_map({"a": "1", "b": "1"}), "m1", EARLY)
    new = CONFIG_MAPS.update(old, config_map({"b": "1"}), "m2", LATE)
    assert owners(new) == {("m1", "Update"): {"f:data": {".": {}, "f:b": {}}}}


def test_a_write_that_changes_nothing_owns_nothing() -> None:
    old = CONFIG_MAPS.update(None, config_map({"a": "1"}), "m1", EARLY)
    assert CONFIG_MAPS.update(old, copy.deepcopy(old), "m2", LATE) == old


def test_status_is_followed_through_its_own_door_only() -> None:
    old = DEPLOYMENTS.update(None, defaulted(deployment()), "m1", EARLY)
    tampered = {**copy.deepcopy(old), "status": {"replicas": 1}}
    tampered["spec"]["replicas"] = 9
    through_main = DEPLOYMENTS.update(old, tampered, "m2", LATE)
    assert owners(through_main)["m2", "Update"] == {"f:spec": {"f:replicas": {}}}
    through_status = DEPLOYMENT_STATUS.update(old, tampered, "m2", LATE)
    entry = through_status["metadata"]["managedFields"][1]
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {"f:replicas": {}}})


def test_an_object_that_nobody_follows_stays_so_until_it_is_applied() -> None:
    old = config_map({"a": "1"})
    new = CONFIG_MAPS.update(old, config_map({"a": "2"}), "m1", EARLY)
    assert "managedFields" not in new["metadata"]
    applied = CONFIG_MAPS.apply(new, config_map({"b": "1"}), "m2", force=False, now=LATE)
    assert owners(applied) == {
        ("m2", "Apply"): {"f:data": {"f:b": {}}},
        ("before-first-apply", "Update"): {"f:data": {".": {}, "f:a": {}}},
    }


@pytest.mark.parametrize("given", [[], [{}]])
def test_an_empty_list_resets_the_ownership_of_everything(given: list[Json]) -> None:
    old = CONFIG_MAPS.update(None, config_map({"a": "1"}), "m1", EARLY)
    assert owners(CONFIG_MAPS.update(old, config_map({"a": "2"}, managedFields=given), "m2", LATE)) == {}


def test_broken_ownership_in_a_request_is_passed_over() -> None:
    old = CONFIG_MAPS.update(None, config_map({"a": "1"}), "m1", EARLY)
    for broken in ({"operation": "Own"}, {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV2"}):
        new = CONFIG_MAPS.update(old, config_map({"a": "1"}, managedFields=[broken]), "m2", LATE)
        assert owners(new) == owners(old)


def test_at_most_ten_updaters_are_told_apart() -> None:
    obj = CONFIG_MAPS.update(None, config_map({"k0": "0"}), "m0", EARLY)
    for number in range(1, 14):
        data = {**obj["data"], f"k{number}": "0"}
        obj = CONFIG_MAPS.update(obj, {**obj, "data": data}, f"m{number:02}", EARLY)
    entries = owners(obj)
    assert len(entries) == 10
    assert entries["ancient-changes", "Update"] == {
        "f:data": {".": {}, "f:k0": {}, "f:k1": {}, "f:k2": {}, "f:k3": {}, "f:k4": {}}
    }


def test_only_times_differ_is_no_difference() -> None:
    old = CONFIG_MAPS.apply(None, config_map({"a": "1"}), "m1", force=False, now=EARLY)
    same = copy.deepcopy(old)
    same["metadata"]["managedFields"][0]["time"] = LATE
    assert without_new_times(old, same) == old
    other = {**same, "data": {"a": "2"}}
    assert without_new_times(old, other) is other


# applying -------------------------------------------------------------------------------------------------


def test_conflicts_are_told_in_the_servers_words() -> None:
    """Recorded: replicas and a variable differ from what kubectl applied."""
    old = defaulted(DEPLOYMENTS.apply(None, deployment(), "kubectl", force=False, now=EARLY))
    wish = deployment(replicas=3, value="2")
    status = refused(lambda: DEPLOYMENTS.apply(old, wish, "other", force=False, now=LATE)).to_status()
    field = '.spec.template.spec.containers[name="c"].env[name="A"].value'
    assert status == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'Apply failed with 2 conflicts: conflicts with "kubectl":\n- .spec.replicas\n- {field}',
        "reason": "Conflict",
        "details": {
            "causes": [
                {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl"', "field": ".spec.replicas"},
                {"reason": "FieldManagerConflict", "message": 'conflict with "kubectl"', "field": field},
            ]
        },
        "code": 409,
    }


def test_a_single_conflict_with_an_update_says_through_which_version() -> None:
    old = CONFIG_MAPS.update(None, config_map({"a": "1"}), "m1", EARLY)
    error = refused(lambda: CONFIG_MAPS.apply(old, config_map({"a": "2"}), "m2", force=False, now=LATE))
    assert error.message == 'Apply failed with 1 conflict: conflict with "m1" using v1: .data.a'


def test_force_takes_the_fields_over() -> None:
    old = CONFIG_MAPS.apply(None, config_map({"a": "1", "b": "1"}), "m1", force=False, now=EARLY)
    new = CONFIG_MAPS.apply(old, config_map({"a": "2"}), "m2", force=True, now=LATE)
    assert new["data"] == {"a": "2", "b": "1"}
    assert owners(new) == {("m1", "Apply"): {"f:data": {"f:b": {}}}, ("m2", "Apply"): {"f:data": {"f:a": {}}}}


def test_the_same_value_is_no_conflict_but_shared() -> None:
    old = CONFIG_MAPS.apply(None, config_map({"a": "1"}), "m1", force=False, now=EARLY)
    new = CONFIG_MAPS.apply(old, config_map({"a": "1"}), "m2", force=False, now=LATE)
    assert owners(new) == {("m1", "Apply"): {"f:data": {"f:a": {}}}, ("m2", "Apply"): {"f:data": {"f:a": {}}}}
    # Nothing changed when m2 joined, so nobody knows since when it owns the field.
    assert [e.get("time") for e in new["metadata"]["managedFields"]] == [None, EARLY]


def test_what_is_applied_no_more_goes_unless_somebody_else_owns_it() -> None:
    old = CONFIG_MAPS.apply(None, config_map({"mine": "1", "shared": "1"}), "m1", force=False, now=EARLY)
    old = CONFIG_MAPS.apply(old, config_map({"shared": "1"}), "m2", force=False, now=EARLY)
    old = CONFIG_MAPS.update(old, {**old, "data": {**old["data"], "theirs": "1"}}, "m3", EARLY)
    new = CONFIG_MAPS.apply(old, config_map({}), "m1", force=False, now=LATE)
    assert new["data"] == {"shared": "1", "theirs": "1"}
    assert owners(new)["m2", "Apply"] == {"f:data": {"f:shared": {}}}


def test_list_items_are_added_kept_and_removed_by_key() -> None:
    def ports(*numbers: int) -> Json:
        wish = deployment()
        wish["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": n} for n in numbers]
        return wish

    def listed(obj: Json) -> list[int]:
        return [p["containerPort"] for p in obj["spec"]["template"]["spec"]["containers"][0].get("ports") or []]

    old = defaulted(DEPLOYMENTS.apply(None, ports(80, 443), "m1", force=False, now=EARLY))
    both = DEPLOYMENTS.apply(old, ports(8080, 80), "m2", force=False, now=LATE)
    assert listed(both) == [8080, 80, 443]
    assert listed(DEPLOYMENTS.apply(defaulted(both), ports(80), "m1", force=False, now=LATE)) == [8080, 80]


def test_kubectl_may_take_over_what_it_applied_from_the_client_side() -> None:
    applied = config_map({"a": "1"})
    note = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(applied) + "\n"}
    old = CONFIG_MAPS.update(None, config_map({"a": "1"}, annotations=note), "kubectl-client-side-apply", EARLY)
    wish = config_map({"a": "2"})
    assert refused(lambda: CONFIG_MAPS.apply(old, wish, "somebody", force=False, now=LATE)).code == 409
    new = CONFIG_MAPS.apply(old, wish, "kubectl", force=False, now=LATE)
    assert new["data"] == {"a": "2"}
    text = new["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    assert text == '{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"name":"a"}}\n'
    # But not what has been changed since by others.
    changed = CONFIG_MAPS.update(old, {**old, "data": {"a": "3"}}, "m2", LATE)
    assert refused(lambda: CONFIG_MAPS.apply(changed, wish, "kubectl", force=False, now=LATE)).code == 409


CANNOT = "failed to create typed patch object (/a; /v1, Kind=ConfigMap)"
TWO_FAULTS = "errors:\n  .data: expected map, got &{[]}\n  .immutable: expected boolean, got &{}"


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"kind": "Pod"}, 400, "invalid object type: /v1, Kind=Pod"),
        ({"apiVersion": "v2"}, 400, "invalid object type: /v2, Kind=ConfigMap"),
        ({"metadata": {"name": "a", "managedFields": []}}, 400, "metadata.managedFields must be nil"),
        ({"bogus": 1}, 500, f"{CANNOT}: .bogus: field not declared in schema"),
        ({"immutable": 1}, 500, f"{CANNOT}: .immutable: expected boolean, got &{{1}}"),
        ({"data": {"a": 1}}, 500, f"{CANNOT}: .data.a: expected string, got &value.valueUnstructured{{Value:1}}"),
        ({"data": [], "immutable": ""}, 500, f"{CANNOT}: {TWO_FAULTS}"),
    ],
)  # fmt: skip
def test_wishes_that_cannot_be_are_refused(change: Json, code: int, message: str) -> None:
    error = refused(lambda: CONFIG_MAPS.apply(None, {**config_map(), **change}, "m", force=False, now=EARLY))
    assert (error.code, error.message) == (code, message)


def test_items_named_twice_or_not_at_all_are_refused() -> None:
    wish = deployment()
    wish["spec"]["template"]["spec"]["containers"] *= 2
    error = refused(lambda: DEPLOYMENTS.apply(None, wish, "m", force=False, now=EARLY))
    assert error.message.endswith('.spec.template.spec.containers: duplicate entries for key [name="c"]')
    wish["spec"]["template"]["spec"]["containers"] = [{"image": "x"}]
    error = refused(lambda: DEPLOYMENTS.apply(None, wish, "m", force=False, now=EARLY))
    assert 'element 0: associative list with keys has an element that omits all key fields ["name"]' in error.message


def test_custom_resources_merge_as_their_schema_says() -> None:
    schema: Json = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "parts": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                    },
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "pair": {"type": "object", "x-kubernetes-map-type": "atomic"},
                },
            }
        },
    }
    manager = FieldManager(custom(schema), "example.com/v1", "Widget")

    def widget(**spec: Any) -> Json:
        return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}

    old = manager.apply(None, widget(parts=[{"name": "a"}], tags=["x"], pair={"p": 1}), "m1", force=False, now=EARLY)
    new = manager.apply(old, widget(parts=[{"name": "b"}], tags=["y"]), "m2", force=False, now=LATE)
    assert new["spec"] == {"parts": [{"name": "a"}, {"name": "b"}], "tags": ["x", "y"], "pair": {"p": 1}}
    error = refused(lambda: manager.apply(new, widget(pair={"q": 1}), "m2", force=False, now=LATE))
    assert error.message == 'Apply failed with 1 conflict: conflict with "m1": .spec.pair'
    error = refused(lambda: manager.apply(new, widget(other=1), "m2", force=False, now=LATE))
    assert error.message.endswith(".spec.other: field not declared in schema")


# laws -----------------------------------------------------------------------------------------------------

names = st.sampled_from(["f:a", "f:b", 'k:{"n":1}', 'k:{"n":10}', 'v:"x"', "v:2"])
paths = st.lists(names, min_size=1, max_size=3).map(tuple)
sets = st.lists(paths, max_size=6).map(lambda listed: FieldSet.of(*listed))


def members(fields: FieldSet) -> set[tuple[str, ...]]:
    return set(fields.paths())


@given(sets, sets)
def test_field_sets_are_sets(one: FieldSet, other: FieldSet) -> None:
    assert members(one | other) == members(one) | members(other)
    assert members(one & other) == members(one) & members(other)
    assert members(one - other) == members(one) - members(other)
    assert bool(one) == bool(members(one))
    assert all(path in one for path in members(one))
    whole = {path for path in members(one) if not any(path[:cut] in other for cut in range(1, len(path) + 1))}
    assert members(one.without(other)) == whole
    assert one.meets_json(other.to_json()) == bool(members(one) & members(other))


@given(sets)
def test_fields_v1_loses_nothing(fields: FieldSet) -> None:
    assert FieldSet.from_json(json.loads(json.dumps(fields.to_json()))) == fields


def test_elements_of_later_versions_are_ignored_and_nonsense_is_not() -> None:
    assert FieldSet.from_json({"f:a": {}, "x:new": {"f:b": {}}}) == FieldSet.of(("f:a",))
    broken: list[Any] = [{"a": {}}, {"k:[1]": {}}, {"f:a": 1}, [], {"v:{": {}}]
    for nonsense in broken:
        with pytest.raises(ValueError):
            FieldSet.from_json(nonsense)


def test_paths_are_shown_as_the_server_shows_them() -> None:
    path = ("f:ports", key_element({"protocol": "TCP", "containerPort": 80}), 'v:"x"', "i:3")
    assert shown(path) == '.ports[containerPort=80,protocol="TCP"][="x"][3]'


words = st.sampled_from(["a", "b", "c"])
containers: st.SearchStrategy[list[Json]] = st.lists(
    st.fixed_dictionaries(
        {"name": words},
        optional={
            "image": words,
            "args": st.lists(words, max_size=2),
            "env": st.lists(
                st.fixed_dictionaries({"name": words}, optional={"value": words}),
                max_size=2,
                unique_by=itemgetter("name"),
            ),
        },
    ),
    max_size=3,
    unique_by=itemgetter("name"),
)
pods = st.fixed_dictionaries(
    {"kind": st.just("Pod"), "apiVersion": st.just("v1")},
    optional={
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": st.dictionaries(words, words, max_size=2),
                "finalizers": st.lists(words, max_size=2, unique=True),
            },
        ),
        "spec": st.fixed_dictionaries({}, optional={"containers": containers, "nodeName": words}),
    },
)
POD = built_in("core.Pod")
trees = st.recursive(
    st.integers(0, 2) | words, lambda t: st.lists(t, max_size=2) | st.dictionaries(words, t, max_size=2), max_leaves=6
)


@given(pods, pods)
def test_merging_adds_all_of_the_wish_and_removes_nothing(old: Json, wish: Json) -> None:
    before = copy.deepcopy((old, wish))
    merged = typed.merge(old, wish, POD)
    assert (old, wish) == before
    assert typed.field_set(merged, POD) == (typed.field_set(old, POD) | typed.field_set(wish, POD)) - filled(merged)
    assert not typed.compare(old, merged, POD).removed
    assert typed.merge(merged, wish, POD) == merged


def filled(obj: Json) -> FieldSet:
    """The maps that have members: while they were empty they were leaves themselves."""
    fields = FieldSet()
    for path in (("f:metadata",), ("f:metadata", "f:labels"), ("f:spec",)):
        value: Any = obj
        for element in path:
            value = value.get(element[2:]) if isinstance(value, dict) else None
        if value:
            fields.insert(path)
    return fields


@given(pods, pods)
def test_comparing_is_antisymmetric_and_finds_every_difference(old: Json, new: Json) -> None:
    there, back = typed.compare(old, new, POD), typed.compare(new, old, POD)
    assert there.added == back.removed
    assert there.modified == back.modified
    same = not (there.added or there.removed or there.modified)
    assert same == typed.same(by_key(old), by_key(new))
    assert not (there.added & there.removed)


def by_key(obj: Json) -> Json:
    """Without the order of map-like lists, which nobody owns."""
    obj = copy.deepcopy(obj)
    for container in obj.get("spec", {}).get("containers", []):
        if "env" in container:
            container["env"].sort(key=lambda e: e["name"])
    if "containers" in obj.get("spec", {}):
        obj["spec"]["containers"].sort(key=lambda c: c["name"])
    if "finalizers" in obj.get("metadata", {}):
        obj["metadata"]["finalizers"].sort()
    return obj


@pytest.mark.parametrize("model", [DEDUCED, POD])
def test_nothing_differs_from_itself(model: Model) -> None:
    obj = {"metadata": {"name": "a"}, "spec": {"containers": []}}
    difference = typed.compare(obj, copy.deepcopy(obj), model)
    assert difference == typed.Comparison()


@given(st.dictionaries(words, trees, max_size=3), st.dictionaries(words, trees, max_size=3))
def test_untyped_values_are_compared_and_merged_too(old: Json, new: Json) -> None:
    difference = typed.compare(old, new, DEDUCED)
    changed = bool(difference.added or difference.removed or difference.modified)
    assert changed == (not typed.same(old, new))
    merged = typed.merge(old, new, DEDUCED)
    assert not typed.compare(merged, typed.merge(merged, new, DEDUCED), DEDUCED).modified


@given(pods)
def test_applying_twice_is_applying_once(wish: Json) -> None:
    wish = {**wish, "metadata": {**wish.get("metadata", {}), "labels": {"x": "1"}}}
    manager = FieldManager(POD, "v1", "Pod")
    once = manager.apply(None, wish, "m", force=False, now=EARLY)
    twice = manager.apply(once, wish, "m", force=False, now=LATE)
    assert without_new_times(once, twice) == once
