"""kubesched conformance: replay recorded decisions of kube-scheduler and say where this scheduler differs."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click
import msgspec
from msgspec import Struct
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from kubesched.cli.main import FAILED, printable
from kubesched.testing.parity import Compared, Difference, Recording, RecordingError, Tier, compare, read_recordings

TIERS: dict[str, tuple[Tier, ...]] = {"scalar": ("scalar",), "vector": ("vector",), "both": ("scalar", "vector")}
_CHUNK = 20  # cases a worker is given at a time


class Family(Struct):
    """How the cases of one file went."""

    family: str
    cases: int = 0
    cases_agree: int = 0
    decisions: int = 0
    decisions_agree: int = 0
    differences: list[Difference] = []
    tiers_disagree: list[Difference] = []
    boards_differ: list[Difference] = []

    @property
    def found(self) -> dict[str, list[Difference]]:
        """Everything that is not as it should be, under what to call it."""
        return {"differs": self.differences, "tiers disagree": self.tiers_disagree, "boards differ": self.boards_differ}

    def add(self, compared: Compared) -> None:
        unequal = (*compared.differences, *compared.tiers_disagree, *compared.boards_differ)
        self.cases += 1
        self.cases_agree += not unequal
        self.decisions += compared.decisions
        self.decisions_agree += max(0, compared.decisions - len({difference.pod for difference in unequal}))
        self.differences.extend(compared.differences)
        self.tiers_disagree.extend(compared.tiers_disagree)
        self.boards_differ.extend(compared.boards_differ)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--tier", type=click.Choice(sorted(TIERS)), default="both", show_default=True, help="Which tier of plugins."
)
@click.option(
    "--boards",
    type=click.Choice(["on", "off"]),
    default="off",
    show_default=True,
    help="Decide every pod also from answers kept from pods alike; that must make no difference.",
)
@click.option("--jobs", type=click.IntRange(1, 256), metavar="N", help="Processes.  [default: one per core]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
@click.option(
    "--show",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    metavar="N",
    help="Print the first N differences per file.",
)
def conformance(files: tuple[Path, ...], tier: str, boards: str, jobs: int | None, as_json: bool, show: int) -> None:
    """Replay recorded decisions of kube-scheduler and say where this scheduler differs.

    FILES are JSON lines, gzipped or not, each a case with kube-scheduler's answer.  Exit status 0 only if every
    decision agrees, and both tiers with each other.  Ties go to the smallest node name, as they did in the
    recording.
    """
    recorded = {path: _read(path) for path in files}
    families = {path: Family(_family(path)) for path in files}
    chunks = list(_chunks(recorded, TIERS[tier], boards == "on"))
    workers = min(jobs or _cores(), len(chunks))
    with _progress(sum(map(len, recorded.values())), quiet=as_json or not sys.stderr.isatty()) as bar:
        for chunk, compared in zip(chunks, _replayed(chunks, workers), strict=True):
            for one in compared:
                families[chunk.path].add(one)
            bar(len(compared))
    told = list(families.values())
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(_summary(told, show))).decode())
    else:
        _print(told, show)
    if any(found for family in told for found in family.found.values()):
        click.get_current_context().exit(FAILED)


def _read(path: Path) -> list[Recording]:
    recordings = list(read_recordings(path))
    if not recordings:
        raise RecordingError(f"{path}: there is no case in it")
    return recordings


def _family(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl")


def _cores() -> int:
    """As many as this process may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# ── the work ─────────────────────────────────────────────────────────────────────────────────────────────────


class Chunk(NamedTuple):
    """As many cases as a worker is given at a time."""

    path: Path
    recordings: list[Recording]
    tiers: Sequence[Tier]
    boards: bool


def _chunks(recorded: dict[Path, list[Recording]], tiers: Sequence[Tier], boards: bool) -> Iterator[Chunk]:
    for path, recordings in recorded.items():
        for first in range(0, len(recordings), _CHUNK):
            yield Chunk(path, recordings[first : first + _CHUNK], tiers, boards)


def _replayed(chunks: Sequence[Chunk], workers: int) -> Iterator[list[Compared]]:
    """The chunks' answers, in their order, by as many processes as there are workers."""
    if workers == 1:
        yield from map(_replay, chunks)
        return
    # Workers begin afresh: a fork of a process with threads (a progress bar is one) may hang.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        try:
            yield from pool.map(_replay, chunks)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _replay(chunk: Chunk) -> list[Compared]:
    return [compare(recording, chunk.tiers, boards=chunk.boards) for recording in chunk.recordings]


@contextmanager
def _progress(total: int, quiet: bool) -> Iterator[Callable[[int], object]]:
    """A bar on a terminal; nothing where nobody looks."""
    if quiet:
        yield lambda more: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("cases", total=total)
        yield lambda more: bar.advance(task, more)


# ── what came of it ──────────────────────────────────────────────────────────────────────────────────────────


def _summary(families: Iterable[Family], show: int) -> dict[str, object]:
    told = []
    for family in families:
        summary = msgspec.structs.asdict(family)
        for name in ("differences", "tiers_disagree", "boards_differ"):
            found: list[Difference] = summary[name]
            summary[name] = {"count": len(found), "first": [difference._asdict() for difference in found[:show]]}
        told.append(summary)
    return {**_totals(families), "families": told}


def _totals(families: Iterable[Family]) -> dict[str, int]:
    names = ("cases", "cases_agree", "decisions", "decisions_agree")
    return {name: sum(getattr(family, name) for family in families) for name in names}


def _print(families: list[Family], show: int) -> None:
    table = Table("family", box=None, header_style="bold")
    for heading in ("cases", "agree", "decisions", "agree"):
        table.add_column(heading, justify="right")
    for family in families:
        table.add_row(family.family, *(f"{getattr(family, name):,}" for name in _totals(())))
    totals = _totals(families)
    table.add_section()
    table.add_row("all", *(f"{count:,}" for count in totals.values()))
    Console(soft_wrap=True, highlight=False).print(table)
    for line in _lines(families, show):
        click.echo(printable(line))
    click.echo(f"{totals['cases_agree']:,} of {totals['cases']:,} cases agree")


def _lines(families: list[Family], show: int) -> Iterator[str]:
    for family in families:
        for title, found in family.found.items():
            for difference in found[:show]:
                yield f"{title}  {difference}"
            if len(found) > show:
                yield f"{title}  … and {len(found) - show:,} more in {family.family}"
