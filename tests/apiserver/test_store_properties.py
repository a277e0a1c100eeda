"""Whatever is written in whatever order: the store agrees with a naive one, and watches replay lists."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubesched.apiserver.status import ApiError
from kubesched.apiserver.store import DeleteOptions, Preconditions, Store, pod_grace

T = TypeVar("T")

NAMESPACES = ["a", "a-b", "b"]
NAMES = ["x", "y", "z.1", "z-1"]
FINALIZERS = [[], ["example.com/f"]]

namespaces = st.sampled_from(NAMESPACES)
names = st.sampled_from(NAMES)
versions = st.integers(0, 2)


def selected(o: dict) -> bool:
    return bool(o["v"] != 1)


def outcome(call: Callable[[], T]) -> T | ApiError:
    try:
        return call()
    except ApiError as error:
        return error


class Follower:
    """A client that lists once and then believes its watch."""

    def __init__(self, store: Store, namespace: str | None, matches, from_list: bool, name: str | None = None) -> None:
        self.store, self.namespace, self.matches, self.name = store, namespace, matches, name
        self.known: dict[tuple[str, str], dict] = {}
        self.last = self.began = store.revision
        if from_list:
            listing = store.list("pods", namespace, matches=self._wants)
            self.known = {(s.namespace, s.name): s.obj for s in listing.items}
            self.watch = store.watch(
                "pods", namespace, matches=matches, name=name, resource_version=listing.resource_version
            )
        else:
            self.watch = store.watch(
                "pods", namespace, matches=matches, name=name, send_initial_events=True, bookmarks=True
            )

    def _wants(self, o: dict) -> bool:
        return (self.matches is None or self.matches(o)) and self.name in (None, o["metadata"]["name"])

    def catch_up(self, limit: int | None) -> None:
        for event in self.watch.take(limit):
            if event.type == "BOOKMARK":
                continue
            meta = event.obj["metadata"]
            key = meta["namespace"], meta["name"]
            match event.type:
                case "ADDED":
                    assert key not in self.known
                    self.known[key] = event.obj
                case "MODIFIED":
                    assert key in self.known
                    self.known[key] = event.obj
                case "DELETED":
                    assert self.known.pop(key)["metadata"]["uid"] == meta["uid"]
            if event.revision > self.began:
                assert event.revision > self.last, "events come in the order of their revisions"
                self.last = event.revision
        while limit is None and self.watch.ready:
            self.catch_up(None)

    def check(self) -> None:
        self.catch_up(None)
        listing = self.store.list("pods", self.namespace, matches=self._wants)
        assert self.known == {(s.namespace, s.name): s.obj for s in listing.items}


class StoreAgainstModel(RuleBasedStateMachine):
    """The model: a dict of deep copies, no history, no sharing."""

    @initialize(seed=st.integers(0, 99))
    def begin(self, seed: int) -> None:
        self.now = 1_800_000_000_000_000_000
        self.store = Store(now=lambda: self.now, luck=Random(seed))
        self.model: dict[tuple[str, str], dict] = {}
        self.revisions = [self.store.revision]
        self.followers = [Follower(self.store, None, None, from_list=False)]
        self.snapshots: list[tuple[str, list[dict]]] = []
        self.pages: list[tuple[str, list[dict]]] = []

    # writes -----------------------------------------------------------------------------------------

    @rule(namespace=namespaces, name=names, v=versions, finalizers=st.sampled_from(FINALIZERS), node=st.booleans())
    def create(self, namespace: str, name: str, v: int, finalizers: list[str], node: bool) -> None:
        obj = {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "finalizers": finalizers},
            "spec": {"terminationGracePeriodSeconds": 30, "nodeName": "n" if node else ""},
            "v": v,
        }
        before = copy.deepcopy(obj)
        taken = (namespace, name) in self.model
        result = outcome(lambda: self.store.create("pods", obj))
        assert isinstance(result, ApiError) == taken
        if isinstance(result, ApiError):
            assert result.code == 409
        else:
            self.model[namespace, name] = copy.deepcopy(result.obj)
        assert obj == before

    @rule(namespace=namespaces, name=names, v=versions, stale=st.booleans(), free=st.booleans())
    def update(self, namespace: str, name: str, v: int, stale: bool, free: bool) -> None:
        known = self.model.get((namespace, name))
        obj: dict = copy.deepcopy(known) if known else {"metadata": {"name": name, "namespace": namespace}}
        obj["v"] = v
        if free:
            obj["metadata"]["finalizers"] = []
        if stale and known:
            obj["metadata"]["resourceVersion"] = str(int(known["metadata"]["resourceVersion"]) - 1)
        result = outcome(lambda: self.store.update("pods", namespace, name, obj, bump=lambda o, n: o["v"] != n["v"]))
        assert isinstance(result, ApiError) == (stale or not known)
        if known is None or isinstance(result, ApiError):
            assert isinstance(result, ApiError)
            assert result.code == (409 if known else 404)
            return
        expected = copy.deepcopy(obj)
        expected["metadata"]["generation"] += known["v"] != v
        if expected != known:
            expected["metadata"]["resourceVersion"] = str(self.store.revision)
        meta = known["metadata"]
        if "deletionTimestamp" in meta and not meta["deletionGracePeriodSeconds"] and not obj["metadata"]["finalizers"]:
            del self.model[namespace, name]
        else:
            assert result.obj == expected
            self.model[namespace, name] = expected

    @rule(
        namespace=namespaces,
        name=names,
        grace=st.sampled_from([None, 0, 5, 60]),
        policy=st.sampled_from([None, "Foreground", "Background"]),
        uid=st.sampled_from([None, "mine", "other"]),
    )
    def delete(self, namespace: str, name: str, grace: int | None, policy: str | None, uid: str | None) -> None:
        known = self.model.get((namespace, name))
        wanted = known["metadata"]["uid"] if known and uid == "mine" else uid
        options = DeleteOptions(grace, Preconditions(uid=wanted) if wanted else None, policy)
        deletion = outcome(lambda: self.store.delete("pods", namespace, name, options, grace=pod_grace))
        assert isinstance(deletion, ApiError) == (uid == "other" or not known)
        if known is None or isinstance(deletion, ApiError):
            assert isinstance(deletion, ApiError)
            assert deletion.code == (409 if known else 404)
            return
        if deletion.gone:
            del self.model[namespace, name]
            assert not deletion.stored.obj["metadata"].get("finalizers")
        else:
            meta = deletion.stored.obj["metadata"]
            assert meta.get("finalizers") or meta["deletionGracePeriodSeconds"] > 0
            assert meta["uid"] == known["metadata"]["uid"]
            self.model[namespace, name] = copy.deepcopy(deletion.stored.obj)

    @rule(seconds=st.integers(1, 40))
    def wait(self, seconds: int) -> None:
        self.now += seconds * 1_000_000_000

    @rule(namespace=namespaces)
    def delete_collection(self, namespace: str) -> None:
        for deletion in self.store.delete_collection("pods", namespace, matches=selected, grace=pod_grace):
            key = namespace, deletion.stored.name
            if deletion.gone:
                del self.model[key]
            else:
                self.model[key] = copy.deepcopy(deletion.stored.obj)

    # readers ----------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.followers) < 8)
    @rule(
        namespace=st.sampled_from([None, *NAMESPACES]),
        selective=st.booleans(),
        listed=st.booleans(),
        name=st.sampled_from([None, "x"]),
    )
    def follow(self, namespace: str | None, selective: bool, listed: bool, name: str | None) -> None:
        self.followers.append(Follower(self.store, namespace, selected if selective else None, listed, name))

    @rule(limit=st.sampled_from([1, 2, None]), which=st.integers(0, 7))
    def take(self, limit: int | None, which: int) -> None:
        self.followers[which % len(self.followers)].catch_up(limit)

    @rule()
    def bookmark(self) -> None:
        self.store.bookmark()

    @rule()
    def remember(self) -> None:
        self.snapshots.append((str(self.store.revision), self._sorted(None)))

    @rule(limit=st.integers(1, 3))
    def begin_paging(self, limit: int) -> None:
        page = self.store.list("pods", limit=limit)
        whole = self._sorted(None)
        assert [s.obj for s in page.items] == whole[:limit]
        assert page.remaining == (len(whole) - limit if len(whole) > limit else None)
        if page.continue_token:
            self.pages.append((page.continue_token, whole[limit:]))

    @rule(limit=st.integers(0, 3))
    def go_on_paging(self, limit: int) -> None:
        if self.pages:
            token, rest = self.pages.pop()
            page = self.store.list("pods", limit=limit, continue_token=token)
            count = limit or len(rest)
            assert [s.obj for s in page.items] == rest[:count]
            if page.continue_token:
                self.pages.append((page.continue_token, rest[count:]))
            else:
                assert len(rest) <= count

    # what always holds --------------------------------------------------------------------------------

    def _sorted(self, namespace: str | None) -> list[dict]:
        keys = sorted(self.model, key="/".join)
        return [copy.deepcopy(self.model[key]) for key in keys if namespace in (None, key[0])]

    @invariant()
    def lists_agree(self) -> None:
        if not hasattr(self, "store"):
            return
        for namespace in (None, "a"):
            assert [s.obj for s in self.store.list("pods", namespace).items] == self._sorted(namespace)
            assert self.store.count("pods", namespace) == len(self._sorted(namespace))

    @invariant()
    def revisions_only_grow(self) -> None:
        if hasattr(self, "store"):
            assert self.store.revision >= self.revisions[-1]
            self.revisions.append(self.store.revision)

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        for follower in self.followers:
            follower.check()
        for version, then in self.snapshots:
            past = self.store.list("pods", resource_version=version, resource_version_match="Exact")
            assert [s.obj for s in past.items] == then


StoreAgainstModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestStoreAgainstModel = StoreAgainstModel.TestCase
