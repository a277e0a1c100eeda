"""The states of a pod and the legal moves between them — one table.

Whoever moves a pod names the cause; the table says where that leads, and a cause that leads nowhere from the
pod's state is a bug that must not go unnoticed.  Every move leaves a Record.

Rule: a pod's state changes here and nowhere else.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping

from kubesched.api.time import Instant
from kubesched.cluster.podinfo import PodInfo
from kubesched.framework.errors import IllegalMove
from kubesched.framework.records import IN_FLIGHT, QUEUED, Record, State

NEW, INVALID, GATED, ACTIVE = State.NEW, State.INVALID, State.GATED, State.ACTIVE
BACKOFF, PARKED, TRYING, RESERVED = State.BACKOFF, State.PARKED, State.TRYING, State.RESERVED
WAITING, PREBINDING, BINDING = State.WAITING, State.PREBINDING, State.BINDING
AMBIGUOUS, BOUND, GONE = State.AMBIGUOUS, State.BOUND, State.GONE

MOVES: Mapping[tuple[State, str], State] = {
    # into the queue
    (NEW, "admitted"): ACTIVE,
    (NEW, "gated"): GATED,
    (INVALID, "readable"): NEW,
    # inside the queue
    (GATED, "ungated"): ACTIVE,
    (GATED, "ungated_backoff"): BACKOFF,
    (PARKED, "hinted"): BACKOFF,
    (PARKED, "hinted_ready"): ACTIVE,
    (PARKED, "flushed"): BACKOFF,
    (PARKED, "flushed_ready"): ACTIVE,
    (PARKED, "gated"): GATED,
    (PARKED, "activated"): ACTIVE,
    (GATED, "activated"): ACTIVE,
    (BACKOFF, "activated"): ACTIVE,
    (BACKOFF, "expired"): ACTIVE,
    # an attempt
    (ACTIVE, "popped"): TRYING,
    (BACKOFF, "popped"): TRYING,
    (TRYING, "placed"): RESERVED,
    (RESERVED, "wait"): WAITING,
    (RESERVED, "permitted"): PREBINDING,
    (WAITING, "allowed"): PREBINDING,
    (PREBINDING, "ready"): BINDING,
    (BINDING, "bound"): BOUND,
    (BINDING, "unanswered"): AMBIGUOUS,
    (AMBIGUOUS, "bound"): BOUND,
    (AMBIGUOUS, "retried"): BINDING,
    # the way back from any point of it: parked, backing off, tried again at once, or gated
    **{(state, "unfit"): PARKED for state in IN_FLIGHT},
    **{(state, "unfit_woken"): BACKOFF for state in IN_FLIGHT},
    **{(state, "broke"): BACKOFF for state in IN_FLIGHT},
    **{(state, "requeued"): ACTIVE for state in IN_FLIGHT},
    **{(state, "gated"): GATED for state in IN_FLIGHT},
    # the world outside
    **{(state, "gone"): GONE for state in State if state is not GONE},
    **{(state, "bound_elsewhere"): BOUND for state in (NEW, INVALID, *QUEUED, *IN_FLIGHT)},
    **{(state, "unreadable"): INVALID for state in (NEW, INVALID, *QUEUED, *IN_FLIGHT)},
}
"""(state, cause) → the state that follows."""

TERMINAL = (BOUND, GONE)

# The same, and whether the move ends an attempt: looked up once per move.
_STEPS = {(was, cause): (to, was in IN_FLIGHT and to not in IN_FLIGHT) for (was, cause), to in MOVES.items()}


_STORY_AT_MOST = 64  # moves of one pod


class Lifecycle:
    """The state of every pod we are responsible for, and how it came there.

    Records are kept in a ring, and per pod for as long as it lives, so that memory does not grow with time.
    """

    def __init__(self, keep: int = 4096) -> None:
        self.now = Instant(0)
        self.because = 0  # journal position of the event being handled
        self._states: dict[str, State] = {}
        self._stories: dict[str, deque[Record]] = {}
        self._uids: dict[str, str] = {}  # namespace/name → uid of the latest bearer of the name
        self._seq = 0
        self.tally: Counter[str] = Counter()  # moves by cause, and how many came out of an attempt ("landed")
        self.recent: deque[Record] = deque(maxlen=keep)
        self.fresh: list[Record] = []  # since `begin`, for whoever renders records

    def begin(self, now: Instant, because: int) -> None:
        """A new event is being handled."""
        self.now, self.because = now, because
        self.fresh = []

    def state(self, uid: str) -> State | None:
        """Where a pod is; None for a pod we do not know, or no longer."""
        return self._states.get(uid)

    def uid_of(self, key: str) -> str | None:
        return self._uids.get(key)

    def story(self, key: str) -> tuple[Record, ...]:
        """Every move of the pod of this name that is still remembered."""
        uid = self._uids.get(key)
        return tuple(self._stories.get(uid, ())) if uid is not None else ()

    def counts(self) -> dict[State, int]:
        counts: dict[State, int] = {}
        for state in self._states.values():
            counts[state] = counts.get(state, 0) + 1
        return counts

    def each(self) -> Iterable[tuple[str, State]]:
        return self._states.items()

    def move(self, pod: PodInfo, cause: str, note: str = "") -> State:
        """Move a pod along.  Raises IllegalMove."""
        uid, key = pod.uid, pod.key
        was = self._states.get(uid, NEW)
        step = _STEPS.get((was, cause))
        if step is None:
            raise IllegalMove(f"pod {key} cannot be {cause!r}: it is {was.value}", self.story(key))
        state, lands = step
        self.tally[cause] += 1
        if lands:
            self.tally["landed"] += 1
        self._seq += 1
        record = Record(self._seq, self.now, key, uid, was, state, cause, self.because, note)
        self._states[uid] = state
        self._uids[key] = uid
        story = self._stories.get(uid)
        if story is None:
            story = self._stories[uid] = deque(maxlen=_STORY_AT_MOST)
        story.append(record)
        self.recent.append(record)
        self.fresh.append(record)
        return state

    def drop(self, uid: str, key: str) -> None:
        """Forget a pod that is bound or gone; its last records stay in the ring."""
        self._states.pop(uid, None)
        self._stories.pop(uid, None)
        if self._uids.get(key) == uid:
            del self._uids[key]
