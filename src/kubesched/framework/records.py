"""What happened to a pod: one Record per move between states, when, and what caused it."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from kubesched.api.time import Instant, format_micro


class State(Enum):
    """Where a pod is in its way through the scheduler.  A pod is in exactly one state."""

    __hash__ = object.__hash__  # there is one of each, and Enum's own way takes a detour by the name

    NEW = "New"  # just seen
    INVALID = "Invalid"  # cannot be understood; waits for a better version of itself
    GATED = "Gated"  # a pre_enqueue plugin holds it back
    ACTIVE = "Active"  # ready to be tried
    BACKOFF = "Backoff"  # was turned down a moment ago, or something broke; a timer wakes it
    PARKED = "Parked"  # was turned down; an event its rejectors listen to wakes it
    TRYING = "Trying"  # its cycle runs
    RESERVED = "Reserved"  # placed; holds room and whatever plugins reserved
    WAITING = "Waiting"  # a permit plugin asked for patience
    PREBINDING = "PreBinding"  # pre_bind plugins talk to the API server
    BINDING = "Binding"  # the bind request is under way
    AMBIGUOUS = "Ambiguous"  # nobody knows whether the bind was carried out; holds its room until we do
    BOUND = "Bound"  # the API server says it is on a node
    GONE = "Gone"  # deleted, finished, or not ours


QUEUED = (State.GATED, State.ACTIVE, State.BACKOFF, State.PARKED)
IN_FLIGHT = (State.TRYING, State.RESERVED, State.WAITING, State.PREBINDING, State.BINDING, State.AMBIGUOUS)


class Record(Struct, frozen=True, omit_defaults=True, gc=False):
    """One move.  `because` is the journal position of the event that led to it."""

    seq: int
    at: Instant
    pod: str
    uid: str
    was: State
    state: State
    cause: str
    because: int = 0
    note: str = ""

    def __str__(self) -> str:
        note = f"  {self.note}" if self.note else ""
        return f"{format_micro(self.at)}  {self.pod}  {self.was.value} → {self.state.value}  ({self.cause}){note}"
