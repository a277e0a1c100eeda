"""kubesched replay: fold a journal into a fresh scheduler, and see that it decides the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import get_args

import click

from kubesched.api.time import Duration, Instant, format_duration, format_nano, parse_duration, parse_rfc3339
from kubesched.assemble import PARKED_MAX, build
from kubesched.cli.listening import Listening, counted, explain, story_of, verbose
from kubesched.cli.plugging import classes_in, plugin_files
from kubesched.config.gates import features_of
from kubesched.config.load import load
from kubesched.config.registry import PluginClass, Registry
from kubesched.core.core import Core
from kubesched.core.messages import AnyEffect
from kubesched.drive.journal import Entry, Head, JournalError, Reading
from kubesched.drive.journal import replay as fold
from kubesched.drive.tap import Tap
from kubesched.framework.errors import ConfigError, UnknownPlugin
from kubesched.framework.profile import TieRule
from kubesched.sim.simulation import plugins_of

DAY = 86_400 * 10**9


@click.command()
@click.argument("journal", type=click.Path(path_type=Path))
@click.option(
    "--until", metavar="TIME", help="Stop there: a time of day, an RFC 3339 time, or so long after the journal begins."
)
@click.option(
    "--plugins-from",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder that plugins' files in its configuration are relative to.  [default: the journal's]",
)
@plugin_files
@story_of
@explain
@verbose
def replay(
    journal: Path,
    until: str | None,
    plugins_from: Path | None,
    plugins: tuple[Path, ...],
    story: tuple[str, ...],
    explain: tuple[str, ...],
    verbose: int,
) -> None:
    """Fold JOURNAL into a fresh scheduler, and see that it answers every event with the same effects.

    A journal that ends in the middle of a line is what a crash leaves: all before counts.  Exit status 1 if an
    event has other effects than the journal says, 2 if the journal cannot be used.
    """
    reading = Reading(journal)
    core = core_of(reading.head, journal, plugins_from or journal.parent, classes_in(plugins))
    reading.kinds = core.own_kinds
    listening = Listening(verbose, story, explain)
    core.verbosity = listening.verbosity
    run = _Run(iter(reading), until)
    count = fold(run.entries(), Tap(core, *listening.listeners), seen=run.seen)
    for line in listening.told(run.first):
        click.echo(line)
    if story or explain:
        click.echo("")
    if reading.cut:
        click.echo("the last line of the journal is cut; all before it was replayed", err=True)
    lasted = format_duration(Duration(run.last - run.first))
    click.echo(f"{counted(count, 'event')}, {lasted}, {counted(run.effects, 'effect')}: the same as in the journal")
    if run.rest is not None:
        click.echo(f"stopped before event {run.rest.number} at {format_nano(run.rest.at)}")


class _Run:
    """A journal up to a moment, and what was seen of it."""

    def __init__(self, entries: Iterator[Entry], until: str | None) -> None:
        self._entries, self._until = entries, until
        self.first = self.last = Instant(0)
        self.effects = 0
        self.rest: Entry | None = None  # the first that was not replayed

    def entries(self) -> Iterator[Entry]:
        until: Instant | None = None
        for entry in self._entries:
            if entry.number == 1:
                self.first = self.last = entry.at
                until = None if self._until is None else moment_of(self._until, entry.at)
            if until is not None and entry.at > until:
                self.rest = entry
                return
            yield entry

    def seen(self, entry: Entry, effects: Sequence[AnyEffect]) -> None:
        self.last = max(self.last, entry.at)
        self.effects += len(effects)


_TIME_OF_DAY = re.compile(r"(\d\d?):(\d\d)(?::(\d\d)(\.\d{1,9})?)?")


def moment_of(text: str, start: Instant) -> Instant:
    """The moment a person means, in a journal that begins at `start`."""
    found = _TIME_OF_DAY.fullmatch(text)
    if found is not None:
        hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
        if hour < 24 and minute < 60 and second < 60:
            fraction = int((found[4] or ".0")[1:].ljust(9, "0"))
            moment = start // DAY * DAY + (hour * 3_600 + minute * 60 + second) * 10**9 + fraction
            return Instant(moment if moment >= start else moment + DAY)
    with suppress(ValueError):
        return parse_rfc3339(text)
    with suppress(ValueError):
        return Instant(start + parse_duration(text))
    expected = "expected a time of day (12:03:04), an RFC 3339 time, or a duration since the journal begins (90s)"
    raise click.BadParameter(f"{text!r}: {expected}", param_hint="--until")


def core_of(head: Head, path: Path, folder: Path, plugins: Mapping[str, PluginClass] | None = None) -> Core:
    """A scheduler as the head of a journal describes it.  Raises JournalError.

    Args:
        folder: what the paths of plugins' files in its configuration are relative to.
        plugins: classes by name that its configuration names without saying where they are.
    """
    rules: Mapping[str, TieRule] = {rule: rule for rule in get_args(TieRule)}
    if head.tie not in rules:
        raise JournalError(f"{path}:1: tie: {head.tie!r} is no rule for ties; rules are {', '.join(rules)}")
    try:
        features, registry = features_of(head.features), Registry(plugins, folder)
        configuration = load(head.config, features=features, registry=registry) if head.config else None
        core = build(
            configuration,
            features=features,
            registry=registry,
            tie=rules[head.tie],
            seed=head.seed,
            wait_for=head.wait_for,
            parked_max=Duration(head.parked_max) if head.parked_max else PARKED_MAX,
        )
    except UnknownPlugin as error:
        raise JournalError(f"{path}:1: its head cannot be used: {error}; name its file with --plugin") from None
    except ConfigError as error:
        raise JournalError(f"{path}:1: its head cannot be used: {error}") from None
    made = plugins_of(core)
    if head.plugins and head.plugins != made:
        raise JournalError(f"{path}:1: {_other_plugins(head.plugins, made)}")
    return core


def _other_plugins(journal: dict[str, tuple[str, ...]], made: dict[str, tuple[str, ...]]) -> str:
    name = next(name for name in dict.fromkeys([*journal, *made]) if journal.get(name) != made.get(name))
    then, now = journal.get(name), made.get(name)
    there = "no such profile" if then is None else ", ".join(then) or "no plugins"
    here = "no such profile" if now is None else ", ".join(now) or "no plugins"
    remedy = "its scheduler was put together in a program; fold the journal there, with kubesched.drive.journal.replay"
    return f"profile {name}: the journal's scheduler has {there}; its configuration alone makes {here} ({remedy})"
