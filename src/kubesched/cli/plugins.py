"""kubesched plugins: which plugins there are, and the manual page of each."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from kubesched.api.kinds import kind_of
from kubesched.cli.main import printable
from kubesched.config.registry import Registry, args_type
from kubesched.framework.errors import ConfigError
from kubesched.framework.hooks import name_of, points_of, reads_of
from kubesched.plugins import DEFAULT_WEIGHTS, IN_TREE
from kubesched.plugins.contrib import CONTRIB

_FILES = click.option(
    "--plugin", "files", type=click.Path(path_type=Path), multiple=True, metavar="FILE", help="And those of this file."
)


@click.group(invoke_without_command=True)
@_FILES
@click.pass_context
def plugins(ctx: click.Context, files: tuple[Path, ...]) -> None:
    """List the plugins that can be named in a configuration, or show one."""
    if ctx.invoked_subcommand is not None:
        return
    registry = _registry(files)
    table = Table("NAME", "FROM", "EXTENSION POINTS", box=None, pad_edge=False, header_style="bold")
    for name in registry.names():
        table.add_row(name, *_row(registry, name))
    Console(soft_wrap=True).print(table)


def _row(registry: Registry, name: str) -> tuple[str, str]:
    """Where a plugin comes from, and where it takes part; one that cannot be used says so and costs only itself."""
    source = "in-tree" if name in IN_TREE else "contrib" if name in CONTRIB else "yours"
    try:
        return source, ", ".join(points_of(registry.get(name)))
    except ConfigError as error:
        return source, f"cannot be used: {printable(str(error))}"


@plugins.command(short_help="Print the manual page of plugin NAME.")
@click.argument("name")
@_FILES
def show(name: str, files: tuple[Path, ...]) -> None:
    """Print the manual page of plugin NAME: what it does, its arguments, its extension points."""
    cls = _registry(files).get(name)
    for line in _page(cls):
        click.echo(printable(line))


def _registry(files: tuple[Path, ...]) -> Registry:
    registry = Registry(folder=Path())
    for file in files:
        registry.add_file(file)
    return registry


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────


def _page(cls: Any) -> Iterator[str]:
    name = name_of(cls)
    yield name
    yield "─" * len(name)
    yield from (inspect.getdoc(cls) or "It has no docstring yet: that would be its manual page.").splitlines()
    yield ""
    yield f"Extension points:  {', '.join(points_of(cls))}"
    if name in DEFAULT_WEIGHTS:
        yield f"Weight:            {DEFAULT_WEIGHTS[name]} by default"
    reads = [kind_of(view).resource for view in reads_of(cls)]
    yield f"Reads:             {', '.join(['pods', 'nodes', *reads])}"
    yield from _args(args_type(cls))


def _args(kind: type[msgspec.Struct] | None) -> Iterator[str]:
    """The arguments with their defaults, as one would write them in a pluginConfig."""
    yield ""
    if kind is None or not msgspec.structs.fields(kind):
        yield "It takes no arguments."
        return
    yield "Arguments:"
    for field in msgspec.structs.fields(kind):
        given = field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default
        if given is msgspec.NODEFAULT:
            yield f"  {field.encode_name}    required"
        else:
            said = msgspec.json.encode(msgspec.to_builtins(given, str_keys=True)).decode()
            yield f"  {field.encode_name}: {said}"
    yield from (f"  {line}" for line in _told_of(kind))


def _told_of(kind: type[msgspec.Struct]) -> Iterator[str]:
    """What the docstring of the arguments says under `Args:`."""
    _, found, text = (inspect.getdoc(kind) or "").partition("Args:\n")
    if found:
        yield ""
        yield from inspect.cleandoc(text).splitlines()
