"""Options of commands that ask a running scheduler, and a pod's account as one tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from kubesched.cli.main import printable

F = TypeVar("F", bound=Callable[..., Any])
Json = dict[str, Any]


def asks_a_scheduler(command: F) -> F:
    """Options that say whom to ask; nothing need be said of a scheduler of one's own on this machine."""
    for option in (
        click.option("--ca-file", type=click.Path(path_type=Path), help="The authority behind its certificate."),
        click.option("--token-file", type=click.Path(path_type=Path), help="A token that the cluster accepts."),
        click.option("--server", default="", metavar="URL", help="Which scheduler; the one that runs here."),
    ):
        command = option(command)
    return command


def explain_running(
    pod: str, node: str, output: str, server: str, token_file: Path | None, ca_file: Path | None
) -> None:
    """Say what a running scheduler knows of a pod."""
    from kubesched.live import asking  # it brings HTTP and TLS along, which an explanation from files can do without

    told = asking.explanation(asking.whom(server, token_file, ca_file), pod, node)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(told)).decode())
        return
    for line in account(told):
        click.echo(printable(line))


def account(told: Json) -> Iterator[str]:
    """What a running scheduler told of a pod, as sentences."""
    yield f"{told['pod']}: {told.get('says', 'is not known any more')}"
    if told.get("attempts"):
        yield f"  tried {_times(told['attempts'])}, waiting since {told['since']}"
    if told.get("wakes"):
        yield f"  tried again when: {told['wakes']}"
    attempt = told.get("attempt")
    if attempt:
        decision = attempt["decision"]
        if "chosen" in decision:
            rivals = f", as good as {len(decision['best']) - 1} others" if len(decision.get("best", ())) > 1 else ""
            yield f"  last attempt {attempt['at']}: placed on {decision['chosen']}{rivals}"
        else:
            yield f"  last attempt {attempt['at']}: {attempt['message']}"
    yield from (f"  {move['at']}  {move['says']}" for move in told["story"])
    if told.get("now"):
        yield "now:"
        yield from (f"  {line}" for line in told["now"])


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
