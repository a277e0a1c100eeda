"""Records in words: the one place where a move of a pod becomes a sentence.

One record is one line, whatever a pod is called: every name and note goes through `plain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kubesched.api.time import Instant, format_micro
from kubesched.framework.plain import plain
from kubesched.framework.records import Record, State

# (cause) → what happened, as the end of a sentence that begins with the pod's name.  {note} is the record's note.
HAPPENED: Mapping[str, str] = {
    "admitted": "arrives and waits to be tried",
    "gated": "is held back by {note}",
    "readable": "can be read now",
    "unreadable": "cannot be read: {note}",
    "ungated": "is held back no longer",
    "ungated_backoff": "is held back no longer, and backs off a little",
    "hinted": "is woken by {note}, and backs off a little",
    "hinted_ready": "is woken by {note}",
    "flushed": "has been parked for too long, and backs off a little",
    "flushed_ready": "has been parked for five minutes: the flush wakes it",
    "activated": "is to be tried as soon as possible",
    "expired": "has backed off long enough",
    "popped": "is tried",
    "placed": "is placed on {note}",
    "wait": "is asked to wait, by {note}",
    "permitted": "may go on",
    "allowed": "has waited long enough, and may go on",
    "ready": "is being bound",
    "bound": "is bound to {note}",
    "unanswered": "was to be bound, and nobody answered: its room is kept until that is known",
    "retried": "is not bound after all, and is being bound again",
    "unfit": "does not fit, and is parked",
    "unfit_woken": "does not fit, but something has happened meanwhile: it backs off",
    "broke": "could not be placed, and backs off",
    "requeued": "is to be tried again at once",
    "gone": "is gone",
    "bound_elsewhere": "was bound to {note} by somebody else",
}

STATE_WORDS: Mapping[State, str] = {
    State.NEW: "just seen",
    State.INVALID: "cannot be read",
    State.GATED: "held back by a gate",
    State.ACTIVE: "waits to be tried",
    State.BACKOFF: "backs off after a failed attempt",
    State.PARKED: "parked until something happens that may help",
    State.TRYING: "is being tried",
    State.RESERVED: "placed, and reserving",
    State.WAITING: "placed, and waiting for permission",
    State.PREBINDING: "placed, and preparing to be bound",
    State.BINDING: "is being bound",
    State.AMBIGUOUS: "perhaps bound; its room is kept until that is known",
    State.BOUND: "bound",
    State.GONE: "gone",
}


def sentence(record: Record) -> str:
    """What happened, as a sentence without a full stop: `default/web-7 is placed on node-3`."""
    happened = HAPPENED.get(record.cause, record.cause)
    if "{note}" in happened:
        happened = happened.replace("{note}", plain(record.note) or "nobody who told")
    return f"{plain(record.pod)} {happened}"


def moment(start: Instant | None) -> Callable[[Instant], str]:
    """How to write a time: as seconds since `start`, or as a date where there is none."""
    if start is None:
        return format_micro
    return lambda at: f"{(at - start) / 1e9:9.3f}s"


def story(records: Iterable[Record], start: Instant | None = None) -> list[str]:
    """A pod's moves, one line each; moves that happen within one moment and one attempt share a line's time."""
    written = moment(start)
    return [f"{written(record.at)}  {sentence(record)}" for record in records]


def picture(queues: Mapping[str, Sequence[str]]) -> list[str]:
    """Who is where, as boxes: one line per place, one box per pod."""
    width = max(map(len, queues), default=0)
    lines = []
    for place, pods in queues.items():
        boxes = "".join(f"[{plain(pod)}]" for pod in pods[:12])
        more = f" … and {len(pods) - 12} more" if len(pods) > 12 else ""
        lines.append(f"{place:>{width}} ▏{boxes or '·'}{more}")
    return lines


PLACES: Mapping[str, tuple[State, ...]] = {
    "gated": (State.GATED,),
    "active": (State.ACTIVE,),
    "backoff": (State.BACKOFF,),
    "parked": (State.PARKED,),
    "in flight": (State.TRYING, State.RESERVED, State.WAITING, State.PREBINDING, State.BINDING, State.AMBIGUOUS),
    "bound": (State.BOUND,),
}


def places(records: Iterable[Record]) -> dict[str, list[str]]:
    """Where every pod of these records ended up, place by place: what `picture` draws."""
    latest = {record.pod: record.state for record in records}
    return {name: [pod for pod, state in latest.items() if state in states] for name, states in PLACES.items()}
