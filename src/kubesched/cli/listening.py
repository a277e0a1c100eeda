"""What a command that plays or replays a run prints of it besides its result: log lines, stories, last decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click

from kubesched.api.time import Instant
from kubesched.drive.tap import Listener, Moment
from kubesched.framework.decision import Decision
from kubesched.framework.plain import plain
from kubesched.sim.expectation import Account, Told
from kubesched.telemetry.logs import Log
from kubesched.telemetry.words import STATE_WORDS, story

LEVELS = (0, 2, 4, 5, 10)  # -v, -vv … as klog's levels: outcomes, attempts, moves and verdicts, scores


def _level(ctx: click.Context, _: click.Parameter, count: int) -> int:
    """The level klog would have: as it was given, or by how often the flag was."""
    given: int | None = ctx.meta.get(_GIVEN)
    return LEVELS[min(count, len(LEVELS) - 1)] if given is None else given


def _keep(ctx: click.Context, _: click.Parameter, level: int | None) -> None:
    ctx.meta[_GIVEN] = level


_GIVEN = f"{__name__}.level"


def verbose(command: Callable[..., object]) -> Callable[..., object]:
    """`-v`, `-vv` … and, as kube-scheduler has it, `-v=6`: how much is logged."""
    said = "Log lines on stderr: -v outcomes, -vv attempts, -vvv moves, -vvvv scores; or klog's number, -v=6."
    counted = click.option("-v", "verbose", count=True, callback=_level, help=said)
    numbered = click.option(
        "--v", type=click.IntRange(0, 10), expose_value=False, is_eager=True, callback=_keep, hidden=True
    )
    return numbered(counted(command))


story_of = click.option("--story", metavar="POD", multiple=True, help="Tell every move of this pod, and where it is.")
explain = click.option("--explain", metavar="POD", multiple=True, help="Say how the last attempt for this pod went.")


class Listening:
    """Listens to a run for its log lines and for the pods that were asked about."""

    def __init__(self, verbose: int, story: tuple[str, ...], explain: tuple[str, ...]) -> None:
        self._story = [key_of(pod) for pod in story]
        self._explain = [key_of(pod) for pod in explain]
        self._account = Account((*self._story, *self._explain))
        self._verbose = verbose
        self._log = Log(verbose) if verbose else None

    @property
    def verbosity(self) -> int:
        """The finest remarks of plugins that are shown: an explanation has those of every day."""
        return max(self._verbose, 4 if self._explain else 0)

    @property
    def listeners(self) -> list[Listener]:
        """What is to hear of every event."""
        return [self._account, *([] if self._log is None else [self._write])]

    def _write(self, moment: Moment) -> None:
        assert self._log is not None
        for line in self._log.lines(
            moment.at, moment.position, moment.records, moment.decisions, moment.notes
        ):
            click.echo(line, err=True)

    def told(self, start: Instant) -> Iterator[str]:
        """The stories and explanations that were asked for."""
        for pod in self._story:
            yield from _told(pod, self._account.of(pod), lambda told: _story(told, start))
        for pod in self._explain:
            yield from _told(pod, self._account.of(pod), _explained)


def key_of(pod: str) -> str:
    """A pod by `namespace/name`, or by its name in the default namespace."""
    return pod if "/" in pod else f"default/{pod}"


def _told(pod: str, told: Told, lines: Callable[[Told], Iterator[str]]) -> Iterator[str]:
    yield ""
    if told.records:
        yield from lines(told)
    else:
        yield f"{plain(pod)}: the scheduler has not heard of it"


def _story(told: Told, start: Instant) -> Iterator[str]:
    yield from story(told.records, start)
    last = told.records[-1]
    yield f"{plain(last.pod)} is now {last.state.value}: {STATE_WORDS[last.state]}"


def _explained(told: Told) -> Iterator[str]:
    pod = plain(told.records[-1].pod)
    if not told.decisions:
        yield f"{pod} has not been tried: {STATE_WORDS[told.records[-1].state]}"
        return
    decision = told.decisions[-1]
    tries = len(told.decisions)
    if decision.placed:
        yield f"{pod} goes to {plain(decision.node)} ({counted(tries, 'attempt')})"
        yield from _scores(decision)
    if decision.message:
        yield f"{pod}: {plain(decision.message)} ({counted(tries, 'attempt')})"
        if decision.rejectors:
            yield f"  turned down by {', '.join(sorted(decision.rejectors))}"
    for note in decision.notes:
        yield f"  note: {plain(note)}"


def _scores(decision: Decision) -> Iterator[str]:
    """The nodes that were best, and what each plugin thought of them."""
    if decision.totals is None:
        yield f"  one node passed all filters, of {decision.evaluated}"
        return
    yield f"  {len(decision.feasible)} of {decision.evaluated} nodes passed all filters"
    totals = dict(zip(decision.feasible_nodes, decision.totals.tolist(), strict=True))
    for node, total in sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:3]:
        parts = ", ".join(f"{plugin} {score}" for plugin, score in decision.scores_of(node).items())
        yield f"  {total:6} {plain(node)}: {parts}"
    if len(decision.best) > 1:
        yield f"  {len(decision.best)} nodes were equally good; the rule for ties is {decision.tie_rule!r}"


def counted(count: int, noun: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
