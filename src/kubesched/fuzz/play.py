"""Playing a plan to its end, and what came of it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from kubesched.fuzz.judge import Broken
from kubesched.fuzz.plan import Mishap, Plan
from kubesched.fuzz.stage import SUBJECT, THOROUGH, Stage


class Played(Struct, frozen=True, kw_only=True):
    """What came of a run, in figures; `broken` is the first law that was broken, if one was.

    Args:
        events: that the schedulers under test were given, in all their lives.
        faults: requests that went wrong, streams harmed, news lost, deaths.
        seconds: of virtual time.
        met: what went wrong with requests, drawn by chance or planned.
        requests: (type, key, number) of every request.
    """

    plan: Plan
    broken: Broken | None
    events: int
    faults: int
    seconds: float
    binds: int
    changes: int
    met: tuple[Mishap, ...]
    requests: tuple[tuple[str, str, int], ...]
    effects: int
    trace: int
    sometimes: dict[str, int]


def play(plan: Plan, *, thorough: int = THOROUGH, tracing: bool = False, journal: Path | None = None) -> Played:
    """Play a plan.

    Args:
        thorough: every so many events a core is checked from the inside; 1 for every event.
        tracing: leave a fingerprint of all that was done in `trace`.
        journal: where to write what the scheduler under test was given in its last life.
    """
    stage = Stage(plan, thorough=thorough, tracing=tracing)
    subject = stage.processes[SUBJECT]
    subject.journal_at = journal
    stage.play()
    if subject.journal is not None:
        subject.journal.close()
    return Played(
        plan=plan,
        broken=stage.judge.broken,
        events=sum(process.events for process in stage.processes.values() if process.ours),
        faults=stage.faults + stage.judge.lost,
        seconds=(stage.now - stage.start) / 1e9,
        binds=stage.judge.binds,
        changes=stage.judge.changes,
        met=tuple(stage.met),
        requests=tuple(stage.requests),
        effects=subject.effects,
        trace=stage.trace,
        sometimes=stage.judge.sometimes,
    )
