"""pod × nodes × profile → Decision.  The algorithm, readable top to bottom.

Pure: it reads the cycle and answers; what follows from the answer (assuming the pod, making its victims go) is
the core's.  Scheduling, explaining, what-if and pod groups all call it.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.trial import Trial
from kubesched.cluster.types import Rows, Scores
from kubesched.core import extenders, runner
from kubesched.core.board import BoardColumns, Boards, NoBoard, WideRows
from kubesched.core.runner import Broken
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision, Outcome
from kubesched.framework.errors import InternalError
from kubesched.framework.profile import Profile
from kubesched.framework.status import Code, unresolvable
from kubesched.framework.steps import Answer, HttpPost
from kubesched.framework.vector import Verdict

_ALWAYS_AT_LEAST = 100  # nodes; sampling starts above that
_PERCENT_AT_LEAST = 5

Attempt = Generator[HttpPost, Answer, Decision]


def schedule(cycle: Cycle, profile: Profile, *, exhaustive: bool = False, boards: Boards | None = None) -> Decision:
    """Decide where the cycle's pod goes, or why nowhere.

    Args:
        boards: answers kept from pods alike.  They never change a decision, only how soon it is there.
        exhaustive: also ask every filter about every node, and score a lone one: for explanations.  The node
            that is chosen, and the reasons, are the same.
    """
    if boards is not None and not exhaustive:
        decision = _by_board(cycle, profile, boards)
        if decision is not None:
            return decision
    steps = attempt(cycle, profile, exhaustive=exhaustive)
    try:
        step = next(steps)
    except StopIteration as done:
        worked_out: Decision = done.value
        return worked_out
    raise InternalError(f"profile {profile.name} has an extender ({step.verb}) and nobody who could call it")


def attempt(cycle: Cycle, profile: Profile, *, exhaustive: bool = False) -> Attempt:
    """The same, stopping wherever an extender must be asked."""
    decision = _blank(cycle, profile)
    cycle.judge = runner.Examiner(profile)
    try:
        if not len(cycle.nodes):
            decision.nominate = ""
            return decision
        feasible = yield from _find(cycle, profile, decision)
        if exhaustive:
            decision.verdicts = _ask_everywhere(cycle, profile, decision)
        if len(feasible):
            yield from _choose(cycle, profile, feasible, decision, lone=exhaustive)
            decision.outcome = Outcome.PLACED
        else:
            yield from _look_for_room(cycle, profile, decision)
    except Broken as broken:
        decision.outcome, decision.error, decision.nominate = Outcome.ERROR, broken.text, ""
        decision.accident = broken.accident
    return decision


def _ask_everywhere(cycle: Cycle, profile: Profile, decision: Decision) -> dict[str, Verdict]:
    """Every filter's word on every node.  A filter that cannot give it leaves a note, and the decision as it is."""
    if decision.pre_filter is not None:
        return {}  # the filters have not been told what they need to know
    decision.asked = cycle.nodes.rows
    verdicts: dict[str, Verdict] = {}
    for tiers in profile.filters:
        if tiers.name not in cycle.skip_filter:
            try:
                verdicts[tiers.name] = runner.verdict_of(cycle, tiers, cycle.nodes)
            except Broken as broken:
                cycle.note(f"{tiers.name} could not be asked about every node: {broken.text}")
    return verdicts


def _blank(cycle: Cycle, profile: Profile) -> Decision:
    decision = Decision(
        cycle.pod, profile.name, cycle.number, cycle.now, cycle.table.share_names(), len(cycle.nodes), cycle.remarks
    )
    decision.next_start = cycle.start
    return decision


def _by_board(cycle: Cycle, profile: Profile, boards: Boards) -> Decision | None:
    """The same decision from answers kept from pods alike; None where the long way must be taken."""
    board = boards.find(cycle, profile) if enough(profile, len(cycle.nodes)) >= len(cycle.nodes) > 0 else None
    if board is None:
        return None
    try:
        best = board.decide(cycle)
    except NoBoard:
        best = None
    if best is None or not len(best):
        cycle.forget()  # the long way begins with nothing
        return None
    decision = _blank(cycle, profile)
    decision.outcome = Outcome.PLACED
    decision.columns = BoardColumns(board, cycle.nodes.rows, cycle.start)
    if board.alone:
        decision.node = decision.names[int(best[0])]
    else:
        _pick(cycle, profile, decision, best)
    boards.hits += 1
    return decision


# ── which nodes can take it ──────────────────────────────────────────────────────────────────────────────────


