"""Events do not stay for ever: each goes an hour after it was last said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from kubesched.actors.controller import Controller
from kubesched.actors.messages import Effect, Seen, delete
from kubesched.actors.view import Key, key_of
from kubesched.api.time import Duration, Instant, minutes, parse_rfc3339

Json = dict[str, Any]

EVENT_LIFE: Duration = minutes(60)


class Sweeper(Controller):
    """Deletes old Events."""

    watches: ClassVar[tuple[str, ...]] = ("events",)

    def concerned(self, seen: Seen) -> Iterable[Key]:
        return [key_of("events", seen.new)] if seen.old is None and seen.new is not None else []

    def reconcile(self, key: Key, now: Instant) -> Iterator[Effect]:
        event = self.view.at(key)
        if event is None:
            return
        said = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
        due = Instant(parse_rfc3339(said) + EVENT_LIFE)
        if now < due:
            self.wake(key, due)
        else:
            yield delete("events", event)
