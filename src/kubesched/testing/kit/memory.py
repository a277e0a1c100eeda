"""What a plugin remembers: of itself, of its class, and of the module it is written in.

Remembering is allowed: a plugin may keep what it has worked out, and must keep what it has reserved.  The rules look
here for what was kept where nothing should have been.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from kubesched.framework.hooks import Plugin

_CONTAINERS = (dict, list, set)


def state(plugin: Plugin) -> dict[str, Any]:
    """What a plugin remembers, by where, in a form that compares; nothing counted is as good as no count."""
    own = {**getattr(plugin, "__dict__", {}), **dict.fromkeys(getattr(type(plugin), "__slots__", ()))}
    found = {f"self.{name}": frozen(getattr(plugin, name, None)) for name in own if name != "tools"}
    return found | {where: frozen(value) for where, value in _shared(type(plugin))}


def _shared(kind: type) -> Iterator[tuple[str, Any]]:
    """Containers that all instances share: attributes of the class, and what its methods name in their module."""
    for base in kind.__mro__[:-1]:
        names = vars(sys.modules[base.__module__])
        for name, value in vars(base).items():
            if isinstance(value, _CONTAINERS) and not name.startswith("__"):
                yield f"{base.__name__}.{name}", value
            for used in getattr(getattr(value, "__code__", None), "co_names", ()):
                if isinstance(names.get(used), _CONTAINERS):
                    yield used, names[used]


def frozen(value: Any, depth: int = 4) -> Any:
    """A value as text that compares by content, as far down as plain containers go."""
    if isinstance(value, Mapping):
        kept = {repr(key): frozen(item, depth - 1) for key, item in value.items() if depth}
        return {key: item for key, item in sorted(kept.items()) if item not in (0, {}, [], None, False)}
    if isinstance(value, (set, frozenset)):
        return sorted(repr(item) for item in value)
    if isinstance(value, (list, tuple)):
        return [frozen(item, depth - 1) for item in value] if depth else len(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if value is None or isinstance(value, (str, int, float, bool, bytes, msgspec.Struct)):
        return value
    return frozen(vars(value), depth - 1) if depth and hasattr(value, "__dict__") else type(value).__name__
