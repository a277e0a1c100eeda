"""`kubesched queue`: who waits to be scheduled by a running scheduler, where, and for what."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kubesched.cli.asked import asks_a_scheduler
from kubesched.framework.plain import plain
from kubesched.live import asking

Json = dict[str, Any]

_SECONDS = len("2026-01-01T00:00:00")
_PIPED = 1000  # columns where nobody looks at lines
_WORDS = {"active": "active", "backoff": "backing off", "unschedulable": "unschedulable", "gated": "gated"}


@click.command()
@asks_a_scheduler
@click.option("-o", "--output", type=click.Choice(["text", "wide", "json"]), default="text", show_default=True)
def queue(server: str, token_file: Path | None, ca_file: Path | None, output: str) -> None:
    """Show who waits to be scheduled, where, and for what.

    Asks the scheduler that runs here under your name, or the one that --server names.
    """
    told = asking.queue(asking.whom(server, token_file, ca_file))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(told)).decode())
        return
    for line in _headlines(told):
        click.echo(line)
    if told["pods"] or told["inFlight"]:
        width = None if sys.stdout.isatty() else _PIPED
        Console(highlight=False, width=width).print(_table(told, wide=output == "wide"))


def _headlines(told: Json) -> Iterator[str]:
    counts = ", ".join(f"{count} {_WORDS.get(place, place)}" for place, count in told["counts"].items())
    yield f"{counts}, {len(told['inFlight'])} on their way"
    if not told["leads"]:
        yield "another scheduler holds the lease: this one waits for its turn"
    if told.get("waitsFor"):
        yield f"nothing is tried before all of these have been seen: {', '.join(told['waitsFor'])}"
    if told.get("draining"):
        yield "it is on its way out: nothing new is tried"
    for what, problem in told["unreadable"].items():
        yield plain(f"{what} cannot be read: {problem}")
    if told.get("leftOut"):
        yield f"{told['leftOut']} more pods are not listed"


def _table(told: Json, *, wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("pod", "where", "attempts", "since", "turned down by", *(("woken by",) if wide else ())):
        table.add_column(heading, justify="right" if heading == "attempts" else "left", no_wrap=heading != "woken by")
    for pod in told["inFlight"]:
        table.add_row(*_cells(pod["pod"], f"{pod['state'].lower()} on {pod['node']}", "", "", ""))
    for pod in told["pods"]:
        rejectors = ", ".join(pod.get("rejectors", ())) or pod.get("gate", "")
        where, since = _WORDS.get(pod["place"], pod["place"]), f"{pod['since'][:_SECONDS]}Z"
        wakes = (pod["wakes"],) if wide else ()
        table.add_row(*_cells(pod["pod"], where, pod["attempts"], since, rejectors, *wakes))
    return table


def _cells(*told: object) -> Iterator[Text]:
    return (Text(plain(one)) for one in told)
