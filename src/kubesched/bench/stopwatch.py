"""Where the time goes: how often each hook of each plugin is called, and how long it takes.

A hook is wrapped on the plugin's instance, so that whoever calls it is counted; taking the time costs a good part of a
microsecond a call, which is why a run with a stopwatch gives no figure of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, NamedTuple

from kubesched.bench.throughput import percentile
from kubesched.core.core import Core
from kubesched.framework.hooks import HELPERS, POINTS, Plugin, name_of

_HOOKS = (*(method.name for methods in POINTS.values() for method in methods), *(helper.name for helper in HELPERS))


class Timed(NamedTuple):
    """One hook of one plugin."""

    plugin: str
    hook: str
    calls: int
    total_us: float
    p50_us: float
    p99_us: float


class Stopwatch:
    """The laps of every hook of a core's plugins."""

    def __init__(self) -> None:
        self._laps: dict[tuple[str, str], list[int]] = {}

    def attach(self, core: Core) -> None:
        for profile in core.profiles.values():
            for plugin in profile.plugins:
                for hook in _HOOKS:
                    if callable(getattr(plugin, hook, None)):
                        self._wrap(plugin, hook)

    def _wrap(self, plugin: Plugin, hook: str) -> None:
        laps = self._laps.setdefault((name_of(plugin), hook), [])
        called: Callable[..., Any] = getattr(plugin, hook)

        def timed(*args: Any, **named: Any) -> Any:
            start = perf_counter_ns()
            try:
                return called(*args, **named)
            finally:
                laps.append(perf_counter_ns() - start)

        setattr(plugin, hook, timed)

    def table(self) -> list[Timed]:
        """Hooks that were called, the dearest first."""
        rows = [
            Timed(plugin, hook, len(laps), sum(laps) / 1000, percentile(laps, 50) / 1000, percentile(laps, 99) / 1000)
            for (plugin, hook), laps in self._laps.items()
            if laps
        ]
        return sorted(rows, key=lambda row: -row.total_us)
