"""`kubesched config`: is this configuration right, and what does it mean?"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from kubesched.assemble import profiles_of
from kubesched.cli.main import FAILED, printable
from kubesched.cli.plugging import classes_in
from kubesched.config.defaults import complete
from kubesched.config.editor_schema import editor_schema
from kubesched.config.gates import features_of, gates_of
from kubesched.config.joining import joined
from kubesched.config.load import Loaded, Source, load_file, load_text
from kubesched.config.outline import outline
from kubesched.config.registry import Registry
from kubesched.config.schema import Configuration
from kubesched.config.yaml import Limits
from kubesched.framework.errors import ConfigError
from kubesched.framework.features import Features
from kubesched.framework.profile import Profile

GATES = click.option(
    "--feature-gates", default="", metavar="NAME=BOOL,…", help="Feature gates by the names Kubernetes gives them."
)


@click.group()
def config() -> None:
    """Check scheduler configurations, and show what they mean."""


@config.command(short_help="Say whether FILES are right, and all that is wrong.")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True))
@GATES
def check(files: tuple[Path, ...], feature_gates: str) -> None:
    """Say whether FILES would be accepted, and everything that is wrong with those that would not.

    A file that is accepted may still have notes: what was changed from an older version, what has no effect.
    `-` reads standard input.  Exit status 0 only if every file is accepted.
    """
    features = features_of(gates_of(feature_gates))
    refused = 0
    for path in files:
        try:
            loaded, profiles = assembled(path, features)
        except ConfigError as error:
            refused += 1
            for line in getattr(error, "lines", lambda error=error: [str(error)])():
                click.echo(f"{click.style('error:', fg='red', bold=True)} {printable(line)}", err=True)
            continue
        for note in loaded.notes:
            _say_note(path, note)
        click.echo(f"{path}: ok, {_counted(len(profiles), 'profile')}: {', '.join(profiles)}")
    if refused:
        click.echo(f"{refused} of {_counted(len(files), 'file')} refused", err=True)
        click.get_current_context().exit(FAILED)


@config.command(short_help="Show what FILE means, defaults and all.")
@click.argument("file", required=False, type=click.Path(path_type=Path, allow_dash=True))
@click.option("-o", "--output", type=click.Choice(["text", "yaml", "json"]), default="text", show_default=True)
@GATES
def show(file: Path | None, output: str, feature_gates: str) -> None:
    """Show what FILE means: the plugins at each extension point, in order, their weights and arguments.

    Without FILE, what kube-scheduler and kubesched do where nothing is configured.
    """
    features = features_of(gates_of(feature_gates))
    loaded, profiles = assembled(file, features)
    for note in loaded.notes:
        _say_note(file, note)
    told = outline(loaded.configuration, profiles)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(told)).decode())
    elif output == "yaml":
        click.echo(yaml.safe_dump(told, sort_keys=False, allow_unicode=True), nl=False)
    else:
        for line in _lines(told):
            click.echo(printable(line))


@config.command()
def schema() -> None:
    """Print the JSON Schema of a configuration, for editors."""
    click.echo(msgspec.json.format(msgspec.json.encode(editor_schema())).decode())


def _say_note(file: Path | None, note: str) -> None:
    click.echo(f"{click.style('note:', fg='yellow')} {file}: {printable(note)}", err=True)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────


def folder_of(path: Path | None) -> Path:
    """What the paths in a configuration are relative to."""
    return Path() if path is None or str(path) == "-" else path.parent


def assembled(
    path: Path | None, features: Features, plugins: Iterable[Path] = ()
) -> tuple[Loaded, dict[str, Profile]]:
    """A configuration and its profiles; the default where no file is given.  Raises ConfigError.

    Some faults only show when plugins are made, and are told with their place in the file too.

    Args:
        plugins: files with plugins that take part besides.
    """
    own = classes_in(plugins)
    registry = Registry(own, folder_of(path))
    if path is None:
        loaded = Loaded(complete(Configuration(), features), (), Source())
    elif str(path) == "-":
        data = sys.stdin.buffer.read(Limits().size + 1)
        loaded = load_text(data, "standard input", features=features, registry=registry)
    else:
        loaded = load_file(path, features=features, registry=registry)
    loaded = loaded._replace(configuration=joined(loaded.configuration, list(own), registry, features))
    try:
        return loaded, profiles_of(loaded.configuration, features=features, registry=registry)
    except ConfigError as error:
        raise loaded.source.placed(error) from error


# ── the outline as text ──────────────────────────────────────────────────────────────────────────────────────


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    for profile in told["profiles"]:
        yield f"profile {profile['schedulerName']}: {profile['nodesToScore']}"
        for point, plugins in profile["plugins"].items():
            names = [one["name"] + (f" ×{one['weight']}" if "weight" in one else "") for one in plugins]
            if names:
                yield from _wrapped(f"  {point:<12}", names)
        for name, args in profile["args"].items():
            yield f"  args of {name}"
            yield from (f"    {line}" for line in _as_yaml(args))
        yield ""
    for extender in told["extenders"]:
        yield f"extender {extender['urlPrefix']}"
        yield from (f"    {line}" for line in _as_yaml(extender))
        yield ""
    for name in ("leaderElection", "clientConnection"):
        yield f"{name}: " + ", ".join(f"{key} {_word(value)}" for key, value in told[name].items())
    yield f"backoff: {told['podInitialBackoffSeconds']} s, doubling up to {told['podMaxBackoffSeconds']} s"


def _wrapped(label: str, words: list[str], width: int = 100) -> Iterator[str]:
    """A label and a list of words, continued under the first word."""
    line = label
    for at, word in enumerate(words):
        piece = word + ("," if at < len(words) - 1 else "")
        if len(line) + 1 + len(piece) > width and line.strip() and line != " " * len(label):
            yield line
            line = " " * len(label)
        line += f" {piece}"
    yield line


def _as_yaml(value: Any) -> list[str]:
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)
    return text.splitlines()


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if value != "" else '""'


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
