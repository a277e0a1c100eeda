"""Merge patches, JSON patches and strategic merge patches: the RFCs' own examples, the server's quirks, and laws."""

from __future__ import annotations

import copy
import json
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.apiserver.patch_json import json_patch
from kubesched.apiserver.patch_merge import merge_patch
from kubesched.apiserver.patch_strategic import strategic_merge_patch
from kubesched.apiserver.status import ApiError

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b"]) | st.just(1.5)
fields = st.sampled_from(["a", "b", "c", "a/b", "m~n"])
documents = st.recursive(
    scalars, lambda below: st.lists(below, max_size=3) | st.dictionaries(fields, below, max_size=3), max_leaves=12
)
objects = st.dictionaries(fields, documents, max_size=4)


def refused(call) -> ApiError:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value


def has_null(value) -> bool:
    if isinstance(value, dict):
        return any(below is None or has_null(below) for below in value.values())
    return False


# merge patch ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_rfc_7386(target, patch, result) -> None:
    assert merge_patch(target, patch) == result


def rfc_7386(target, patch):
    """The pseudo-code of the RFC, section 2, with copies where it says nothing."""
    if not isinstance(patch, dict):
        return patch
    target = copy.deepcopy(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            if name in target:
                del target[name]
        else:
            target[name] = rfc_7386(target.get(name), value)
    return target


@given(documents, documents)
def test_merge_patch_is_the_rfcs_algorithm(target, patch) -> None:
    before = copy.deepcopy((target, patch))
    assert merge_patch(target, patch) == rfc_7386(target, patch)
    assert (target, patch) == before


@given(objects, objects)
def test_merging_twice_is_merging_once(target, patch) -> None:
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once


# JSON patch -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
        ({"foo": ["bar", "baz"]}, [{"op": "add", "path": "/foo/1", "value": "q"}], {"foo": ["bar", "q", "baz"]}),
        ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
        ({"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
        ({"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
        (
            {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
            [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
            {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
        ),
        ({"f": ["a", "b", "c", "d"]}, [{"op": "move", "from": "/f/1", "path": "/f/3"}], {"f": ["a", "c", "d", "b"]}),
        (
            {"baz": "qux", "foo": ["a", 2, "c"]},
            [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
            {"baz": "qux", "foo": ["a", 2, "c"]},
        ),
        ({"foo": "bar"}, [{"op": "add", "path": "/child", "value": {"g": {}}}], {"foo": "bar", "child": {"g": {}}}),
        ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}], {"foo": "bar", "baz": "qux"}),
        ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
        ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc"]}], {"foo": ["bar", ["abc"]]}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
        # What the real server does beyond the RFC.
        ({"a": 1}, [{"op": "replace", "path": "/new", "value": 2}], {"a": 1, "new": 2}),
        ({"a": [1, 2, 3]}, [{"op": "remove", "path": "/a/-1"}], {"a": [1, 2]}),
        ({"a": 1}, [{"op": "test", "path": "/b", "value": None}], {"a": 1}),
        ({"a": 1}, [{"op": "copy", "from": "/nothing", "path": "/b"}], {"a": 1, "b": None}),
        ({"a": 1}, [], {"a": 1}),
        ({"a": 1}, None, {"a": 1}),
    ],
)
def test_json_patches_that_apply(target, patch, result) -> None:
    before = copy.deepcopy((target, patch))
    assert json_patch(target, patch) == result
    assert (target, patch) == before


@pytest.mark.parametrize(
    "step",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "test", "path": "/a", "value": True},
        {"op": "test", "path": "/a", "value": 1.0},
        {"op": "test", "path": "/a"},
        {"op": "remove", "path": "/nothing"},
        {"op": "remove", "path": "/l/7"},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "/nothing/below", "value": 1},
        {"op": "add", "path": "/a/below", "value": 1},
        {"op": "add", "path": "/null/below", "value": 1},
        {"op": "add", "path": "/l/4", "value": 1},
        {"op": "add", "path": "/l/x", "value": 1},
        {"op": "add", "path": "/l/1e0", "value": 1},
        {"op": "add", "path": "", "value": 1},
        {"op": "add", "path": "noslash", "value": 1},
        {"op": "add", "value": 1},
        {"op": "replace", "path": "", "value": 3},
        {"op": "replace", "path": "/l/3", "value": 3},
        {"op": "move", "from": "/nothing", "path": "/x"},
        {"op": "move", "path": "/x"},
        {"op": "copy", "from": "/l/9", "path": "/x"},
        {"op": "fly", "path": "/x"},
        {"path": "/x"},
        {},
    ],
)
def test_a_step_that_cannot_be_done_refuses_all_of_them(step) -> None:
    target = {"a": 1, "l": [1, 2, 3], "null": None}
    status = refused(lambda: json_patch(target, [{"op": "add", "path": "/done", "value": 1}, step])).to_status()
    assert (status["code"], status["reason"], status["details"]) == (422, "Invalid", {})
    assert status["message"] == "the server rejected our request due to an error in our request"
    assert target == {"a": 1, "l": [1, 2, 3], "null": None}


@pytest.mark.parametrize("patch", [{}, "x", 3, True, ["x"], [[]], [None], [{"op": 1}], [{"op": "add", "path": []}]])
def test_what_is_no_list_of_steps_is_a_bad_request(patch) -> None:
    error = refused(lambda: json_patch({}, patch))
    assert error.code == 400
    assert error.message.startswith("error decoding patch: json: cannot unmarshal ")


def test_too_many_steps_are_too_large() -> None:
    error = refused(lambda: json_patch({}, [{"op": "test", "path": "", "value": {}}] * 10_001))
    assert (error.code, error.reason) == (413, "RequestEntityTooLarge")


def test_copies_of_copies_are_bounded() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 60
    assert refused(lambda: json_patch({"a": ["xxxxxxxx"]}, doubling)).code == 422


def test_moved_and_copied_parts_stay_apart() -> None:
    steps = [
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/b/y", "value": 2},
        {"op": "move", "from": "/b", "path": "/c"},
        {"op": "add", "path": "/c/z", "value": 3},
    ]
    assert json_patch({"a": {}}, steps) == {"a": {"x": 1}, "c": {"x": 1, "y": 2, "z": 3}}


def pointers(document, prefix=""):
    """Every path there is in a document, and what it leads to."""
    parts = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in parts:
        path = f"{prefix}/{str(key).replace('~', '~0').replace('/', '~1')}"
        yield path, value
        if isinstance(value, dict | list):
            yield from pointers(value, path)


@given(st.data(), objects.filter(bool))
def test_every_place_can_be_tested_removed_and_added_again(data, document) -> None:
    path, value = data.draw(st.sampled_from(list(pointers(document))))
    before = copy.deepcopy(document)
    assert json_patch(document, [{"op": "test", "path": path, "value": value}]) == document
    again = [{"op": "remove", "path": path}, {"op": "add", "path": path, "value": value}]
    assert json_patch(document, again) == document
    replaced = json_patch(document, [{"op": "replace", "path": path, "value": "new"}])
    assert dict(pointers(replaced))[path] == "new"
    assert document == before


@given(st.data(), objects)
def test_any_steps_give_a_document_or_a_refusal_and_never_touch_the_original(data, document) -> None:
    places = [path for path, _ in pointers(document)] + ["/a", "/b/0", "/c/-", "/a~1b/a", "", "/a/-1"]
    place = st.sampled_from(places)
    operation = st.sampled_from(["add", "remove", "replace", "move", "copy", "test"])
    step = st.fixed_dictionaries({"op": operation, "path": place, "from": place, "value": documents})
    patch = data.draw(st.lists(step, max_size=6))
    before = copy.deepcopy((document, patch))
    try:
        json.dumps(json_patch(document, patch))
    except ApiError as error:
        refusal = error.code
    else:
        refusal = 422
    assert refusal == 422
    assert (document, patch) == before


# strategic merge patch ------------------------------------------------------------------------------------


def pod(**spec) -> dict:
    return {"metadata": {"name": "p"}, "spec": spec}


def patched(target: dict, patch: dict, struct: str = "core.Pod") -> dict:
    before = copy.deepcopy((target, patch))
    result = strategic_merge_patch(target, patch, struct)
    assert (target, patch) == before
    return result


def names(items: list[dict]) -> list[str]:
    return [item["name"] for item in items]


A, B, C = ({"name": name, "image": name} for name in "abc")


def test_items_merge_by_their_key_and_new_ones_come_first() -> None:
    result = patched(pod(containers=[A, B]), pod(containers=[C, {"name": "b", "image": "b:2"}]))
    assert result["spec"]["containers"] == [C, A, {"name": "b", "image": "b:2"}]
    assert names(patched(pod(containers=[A, B]), pod(containers=[C]))["spec"]["containers"]) == ["c", "a", "b"]


def test_set_element_order_orders_what_it_names_and_leaves_the_rest_in_place() -> None:
    order = {"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}]}
    result = patched(pod(containers=[A, B]), {"spec": {**order, "containers": [C]}})
    assert names(result["spec"]["containers"]) == ["c", "a", "b"]
    only_order = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}
    assert names(patched(pod(containers=[A, B]), only_order)["spec"]["containers"]) == ["b", "a"]


def test_a_patch_in_another_order_than_it_demands_is_refused() -> None:
    patch = {"spec": {"$setElementOrder/containers": [{"name": "a"}, {"name": "b"}], "containers": [B, A]}}
    error = refused(lambda: patched(pod(containers=[]), patch))
    assert error.code == 500
    assert error.message == (
        "The order in patch list:\n[map[image:b name:b] map[image:a name:a]]\n doesn't match $setElementOrder list:\n"
        "[map[name:a] map[name:b]]\n"
    )


def test_deleting_an_item_by_its_key() -> None:
    result = patched(pod(containers=[A, B]), pod(containers=[{"$patch": "delete", "name": "a"}]))
    assert result["spec"]["containers"] == [B]


def test_replacing_a_list_or_a_map() -> None:
    assert patched(pod(containers=[A, B]), pod(containers=[C, {"$patch": "replace"}]))["spec"]["containers"] == [C]
    result = patched({"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": {"$patch": "replace", "b": "2"}}})
    assert result == {"metadata": {"labels": {"b": "2"}}}
    emptied = patched({"metadata": {"labels": {"a": "1"}}}, {"metadata": {"labels": {"$patch": "delete"}}})
    assert emptied == {"metadata": {"labels": {}}}


