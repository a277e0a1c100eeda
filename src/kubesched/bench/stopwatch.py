"""Where the time goes: how often each hook of each plugin is called, and how long it takes.

A hook is wrapped on the plugin's instance, so that whoever calls it is counted; taking the time costs a good part of a
microsecond a call, which is why a run with a stopwatch gives no figure of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kubesched.bench.throughput import percentile
from kubesched.core.core import Core
from kubesched.framework.hooks import Plugin, name_of
from kubesched.telemetry.laps import HOOKS, wrap_hooks


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
                self._watch(plugin)

    def _watch(self, plugin: Plugin) -> None:
        name = name_of(plugin)
        laps = {hook: self._laps.setdefault((name, hook), []) for hook in HOOKS if hasattr(plugin, hook)}

        def lap(hook: str, took: int, args: tuple[Any, ...], answer: Any) -> None:
            laps[hook].append(took)

        wrap_hooks(plugin, lap)

    def table(self) -> list[Timed]:
        """Hooks that were called, the dearest first."""
        rows = [
            Timed(plugin, hook, len(laps), sum(laps) / 1000, percentile(laps, 50) / 1000, percentile(laps, 99) / 1000)
            for (plugin, hook), laps in self._laps.items()
            if laps
        ]
        return sorted(rows, key=lambda row: -row.total_us)
