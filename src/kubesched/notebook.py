"""In a notebook: some nodes, some pods, a plugin of your own, and what comes of it as a table and a picture.

    placed = place([{"name": "n1", "cpu": 4}, {"name": "n2", "cpu": 8}], ["a", "b", "c"], MyPlugin())
    placed                      # the picture
    placed.table("b")           # every node with its verdict and its scores: pandas.DataFrame(…) makes a frame of it

Pods are tried one after the other, each seeing those before it.  Nothing waits and no time passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, TypeAlias

from kubesched.api.objects import Node, Pod
from kubesched.assemble import default_profile
from kubesched.core.core import Core
from kubesched.core.messages import Observed, Synced, Tick
from kubesched.framework.decision import Decision
from kubesched.framework.errors import KubeschedError
from kubesched.framework.hooks import Plugin
from kubesched.framework.profile import Profile
from kubesched.testing.builders import node, pod

Row: TypeAlias = Mapping[str, Any]
Frame: TypeAlias = Any  # a pandas or polars frame, a list of mappings, of names, or of objects

_BAR, _HEIGHT, _GAP, _LEFT = 420, 22, 8, 120  # of the picture, in pixels
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")  # told apart by everybody


class BadFrame(KubeschedError):
    """A row that is no node or no pod; says which, and what was expected."""


def place(nodes: Frame, pods: Frame, *plugins: Plugin, profile: Profile | None = None, seed: int = 0) -> Placed:
    """Schedule pods onto nodes.  Raises BadFrame, ConfigError.

    Args:
        nodes: rows with a `name`, and whatever `kubesched.testing.node` takes: cpu, memory, zone, labels, taints.
            A column called `label.disk` is the label `disk`.
        pods: rows likewise, for `kubesched.testing.pod`; or just names.
        plugins: the profile is made of these alone; kube-scheduler's own profile where there are none.
        profile: instead of plugins.
    """
    if profile is None:
        profile = Profile(*plugins, tie="first") if plugins else default_profile(tie="first")
    core = Core(profile, seed=seed)
    for one in _objects(nodes, Node, node):
        core.handle(Observed(one), core.now)
    core.handle(Synced(), core.now)
    decisions: dict[str, Decision] = {}
    for one in _objects(pods, Pod, pod):
        core.handle(Observed(one), core.now)
        while core.ready:
            core.handle(Tick(), core.now)
            for decision in core.decisions.fresh:
                decisions.setdefault(decision.pod, decision)
    for (kind, key), invalid in core.mirror.invalid.items():
        raise BadFrame(f"{kind.lower()} {key!r}: {invalid.error}")
    return Placed(core, decisions)


class Placed:
    """Where the pods went, and why."""

    def __init__(self, core: Core, decisions: Mapping[str, Decision]) -> None:
        self.core = core
        self.decisions = dict(decisions)

    @property
    def nodes(self) -> dict[str, str | None]:
        """Pod → the node it went to, or None."""
        return {_short(name): decision.node or None for name, decision in self.decisions.items()}

    def why(self, pod: str) -> Decision:
        """The decision about a pod.  Raises KeyError."""
        return self.decisions[pod if "/" in pod else f"default/{pod}"]

    def table(self, pod: str) -> list[dict[str, Any]]:
        """A row for every node: whether the pod fits, who said no and why, and each plugin's score."""
        decision = self.why(pod)
        fits = {name: decision.scores_of(name) for name in decision.feasible_nodes}
        return [
            {"node": name, "fits": name in fits, "chosen": name == decision.node}
            | ({**fits[name], "total": sum(fits[name].values())} if name in fits else _no(decision, name))
            for name in (info.name for info in self.core.nodes)
        ]

    # ── in a notebook ────────────────────────────────────────────────────────────────────────────────────────

    def __repr__(self) -> str:
        return "\n".join(f"{pod} → {node or 'nowhere'}" for pod, node in self.nodes.items())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(_short(pod))}</td><td>{escape(decision.node or 'nowhere')}</td>"
            f"<td style='text-align:left'>{escape(_because(decision))}</td></tr>"
            for pod, decision in self.decisions.items()
        )
        head = "<tr><th>pod</th><th>node</th><th>because</th></tr>"
        return f"{self.picture()}<table>{head}{rows}</table>"

    def picture(self) -> str:
        """The nodes as bars, the pods in them as wide as the cpu they ask for; an SVG."""
        bars: list[str] = []
        for number, info in enumerate(self.core.nodes):
            y = number * (_HEIGHT + _GAP)
            room = info.allocatable("cpu") or 1
            bars.append(f"<text x='{_LEFT - 8}' y='{y + 15}' text-anchor='end'>{escape(info.name)}</text>")
            bars.append(f"<rect x='{_LEFT}' y='{y}' width='{_BAR}' height='{_HEIGHT}' fill='none' stroke='#888'/>")
            x = float(_LEFT)
            for at, guest in enumerate(info.pods):
                width = max(4.0, _BAR * guest.requests.get("cpu", 0) / room)
                colour = _COLOURS[at % len(_COLOURS)]
                bars.append(
                    f"<rect x='{x:.1f}' y='{y}' width='{width:.1f}' height='{_HEIGHT}' fill='{colour}' stroke='white'>"
                    f"<title>{escape(guest.key)}</title></rect>"
                )
                x += width
        high, wide = max(1, len(self.core.nodes)) * (_HEIGHT + _GAP), _LEFT + _BAR + 8
        size = f"width='{wide}' height='{high}' style='font-family:sans-serif;font-size:12px'"
        return f"<svg xmlns='http://www.w3.org/2000/svg' {size}>{''.join(bars)}</svg>"


