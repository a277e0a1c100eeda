"""A Decision in sentences: where a pod goes and why there, or why nowhere and what is lacking where it is closest.

Everything printed goes through `plain`: names and messages come from strangers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.explain.lacking import Objection, closest, objections
from kubesched.explain.waking import retried_when
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.plain import plain
from kubesched.framework.profile import Profile

Detail = Literal["text", "wide"]

_TOP = {"text": 5, "wide": 20}  # nodes shown of those that fit
_CLOSEST = {"text": 5, "wide": 20}  # and of those that do not
_NAMED = 8  # victims, tied nodes


def told(decision: Decision, pod: PodInfo, nodes: Nodes, profile: Profile, detail: Detail = "text") -> Iterator[str]:
    """The account of an exhaustive decision, line by line.

    Args:
        nodes: all nodes, as they were when it was taken.
    """
    if decision.outcome is Outcome.PLACED:
        yield from _placed(decision, detail)
    elif decision.outcome is Outcome.ERROR:
        yield f"{plain(decision.pod)}  could not be decided: {plain(decision.error)}"
    else:
        yield from _unplaced(decision, pod, nodes, profile, detail)
    if detail == "wide" and decision.outcome is not Outcome.ERROR:
        yield from _everywhere(decision, pod, nodes)
    for note in decision.notes:
        yield f"note: {plain(note)}"


# ── it goes somewhere ────────────────────────────────────────────────────────────────────────────────────────


def _placed(decision: Decision, detail: Detail) -> Iterator[str]:
    ranked = ranking(decision)
    yield f"{plain(decision.pod)}  goes to {plain(decision.node)}{_ahead(decision, ranked)}"
    if decision.totals is not None:
        yield from _scores(decision, ranked[: _TOP[detail]], whole=detail == "wide")
        if len(ranked) > 1 and len(decision.best) == 1:
            yield f"  decided by  {_margin(decision, ranked[0], ranked[1])}"
    fits = f"{len(decision.feasible):,} of {decision.node_count:,} nodes"
    reasons = _reasons(decision)
    yield f"fits {fits}" + (f"; the others:  {reasons}" if reasons else "")


def ranking(decision: Decision) -> list[int]:
    """Positions among the feasible nodes, the chosen one first, then by total and name."""
    names = decision.feasible_nodes
    totals = [0] * len(names) if decision.totals is None else decision.totals.tolist()
    return sorted(range(len(names)), key=lambda at: (names[at] != decision.node, -totals[at], names[at]))


def _ahead(decision: Decision, ranked: Sequence[int]) -> str:
    if len(ranked) == 1:
        return ": no other node fits"
    if decision.totals is None:
        return ": it had been promised room there"
    total = int(decision.totals[ranked[0]])
    if len(decision.best) > 1:
        others = [name for name in decision.best if name != decision.node]
        more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
        rule = "the smallest name is shown" if decision.tie_rule == "name" else f"tie rule {decision.tie_rule}"
        return f": total {total}, as good as {', '.join(map(plain, others[:_NAMED]))}{more} ({rule})"
    second = ranked[1]
    margin = total - int(decision.totals[second])
    return f": total {total}, {margin} ahead of {plain(decision.feasible_nodes[second])}"


def _margin(decision: Decision, first: int, second: int) -> str:
    """What made the difference between two nodes, the largest part first."""
    parts = [(plugin, int(scores[first]) - int(scores[second])) for plugin, scores in decision.scores.items()]
    parts = sorted((part for part in parts if part[1]), key=lambda part: -abs(part[1]))
    return " · ".join(f"{plain(plugin)} {_signed(difference)}" for plugin, difference in parts)


def _signed(number: int) -> str:
    return f"+{number}" if number > 0 else f"−{-number}"


def _scores(decision: Decision, positions: Sequence[int], whole: bool) -> Iterator[str]:
    """A table of totals and every plugin's part in them; columns of zeros only in the whole one."""
    names, totals = decision.feasible_nodes, decision.totals
    assert totals is not None, "only scored nodes are shown"
    plugins = [plugin for plugin, scores in decision.scores.items() if whole or any(scores[at] for at in positions)]
    rows = [["node", "total", *map(plain, plugins)]]
    for at in positions:
        rows.append([plain(names[at]), str(int(totals[at])), *(str(int(decision.scores[p][at])) for p in plugins)])
    yield from aligned(rows)


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table in plain text: the first column to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        yield "  " + "  ".join([row[0].ljust(widths[0]), *cells]).rstrip()