def test_taints_and_tolerations_are_replaced_whole() -> None:
    taints = [{"key": "a", "effect": "NoSchedule"}]
    result = patched({"spec": {"taints": [{"key": "old"}]}}, {"spec": {"taints": taints}}, "core.Node")
    assert result["spec"]["taints"] == taints
    assert patched(pod(tolerations=[{"key": "x"}]), pod(tolerations=[]))["spec"]["tolerations"] == []


def test_sets_of_scalars_are_united_and_shrink_only_on_demand() -> None:
    target = {"metadata": {"finalizers": ["a", "b"]}}
    assert patched(target, {"metadata": {"finalizers": ["c", "b"]}})["metadata"]["finalizers"] == ["c", "a", "b"]
    removal = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "x"]}}
    assert patched(target, removal)["metadata"]["finalizers"] == ["b"]


def test_conditions_merge_by_type_and_null_deletes() -> None:
    target = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "x"}], "nominatedNodeName": "n"}}
    patch = {
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": None}], "nominatedNodeName": None}
    }
    assert patched(target, patch) == {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}


def test_ports_are_told_apart_by_container_port_in_pods_and_by_port_in_services() -> None:
    container = {"name": "a", "ports": [{"containerPort": 80, "name": "http"}]}
    result = patched(
        pod(containers=[container]), pod(containers=[{"name": "a", "ports": [{"containerPort": 80, "name": "web"}]}])
    )
    assert result["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "name": "web"}]
    service = {"spec": {"ports": [{"port": 80, "name": "http"}]}}
    result = patched(service, {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}, "core.Service")
    assert result["spec"]["ports"] == [{"port": 80, "name": "http", "targetPort": 8080}]


def test_retain_keys_drops_the_other_fields() -> None:
    target = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert patched(target, patch, "apps.Deployment") == {"spec": {"strategy": {"type": "Recreate"}}}
    bad = {"spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": {}}}}
    error = refused(lambda: patched(target, bad, "apps.Deployment"))
    assert (error.code, error.message) == (400, "invalid patch format of retainKeys")


