"""Log lines in klog's structured form: the one list of messages, and how each is filled in.

    I0312 09:41:07.000213       1 logs.py:80] "Successfully bound pod to node" pod="default/web-7" node="n3" cause=182

Severity and date, time, a process number, the place of the message in this file, the constant message, then
`key="value"`.  Messages are kube-scheduler's where it has one for the same thing, so that what greps its log greps
ours.  `cause` is a position in the journal: a line leads to the exact replay.

One record is one line, whatever a pod is called.  The list is filled from Records, Decisions and the remarks of
plugins; nothing in a scheduler logs by itself.  Verbosity is klog's: 2 outcomes, 3 and 4 attempts, 5 moves and
verdicts, 10 scores.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec

from kubesched.api.time import Instant, format_micro
from kubesched.framework.decision import NO_NODES, Decision, Outcome
from kubesched.framework.plain import plain
from kubesched.framework.records import Record, State
from kubesched.framework.tools import Note

Severity: TypeAlias = Literal["I", "W", "E"]
Fields: TypeAlias = dict[str, object]
Writing: TypeAlias = "Callable[[Instant, Message, Mapping[str, object]], str]"

OUTCOMES, TRIES, ATTEMPTS, MOVES, SCORES = 2, 3, 4, 5, 10
VALUE_AT_MOST = 4096  # characters of one value
PROCESS = 1  # what klog prints where a thread would stand; kube-scheduler in its container prints the same


class Message:
    """A constant text, from which verbosity on it is written, and how urgent it is."""

    __slots__ = ("line", "severity", "text", "verbosity")

    def __init__(self, text: str, verbosity: int = 0, severity: Severity = "I") -> None:
        self.text, self.verbosity, self.severity = text, verbosity, severity
        self.line = sys._getframe(1).f_lineno  # where it stands in this file: klog says from where it was called


MOVED = Message("Pod moved to an internal scheduling queue", MOVES)
NO_FIT = Message("Unable to schedule pod; no fit; waiting", OUTCOMES)
NOWHERE = Message("Unable to schedule pod; no nodes are registered to the cluster; waiting", OUTCOMES)
REJECTED = Message("Plugin rejected nodes for pod", MOVES)
SCORED = Message("Plugin scored node for pod", SCORES)
FINAL = Message("Calculated node's final score for pod", SCORES)
REMARK = Message("Remark on an attempt", ATTEMPTS)

# A record's cause → its message.  Causes that are one thing in different words share one.
MESSAGES: Mapping[str, Message] = {
    "admitted": Message("Add event for unscheduled pod", TRIES),
    "gated": Message("Pod moved to an internal scheduling queue, because the pod is gated", MOVES),
    "readable": Message("Pod can be read now", OUTCOMES),
    "unreadable": Message("Unable to read pod; waiting for a better version of it", severity="W"),
    "ungated": MOVED,
    "ungated_backoff": MOVED,
    "hinted": MOVED,
    "hinted_ready": MOVED,
    "flushed": MOVED,
    "flushed_ready": MOVED,
    "activated": MOVED,
    "expired": MOVED,
    "requeued": MOVED,
    "popped": Message("Attempting to schedule pod", TRIES),
    "placed": Message("Pod holds its room on node", MOVES),
    "wait": Message("One or more plugins asked to wait and no plugin rejected pod", ATTEMPTS),
    "permitted": Message("Pod may go on", MOVES),
    "allowed": Message("Waiting pod may go on", ATTEMPTS),
    "ready": Message("Attempting to bind pod to node", TRIES),
    "bound": Message("Successfully bound pod to node", OUTCOMES),
    "unanswered": Message("Nobody answered whether pod was bound; keeping its room until that is known", severity="W"),
    "retried": Message("Pod is not bound after all; binding again", OUTCOMES),
    "unfit": NO_FIT,
    "unfit_woken": NO_FIT,
    "broke": Message("Error scheduling pod; retrying", severity="E"),
    "gone": Message("Delete event for unscheduled pod", TRIES),
    "bound_elsewhere": Message("Pod was bound by another scheduler", OUTCOMES),
}

# What whoever runs a scheduler says of its life.
STARTED = Message("Starting kubesched")
NOTED = Message("Note on the configuration", severity="W")
SERVING = Message("Serving securely")
JOURNALED = Message("Writing everything down, for kubesched replay")
WAITING = Message("The API server cannot be used yet; trying again", severity="W")
DENIED = Message("Rights are missing; waiting for them", severity="E")
REMARKS: Mapping[str, Message] = {
    "info": Message("Talking to the API server", OUTCOMES),
    "warning": Message("Trouble talking to the API server", severity="W"),
    "error": Message("Failure talking to the API server", severity="E"),
}
SYNCED = Message("Everything has been seen; scheduling begins")
STOPPING = Message("Stopping: bringing to an end what is under way")
STOPPED = Message("Stopped")
RELOADING = Message("The configuration has changed and is right; starting over with it")
NOT_RELOADED = Message("The configuration cannot be used; going on with the old one", severity="E")
COMPARED = Message("Another scheduler bound pod; compared with our decision")
UNEQUAL = Message("Cache mismatch", severity="W")
EQUAL = Message("The cache holds what the API server has")
DUMPED_NODE = Message("Dump of cached NodeInfo")
DUMPED_QUEUE = Message("Dump of scheduling queue")
INSECURE = Message("The certificate of the API server is not checked: anybody may pose as it", severity="W")
BROKEN = Message("Something is wrong inside; writing nothing more", severity="E")
FAILED = Message("Cannot do what was asked", severity="E")

QUEUES: Mapping[State, str] = {
    State.ACTIVE: "Active",
    State.BACKOFF: "Backoff",
    State.PARKED: "Unschedulable",
    State.GATED: "Unschedulable",
}
_FAILURES = ("unfit", "unfit_woken", "broke")
_LABELS = {"expired": "BackoffComplete", "activated": "ForceActivate", "requeued": "ScheduleAttemptFailure"}


class Log:
    """Writes the lines of one run.  Feed it every event's records, decisions and notes, in order.

    Args:
        verbosity: klog's `-v`; warnings and errors are always written.
        write: how a line is written: `line`, or `json_line`.
    """

    def __init__(self, verbosity: int = OUTCOMES, write: Writing | None = None) -> None:
        self.verbosity = verbosity
        self._write = write or line
        self._attempts: dict[str, Decision] = {}  # uid → its latest attempt, until it is bound or gone
        self._nodes: dict[str, str] = {}  # uid → where it was placed

    def lines(
        self,
        at: Instant,
        cause: int,
        records: Iterable[Record],
        decisions: Iterable[Decision] = (),
        notes: Iterable[Note] = (),
    ) -> list[str]:
        """What is to be written about one event: when it was, its place in the journal, and all that came of it."""
        fresh = {decision.uid: decision for decision in decisions}
        self._attempts.update(fresh)
        written: list[str] = []
        for record in records:
            if (record.cause == "placed" or record.cause in _FAILURES) and record.uid in fresh:
                written += self._about_decision(fresh.pop(record.uid), record)
            written += self._about_move(record)
        for note in notes:
            if note.verbosity <= self.verbosity:
                message = Message(note.text)
                written.append(self._write(at, message, {"plugin": note.plugin, **dict(note.values), "cause": cause}))
        return written

    def _about_move(self, record: Record) -> Iterator[str]:
        message, fields = self._message(record)
        if record.cause == "placed":
            self._nodes[record.uid] = record.note
        if message.severity != "I" or message.verbosity <= self.verbosity:
            yield self._write(record.at, message, {"pod": record.pod, **fields(self, record), "cause": record.because})
        if record.state in (State.BOUND, State.GONE):
            self._attempts.pop(record.uid, None)
            self._nodes.pop(record.uid, None)

    def _message(self, record: Record) -> tuple[Message, Filler]:
        message = MESSAGES.get(record.cause, MOVED)
        decision = self._attempts.get(record.uid)
        if record.cause in _FAILURES and decision is not None and _turned_down(decision):
            message = NOWHERE if decision.message == NO_NODES else NO_FIT
        return message, _FILLERS.get(record.cause, _moved)

    def _about_decision(self, decision: Decision, record: Record) -> Iterator[str]:
        about: Fields = {"pod": decision.pod}
        if self.verbosity >= MOVES:
            for part in decision.rejected.parts:
                reasons = _counted(part.verdict.counts())
                told: Fields = {"plugin": part.plugin, "nodes": len(part.rows), "reasons": reasons}
                yield self._write(record.at, REJECTED, {**about, **told, "cause": record.because})
        if self.verbosity >= SCORES:
            names = decision.feasible_nodes
            for plugin, scores in decision.scores.items():
                for name, score in zip(names, scores.tolist(), strict=True):
                    told = {"plugin": plugin, "node": name, "score": score}
                    yield self._write(record.at, SCORED, {**about, **told, "cause": record.because})
            totals = [] if decision.totals is None else decision.totals.tolist()
            for name, score in zip(names, totals, strict=False):
                yield self._write(record.at, FINAL, {**about, "node": name, "score": score, "cause": record.because})
        if self.verbosity >= ATTEMPTS:
            for note in decision.remarks.of_the_core():
                yield self._write(record.at, REMARK, {**about, "note": note, "cause": record.because})

    # ── what else is said of a move ──────────────────────────────────────────────────────────────────────────

    def attempt(self, record: Record) -> Decision | None:
        """The latest attempt of the pod of a record."""
        return self._attempts.get(record.uid)

    def node(self, record: Record) -> str:
        """Where the pod of a record is going."""
        return self._nodes.get(record.uid, "")


def line(at: Instant, message: Message, fields: Mapping[str, object]) -> str:
    """One line in klog's form."""
    date, _, time = format_micro(at).rstrip("Z").partition("T")
    month_day = date[5:7] + date[8:10]
    head = f"{message.severity}{month_day} {time} {PROCESS:7} logs.py:{message.line}]"
    return " ".join([head, quoted(message.text), *(f"{_key(name)}={_value(value)}" for name, value in fields.items())])


