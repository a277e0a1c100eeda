"""kubesched tutorial: play one of the seven stages, or read it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from kubesched.tutorial import MODULES, Stage, stage


@click.command()
@click.argument("number", type=click.IntRange(1, len(MODULES)), metavar=f"[1-{len(MODULES)}]")
@click.option("--show", is_flag=True, help="Print the stage's program instead of playing it.")
@click.option("--diff", is_flag=True, help="Print what it has that the stage before has not.")
@click.option("--served", is_flag=True, help="Play it on an API server, over HTTPS and in real time.")
@click.option("--speed", type=click.FloatRange(0.1, 1000), default=1.0, metavar="X", help="With --served: how fast.")
def tutorial(number: int, show: bool, diff: bool, served: bool, speed: float) -> None:
    """Play stage N of the tutorial in virtual time, or read it.

    \b
    1 random · 2 filter · 3 score · 4 pre-score · 5 permit · 6 queue · 7 event handlers
    """
    chosen = stage(number)
    if show:
        click.echo(chosen.source, nl=False)
    elif diff:
        click.echo(chosen.difference(), nl=False)
    else:
        for line in _served(chosen, speed) if served else chosen.lines():
            click.echo(line)


def _served(chosen: Stage, speed: float) -> Iterator[str]:
    """The stage on an API server, and how to have one that stays."""
    from kubesched.tutorial.served import ServedRun

    yield from ServedRun(chosen, speed).lines()
    yield ""
    yield "That cluster is gone.  To have one that stays, for kubectl and any other client:"
    yield ""
    yield f"  {sys.argv[0]} up"
