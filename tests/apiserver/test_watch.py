"""What a watcher is told, in which order, and when it is cut off."""

from __future__ import annotations

import json
from random import Random

import pytest

from kubesched.apiserver.status import ApiError
from kubesched.apiserver.store import Store
from kubesched.apiserver.watch import Watch


def new_store(history: int = 8192) -> Store:
    return Store(now=lambda: 1_800_000_000_000_000_000, luck=Random(7), history=history)


@pytest.fixture
def store() -> Store:
    return new_store()


def item(name: str, namespace: str = "d", **fields) -> dict:
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": namespace}, **fields}


def put(store: Store, name: str, namespace: str = "d", **fields) -> None:
    if store.find("pods", namespace, name) is None:
        store.create("pods", item(name, namespace, **fields))
    else:
        store.update("pods", namespace, name, item(name, namespace, **fields))


def told(watch: Watch, limit: int | None = None) -> list[tuple[str, str, int]]:
    return [
        (e.type, e.obj["metadata"].get("name", ""), int(e.obj["metadata"]["resourceVersion"]))
        for e in watch.take(limit)
    ]


@pytest.mark.parametrize("version", ["", "0"])
def test_without_a_version_a_watch_begins_with_what_exists(store: Store, version: str) -> None:
    put(store, "b")
    put(store, "a")
    watch = store.watch("pods", resource_version=version)
    assert told(watch) == [("ADDED", "a", 3), ("ADDED", "b", 2)]
    put(store, "c")
    assert told(watch) == [("ADDED", "c", 4)]


def test_a_watch_from_a_revision_begins_right_after_it(store: Store) -> None:
    for name in "abc":
        put(store, name)
    put(store, "a", v=2)
    store.delete("pods", "d", "b")
    watch = store.watch("pods", resource_version="3")
    assert told(watch) == [("ADDED", "c", 4), ("MODIFIED", "a", 5), ("DELETED", "b", 6)]


def test_a_watch_from_the_future_stays_silent_until_then(store: Store) -> None:
    watch = store.watch("pods", resource_version="4")
    for name in "abcd":
        put(store, name)
    assert told(watch) == [("ADDED", "d", 5)]


def test_initial_events_end_with_an_annotated_bookmark(store: Store) -> None:
    put(store, "a")
    store.create("nodes", {"kind": "Node", "metadata": {"name": "n"}})
    watch = store.watch("pods", send_initial_events=True, bookmarks=True, kind=("v1", "Pod"))
    put(store, "b")
    events = watch.take()
    assert [e.type for e in events] == ["ADDED", "BOOKMARK", "ADDED"]
    assert json.loads(events[1].line()) == {
        "type": "BOOKMARK",
        "object": {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": "3", "annotations": {"k8s.io/initial-events-end": "true"}},
        },
    }


def test_no_bookmark_for_those_who_did_not_ask(store: Store) -> None:
    watch = store.watch("pods", send_initial_events=True)
    store.bookmark()
    assert watch.take() == []


def test_send_initial_events_false_shows_only_what_comes(store: Store) -> None:
    put(store, "a")
    watches = [store.watch("pods", send_initial_events=False, resource_version=version) for version in ("", "0")]
    assert [watch.take() for watch in watches] == [[], []]
    put(store, "b")
    assert [told(watch) for watch in watches] == [[("ADDED", "b", 3)]] * 2


def test_initial_events_of_a_future_revision_are_an_error_on_the_stream(store: Store) -> None:
    watch = store.watch("pods", send_initial_events=True, resource_version="77")
    [event] = watch.take()
    assert (event.type, event.obj["code"], event.obj["reason"]) == ("ERROR", 504, "Timeout")
    assert watch.closed
    assert watch.take() == []


def test_bookmarks_carry_the_global_revision(store: Store) -> None:
    watch = store.watch("pods", bookmarks=True, kind=("v1", "Pod"))
    assert watch.take() == []
    store.create("nodes", {"kind": "Node", "metadata": {"name": "n"}})
    store.bookmark()
    [event] = watch.take()
    assert (event.type, event.obj["metadata"]) == ("BOOKMARK", {"resourceVersion": "2"})
    assert watch.take() == []


def test_a_bookmark_never_overtakes_events(store: Store) -> None:
    watch = store.watch("pods", bookmarks=True)
    watch.take()
    put(store, "a")
    store.bookmark()
    put(store, "b")
    assert [e.type for e in watch.take(1)] == ["ADDED"]
    assert [(e.type, e.revision) for e in watch.take()] == [("ADDED", 3), ("BOOKMARK", 3)]


def test_namespace_and_name_narrow_a_watch(store: Store) -> None:
    in_a = store.watch("pods", "a")
    only_y = store.watch("pods", name="y")
    for namespace, name in [("a", "x"), ("b", "y"), ("a", "y")]:
        put(store, name, namespace)
    assert told(in_a) == [("ADDED", "x", 2), ("ADDED", "y", 4)]
    assert told(only_y) == [("ADDED", "y", 3), ("ADDED", "y", 4)]