def _short(pod: str) -> str:
    return pod.removeprefix("default/")


def _no(decision: Decision, name: str) -> dict[str, Any]:
    status = decision.status(name)
    return {"plugin": status.plugin, "reason": ", ".join(status.reasons)}


def _because(decision: Decision) -> str:
    """One line: what was said against it, or by how much its node was ahead."""
    if not decision.placed:
        return decision.message
    if len(decision.feasible) < 2:
        return "the only node that fits"
    if len(decision.best) > 1:
        return f"{len(decision.best)} nodes were equally good"
    ranked = sorted((sum(decision.scores_of(name).values()) for name in decision.feasible_nodes), reverse=True)
    return f"{ranked[0]} points, {ranked[0] - ranked[1]} ahead of the next"


# ── frames ───────────────────────────────────────────────────────────────────────────────────────────────────


def _objects(frame: Frame, kind: type[Any], make: Any) -> Iterable[Any]:
    for number, row in enumerate(_rows(frame)):
        yield row if isinstance(row, kind) else _made(row, kind, make, number)


def _rows(frame: Frame) -> Sequence[Any]:
    if hasattr(frame, "to_dicts"):  # polars
        return list(frame.to_dicts())
    if hasattr(frame, "to_dict"):  # pandas
        return list(frame.to_dict("records"))
    return list(frame)


def _made(row: Any, kind: type[Any], make: Any, number: int) -> Any:
    what = f"row {number} of the {kind.__name__.lower()}s"
    if isinstance(row, str):
        return make(row)
    if not isinstance(row, Mapping) or not isinstance(row.get("name"), str):
        raise BadFrame(f"{what}: expected a name, or columns of which one is called name, not {row!r}")
    given = {str(key): value for key, value in row.items() if value is not None and value == value}  # NaN is nothing
    labels = {key.removeprefix("label."): str(given.pop(key)) for key in list(given) if key.startswith("label.")}
    if labels:
        given["labels"] = {**given.get("labels", {}), **labels}
    try:
        return make(**given)
    except (TypeError, ValueError) as error:
        raise BadFrame(f"{what}, {row['name']!r}: {error}") from None
