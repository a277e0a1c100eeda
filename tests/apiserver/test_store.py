"""The store's promises, one by one: metadata, revisions, conflicts, lists, pages, deletions."""

from __future__ import annotations

import base64
import json
from random import Random

import pytest

from kubesched.apiserver.status import ApiError
from kubesched.apiserver.store import DeleteOptions, Preconditions, Store, pod_grace

NOON = 1_800_000_000 * 1_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: int) -> None:
        self.now += seconds * 1_000_000_000


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Store:
    return Store(now=clock, luck=Random(7))


def config_map(name: str, namespace: str = "default", **more) -> dict:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": namespace}, **more}


def pod(name: str, node: str = "", **meta) -> dict:
    spec = {"terminationGracePeriodSeconds": 30, "containers": [{"name": "c"}]}
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "namespace": "default", **meta}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def refused(call) -> ApiError:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value


# creating -------------------------------------------------------------------------------------------------


def test_create_sets_what_the_server_owns_and_keeps_the_rest(store: Store) -> None:
    given = config_map("a", data={"x": "1"})
    given["metadata"] |= {"uid": "mine", "generation": 7, "selfLink": "/x", "deletionTimestamp": "2020-01-01T00:00:00Z"}
    given["metadata"]["labels"] = {"l": "1"}
    stored = store.create("configmaps", given, generation=None)
    meta = stored.obj["metadata"]
    assert meta["uid"] != "mine"
    assert len(meta["uid"]) == 36
    assert meta["uid"][14] == "4"
    assert meta["creationTimestamp"] == "2027-01-15T08:00:00Z"
    assert meta["resourceVersion"] == str(store.revision) == "2"
    assert meta["labels"] == {"l": "1"}
    assert not {"generation", "selfLink", "deletionTimestamp"} & set(meta)
    assert stored.obj["data"] == {"x": "1"}
    assert given["metadata"]["uid"] == "mine", "the caller's object is left alone"


def test_create_starts_generation_at_one_where_the_kind_has_one(store: Store) -> None:
    assert store.create("pods", pod("a")).obj["metadata"]["generation"] == 1


def test_metadata_is_printed_in_the_servers_order(store: Store) -> None:
    given = pod("a", labels={"x": "1"}, annotations={"y": "2"})
    assert list(store.create("pods", given).obj["metadata"]) == [
        "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "labels", "annotations",
    ]  # fmt: skip


def test_creating_twice_is_refused_in_the_servers_words(store: Store) -> None:
    store.create("configmaps", config_map("a"))
    assert refused(lambda: store.create("configmaps", config_map("a"))).to_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "a" already exists',
        "reason": "AlreadyExists",
        "details": {"name": "a", "kind": "configmaps"},
        "code": 409,
    }


def test_creating_over_a_dying_object_says_that_it_is_dying(store: Store) -> None:
    store.create("configmaps", config_map("a") | {"metadata": {"name": "a", "namespace": "d", "finalizers": ["x/y"]}})
    store.delete("configmaps", "d", "a")
    error = refused(lambda: store.create("configmaps", config_map("a", "d")))
    assert error.message == 'object is being deleted: configmaps "a" already exists'


def test_a_resource_version_on_create_is_a_plain_500(store: Store) -> None:
    given = config_map("a")
    given["metadata"]["resourceVersion"] = "5"
    error = refused(lambda: store.create("configmaps", given))
    assert (error.code, error.reason) == (500, "")
    assert error.message == "resourceVersion should not be set on objects to be created"
    for harmless in ("0", "", "abc"):
        given["metadata"] |= {"resourceVersion": harmless, "name": f"a{harmless}"}
        assert store.create("configmaps", given).resource_version == str(store.revision)


def test_generated_names_use_the_servers_alphabet_and_avoid_taken_ones(store: Store) -> None:
    names = set()
    for _ in range(200):
        given = {"metadata": {"generateName": "web-", "namespace": "default"}}
        stored = store.create("pods", given)
        suffix = stored.name.removeprefix("web-")
        assert len(suffix) == 5
        assert set(suffix) <= set("bcdfghjklmnpqrstvwxz2456789")
        assert stored.obj["metadata"]["generateName"] == "web-"
        names.add(stored.name)
    assert len(names) == 200


