"""What a scenario expects of its pods, and whether it came true.

An Expectation is judged by the account of the run: the moves of the pod, its decisions, and when.  A time is met
within a tenth of a second, for requests and news take their milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kubesched.api.time import Duration, Instant, format_duration, milliseconds
from kubesched.config.faults import did_you_mean
from kubesched.drive.tap import Moment
from kubesched.framework.decision import Decision
from kubesched.framework.records import Record, State
from kubesched.sim.fields import Fields

NEAR: Duration = milliseconds(100)
STATES = {state.value.lower(): state for state in State}


class Expectation(Struct, frozen=True, kw_only=True):
    """What should become of one pod.

    Args:
        pod: namespace/name.
        nodes: it is bound to one of these.
        bound: whether it is bound at all; None where that is not said.
        unschedulable: an attempt fails with a message that has this text in it; "" for any message.
        plugins: exactly these turned it down then.
        state: it is in this state.
        at: when; else at the end of the run.
        by: no later than this.
        where: its place in the file.
    """

    pod: str
    nodes: tuple[str, ...] = ()
    bound: bool | None = None
    unschedulable: str | None = None
    plugins: tuple[str, ...] = ()
    state: State | None = None
    at: Duration | None = None
    by: Duration | None = None
    where: str = ""

    def missed(self, account: Account, start: Instant) -> str | None:
        """Why it did not come true; None if it did."""
        told = account.of(self.pod)
        for problem in (self._placement(told, start), self._refusal(told, start), self._standing(told, start)):
            if problem is not None:
                where = f"{self.where}: " if self.where else ""
                return f"{where}pod {self.pod}: {problem}"
        return None

    def _placement(self, told: Told, start: Instant) -> str | None:
        bound = told.bound
        if self.bound is False:
            return None if bound is None else f"expected to be bound nowhere; it was {_bound(bound, start)}"
        if not self.nodes and self.bound is None:
            return None
        wish = f"bound to {' or '.join(self.nodes)}" if self.nodes else "bound"
        wish += f" at {_short(self.at)}" if self.at is not None else ""
        wish += f" by {_short(self.by)}" if self.by is not None else ""
        if bound is None:
            return f"expected to be {wish}; it is {told.standing}"
        when = bound.at - start
        met = (
            (not self.nodes or bound.note in self.nodes)
            and (self.at is None or abs(when - self.at) <= NEAR)
            and (self.by is None or when <= self.by + NEAR)
        )
        return None if met else f"expected to be {wish}; it was {_bound(bound, start)}"

    def _refusal(self, told: Told, start: Instant) -> str | None:
        if self.unschedulable is None and not self.plugins:
            return None
        failed = [decision for decision in told.decisions if decision.message]
        if self.at is not None:
            failed = [decision for decision in failed if abs(decision.at - start - self.at) <= NEAR]
        elif failed and told.bound is not None and told.bound.at > failed[-1].at:
            return f"expected to be unschedulable; it was {_bound(told.bound, start)}"
        when = f" at {_short(self.at)}" if self.at is not None else ""
        if not failed:
            return f"expected to be turned down{when}; no attempt was"
        last = failed[-1]
        if _plain(self.unschedulable or "") not in _plain(last.message):
            return f"expected the message{when} to have “{self.unschedulable}”; it was “{last.message}”"
        if self.plugins and last.rejectors != set(self.plugins):
            named = ", ".join(sorted(last.rejectors)) or "nobody"
            return f"expected to be turned down{when} by {', '.join(self.plugins)}; it was {named}"
        return None

    def _standing(self, told: Told, start: Instant) -> str | None:
        if self.state is None:
            return None
        moves = told.records
        if self.at is not None:
            moves = [record for record in moves if record.at - start <= self.at + NEAR]
        state = moves[-1].state if moves else State.NEW
        when = f" at {_short(self.at)}" if self.at is not None else " at the end"
        return None if state is self.state else f"expected to be {self.state.value}{when}; it is {state.value}"


class Told:
    """What was told of one pod."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.decisions: list[Decision] = []

    @property
    def bound(self) -> Record | None:
        return next((record for record in reversed(self.records) if record.state is State.BOUND), None)

    @property
    def standing(self) -> str:
        if not self.records:
            return "not known to the scheduler"
        message = self.decisions[-1].message if self.decisions else self.records[-1].note
        return f"{self.records[-1].state.value}{f' ({message})' if message else ''}"


class Account:
    """What was told of the pods somebody asks about; listens to a run."""

    def __init__(self, pods: Iterator[str] | tuple[str, ...]) -> None:
        self._told = {pod: Told() for pod in pods}

    def of(self, pod: str) -> Told:
        return self._told[pod]

    def __call__(self, moment: Moment) -> None:
        for decision in moment.decisions:
            if decision.pod in self._told:
                self._told[decision.pod].decisions.append(decision)
        for record in moment.records:
            if record.pod in self._told:
                self._told[record.pod].records.append(record)


def _bound(record: Record, start: Instant) -> str:
    return f"bound to {record.note} at {_short(Duration(record.at - start))}"


def _short(duration: Duration) -> str:
    return format_duration(duration)


def _plain(text: str) -> str:
    return " ".join(text.split())


# ── as a person writes it ────────────────────────────────────────────────────────────────────────────────────


def expectation_of(fields: Fields, where: str) -> Expectation:
    """An entry of `expect`.  Faults are left with the fields."""
    pod = fields.text("pod")
    if "pod" not in fields:
        fields.fault("pod", "which pod?", "pod: NAME, or pod: NAMESPACE/NAME")
    wanted = fields.raw("unschedulable")
    if not isinstance(wanted, (str, bool, type(None))) or wanted is False:
        fields.fault("unschedulable", "must be a part of the message, or true", 'unschedulable: "Insufficient cpu"')
        wanted = True
    expectation = Expectation(
        pod=pod if "/" in pod else f"default/{pod}",
        nodes=tuple(fields.names("node")),
        bound=fields.truth("bound") if "bound" in fields else None,
        unschedulable="" if wanted is True else wanted,
        plugins=tuple(fields.names("plugins")),
        state=_state(fields),
        at=fields.duration("at"),
        by=fields.duration("by"),
        where=where,
    )
    fields.done("bound")
    said = (expectation.nodes, expectation.plugins, expectation.state)
    if not any(said) and expectation.bound is None and expectation.unschedulable is None:
        fields.fault("", "expects nothing", "node: n1, bound: true, unschedulable: TEXT, plugins: […] or state: Parked")
    return expectation


def _state(fields: Fields) -> State | None:
    name = fields.text("state")
    if name and name.lower() not in STATES:
        known = [state.value for state in State]
        fields.fault("state", f"{name!r} is no state", did_you_mean(name, known) or f"states: {', '.join(known)}")
    return STATES.get(name.lower())
