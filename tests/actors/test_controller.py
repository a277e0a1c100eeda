"""The shape all actors share: keys once, alarms in time, patience with refusals; and the ropes to the store."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from tests.actors.conftest import START, Stage, chosen, template

from kubesched.actors.company import Company
from kubesched.actors.controller import BACKOFF_MAX, Controller
from kubesched.actors.messages import Create, Effect, Refused, Seen, Tick
from kubesched.actors.view import Key, View
from kubesched.api.time import Instant, milliseconds, seconds
from kubesched.apiserver.follow import Follower
from kubesched.apiserver.status import ApiError
from kubesched.apiserver.store import Store

Json = dict[str, Any]


def pod(name: str, **fields: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **fields}}


class Looking(Controller):
    """Notes what it looks at, and wants nothing."""

    watches = ("pods",)

    def __init__(self) -> None:
        super().__init__()
        self.looked: list[tuple[str, int]] = []
        self.wants: list[Effect] = []

    def reconcile(self, key: Key, now: Instant) -> Iterable[Effect]:
        self.looked.append((key.name, now))
        return self.wants


def test_a_key_is_looked_at_once_however_often_it_changed() -> None:
    actor = Looking()
    for version in range(3):
        actor.handle(Seen("pods", None, pod("a", resourceVersion=str(version))), START)
    actor.handle(Seen("pods", None, pod("b")), START)
    while actor.ready:
        actor.handle(Tick(), START)
    assert actor.looked == [("a", START), ("b", START)]


def test_the_earliest_alarm_counts_and_rings_once() -> None:
    actor = Looking()
    key = Key("pods", "default", "a")
    actor.wake(key, Instant(START + seconds(9)))
    actor.wake(key, Instant(START + seconds(3)))
    actor.wake(key, Instant(START + seconds(5)))
    assert actor.deadline == START + seconds(3)
    actor.handle(Tick(), Instant(START + seconds(3)))
    assert actor.looked == [("a", START + seconds(3))]
    assert actor.deadline is None


def test_what_was_refused_is_tried_again_later_and_later() -> None:
    actor = Looking()
    key = Key("pods", "default", "a")
    now, waits = START, []
    for _ in range(12):
        actor.handle(Refused(Create("pods", {}, key), "Conflict"), now)
        assert actor.deadline is not None
        waits.append(actor.deadline - now)
        now = actor.deadline
        actor.handle(Tick(), now)
    assert waits[:4] == [milliseconds(100 << n) for n in range(4)]
    assert waits[-1] == BACKOFF_MAX


def test_what_is_gone_already_needs_no_second_try() -> None:
    actor = Looking()
    actor.handle(Refused(Create("pods", {}, Key("pods", "default", "a")), "NotFound"), START)
    assert actor.deadline is None


def test_a_view_forgets_every_trace() -> None:
    view = View()
    owner = [{"uid": "o", "controller": True, "name": "o"}]
    full = {**pod("a", ownerReferences=owner), "spec": {"nodeName": "n1"}}
    view.fold(Seen("pods", None, full))
    assert view.controlled("pods", "o") == view.pods_on("n1") == [full]
    assert view.by_uid("uid-a") == Key("pods", "default", "a")
    view.fold(Seen("pods", full, None))
    assert view.controlled("pods", "o") == view.pods_on("n1") == view.all("pods") == []
    assert view.owned("o") == view.within("default") == []
    assert view.by_uid("uid-a") is None
    assert not any((view._owned, view._places, view._nodes, view._orphans, view._uids))


class Refusing:
    """Hands that cannot do anything."""

    def create_in(self, resource: str, obj: Json) -> Json:
        raise ApiError(409, "AlreadyExists", "no")

    def change(self, *args: Any) -> Json:
        raise ApiError(409, "Conflict", "no")

    def remove(self, *args: Any, **how: Any) -> None:
        raise ApiError(404, "NotFound", "no")

    def finalize(self, name: str) -> None:
        raise ApiError(500, "InternalError", "no")


def test_an_actor_hears_why_it_was_refused() -> None:
    store = Store(now=lambda: START, luck=Random(1))
    actor = Looking()
    actor.wants = [Create("pods", pod("b"))]
    company = Company(store, Refusing(), [actor])
    store.create("pods", pod("a"))
    company.act(START)
    assert [refused.reason for refused in company.refused] == ["AlreadyExists"]
    assert company.deadline == START + milliseconds(100)


def test_a_follower_that_was_cut_off_tells_what_is_different() -> None:
    store = Store(now=lambda: START, luck=Random(1), history=8)
    for name in "abc":
        store.create("pods", pod(name))
    follower = Follower(store, "pods")
    follower.take()

    store.delete("pods", "default", "a")
    store.delete("pods", "default", "b")
    store.create("pods", pod("b"))
    for number in range(50):
        store.update("pods", "default", "c", {**pod("c"), "number": number, "metadata": {"name": "c"}})
    news = follower.take()
    told = [(one.old and one.old["metadata"]["name"], one.new and one.new.get("number")) for one in news]

    assert told == [("a", None), ("b", None), (None, None), ("c", 49)], "b is another one"
    assert follower.take() == []
    store.create("pods", pod("d"))
    assert [news.new is not None for news in follower.take()] == [True]


def test_the_same_seed_plays_the_same_play() -> None:
    def play() -> list[Json]:
        stage = Stage(seed=7)
        stage.node("n1")
        stage.node("n2")
        spec = {"replicas": 5, "selector": chosen(), "template": template()}
        stage.create("Deployment", "web", api="apps/v1", spec=spec)
        stage.bind()
        stage.patch("Deployment", "web", {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}})
        stage.bind()
        return [*stage.pods(), *stage.api.list("ReplicaSet"), *stage.api.list("Deployment"), *stage.api.list("Node")]

    assert play() == play()