def test_the_selector_of_a_disruption_budget_is_replaced() -> None:
    target = {"spec": {"selector": {"matchLabels": {"a": "1"}}}}
    patch = {"spec": {"selector": {"matchLabels": {"b": "2"}}}}
    assert patched(target, patch, "policy.PodDisruptionBudget") == patch


def test_directives_do_not_survive_where_nothing_was() -> None:
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "a"}],
            "containers": [
                {
                    "name": "a",
                    "$setElementOrder/env": [{"name": "X"}],
                    "env": [{"name": "X"}, {"$patch": "delete", "name": "Y"}],
                }
            ],
            "affinity": {"$retainKeys": ["nodeAffinity"], "nodeAffinity": {"x": None}},
            "securityContext": {"$patch": "delete"},
        }
    }
    assert patched({}, patch) == {
        "spec": {"containers": [{"name": "a", "env": [{"name": "X"}]}], "affinity": {"nodeAffinity": {}}}
    }


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        (pod(containers=[{"image": "z"}]), 500, "map: map[image:z] does not contain declared merge key: name"),
        (pod(containers=["x"]), 500, "list element types are not identical: [[map[image:a name:a]] [x]]"),
        (pod(containers=[{"$patch": "merge", "name": "a"}]), 500, "merging lists cannot yet be specified in the patch"),
        (pod(containers=[{"$patch": "eat"}]), 500, "unknown patch type: eat in map: map[$patch:eat]"),
        ({"$patch": "burn"}, 500, "unknown patch type: burn in map: map[$patch:burn]"),
        ({"metadata": {"$deleteFromPrimitiveList": []}}, 400, "invalid patch format of primitive list"),
        ({"metadata": {"$setElementOrder": []}}, 400, "invalid patch format of setElementOrder list"),
        (
            {"metadata": {"$setElementOrder/finalizers": {}}},
            500,
            "expected a []interface {}, but received a map[string]interface {}",
        ),
    ],
)
def test_malformed_strategic_patches_are_refused_as_the_server_refuses_them(patch, code, message) -> None:
    target = {"metadata": {"finalizers": ["f"]}, "spec": {"containers": [A]}}
    error = refused(lambda: patched(target, patch))
    assert (error.code, error.message) == (code, message)


