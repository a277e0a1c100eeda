"""Files of plugins go along in the ConfigMap, beside the configuration that names them: no image need be built.

A file must stand alone, for nothing it might import from beside itself goes along.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kubesched.framework.errors import ConfigError

Json = dict[str, Any]

BYTES_MAX = 900 * 1024  # a ConfigMap holds 1 MiB, and the configuration is in it too
_IN_FILE = re.compile(r"(.+\.py):(\w+)")
_KEY = re.compile(r"[-._a-zA-Z0-9]+")


class Cargo(NamedTuple):
    """What goes into a ConfigMap: the configuration, and files by their names there."""

    said: Json
    files: dict[str, str]


def carried(said: Mapping[str, Any], folder: Path, plugins: Sequence[Path] = ()) -> Cargo:
    """A configuration with every plugin's file that it names, and these besides.  Raises ConfigError.

    Args:
        folder: what its paths are relative to.
    """
    paths: dict[str, Path] = {}

    def take(path: Path) -> str:
        other = paths.setdefault(path.name, path)
        if other.resolve() != path.resolve():
            raise ConfigError("", f"{path} and {other} have the same name, and lie in one ConfigMap", "rename one")
        if not _KEY.fullmatch(path.name):
            raise ConfigError("", f"{path}: no file in a ConfigMap is called {path.name!r}", "letters, digits, -._")
        return path.name

    told = _renamed(dict(said), lambda file: take(folder / file))
    for plugin in plugins:
        take(plugin)
    files = {name: _text(path) for name, path in paths.items()}
    size = sum(len(text.encode()) for text in files.values())
    if size > BYTES_MAX:
        raise ConfigError("", f"{', '.join(files)}: {size:,} bytes are too many for a ConfigMap", "build an image")
    return Cargo(told, files)


def _renamed(value: Any, name_of: Callable[[str], str]) -> Any:
    """The same, with every plugin that is named by its file named by that file's name alone."""
    if isinstance(value, Mapping):
        return {key: _renamed(found, name_of) for key, found in value.items()}
    if isinstance(value, list):
        return [_renamed(one, name_of) for one in value]
    place = _IN_FILE.fullmatch(value) if isinstance(value, str) else None
    return value if place is None else f"{name_of(place[1])}:{place[2]}"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        why = getattr(problem, "strerror", None) or "it is not text"
        raise ConfigError("", f"{path} cannot be read: {why.lower()}") from None
