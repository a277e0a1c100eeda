"""What a plugin remembers: of itself, of its class, and of the module it is written in.

Remembering is allowed: a plugin may keep what it has worked out, and must keep what it has reserved.  The rules look
here for what was kept where nothing should have been.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from kubesched.framework.hooks import Plugin
from kubesched.testing.kit.source import shared


def state(plugin: Plugin) -> dict[str, Any]:
    """What a plugin remembers, by where, in a form that compares; nothing counted is as good as no count."""
    own = {**getattr(plugin, "__dict__", {}), **dict.fromkeys(getattr(type(plugin), "__slots__", ()))}
    found = {f"self.{name}": frozen(getattr(plugin, name, None)) for name in own if name != "tools"}
    return found | {where: frozen(value) for where, value in shared(type(plugin))}


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
