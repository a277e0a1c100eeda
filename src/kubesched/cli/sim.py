"""kubesched sim: play a scenario in virtual time, and say what came of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec import structs
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from kubesched.api.time import Duration, format_duration, milliseconds, parse_duration
from kubesched.cli.listening import Listening, counted, explain, story_of, verbose
from kubesched.cli.main import printable
from kubesched.cli.plugging import classes_in, plugin_files
from kubesched.config.gates import features_of
from kubesched.config.joining import joined
from kubesched.config.registry import PluginClass, Registry
from kubesched.config.schema import Configuration
from kubesched.drive.tap import Listener, Moment
from kubesched.framework.plain import plain
from kubesched.sim.literate import read_page
from kubesched.sim.play import Played, play
from kubesched.sim.reading import read_scenario
from kubesched.sim.report import Report, reasons
from kubesched.sim.scenario import Scenario

SHOWN_REASONS = 10
SHOWN_PODS = 5
MILLISECOND = milliseconds(1)


class Span(click.ParamType[Duration]):
    """A duration as Go writes it."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Duration:
        try:
            span = parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if span <= 0:
            self.fail(f"{value!r} is not in the future", param, ctx)
        return span


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--seed", type=click.IntRange(-(1 << 63), (1 << 63) - 1), metavar="N", help="Instead of the file's own.")
@click.option("--until", type=Span(), metavar="TIME", help="End after so much virtual time, such as 90s or 2h.")
@click.option("--set", "changes", metavar="PATH=VALUE", multiple=True, help="Change the scenario: latency.write=50ms.")
@plugin_files
@click.option("--journal", type=click.Path(path_type=Path), help="Write the journal of the run here, for replay.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a page.")
@story_of
@explain
@verbose
def sim(
    file: Path,
    seed: int | None,
    until: Duration | None,
    changes: tuple[str, ...],
    plugins: tuple[Path, ...],
    journal: Path | None,
    as_json: bool,
    story: tuple[str, ...],
    explain: tuple[str, ...],
    verbose: int,
) -> None:
    """Play the scenario in FILE in virtual time, and say what came of it.

    FILE is YAML, or a Markdown page with scenarios in it; `-` reads YAML from standard input.  The same seed plays
    the same run.  Exit status 1 if an expectation is missed or something planned was refused by the cluster, 2 if
    the scenario itself cannot be played.
    """
    scenarios = list(_scenarios(file, changes, classes_in(plugins)))
    if journal is not None and len(scenarios) > 1:
        raise click.UsageError(f"--journal holds one run, and {file} has {len(scenarios)} scenarios")
    told, ok = [], True
    for scenario in scenarios:
        listening = Listening(verbose, story, explain)
        with _progress(scenario, until, quiet=as_json or verbose > 0) as progress:
            heard: list[Listener] = [*listening.listeners, *progress]
            played = play(
                scenario, seed=seed, until=until, journal=journal, verbosity=listening.verbosity, listeners=heard
            )
        ok = ok and played.ok
        if as_json:
            told.append(_summary(played))
            continue
        for line in (*_page(played), *listening.told(played.simulation.world.start)):
            click.echo(line)
    if as_json:
        for summary in told:
            click.echo(msgspec.json.format(msgspec.json.encode(summary)).decode())
    if not ok:
        click.get_current_context().exit(1)


def _scenarios(file: Path, changes: tuple[str, ...], own: Mapping[str, PluginClass]) -> Iterator[Scenario]:
    """The scenarios of a file, with plugins of one's own in their schedulers.  Raises ConfigError."""
    for scenario in _read(file, changes, own):
        if not own:
            yield scenario
            continue
        scheduler, features = scenario.scheduler or Configuration(), features_of(scenario.features)
        scheduler = joined(scheduler, list(own), Registry(own), features)
        yield structs.replace(scenario, scheduler=scheduler)


def _read(file: Path, changes: tuple[str, ...], own: Mapping[str, PluginClass]) -> Iterator[Scenario]:
    if file.suffix == ".md":
        if changes:
            raise click.UsageError("--set changes a YAML scenario, not one of a page")
        yield from (example.scenario for example in read_page(file, own).examples)
    else:
        yield read_scenario(file, changes, own)


