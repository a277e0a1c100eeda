"""What happens in a cluster, on a terminal: its nodes, its pods, the queue, and the latest moves."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from kubesched.drive.tap import Moment
from kubesched.framework.plain import plain
from kubesched.live.cluster import EmbeddedCluster
from kubesched.telemetry.words import sentence

REFRESH_SECONDS = 0.5
NODES_SHOWN, LINES_SHOWN = 12, 8
_TOLD = ("admitted", "gated", "bound", "unfit", "broke", "bound_elsewhere")

Json = dict[str, Any]


class Dashboard:
    """A picture of a cluster, drawn anew whenever it is asked for."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._lines: deque[str] = deque(maxlen=LINES_SHOWN)
        if cluster.tap is not None:
            cluster.tap.listeners.append(self._hear)

    def _hear(self, moment: Moment) -> None:
        self._lines.extend(sentence(record) for record in moment.records if record.cause in _TOLD)

    def __rich__(self) -> RenderableType:
        store = self._cluster.server.store
        pods = [stored.obj for stored in store.list("pods").items]
        nodes = [stored.obj for stored in store.list("nodes").items]
        parts: list[RenderableType] = [self._nodes(nodes, pods), Text(_phases(pods))]
        if self._cluster.core is not None:
            counts = self._cluster.core.queue.counts()
            queue = " · ".join(f"{count} {name}" for name, count in counts.items())
            parts.append(Text(f"queue   {queue} · {len(self._cluster.core.flights)} in flight"))
        parts += [Text(line, style="dim") for line in self._lines]
        return Group(*parts)

    def _nodes(self, nodes: list[Json], pods: list[Json]) -> Table:
        on = Counter((pod.get("spec") or {}).get("nodeName") for pod in pods)
        table = Table(box=None, pad_edge=False)
        for name in ("node", "zone", "pods", ""):
            table.add_column(name, justify="right" if name == "pods" else "left")
        for node in nodes[:NODES_SHOWN]:
            meta, spec = node["metadata"], node.get("spec") or {}
            zone = (meta.get("labels") or {}).get("topology.kubernetes.io/zone", "")
            taints = ", ".join(str(taint.get("key")) for taint in spec.get("taints") or ())
            table.add_row(plain(meta["name"]), plain(zone), str(on[meta["name"]]), plain(taints))
        if len(nodes) > NODES_SHOWN:
            rest = sum(on[node["metadata"]["name"]] for node in nodes[NODES_SHOWN:])
            table.add_row(f"and {len(nodes) - NODES_SHOWN} more", "", str(rest), "")
        return table


def _phases(pods: list[Json]) -> str:
    phases = Counter((pod.get("status") or {}).get("phase", "Pending") for pod in pods)
    return "pods    " + (" · ".join(f"{count} {plain(phase)}" for phase, count in sorted(phases.items())) or "none")


@contextmanager
def shown(cluster: EmbeddedCluster) -> Iterator[None]:
    """Show a cluster while it lives."""
    board = Dashboard(cluster)
    loop = cluster.world.loop
    with Live(board, console=Console(), auto_refresh=False, transient=True) as live:

        def refresh() -> None:
            live.refresh()
            loop.call_later(REFRESH_SECONDS, refresh)

        loop.call_soon(refresh)
        yield