def test_a_generated_name_has_at_most_63_letters(store: Store) -> None:
    assert len(store.generate_name("pods", "default", "x" * 100)) == 63


def test_generating_a_name_gives_up_after_eight_taken_ones(clock: Clock) -> None:
    class Stuck(Random):
        def randrange(self, *args, **kwargs) -> int:
            return 0

    store = Store(now=clock, luck=Stuck(1))
    store.create("pods", {"metadata": {"generateName": "a-", "namespace": "d"}})
    error = refused(lambda: store.create("pods", {"metadata": {"generateName": "a-", "namespace": "d"}}))
    assert (error.code, error.reason, error.retry_after) == (409, "AlreadyExists", 1)
    assert error.message == (
        'pods "a-bbbbb" already exists, the server was not able to generate a unique name for the object'
    )


def test_a_dry_run_leaves_no_trace(store: Store) -> None:
    shown = store.create("configmaps", config_map("a"), dry_run=True)
    assert "resourceVersion" not in shown.obj["metadata"]
    assert store.find("configmaps", "default", "a") is None
    store.create("configmaps", config_map("a", data={}))
    would_be = store.update("configmaps", "default", "a", config_map("a", data={"x": "1"}), dry_run=True)
    assert would_be.obj["data"] == {"x": "1"}
    assert would_be.obj["metadata"]["resourceVersion"] == "2"
    assert store.delete("configmaps", "default", "a", DeleteOptions(dry_run=True)).gone
    assert store.get("configmaps", "default", "a").obj["data"] == {}
    assert store.revision == 2


# reading --------------------------------------------------------------------------------------------------


def test_a_missing_object_is_not_found_under_its_qualified_name(store: Store) -> None:
    error = refused(lambda: store.get("apps/deployments", "default", "web"))
    assert error.message == 'deployments.apps "web" not found'
    assert error.to_status()["details"] == {"name": "web", "group": "apps", "kind": "deployments"}


def test_a_revision_from_the_future_is_refused_with_504(store: Store) -> None:
    for call in (
        lambda: store.get("pods", "d", "p", resource_version="99"),
        lambda: store.list("pods", resource_version="99"),
        lambda: store.list("pods", resource_version="99", resource_version_match="Exact"),
    ):
        status = refused(call).to_status()
        assert status["code"] == 504
        assert status["message"] == "Timeout: Too large resource version: 99, current: 1"
        assert status["details"] == {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }


def test_a_malformed_revision_is_a_bad_request(store: Store) -> None:
    error = refused(lambda: store.list("pods", resource_version="x1"))
    assert error.code == 400
    assert "invalid resource version" in error.message


def test_lists_are_sorted_as_etcd_sorts_keys(store: Store) -> None:
    for namespace, name in [("a", "z"), ("a-b", "a"), ("a", "b"), ("b", "a"), ("a", "a-1")]:
        store.create("configmaps", config_map(name, namespace))
    keys = [stored.key for stored in store.list("configmaps").items]
    assert keys == ["a-b/a", "a/a-1", "a/b", "a/z", "b/a"]
    assert [stored.name for stored in store.list("configmaps", "a").items] == ["a-1", "b", "z"]
    assert store.count("configmaps", "a") == 3


def test_an_object_created_again_is_listed_once(store: Store) -> None:
    for _ in range(3):
        store.create("configmaps", config_map("a"))
        store.create("configmaps", config_map("b"))
        store.delete("configmaps", "default", "a")
        store.create("configmaps", config_map("a"))
        assert [s.name for s in store.list("configmaps").items] == ["a", "b"]
        store.delete("configmaps", "default", "a")
        store.delete("configmaps", "default", "b")
    assert store.list("configmaps").items == []