# ── while it runs ────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _progress(scenario: Scenario, until: Duration | None, quiet: bool) -> Iterator[list[Listener]]:
    """A line on a terminal that says how far the run is."""
    if quiet or not sys.stderr.isatty():
        yield []
        return
    end = until if until is not None else scenario.until
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(plain(scenario.name or scenario.file), total=end, told="")
        bound = start = 0

        def heard(moment: Moment) -> None:
            nonlocal bound, start
            start = start or moment.at
            bound += sum(record.cause == "bound" for record in moment.records)
            if moment.position % 256 == 1:
                now = format_duration(Duration((moment.at - start) // 10**9 * 10**9))
                progress.update(task, completed=moment.at - start, told=f"{now} · {bound:,} bound")

        yield [heard]


# ── what came of it ──────────────────────────────────────────────────────────────────────────────────────────


def _summary(played: Played) -> dict[str, Any]:
    scenario = played.scenario
    return {
        "scenario": scenario.name,
        "file": scenario.file,
        "seed": scenario.seed,
        "ok": played.ok,
        "expectations": len(scenario.expect),
        "missed": played.missed,
        "refused": played.impossible,
        **played.report.as_json(),
    }


def _page(played: Played) -> Iterator[str]:
    scenario, report = played.scenario, played.report
    lasted = format_duration(report.lasted)
    yield f"{plain(scenario.name or scenario.file)} (seed {scenario.seed}): {lasted} of virtual time"
    yield ""
    yield from _figures(report)
    yield from _waiting(report)
    yield from _verdict(played)


def _figures(report: Report) -> Iterator[str]:
    yield f"{'bound':>12}  {counted(report.bound, 'pod')}{_spread(sorted(report.nodes.values()))}"
    if report.waits:
        half, most, longest = (_rounded(wait) for wait in (report.wait(50), report.wait(99), max(report.waits)))
        yield f"{'waited':>12}  half within {half}, 99 in 100 within {most}, longest {longest}"
    yield f"{'attempts':>12}  {report.attempts:,}, of which {report.failures:,} failed"
    for name, use in report.use.items():
        yield f"{name:>12}  {use.mean:.0%} requested on average, {use.peak:.0%} at most"
    if report.evicted:
        shown = [f"{plain(victim)} for {plain(pod)}" for victim, pod in report.evicted[:SHOWN_PODS]]
        yield f"{'evicted':>12}  {_some(shown, len(report.evicted), '; ')}"


def _rounded(wait: int) -> str:
    return format_duration(Duration(round(wait / MILLISECOND) * MILLISECOND))


def _spread(nodes: list[int]) -> str:
    if not nodes:
        return ""
    fewest, most = nodes[0], nodes[-1]
    return f" on {counted(len(nodes), 'node')}, {fewest if fewest == most else f'{fewest} to {most}'} on each"


def _waiting(report: Report) -> Iterator[str]:
    waiting = report.waiting
    if not waiting:
        return
    yield f"{'not bound':>12}  {counted(len(waiting), 'pod')}"
    groups = reasons(waiting)
    for why, pods in groups[:SHOWN_REASONS]:
        names = _some([plain(each.pod) for each in pods[:SHOWN_PODS]], len(pods), ", ")
        yield f"{len(pods):>14,} × {names}: {plain(why) or pods[0].state.value}"
    if len(groups) > SHOWN_REASONS:
        yield f"{'':>14}   … and {counted(len(groups) - SHOWN_REASONS, 'other reason')}"


def _verdict(played: Played) -> Iterator[str]:
    expected = len(played.scenario.expect)
    yield ""
    for text in played.impossible:
        yield f"refused: {printable(text)}"
    for text in played.missed:
        yield f"missed: {printable(text)}"
    if expected:
        yield f"{expected - len(played.missed)} of {counted(expected, 'expectation')} met"
    elif not played.impossible:
        yield "nothing was expected, and every invariant held"


def _some(shown: list[str], count: int, between: str) -> str:
    return between.join(shown) + (f" … and {count - len(shown):,} more" if count > len(shown) else "")
