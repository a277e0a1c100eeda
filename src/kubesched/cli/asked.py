"""Options of commands that ask a running scheduler, and a pod's account as one tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from kubesched.cli.main import printable
from kubesched.cli.plugging import classes_in
from kubesched.cli.replay import core_of
from kubesched.config.defaults import complete
from kubesched.config.schema import Configuration
from kubesched.drive.journal import Reading
from kubesched.drive.journal import replay as fold
from kubesched.framework.errors import KubeschedError
from kubesched.framework.plain import plain

F = TypeVar("F", bound=Callable[..., Any])
Json = dict[str, Any]


class NoSuchPod(KubeschedError):
    """A pod that a journal does not know."""


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

    _show(asking.explanation(asking.whom(server, token_file, ca_file), pod, node), output)


def explain_journal(pod: str, node: str, output: str, journal: Path, plugins: Iterable[Path]) -> None:
    """Say what a scheduler knew of a pod at the end of its journal.  Raises JournalError, NoSuchPod."""
    from kubesched.live.answers import CoreAnswers
    from kubesched.telemetry.metrics import Metrics

    reading = Reading(journal)
    core = core_of(reading.head, journal, journal.parent, classes_in(plugins))
    reading.kinds = core.own_kinds
    fold(reading, core)
    told = CoreAnswers(core, Metrics(), complete(Configuration())).explain(pod, node)
    if told is None:
        raise NoSuchPod(f"{journal}: pod {plain(pod)} is not known at its end; kubesched replay --until stops before")
    _show(told, output)


def _show(told: Json, output: str) -> None:
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