def test_pages_show_the_moment_of_the_first_one(store: Store) -> None:
    for name in "abcde":
        store.create("configmaps", config_map(name, data={"v": "old"}))
    first = store.list("configmaps", "default", limit=2)
    assert ([s.name for s in first.items], first.remaining) == (["a", "b"], 3)
    store.delete("configmaps", "default", "c")
    store.create("configmaps", config_map("bb"))
    store.update("configmaps", "default", "d", config_map("d", data={"v": "new"}))
    second = store.list("configmaps", "default", limit=2, continue_token=first.continue_token)
    assert [(s.name, s.obj["data"]["v"]) for s in second.items] == [("c", "old"), ("d", "old")]
    third = store.list("configmaps", "default", limit=2, continue_token=second.continue_token)
    assert ([s.name for s in third.items], third.continue_token, third.remaining) == (["e"], "", None)
    assert first.resource_version == second.resource_version == third.resource_version == "6"


def test_a_continue_token_is_the_servers(store: Store) -> None:
    for name in ("bound1", "gated"):
        store.create("pods", pod(name))
    token = store.list("pods", "default", limit=1).continue_token
    assert json.loads(base64.urlsafe_b64decode(token + "==")) == {"v": "meta.k8s.io/v1", "rv": 3, "start": "/bound1\0"}
    # One that the real server issued, for the same key.
    real = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Mywic3RhcnQiOiIvYm91bmQxXHUwMDAwIn0"
    assert token == real


