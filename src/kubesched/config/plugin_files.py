"""Plugins from a file of your own: which classes in it are plugins, and where exactly something is wrong with it.

A file need not be installed, nor lie on the path: it is imported from where it is, once.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
import types
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubesched.framework.errors import ConfigError
from kubesched.framework.hooks import POINTS, check, name_of, points_of

_OURS = Path(__file__).parents[1]
_PREFIX = "kubesched_plugin_"


def module_of(path: Path) -> types.ModuleType:
    """The module a file is.  Raises whatever its import raises."""
    path = path.resolve()
    name = f"{_PREFIX}{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not Python")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with _no_way_out():
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


@contextmanager
def afresh() -> Iterator[None]:
    """Within, every file is imported anew, for it may have changed; afterwards those at work are what they were."""
    at_work = {name: sys.modules.pop(name) for name in [*sys.modules] if name.startswith(_PREFIX)}
    try:
        yield
    finally:
        sys.modules.update(at_work)


def imported(name: str) -> types.ModuleType:
    """The module of a dotted name.  Raises whatever its import raises."""
    with _no_way_out():
        return importlib.import_module(name)


@contextmanager
def _no_way_out() -> Iterator[None]:
    """A script that ends its process, once it is imported, must not end ours."""
    try:
        yield
    except SystemExit as error:
        problem = ImportError(f"it ends the process (exit status {error.code}) instead of defining something")
        raise problem.with_traceback(error.__traceback__) from None


def plugins_in(path: Path) -> dict[str, type[Any]]:
    """The plugin classes of a file, by the names they give themselves, each checked.  Raises ConfigError."""
    try:
        module = module_of(path)
    except FileNotFoundError:
        raise ConfigError("", f"{path}: there is no such file", "give the path of a Python file") from None
    except Exception as error:  # an import runs whatever the file says
        problem = f"{place_of(error, path)}: cannot be imported: {type(error).__name__}: {_said(error)}"
        raise ConfigError("", problem) from error
    found: dict[str, type[Any]] = {}
    for cls in _own_classes(module):
        name = name_of(cls)
        if name in found:
            problem = f'{_line_of(cls, path)}: a second plugin called "{name}"'
            raise ConfigError("", problem, f'give {cls.__name__} a name of its own: name = "{cls.__name__}"')
        try:
            check(cls)
        except ConfigError as error:
            raise ConfigError("", f"{_line_of(_culprit(cls, error), path)}: {error.problem}", error.remedy) from None
        found[name] = cls
    if not found:
        hooks = ", ".join(method.name for methods in POINTS.values() for method in methods)
        raise ConfigError("", f"{path}: no class in it is a plugin", f"a plugin has one of these methods: {hooks}")
    return found


def _own_classes(module: types.ModuleType) -> Iterator[type[Any]]:
    for name, value in vars(module).items():
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_"):
            if points_of(value):
                yield value


def place_of(error: BaseException, path: Path) -> str:
    """`file:line` of what went wrong in a file of somebody's; the file alone where no line is to blame."""
    if isinstance(error, SyntaxError) and error.filename is not None and error.lineno is not None:
        return f"{_shown(Path(error.filename), path)}:{error.lineno}"
    resolved = str(path.resolve())
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == resolved]
    return f"{path}:{lines[-1]}" if lines else str(path)


def raised_at(error: BaseException) -> str:
    """` (file:line)` of where somebody else's code raised an error; nothing where it was ours."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = not frames or Path(frames[-1].filename).is_relative_to(_OURS)
    return "" if ours else f" ({frames[-1].filename}:{frames[-1].lineno})"


def _shown(file: Path, path: Path) -> Path:
    return path if file.resolve() == path.resolve() else file


def _said(error: BaseException) -> str:
    return error.msg if isinstance(error, SyntaxError) else str(error)


def _culprit(cls: type[Any], error: ConfigError) -> Any:
    """The method an error of `check` is about, or else the class."""
    head = error.problem.partition(" ")[0]
    owner, _, method = head.rpartition(".")
    return getattr(cls, method, cls) if owner == name_of(cls) else cls


def _line_of(thing: Any, path: Path) -> str:
    try:
        return f"{path}:{inspect.getsourcelines(thing)[1]}"
    except (OSError, TypeError):
        return str(path)