@pytest.mark.parametrize("body", [[], "x", 3, None, True])
def test_a_strategic_patch_is_an_object(body) -> None:
    error = refused(lambda: strategic_merge_patch({}, body, "core.Pod"))
    assert (error.code, error.reason) == (400, "BadRequest")


keys = st.sampled_from(["a", "b", "c", "d"])
envs = st.lists(
    st.fixed_dictionaries({"name": keys}, optional={"value": keys}), max_size=3, unique_by=itemgetter("name")
)
containers = st.lists(
    st.fixed_dictionaries({"name": keys}, optional={"image": keys, "env": envs, "args": st.lists(keys, max_size=2)}),
    max_size=4,
    unique_by=itemgetter("name"),
)
metadata = st.fixed_dictionaries(
    {},
    optional={
        "labels": st.dictionaries(keys, keys, max_size=3),
        "finalizers": st.lists(keys, max_size=3, unique=True),
        "ownerReferences": st.lists(
            st.fixed_dictionaries({"uid": keys, "name": keys}), max_size=2, unique_by=itemgetter("uid")
        ),
    },
)
pods = st.fixed_dictionaries(
    {"metadata": metadata},
    optional={"spec": st.fixed_dictionaries({}, optional={"containers": containers, "nodeName": keys})},
)


@given(pods)
def test_an_empty_patch_and_the_object_itself_change_nothing(target) -> None:
    assert patched(target, {}) == target
    assert patched(target, target) == target


@given(pods)
def test_what_is_put_on_nothing_is_what_was_put(target) -> None:
    assert patched({}, target) == target


@given(pods, pods)
def test_a_patch_without_directives_says_how_things_are_afterwards(target, patch) -> None:
    once = patched(target, patch)
    assert patched(once, patch) == once
    wanted = patch.get("spec", {}).get("containers", [])
    there = {item["name"]: item for item in once.get("spec", {}).get("containers", [])}
    for item in wanted:
        found = there[item["name"]]
        assert {**found, **{k: v for k, v in item.items() if k != "env"}} == found
        assert {e["name"] for e in item.get("env", [])} <= {e["name"] for e in found.get("env", [])}
    kept = set(names(target.get("spec", {}).get("containers", [])))
    assert set(there) == kept | set(names(wanted))


@given(pods, st.permutations(["a", "b", "c", "d"]))
def test_an_order_for_all_items_is_the_order_they_get(target, order) -> None:
    if "containers" not in target.get("spec", {}):
        return
    patch = {"spec": {"$setElementOrder/containers": [{"name": name} for name in order]}}
    result = names(patched(target, patch)["spec"]["containers"])
    assert result == [name for name in order if name in result]
    assert sorted(result) == sorted(names(target["spec"]["containers"]))


@given(pods, st.lists(keys, unique=True))
def test_items_deleted_by_key_are_gone_and_nothing_else(target, doomed) -> None:
    before = target.get("spec", {}).get("containers", [])
    patch = pod(containers=[{"$patch": "delete", "name": name} for name in doomed])
    after = patched(target, patch)["spec"].get("containers", [])
    assert after == [item for item in before if item["name"] not in doomed]
