"""kubesched fuzz: run drawn clusters with drawn faults until a law is broken, and keep what broke it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kubesched import __version__
from kubesched.fuzz.campaign import Manner, Tally, campaign, keep, seeds_of
from kubesched.fuzz.drawing import FAULT_NAMES, MODES
from kubesched.fuzz.judge import LAWS
from kubesched.fuzz.plan import read_plan
from kubesched.fuzz.play import play

REGRESSIONS = Path("tests/scenarios/regressions")
MANY = 1 << 40  # seeds: as many as there is time for


class Seeds(click.ParamType[range]):
    """`A..B`, both included, `A..` for as many as there is time for, or one number."""

    name = "A..B"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> range:
        if isinstance(value, range):
            return value
        match = re.fullmatch(r"(\d{1,15})(?:(\.\.)(\d{1,15})?)?", str(value))
        if match is None:
            self.fail(f"{value!r} is no range of seeds; write 1..1000, 1.. or one number", param, ctx)
        first = int(match[1])
        last = int(match[3]) if match[3] else first + MANY if match[2] else first
        if last < first:
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return range(first, last + 1)


class Faults(click.ParamType[tuple[str, ...]]):
    """Names with commas between them, `all`, or `none`."""

    name = "NAMES"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = {"all": FAULT_NAMES, "none": ()}.get(str(value), tuple(str(value).split(",")))
        for name in names:
            if name not in FAULT_NAMES:
                self.fail(f"{name!r} is no fault; there are: {', '.join(FAULT_NAMES)}, all, none", param, ctx)
        return names


@click.command()
@click.argument("plans", nargs=-1, type=click.Path(path_type=Path))
@click.option("--seeds", "--seed", type=Seeds(), help="Which seeds.  [default: today's, as many as there is time for]")
@click.option("--minutes", type=click.FloatRange(0, 100_000), metavar="M", help="Stop after so long.")
@click.option("--mode", type=click.Choice((*MODES, "mixed")), default="random", show_default=True, help="How to look.")
@click.option("--faults", type=Faults(), default="all", show_default=True, help="What may go wrong.")
@click.option("--jobs", type=click.IntRange(1, 256), metavar="N", help="Processes.  [default: one a core]")
@click.option("--into", type=click.Path(path_type=Path), default=REGRESSIONS, show_default=True, help="Folder to keep.")
@click.option("--most", type=click.IntRange(1), default=3, show_default=True, help="Failures to shrink and keep.")
def fuzz(
    plans: tuple[Path, ...],
    seeds: range | None,
    minutes: float | None,
    mode: Manner,
    faults: tuple[str, ...],
    jobs: int | None,
    into: Path,
    most: int,
) -> int:
    """Look for trouble: clusters, workloads and faults drawn from seeds, and a judge.

    PLANS are runs that were kept; they are played instead.  Modes: random; small, every fault and every pair of
    faults of small clusters, one after the other; liveness, faults that stop and a cluster that must come to rest;
    mixed, of twenty seeds three in mode liveness, and one in mode small with some of its faults.
    """
    if plans:
        return _replay(plans)
    if seeds is None:
        first = seeds_of(datetime.now(tz=UTC).date())
        seeds = range(first, first + (MANY if minutes is not None else 1_000))
    cores = jobs or os.cpu_count() or 1
    commit = _commit()
    click.echo(f"seeds from {seeds.start} at {commit}, mode {mode}, {cores} at a time")
    begun = time.monotonic()
    with _progress() as told:
        tally = campaign(seeds, mode=mode, faults=faults, jobs=cores, minutes=minutes, progress=told)
    took = time.monotonic() - begun
    _say_figures(tally, took, seeds, commit)
    for found in tally.found[:most]:
        path, small = keep(found, into, commit)
        chosen = "" if faults == FAULT_NAMES else f" --faults {','.join(faults) or 'none'}"
        click.echo(
            f"seed {found.seed} at {commit} broke {found.what}; "
            f"shrunk from {found.plan.size} to {small.size} parts: {path}; "
            f"replay: kubesched fuzz --seeds {found.seed} --mode {found.mode}{chosen}"
        )
    for found in tally.found[most:]:
        click.echo(f"seed {found.seed}, mode {found.mode}, at {commit} broke {found.what}")
    return 1 if tally.found else 0


def _replay(plans: tuple[Path, ...]) -> int:
    failed = 0
    for path in plans:
        played = play(read_plan(path), thorough=1)
        if played.broken is None:
            click.echo(f"{path}: {played.events} events, {played.faults} faults, no law broken")
        else:
            failed = 1
            click.echo(f"{path}: broke {played.broken}")
    return failed


def _say_figures(tally: Tally, took: float, seeds: range, commit: str) -> None:
    rate = tally.events / took if took else 0.0
    click.echo(
        f"{tally.seeds:,} seeds from {seeds.start} at {commit}, {tally.runs:,} runs: {tally.events:,} events "
        f"({rate:,.0f}/s), {tally.binds:,} binds, {tally.faults:,} faults, {tally.seconds / 3600:.1f} virtual hours "
        f"in {took:.0f} s; {len(tally.found)} broken laws"
    )
    for what, times in sorted(tally.sometimes.items()):
        click.echo(f"  {times:>9,} × {what}")
    broken = {law: sum(found.law == law for found in tally.found) for law in LAWS}
    for law, times in broken.items():
        if times:
            click.echo(f"  {times:>9,} × broken: {law}, {LAWS[law]}")


@contextmanager
def _progress() -> Iterator[Callable[[Tally], None]]:
    """What a campaign has done so far: a line that moves on a terminal, a line a minute elsewhere."""
    if not sys.stderr.isatty():
        yield _a_line_a_minute()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("looking for trouble", total=None)
        yield lambda tally: bar.update(task, description=_so_far(tally))


def _a_line_a_minute() -> Callable[[Tally], None]:
    begun = said = time.monotonic()

    def told(tally: Tally) -> None:
        nonlocal said
        if time.monotonic() - said >= 60:
            said = time.monotonic()
            click.echo(f"{said - begun:4.0f} s: {_so_far(tally)}", err=True)

    return told


def _so_far(tally: Tally) -> str:
    return f"{tally.seeds:,} seeds, {tally.events:,} events, {tally.faults:,} faults, {len(tally.found)} broken"


def _commit() -> str:
    """What is being tested: the commit where there is one, else the version."""
    try:
        found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return f"version {__version__}"
    return found.stdout.strip()