def _find(cycle: Cycle, profile: Profile, decision: Decision) -> Generator[HttpPost, Answer, Rows]:
    """The nodes that pass every filter, in the order they were tried."""
    before = runner.pre_filter(cycle, profile)
    decision.rejectors = frozenset(before.narrowed_by)
    if before.status.rejected:
        decision.pre_filter = decision.rejected.absent = before.status
        if before.status.plugin:
            decision.rejectors |= {before.status.plugin}
        return decision.feasible

    nodes = cycle.nodes
    nominated = yield from _try_nominated(cycle, profile, decision)
    if nominated is not None:
        return nominated
    if before.names is not None:
        names = before.names
        decision.pre_filter_nodes = tuple(sorted(names))
        nodes = nodes.where(np.array([name in names for name in nodes.names], dtype=np.bool_))
        listed = " ".join(sorted(before.narrowed_by))
        decision.rejected.absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{listed}]")

    feasible = _search(cycle, profile, nodes, decision)
    decision.next_start = (cycle.start + len(feasible) + len(decision.rejected)) % len(cycle.nodes)
    _name_rejectors(decision)
    left = yield from extenders.filter_nodes(cycle, profile, feasible, decision)
    if len(left) != len(feasible):
        decision.rejectors |= {extenders.NAME}
    decision.feasible = left
    return left


def _search(cycle: Cycle, profile: Profile, nodes: Nodes, decision: Decision) -> Rows:
    """Try nodes from where the last search stopped until enough are found.

    Kept from kube-scheduler: the start moves on with every search, so that stopping early does not always favour
    the same nodes; and the search ends when one more than enough has been found, that one not counting.
    """
    count = len(nodes)
    if not count:
        return nodes.rows
    limit = enough(profile, count)
    start = cycle.start % count
    rows = np.roll(nodes.rows, -start) if start else nodes.rows
    if not profile.filters:
        return rows[:limit]
    chunk = count if limit >= count else max(2 * limit, 256)
    found: list[Rows] = []
    missing = limit + 1
    for first in range(0, count, chunk):
        part = rows[first : first + chunk] if chunk < count else rows
        feasible = _filter(cycle, profile, part, decision)
        if len(feasible) >= missing:
            _drop_from(decision, part, feasible[missing - 1])
            feasible = feasible[: missing - 1]
            found.append(feasible)
            break
        missing -= len(feasible)
        found.append(feasible)
    return found[0] if len(found) == 1 else np.concatenate(found)


def _filter(cycle: Cycle, profile: Profile, rows: Rows, decision: Decision) -> Rows:
    """All filters on some rows; rows with nominated pods are examined one by one."""
    special = [row for row in (cycle.table.row_of.get(name) for name in cycle.nominated) if row is not None]
    apart = np.isin(rows, special) if special else np.zeros(len(rows), dtype=np.bool_)
    if not apart.any():
        nodes = cycle.nodes if rows is cycle.nodes.rows else Nodes(cycle.table, rows)
        return runner.filter_rows(cycle, profile.filters, nodes, decision.rejected)
    fits = np.zeros(len(cycle.table.generation), dtype=np.bool_)
    fits[runner.filter_rows(cycle, profile.filters, Nodes(cycle.table, rows[~apart]), decision.rejected)] = True
    for row in rows[apart].tolist():
        fits[row] = _examine(cycle, row, decision)
    return rows[fits[rows]]


def _examine(cycle: Cycle, row: int, decision: Decision) -> bool:
    with Trial(cycle.table) as trial:
        status = cycle.fits(NodeInfo(cycle.table, row), trial)
    if not status.ok:
        decision.rejected.one_by_one[row] = status
    return status.ok


def _try_nominated(cycle: Cycle, profile: Profile, decision: Decision) -> Generator[HttpPost, Answer, Rows | None]:
    """A node the pod was promised is tried first, and alone; if it still fits there, the search is over."""
    name = cycle.pod.pod.status.nominated_node_name
    row = cycle.table.row_of.get(name) if name else None
    if row is None:
        return None
    alone: Rows = np.array([row], dtype=np.int32)
    try:
        if _examine(cycle, row, decision):
            left = yield from extenders.filter_nodes(cycle, profile, alone, decision)
            if len(left):
                decision.feasible = left
                return left
    except Broken as broken:
        cycle.note(f"the nominated node {name} could not be judged: {broken.text}")
    return None


