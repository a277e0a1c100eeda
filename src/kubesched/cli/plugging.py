"""`--plugin FILE`: plugins of one's own for any command that makes a scheduler."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from kubesched.config.registry import PluginClass, Registry

plugin_files = click.option(
    "--plugin",
    "plugins",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="A file with plugins of yours; they take part in every profile.",
)


def classes_in(files: Iterable[Path]) -> dict[str, PluginClass]:
    """The plugins in these files, by name.  Raises ConfigError."""
    registry = Registry()
    return {name: registry.get(name) for file in files for name in registry.add_file(file)}
