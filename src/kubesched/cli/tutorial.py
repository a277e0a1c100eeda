"""kubesched tutorial: play one of the seven stages, or read it."""

from __future__ import annotations

import click

from kubesched.tutorial import MODULES, stage


@click.command()
@click.argument("number", type=click.IntRange(1, len(MODULES)), metavar=f"[1-{len(MODULES)}]")
@click.option("--show", is_flag=True, help="Print the stage's program instead of playing it.")
@click.option("--diff", is_flag=True, help="Print what it has that the stage before has not.")
def tutorial(number: int, show: bool, diff: bool) -> None:
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
        for line in chosen.lines():
            click.echo(line)