def enough(profile: Profile, count: int) -> int:
    """How many feasible nodes a search needs (numFeasibleNodesToFind)."""
    if not profile.score and not extenders.matter(profile):
        return min(1, count)
    percentage = profile.percentage_of_nodes_to_score
    if percentage is None or count < _ALWAYS_AT_LEAST:
        return count
    if percentage == 0:
        percentage = max(_PERCENT_AT_LEAST, 50 - count // 125)
    return min(count, max(_ALWAYS_AT_LEAST, count * percentage // 100))


def _drop_from(decision: Decision, rows: Rows, last: int) -> None:
    """Forget what was said of the row that was one too many, and of those after it."""
    tried = set(rows[: int(np.flatnonzero(rows == last)[0])].tolist())
    beyond = {row for row in rows.tolist() if row not in tried}
    parts = []
    for plugin, turned_down, verdict in decision.rejected.parts:
        keep = np.array([row not in beyond for row in turned_down.tolist()], dtype=np.bool_)
        parts.append((plugin, turned_down, verdict) if keep.all() else (plugin, turned_down[keep], verdict.take(keep)))
    decision.rejected.parts = []
    for plugin, turned_down, verdict in parts:
        if len(turned_down):
            decision.rejected.add(plugin, turned_down, verdict)
    for row in beyond:
        decision.rejected.one_by_one.pop(row, None)


def _name_rejectors(decision: Decision) -> None:
    names = {part.plugin for part in decision.rejected.parts}
    names.update(status.plugin for status in decision.rejected.one_by_one.values() if status.plugin)
    decision.rejectors |= names
    waiting = {part.plugin for part in decision.rejected.parts if (part.verdict.codes == Code.PENDING).any()}
    alone = decision.rejected.one_by_one.values()
    decision.pending = frozenset(waiting | {status.plugin for status in alone if status.code is Code.PENDING})


# ── which of them is best ────────────────────────────────────────────────────────────────────────────────────


def _choose(
    cycle: Cycle, profile: Profile, feasible: Rows, decision: Decision, lone: bool
) -> Generator[HttpPost, Answer, None]:
    """Score the feasible nodes and pick one; a lone one needs no score."""
    decision.best_rows = feasible
    if len(feasible) == 1:
        decision.node = decision.names[int(feasible[0])]
        if lone:
            try:
                yield from _score(cycle, profile, feasible, decision)
            except Broken as broken:
                decision.scores, decision.totals = {}, None
                cycle.note(f"the only node that fits could not be scored, nor need it be: {broken.text}")
        return
    totals = yield from _score(cycle, profile, feasible, decision)
    decision.best_rows = np.sort(feasible[totals == totals.max()])
    _pick(cycle, profile, decision, decision.best_rows)


def _score(cycle: Cycle, profile: Profile, feasible: Rows, decision: Decision) -> Generator[HttpPost, Answer, Scores]:
    """Every plugin's weighted score of every feasible node, and their sums."""
    nodes = cycle.nodes if feasible is cycle.nodes.rows else Nodes(cycle.table, feasible)
    totals: Scores
    if profile.score or extenders.matter(profile):
        runner.pre_score(cycle, profile, nodes)
        decision.scores = runner.score(cycle, profile, nodes)
        totals = np.zeros(len(nodes), dtype=np.int64)
        for scores in decision.scores.values():
            totals += scores
        extra = yield from extenders.score_nodes(cycle, profile, nodes)
        if extra is not None:
            decision.scores[extenders.NAME] = extra
            totals = totals + extra
    else:
        totals = np.ones(len(nodes), dtype=np.int64)
    decision.totals = totals
    return totals


def _pick(cycle: Cycle, profile: Profile, decision: Decision, best: Rows | WideRows) -> None:
    """One of the best nodes, by the profile's rule."""
    decision.tie_rule = profile.tie
    if len(best) == 1:
        row = best[0]
    elif profile.tie == "name":
        row = min(best.tolist(), key=decision.names.__getitem__)
    elif profile.tie == "first":
        row = cycle.nodes.rows[np.isin(cycle.nodes.rows, best)][0]
    else:
        row = best[cycle.luck.below(len(best), "tie")]
    decision.node = decision.names[int(row)]


# ── if none: can room be made? ───────────────────────────────────────────────────────────────────────────────


def _look_for_room(cycle: Cycle, profile: Profile, decision: Decision) -> Generator[HttpPost, Answer, None]:
    if not profile.post_filter:
        decision.nominate = ""
        return
    found = runner.post_filter(cycle, profile, decision.rejected)
    decision.post_filter = yield from extenders.narrow_victims(cycle, profile, found)
    decision.nominate = decision.post_filter.node