# ── it goes nowhere ──────────────────────────────────────────────────────────────────────────────────────────


def _unplaced(decision: Decision, pod: PodInfo, nodes: Nodes, profile: Profile, detail: Detail) -> Iterator[str]:
    fits = f"0 of {decision.node_count:,} nodes fit"
    yield f"{plain(decision.pod)}  unschedulable: {fits if decision.node_count else plain(decision.message)}"
    reasons = _reasons(decision)
    if reasons:
        yield f"  {reasons}"
    near = closest(decision, pod, nodes, _CLOSEST[detail])
    if near:
        yield "  closest: " + " · ".join(f"{plain(node.name)} ({_briefly(noes)})" for node, noes in near)
    yield from _preemption(decision)
    when = retried_when(profile.plugins, decision.rejectors)
    if when:
        yield f"  retried when: {when}"
    if near:
        node, noes = near[0]
        yield from _why_not(decision, node, noes)


def _reasons(decision: Decision) -> str:
    """Reasons with how many nodes gave them, the most frequent first."""
    if decision.pre_filter is not None:
        by = f" [{plain(decision.pre_filter.plugin)}]" if decision.pre_filter.plugin else ""
        return f"{plain(decision.pre_filter.message)}{by}"
    counts = sorted(decision.rejected.counts().items(), key=lambda item: (-item[1], item[0]))
    return " · ".join(f"{count:,} {plain(reason)}" for reason, count in counts)


def _briefly(noes: Sequence[Objection]) -> str:
    return " and ".join(no.brief for no in noes)


def _preemption(decision: Decision) -> Iterator[str]:
    result = decision.post_filter
    if result is None:
        return
    if result.node and result.victims:
        victims = [f"{plain(victim.key)} (priority {victim.priority})" for victim in result.victims]
        more = f" and {len(victims) - _NAMED:,} more" if len(victims) > _NAMED else ""
        room = f"  preemption makes room on {plain(result.node)}, evicting "
        yield room + ", ".join(victims[:_NAMED]) + more
    elif result.status.message:
        yield f"  no room can be made: {plain(result.status.message)}"


# ── one node, and all nodes ──────────────────────────────────────────────────────────────────────────────────


def why_not(decision: Decision, pod: PodInfo, nodes: Nodes, name: str) -> Iterator[str]:
    """Why a pod does not go to this node: who says no and what is lacking, or how it compares with the chosen one.

    Raises KeyError for a node that is not there.
    """
    node = nodes.named(name)
    if node is None:
        raise KeyError(name)
    noes = objections(decision, pod, node)
    if noes or decision.pre_filter is not None:
        yield from _why_not(decision, node, noes)
        return
    ranked = ranking(decision)
    at = decision.feasible_nodes.index(name)
    place = ranked.index(at) + 1
    if name == decision.node:
        yield f"{plain(name)}?  it is the node that was chosen"
    elif decision.totals is None:
        yield f"why not {plain(name)}?  it would fit; nothing was scored"
    else:
        behind = int(decision.totals[ranked[0]]) - int(decision.totals[at])
        chosen = plain(decision.node)
        if not behind:
            yield f"why not {plain(name)}?  it is as good as {chosen}: one of several best nodes is taken"
        else:
            yield f"why not {plain(name)}?  it fits, place {place:,} of {len(ranked):,}, {behind} behind {chosen}"
            yield f"  {_margin(decision, at, ranked[0])}"
    if decision.totals is not None:
        yield from _scores(decision, list(dict.fromkeys((ranked[0], at))), whole=False)


def _why_not(decision: Decision, node: NodeInfo, noes: Sequence[Objection]) -> Iterator[str]:
    question = f"why not {plain(node.name)}?  "
    if decision.pre_filter is not None:
        yield f"{question}{_reasons(decision)}: no node was looked at"
        return
    for i, no in enumerate(noes):
        rest = "      (all other filters pass)" if i == len(noes) - 1 and decision.verdicts else ""
        yield f"{question if not i else ' ' * len(question)}{no}{rest}"


def _everywhere(decision: Decision, pod: PodInfo, nodes: Nodes) -> Iterator[str]:
    """Every node that was turned down, one line each."""
    if decision.pre_filter is not None or not decision.verdicts:
        return
    fits = set(decision.feasible.tolist())
    down = [node for node in nodes if node.row not in fits]
    if down:
        yield "turned down:"
    for node in sorted(down, key=lambda node: node.name):
        noes = objections(decision, pod, node)
        yield f"  {plain(node.name)}  {'; '.join(map(str, noes))}"
