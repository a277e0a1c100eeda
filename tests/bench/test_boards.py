"""A board never changes an answer: the benchmark's workloads, decided with boards, without, and with some dropped."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from kubesched.bench.throughput import _NOW as NOW
from kubesched.bench.throughput import loaded, verify
from kubesched.bench.workload import WORKLOADS
from kubesched.core.board import Boards
from kubesched.core.core import Core
from kubesched.core.messages import Bind, Completed, Tick
from kubesched.explain.fields import fields

NODES, PODS = 60, 45


def untouched(core: Core) -> None:
    """Boards as they are."""


def forgetful(core: Core) -> None:
    """Boards that remember one version, and room for two of them."""
    core.boards = Boards(at_most=2, remembered=1)


def dropping() -> Callable[[Core], None]:
    luck = Random(3)

    def drop(core: Core) -> None:
        if core.boards is not None and luck.random() < 0.3:
            core.boards.drop()

    return drop


def decided(workload: str, *, boards: bool, before: Callable[[Core], None], each: Callable[[Core], None]) -> list[str]:
    """Every decision of a run in full, and what was done about it."""
    core = loaded(WORKLOADS[workload], NODES, PODS, boards=boards)
    before(core)
    told: list[str] = []
    while core.ready:
        each(core)
        effects = core.handle(Tick(), NOW)
        told.append(str(effects))
        told += [str(fields(decision)) for decision in core.decisions.fresh]
        for effect in effects:
            told.append(str(core.handle(Completed(effect.id), NOW)) if isinstance(effect, Bind) else effect.reason)
    verify(core, WORKLOADS[workload], PODS)
    if core.boards is not None:
        told.append(f"hits: {core.boards.hits > 0}")
    return told


@pytest.mark.parametrize("workload", WORKLOADS)
def test_boards_decide_as_if_there_were_none(workload: str) -> None:
    without = decided(workload, boards=False, before=untouched, each=untouched)
    usual = decided(workload, boards=True, before=untouched, each=untouched)
    assert usual[:-1] == without
    assert usual[-1] == f"hits: {workload != 'unique'}", "or nothing was compared"
    assert decided(workload, boards=True, before=forgetful, each=untouched)[:-1] == without
    assert decided(workload, boards=True, before=untouched, each=dropping())[:-1] == without


def test_a_decision_that_is_looked_at_late_says_what_it_would_have_said_at_once() -> None:
    core = loaded(WORKLOADS["mixed"], NODES, PODS)
    at_once = loaded(WORKLOADS["mixed"], NODES, PODS)
    said = []
    for one in (core, at_once):
        while one.ready:
            for effect in one.handle(Tick(), NOW):
                one.handle(Completed(effect.id), NOW)
            if one is at_once:
                said.append(str(fields(one.decisions.recent[-1])))
    assert [str(fields(decision)) for decision in core.decisions.recent] == said