def test_a_selection_turns_changes_into_coming_and_going(store: Store) -> None:
    watch = store.watch("pods", matches=lambda o: o.get("on", False))
    put(store, "a", on=False)
    assert watch.take() == []
    put(store, "a", on=True, v=1)
    put(store, "a", on=True, v=2)
    put(store, "a", on=False, v=3)
    put(store, "a", on=False, v=4)
    store.delete("pods", "d", "a")
    events = watch.take()
    assert [(e.type, e.obj["v"], e.obj["metadata"]["resourceVersion"]) for e in events] == [
        ("ADDED", 1, "3"),
        ("MODIFIED", 2, "4"),
        ("DELETED", 2, "5"),  # its last selected state, under the revision that took it away
    ]


def test_a_deleted_event_carries_the_last_state_and_the_revision_of_the_deletion(store: Store) -> None:
    put(store, "a", v=1)
    watches = [store.watch("pods", resource_version="2"), store.watch("pods", resource_version="2", matches=bool)]
    store.delete("pods", "d", "a")
    for watch in watches:
        [event] = watch.take()
        assert (event.type, event.obj["v"], event.obj["metadata"]["resourceVersion"]) == ("DELETED", 1, "3")


def test_a_compacted_revision_is_an_expired_error_on_the_stream(store: Store) -> None:
    for name in "abc":
        put(store, name)
    store.compact(3)
    [event] = store.watch("pods", resource_version="2").take()
    assert event.type == "ERROR"
    assert event.obj == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "too old resource version: 2 (3)",
        "reason": "Expired",
        "code": 410,
    }
    assert told(store.watch("pods", resource_version="3")) == [("ADDED", "c", 4)]


def test_a_malformed_version_is_refused_before_the_stream_begins(store: Store) -> None:
    with pytest.raises(ApiError, match="invalid resource version"):
        store.watch("pods", resource_version="abc")
    assert store.watchers() == 0


def test_a_slow_watcher_is_cut_off_and_others_are_not() -> None:
    store = new_store(history=16)
    slow, quick = store.watch("pods"), store.watch("pods")
    seen = 0
    for number in range(100):
        put(store, f"p{number}")
        seen += len(quick.take())
    assert seen == 100
    [event] = slow.take()
    assert (event.type, event.obj["code"], event.obj["reason"]) == ("ERROR", 410, "Expired")
    assert slow.closed
    assert store.watchers("pods") == 1


def test_a_watcher_can_be_held_to_less_than_the_history() -> None:
    store = new_store()
    watch = store.watch("pods", capacity=3)
    for number in range(3):
        put(store, f"p{number}")
    assert len(watch.take()) == 3
    for number in range(4):
        put(store, f"q{number}")
    assert [e.type for e in watch.take()] == ["ERROR"]


def test_history_is_bounded_however_many_writes() -> None:
    store = new_store(history=64)
    for number in range(1000):
        put(store, "a", v=number)
    history = store._tables["pods"].history
    assert 64 <= len(history.changes) <= 80
    oldest = history.floor
    assert len(store.watch("pods", resource_version=str(oldest)).take()) == len(history.changes)
    assert store.watch("pods", resource_version=str(oldest - 1)).take()[0].type == "ERROR"


def test_on_ready_rings_once_until_everything_has_been_taken(store: Store) -> None:
    rung: list[int] = []
    watch = store.watch("pods", on_ready=lambda: rung.append(store.revision))
    put(store, "a")
    assert rung == [], "take first, then wait"
    assert len(watch.take()) == 1
    put(store, "b")
    put(store, "c")
    assert rung == [3]
    assert [e.type for e in watch.take(1)] == ["ADDED"]
    put(store, "x")
    assert rung == [3]
    assert len(watch.take()) == 2
    assert not watch.ready
    put(store, "y")
    assert rung == [3, 6]


def test_a_waiting_watcher_is_not_woken_for_what_it_does_not_select(store: Store) -> None:
    rung: list[str] = []
    watch = store.watch("pods", "mine", matches=lambda o: o.get("on", False), on_ready=lambda: rung.append("x"))
    watch.take()
    put(store, "a", "theirs", on=True)
    put(store, "a", "mine", on=False)
    assert (rung, watch.ready) == ([], False)
    put(store, "b", "mine", on=True)
    assert (rung, watch.ready) == (["x"], True)
    assert [name for _, name, _ in told(watch)] == ["b"]


def test_a_closed_watch_is_forgotten(store: Store) -> None:
    watch = store.watch("pods")
    put(store, "a")
    watch.close()
    assert watch.take() == []
    assert not watch.ready
    assert store.watchers() == 0


def test_events_can_be_taken_in_small_bites(store: Store) -> None:
    for name in "abcde":
        put(store, name)
    watch = store.watch("pods", send_initial_events=True, bookmarks=True)
    put(store, "f")
    put(store, "a", v=2)
    whole = []
    while bite := watch.take(1):
        assert len(bite) == 1
        whole += [bite[0].type]
    assert whole == ["ADDED"] * 5 + ["BOOKMARK", "ADDED", "MODIFIED"]


def test_watchers_share_the_encoding_of_an_event(store: Store) -> None:
    watches = [store.watch("pods") for _ in range(3)]
    for watch in watches:
        watch.take()
    put(store, "a")
    events = [watch.take()[0] for watch in watches]
    assert len({id(e.stored.encoded()) for e in events if e.stored is not None}) == 1
    assert json.loads(events[0].line()) == {"type": "ADDED", "object": store.get("pods", "d", "a").obj}
    assert events[0].line().endswith(b"\n")
