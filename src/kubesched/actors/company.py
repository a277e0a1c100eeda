"""All actors of one cluster, and the ropes between them and its store.

The company follows what the actors watch, tells each of them what concerns it, carries out what they want, and says
when it wants to be called again.  It has no clock: a world calls `act`, in virtual time or in real time, whenever
there is news or the deadline has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from kubesched.actors.messages import Change, Create, Delete, Effect, Event, Finalize, Refused, Seen, Tick
from kubesched.api.time import Instant
from kubesched.apiserver.follow import Follower
from kubesched.apiserver.status import ApiError
from kubesched.apiserver.store import Store

Json = dict[str, Any]

ROUNDS = 16  # how much is done in one go, before others have their turn


class Actor(Protocol):
    """What the company needs of an actor."""

    @property
    def watches(self) -> tuple[str, ...]: ...

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]: ...

    @property
    def ready(self) -> bool: ...

    @property
    def deadline(self) -> Instant | None: ...


class Hands(Protocol):
    """Who carries effects out.  Raises ApiError where the API server refuses."""

    def create_in(self, resource: str, obj: Json) -> Json: ...

    def change(self, resource: str, namespace: str, name: str, body: Json, uid: str, subresource: str) -> Json: ...

    def remove(
        self, resource: str, namespace: str, name: str, *, uid: str, grace: int | None, propagation: str | None
    ) -> None: ...

    def finalize(self, name: str) -> None: ...


class Company:
    """Actors, a store to follow, and hands.

    Args:
        resources: what there is to follow for actors that watch everything.
        roused: called when there is news; the company is then to be called, soon.
    """

    def __init__(
        self,
        store: Store,
        hands: Hands,
        actors: Iterable[Actor],
        *,
        resources: Callable[[], Iterable[str]] = tuple,
        roused: Callable[[], None] = lambda: None,
    ) -> None:
        self._store, self._hands, self._resources = store, hands, resources
        self.actors = tuple(actors)
        self.roused = roused
        self._followers: dict[str, Follower] = {}
        self._audience: dict[str, tuple[Actor, ...]] = {}
        self._news = True
        self.refused: list[Refused] = []  # the latest refusals, for whoever wonders

    @property
    def deadline(self) -> Instant | None:
        """When it wants to be called by itself."""
        return min((actor.deadline for actor in self.actors if actor.deadline is not None), default=None)

    def act(self, now: Instant) -> bool:
        """Do what there is to do at this moment, a bounded amount of it; whether there is more."""
        for _ in range(ROUNDS):
            told = self._listen(now)
            busy = [actor for actor in self.actors if _wants_a_turn(actor, now)]
            if not busy and not told:
                return False
            for actor in busy:
                self._carry_out(actor, actor.handle(Tick(), now), now)
        return self._news or any(_wants_a_turn(actor, now) for actor in self.actors)

    def _listen(self, now: Instant) -> bool:
        """Tell everybody what has happened."""
        if not self._news:
            return False
        self._news = False
        self._follow()
        news = [item for follower in list(self._followers.values()) for item in follower.take()]
        if len(self._followers) > 1:
            news.sort(key=lambda item: item.revision)
        for item in news:
            seen = Seen(item.resource, item.old, item.new)
            for actor in self._audience[item.resource]:
                actor.handle(seen, now)
        return bool(news)

    def _follow(self) -> None:
        """There may be resources now that there were not before."""
        everything = tuple(self._resources()) if any(not actor.watches for actor in self.actors) else ()
        for resource in (*(name for actor in self.actors for name in actor.watches), *everything):
            if resource not in self._followers:
                self._audience[resource] = tuple(
                    actor for actor in self.actors if resource in (actor.watches or everything)
                )
                self._followers[resource] = Follower(self._store, resource, self._hear)

    def _hear(self) -> None:
        self._news = True
        self.roused()

    def _carry_out(self, actor: Actor, effects: Sequence[Effect], now: Instant) -> None:
        for effect in effects:
            try:
                self._perform(effect)
            except ApiError as error:
                refused = Refused(effect, error.reason, error.message)
                self.refused = [*self.refused[-9:], refused]
                actor.handle(refused, now)

    def _perform(self, effect: Effect) -> None:
        hands = self._hands
        match effect:
            case Create(resource, obj):
                hands.create_in(resource, obj)
            case Change(resource, namespace, name, body, uid, subresource):
                hands.change(resource, namespace, name, body, uid, subresource)
            case Delete(resource, namespace, name, uid, grace, propagation):
                hands.remove(resource, namespace, name, uid=uid, grace=grace, propagation=propagation)
            case Finalize(name):
                hands.finalize(name)


def _wants_a_turn(actor: Actor, now: Instant) -> bool:
    return actor.ready or (actor.deadline is not None and actor.deadline <= now)