def test_a_token_for_compacted_history_offers_an_inconsistent_continuation(store: Store) -> None:
    for name in "abc":
        store.create("configmaps", config_map(name))
    token = store.list("configmaps", limit=1).continue_token
    store.create("configmaps", config_map("d"))
    store.compact()
    status = refused(lambda: store.list("configmaps", limit=1, continue_token=token)).to_status()
    assert (status["code"], status["reason"]) == (410, "Expired")
    assert status["message"].startswith("The provided continue parameter is too old to display a consistent list")
    rest = store.list("configmaps", continue_token=status["metadata"]["continue"])
    assert [s.name for s in rest.items] == ["b", "c", "d"]


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("%%%", "continue key is not valid"),
        ("e30", "server does not recognize this encoded version"),
        (base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":0,"start":"/a"}').decode(), "incorrect encoded start"),
        (base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":3}').decode(), "encoded start key empty"),
        (base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":3,"start":"/../x"}').decode(), "not valid: /../x"),
    ],
)
def test_a_broken_token_is_a_bad_request(store: Store, token: str, why: str) -> None:
    error = refused(lambda: store.list("configmaps", continue_token=token))
    assert error.code == 400
    assert error.message.startswith("invalid continue token: ")
    assert why in error.message


def test_limit_is_ignored_at_version_zero_and_exact_shows_the_past(store: Store) -> None:
    store.create("configmaps", config_map("a", data={"v": "1"}))
    store.create("configmaps", config_map("b"))
    store.update("configmaps", "default", "a", config_map("a", data={"v": "2"}))
    assert len(store.list("configmaps", limit=1, resource_version="0").items) == 2
    past = store.list("configmaps", resource_version="2", resource_version_match="Exact")
    assert [(s.name, s.obj.get("data")) for s in past.items] == [("a", {"v": "1"})]
    assert past.resource_version == "2"
    fresh = store.list("configmaps", resource_version="2", resource_version_match="NotOlderThan")
    assert fresh.resource_version == "4"
    store.compact(3)
    error = refused(lambda: store.list("configmaps", resource_version="2", resource_version_match="Exact"))
    assert error.message == "The resourceVersion for the provided list is too old."


def test_a_selection_hides_the_count_of_what_remains(store: Store) -> None:
    for name in "abcd":
        store.create("configmaps", config_map(name, data={"even": str(ord(name) % 2 == 0)}))
    page = store.list("configmaps", matches=lambda o: o["data"]["even"] == "True", limit=1)
    assert [s.name for s in page.items] == ["b"]
    assert page.continue_token
    assert page.remaining is None


# updating -------------------------------------------------------------------------------------------------


def test_a_stale_version_is_a_conflict(store: Store) -> None:
    old = store.create("configmaps", config_map("a")).obj
    store.update("configmaps", "default", "a", config_map("a", data={"x": "1"}))
    status = refused(lambda: store.update("configmaps", "default", "a", old)).to_status()
    assert (status["code"], status["reason"]) == (409, "Conflict")
    assert status["message"] == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert status["details"] == {"name": "a", "kind": "configmaps"}


def test_another_uid_fails_the_precondition_in_etcds_words(store: Store) -> None:
    stored = store.create("pods", pod("min"))
    given = pod("min", uid="abc")
    error = refused(lambda: store.update("pods", "default", "min", given))
    assert error.message == (
        'Operation cannot be fulfilled on pods "min": StorageError: invalid object, Code: 4, Key: '
        "/registry/pods/default/min, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
        f"UID in precondition: abc, UID in object meta: {stored.uid}"
    )


def test_server_owned_metadata_survives_an_update(store: Store, clock: Clock) -> None:
    before = store.create("pods", pod("a")).obj["metadata"]
    clock.advance(60)
    given = pod("a", creationTimestamp="1999-01-01T00:00:00Z", generation=9, labels={"new": "1"})
    after = store.update("pods", "default", "a", given).obj["metadata"]
    assert after == before | {"resourceVersion": "3", "labels": {"new": "1"}}


def test_generation_rises_only_when_the_caller_says_so(store: Store) -> None:
    def bump(old: dict, new: dict) -> bool:
        return bool(old["spec"] != new["spec"])

    store.create("pods", pod("a"))
    store.update("pods", "default", "a", pod("a", labels={"x": "1"}), bump=bump)
    assert store.get("pods", "default", "a").obj["metadata"]["generation"] == 1
    store.update("pods", "default", "a", pod("a", node="n1"), bump=bump)
    assert store.get("pods", "default", "a").obj["metadata"]["generation"] == 2


def test_an_update_that_changes_nothing_is_no_write(store: Store) -> None:
    stored = store.create("configmaps", config_map("a", data={"x": "1"}))
    watch = store.watch("configmaps", resource_version="2")
    assert store.update("configmaps", "default", "a", stored.obj) is stored
    assert store.update("configmaps", "default", "a", config_map("a", data={"x": "1"})) is stored
    assert store.revision == 2
    assert watch.take() == []


def test_json_numbers_and_booleans_are_told_apart(store: Store) -> None:
    store.create("configmaps", config_map("a", spec={"v": 1}))
    assert store.update("configmaps", "default", "a", config_map("a", spec={"v": True})).obj["spec"]["v"] is True
    assert store.revision == 3


def test_unknown_fields_survive(store: Store) -> None:
    given = config_map("a", somethingNew={"deep": [1, {"er": None}]})
    store.create("configmaps", given)
    changed = store.guaranteed_update("configmaps", "default", "a", lambda o: {**o, "data": {}})
    assert changed.obj["somethingNew"] == {"deep": [1, {"er": None}]}


def test_a_guaranteed_update_is_fenced_by_uid_and_version(store: Store) -> None:
    stored = store.create("pods", pod("a"))

    def bind(o: dict) -> dict:
        return {**o, "spec": {**o["spec"], "nodeName": "n1"}}

    for wanted, what in ((Preconditions(uid="x"), "UID"), (Preconditions(resource_version="1"), "ResourceVersion")):
        error = refused(
            lambda wanted=wanted: store.guaranteed_update("pods", "default", "a", bind, preconditions=wanted)
        )
        assert error.code == 409
        assert f"Precondition failed: {what} in precondition: " in error.message
    fence = Preconditions(stored.uid, stored.resource_version)
    assert store.guaranteed_update("pods", "default", "a", bind, preconditions=fence).obj["spec"]["nodeName"] == "n1"


# deleting -------------------------------------------------------------------------------------------------


def events(watch) -> list[tuple[str, str, str]]:
    return [(e.type, e.obj["metadata"]["name"], e.obj["metadata"]["resourceVersion"]) for e in watch.take()]


def test_a_plain_delete_removes_and_reports_the_new_revision(store: Store) -> None:
    store.create("configmaps", config_map("a"))
    watch = store.watch("configmaps", resource_version="2")
    deletion = store.delete("configmaps", "default", "a")
    assert deletion.gone
    assert events(watch) == [("DELETED", "a", "3")]
    assert refused(lambda: store.delete("configmaps", "default", "a")).code == 404


def test_a_finalizer_holds_until_it_is_taken_off(store: Store, clock: Clock) -> None:
    given = pod("a")
    given["metadata"]["finalizers"] = ["example.com/hold"]
    store.create("widgets", given)
    watch = store.watch("widgets", resource_version="2")
    clock.advance(5)
    deletion = store.delete("widgets", "default", "a")
    meta = deletion.stored.obj["metadata"]
    assert not deletion.gone
    assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == ("2027-01-15T08:00:05Z", 0)
    assert meta["generation"] == 2
    again = store.delete("widgets", "default", "a")
    assert (again.stored, again.gone) == (deletion.stored, False)
    freed = {**deletion.stored.obj, "metadata": {k: v for k, v in meta.items() if k != "finalizers"}}
    shown = store.update("widgets", "default", "a", freed)
    assert "finalizers" not in shown.obj["metadata"]
    assert store.find("widgets", "default", "a") is None
    assert events(watch) == [("MODIFIED", "a", "3"), ("DELETED", "a", "4")]


def test_an_update_cannot_cancel_a_deletion(store: Store) -> None:
    given = config_map("a")
    given["metadata"]["finalizers"] = ["example.com/hold"]
    store.create("configmaps", given)
    store.delete("configmaps", "default", "a")
    after = store.update("configmaps", "default", "a", given | {"data": {"x": "1"}})
    assert "deletionTimestamp" in after.obj["metadata"]


@pytest.mark.parametrize(("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
def test_propagation_policies_are_finalizers_for_the_garbage_collector(store, policy, finalizer) -> None:
    store.create("apps/replicasets", config_map("rs"))
    deletion = store.delete("apps/replicasets", "default", "rs", DeleteOptions(propagation_policy=policy))
    assert deletion.stored.obj["metadata"]["finalizers"] == [finalizer]
    assert not deletion.gone
    changed = store.delete("apps/replicasets", "default", "rs", DeleteOptions(propagation_policy="Background"))
    assert changed.gone


def test_an_unscheduled_pod_goes_at_once_but_is_marked_first(store: Store) -> None:
    store.create("pods", pod("a"))
    watch = store.watch("pods", resource_version="2")
    deletion = store.delete("pods", "default", "a", grace=pod_grace)
    assert deletion.gone
    assert deletion.stored.obj["metadata"]["generation"] == 2
    seen = watch.take()
    assert [(e.type, e.obj["metadata"]["deletionGracePeriodSeconds"]) for e in seen] == [
        ("MODIFIED", 0),
        ("DELETED", 0),
    ]


def test_a_bound_pod_is_given_its_grace_and_a_second_delete_may_only_shorten_it(store: Store, clock: Clock) -> None:
    store.create("pods", pod("a", node="n1"))
    first = store.delete("pods", "default", "a", grace=pod_grace)
    meta = first.stored.obj["metadata"]
    assert (meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == ("2027-01-15T08:00:30Z", 30)
    longer = store.delete("pods", "default", "a", DeleteOptions(grace_period_seconds=60), grace=pod_grace)
    assert (longer.stored, longer.gone) == (first.stored, False)
    clock.advance(2)
    shorter = store.delete("pods", "default", "a", DeleteOptions(grace_period_seconds=10), grace=pod_grace)
    assert shorter.stored.obj["metadata"]["deletionTimestamp"] == "2027-01-15T08:00:10Z"
    assert shorter.stored.obj["metadata"]["generation"] == 2
    now = store.delete("pods", "default", "a", DeleteOptions(grace_period_seconds=0), grace=pod_grace)
    assert now.gone
    assert store.find("pods", "default", "a") is None


@pytest.mark.parametrize(
    ("phase", "requested", "seconds"),
    [("Running", None, 30), ("Running", 5, 5), ("Running", -1, 1), ("Succeeded", 5, 0), ("Failed", None, 0)],
)
def test_the_grace_of_a_pod_on_a_node(phase: str, requested: int | None, seconds: int) -> None:
    assert pod_grace({**pod("a", node="n1"), "status": {"phase": phase}}, requested) == seconds


def test_a_kind_may_hold_more_than_metadata_finalizers(store: Store) -> None:
    def removable(o: dict) -> bool:
        return len(o["spec"]["finalizers"]) == 0

    def terminate(o: dict) -> dict:
        return {**o, "status": {"phase": "Terminating"}}

    given = {"kind": "Namespace", "metadata": {"name": "tt"}, "spec": {"finalizers": ["kubernetes"]}}
    store.create("namespaces", given, generation=None)
    deletion = store.delete("namespaces", "", "tt", removable=removable, prepare=terminate)
    assert not deletion.gone
    assert deletion.stored.obj["status"] == {"phase": "Terminating"}
    store.guaranteed_update("namespaces", "", "tt", lambda o: {**o, "spec": {"finalizers": []}}, removable=removable)
    assert store.find("namespaces", "", "tt") is None


def test_delete_preconditions_name_the_kind(store: Store) -> None:
    stored = store.create("configmaps", config_map("a"))
    options = DeleteOptions(preconditions=Preconditions(resource_version="1"))
    status = refused(lambda: store.delete("configmaps", "default", "a", options)).to_status()
    assert status["message"] == (
        'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match '
        "the ResourceVersion in record (2). The object might have been modified"
    )
    assert status["details"] == {"name": "a", "kind": "ConfigMap"}
    options = DeleteOptions(preconditions=Preconditions(uid="abc"))
    message = refused(lambda: store.delete("configmaps", "default", "a", options)).message
    assert message.endswith(
        f"the UID in the precondition (abc) does not match the UID in record ({stored.uid}). "
        "The object might have been deleted and then recreated"
    )


def test_delete_collection_deletes_what_is_selected(store: Store) -> None:
    for name in "abc":
        store.create("configmaps", config_map(name, data={"n": name}))
    store.create("configmaps", config_map("a", "other", data={"n": "a"}))
    done = store.delete_collection("configmaps", "default", matches=lambda o: o["data"]["n"] != "b")
    assert [(d.stored.name, d.gone) for d in done] == [("a", True), ("c", True)]
    assert [s.key for s in store.list("configmaps").items] == ["default/b", "other/a"]


# encodings ------------------------------------------------------------------------------------------------


def test_an_object_is_encoded_once_and_list_items_lose_their_type(store: Store) -> None:
    stored = store.create("configmaps", config_map("a", data={"k": "v"}))
    assert stored.encoded() is stored.encoded()
    assert json.loads(stored.encoded()) == stored.obj
    assert json.loads(stored.item()) == {"metadata": stored.obj["metadata"], "data": {"k": "v"}}
    shuffled = store.create("configmaps", {"data": {}, "apiVersion": "v1", "metadata": {"name": "b"}, "kind": "X"})
    assert set(json.loads(shuffled.item())) == {"data", "metadata"}


def test_two_stores_with_the_same_luck_and_clock_are_the_same(clock: Clock) -> None:
    def run() -> list[bytes]:
        store = Store(now=clock, luck=Random(3))
        for _ in range(5):
            store.create("pods", {"kind": "Pod", "metadata": {"generateName": "p-", "namespace": "d"}})
        return [stored.encoded() for stored in store.list("pods").items]

    assert run() == run()