def json_line(at: Instant, message: Message, fields: Mapping[str, object]) -> str:
    """One line as kube-scheduler writes it with --logging-format=json: `v` where it is no warning or error."""
    told: Fields = {"ts": at // 1000 / 1000, "caller": f"logs.py:{message.line}", "msg": message.text}
    told |= {"v": message.verbosity} if message.severity == "I" else {"severity": message.severity}
    return msgspec.json.encode({**told, **{name: _plain(value) for name, value in fields.items()}}).decode()


def _plain(value: object) -> object:
    return value if isinstance(value, (int, float)) else plain(value, VALUE_AT_MOST)


def quoted(text: str) -> str:
    """Text in double quotes that ends where it seems to end, and takes one line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain(escaped, VALUE_AT_MOST)}"'


def _key(name: str) -> str:
    return "".join(c if c.isalnum() or c in "_.-" else "_" for c in plain(name))


def _value(value: object) -> str:
    return str(value) if isinstance(value, (int, float)) else quoted(str(value))


def _turned_down(decision: Decision) -> bool:
    """Whether an attempt that failed failed by a no, and not by an error."""
    return decision.after.rejected if decision.after is not None else decision.outcome is Outcome.UNSCHEDULABLE


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))


# ── how each cause fills in its fields ───────────────────────────────────────────────────────────────────────


def _moved(log: Log, record: Record) -> Fields:
    event = _LABELS.get(record.cause, record.note)
    return {**({"event": event} if event else {}), "queue": QUEUES.get(record.state, record.state.value)}


def _gated(log: Log, record: Record) -> Fields:
    return {"event": record.note, "queue": "Unschedulable"}


def _bare(log: Log, record: Record) -> Fields:
    return {"note": record.note} if record.note else {}


def _going(log: Log, record: Record) -> Fields:
    return {"node": log.node(record)}


def _named(log: Log, record: Record) -> Fields:
    return {"node": record.note}


def _waiting(log: Log, record: Record) -> Fields:
    return {"node": log.node(record), "plugins": record.note}


def _bound(log: Log, record: Record) -> Fields:
    decision = log.attempt(record)
    if decision is None:
        return {"node": record.note}
    return {"node": record.note, "evaluatedNodes": decision.evaluated, "feasibleNodes": len(decision.feasible)}


def _failed(log: Log, record: Record) -> Fields:
    decision = log.attempt(record)
    return {"err": record.note if decision is None or not decision.message else decision.message}


def _unreadable(log: Log, record: Record) -> Fields:
    return {"err": record.note}


def _unanswered(log: Log, record: Record) -> Fields:
    return {"node": log.node(record), "err": record.note}


Filler: TypeAlias = Callable[[Log, Record], Fields]

_FILLERS: Mapping[str, Filler] = {
    "admitted": _moved,
    "gated": _gated,
    "readable": _bare,
    "unreadable": _unreadable,
    "popped": _bare,
    "placed": _named,
    "wait": _waiting,
    "permitted": _going,
    "allowed": _going,
    "ready": _going,
    "bound": _bound,
    "unanswered": _unanswered,
    "retried": _going,
    "unfit": _failed,
    "unfit_woken": _failed,
    "broke": _failed,
    "gone": _bare,
    "bound_elsewhere": _named,
}
"""A record's cause → the fields of its line; a move within the queue where it is not named."""
