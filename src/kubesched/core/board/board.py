"""A Board: the answers for one kind of pod, and how they are brought up to date.

What has happened since the last such pod is one of three things.  Pods came to a few rows or left them: those rows
are asked about again, one by one.  More rows are concerned: they are asked about in columns.  A plugin sees another
cluster than before: it is asked anew, about all rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.table import NodeTable
from kubesched.cluster.types import NO_ROWS, Mask, Rows, joined
from kubesched.core import runner
from kubesched.core.board.history import REMEMBERED, History
from kubesched.core.board.marks import ScoreColumn
from kubesched.core.board.standing import FEW, Standing, WideRows
from kubesched.core.board.verdicts import FilterColumn, NoBoard
from kubesched.core.runner import Broken
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision
from kubesched.framework.hooks import RESTLESS, NodeSubset, Plugin, name_of
from kubesched.framework.profile import Profile
from kubesched.framework.status import Code

__all__ = ["Board", "NoBoard"]

_NOTHING = object()
_NOBODY: dict[str, Rows] = {}
_NEVER = -1


def calm_of(cycle: Cycle) -> tuple[int, int, int]:
    """Numbers that stay the same while nothing happens but pods coming and going."""
    table = cycle.table
    return cycle.objects.clock, table.node_clock, table.neighbours.shape


def asked_of(profile: Profile) -> tuple[Plugin, ...]:
    """The plugins that have a say in where a pod goes, each once."""
    asked = (*profile.pre_filter, *profile.filter, *profile.pre_score, *profile.score)
    return tuple({id(plugin): plugin for plugin in asked}.values())


class Board:
    """The answers for one kind of pod, under one profile.  Arrays are indexed by row of the table."""

    def __init__(self, profile: Profile, table: NodeTable, remembered: int = REMEMBERED) -> None:
        capacity = len(table.generation)
        self.profile = profile
        self.cells = capacity * (3 + 2 * len(profile.filters) + 2 * len(profile.scores))  # its size, at most
        self.history = History(remembered)
        self.standing = Standing(capacity, base=0 if profile.score else 1)
        zeros = np.zeros(capacity, dtype=np.uint8), np.zeros(capacity, dtype=np.int64)
        for array in zeros:
            array.flags.writeable = False
        self.filters = [FilterColumn(tiers, zeros, self.history) for tiers in profile.filters]
        self.scores = [
            ScoreColumn(tiers, profile.weights[tiers.name], self.standing, self.history) for tiers in profile.scores
        ]
        self._active_scores = self.scores
        self._lively_filters: list[FilterColumn] = []  # those asked again when pods come to a row, or leave it
        self._refiltered: list[FilterColumn] = []  # of plugins that follow pods elsewhere
        self._rescored: list[ScoreColumn] = []
        self._reaching = [plugin for plugin in asked_of(profile) if hasattr(plugin, "outlook")]
        self._choosy = [  # their pre_score may look at which nodes are feasible
            plugin for plugin in self._reaching if plugin in profile.pre_score and not hasattr(plugin, "rescore")
        ]
        self._table = table
        self._members = table.members
        self._clock = _NEVER
        self._calm: Hashable = None
        self._outlooks: dict[str, Hashable] = {}
        self._restless: list[Plugin] = []
        self._scratch: dict[type, Any] = {}
        self._skip_filter: set[str] = set()
        self._skip_score: set[str] = set()
        self._current = np.zeros(capacity, dtype=np.bool_)  # rows whose raw scores are those of today
        self._new = np.zeros(capacity, dtype=np.bool_)  # rows that have become feasible, while scores are asked for
        self._feasible: Rows | None = None

    @property
    def feasible(self) -> Rows:
        """The feasible rows, in the order they are tried."""
        if self._feasible is None:
            order = self._table.rows
            self._feasible = order[self.standing.ok[order]]
        return self._feasible

    @property
    def alone(self) -> bool:
        """Whether just one row is feasible."""
        return len(self.standing.best) == 1 and int(np.count_nonzero(self.standing.ok)) == 1

    def serves(self, table: NodeTable) -> bool:
        """Whether it can be brought up to date; if not, a new one must take its place."""
        same = table is self._table and table.members == self._members
        return same and (self._clock == _NEVER or table.remembers(self._clock))

    # ── one pod ──────────────────────────────────────────────────────────────────────────────────────────────

    def decide(self, cycle: Cycle) -> WideRows:
        """Bring the board up to date; returns the best rows, none where the pod fits nowhere.  Raises NoBoard."""
        cycle.scratch, cycle.skip_filter, cycle.skip_score = self._scratch, self._skip_filter, self._skip_score
        try:
            if self._clock == _NEVER:
                self._build(cycle)
            else:
                self._update(cycle)
        except NoBoard:
            self._members = _NEVER  # half up to date: nothing of this can be trusted
            raise
        except Broken as broken:
            self._members = _NEVER
            raise NoBoard from broken
        cycle.scratch = dict(self._scratch)  # what its flight writes is its own
        self.standing.settle()
        return self.standing.best

    def _build(self, cycle: Cycle) -> None:
        self._clock = cycle.table.clock
        self._with_new_outlook(cycle)
        self._ask_pre_filters(cycle, self.profile.pre_filter)
        rows = cycle.nodes.rows
        for column in self.filters:
            if column.active:
                column.ask(cycle, rows)
        self.standing.enter(rows[self._passes(rows)])
        self._ask_pre_scores(cycle, self.profile.pre_score)
        for score in self._active_scores:
            score.fill(cycle, self.feasible)
        self._current[:] = self.standing.ok
        self.history.clear()

    def _update(self, cycle: Cycle) -> None:
        table = cycle.table
        anew = self._with_new_outlook(cycle)
        if table.clock == self._clock and not anew:
            return
        changed, touched = table.changes_since(self._clock)
        self._clock = table.clock
        self.history.begin()
        told = self._follow(cycle, self._refiltered, anew) if self._refiltered else _NOBODY
        if changed or anew or not _few(touched, told):
            came, left = self._refilter(cycle, _rows(changed), _rows(touched), anew, told)
        else:
            came, left = self._refilter_few(cycle, touched, told)
        moved = bool(len(came) or len(left))
        if moved:
            self.standing.leave(left)
            self.standing.enter(came)
            self._feasible = None
            anew += [plugin for plugin in self._choosy if plugin not in anew]
        told = self._follow(cycle, self._rescored, anew, moved) if self._rescored else _NOBODY
        if changed or anew or len(came) + len(left) > FEW or not _few(touched, told):
            self._rescore(cycle, _rows(changed), _rows(touched), anew, told, came, left)
        else:
            self._rescore_few(cycle, touched, told, came.tolist(), left.tolist())

    def _with_new_outlook(self, cycle: Cycle) -> list[Plugin]:
        """The plugins that see another cluster than last time.

        An outlook can only change with the objects, the nodes or the groups of pods with affinity; while those are
        as they were, only plugins that are restless have anything new to see.
        """
        calm = calm_of(cycle)
        if calm == self._calm:
            return list(self._restless)
        self._calm = calm
        changed, self._restless = [], []
        for plugin in self._reaching:
            name = name_of(plugin)
            outlook = plugin.outlook(cycle, cycle.pod)
            if outlook is RESTLESS:
                self._restless.append(plugin)
            if outlook is RESTLESS or outlook != self._outlooks.get(name, _NOTHING):
                self._outlooks[name] = outlook
                changed.append(plugin)
        unconcerned = {name for name, outlook in self._outlooks.items() if outlook is None}
        self._refiltered = [one for one in self.filters if one.follows and one.tiers.name not in unconcerned]
        self._rescored = [one for one in self.scores if one.follows and one.tiers.name not in unconcerned]
        return changed

    def _follow(
        self, cycle: Cycle, columns: Iterable[FilterColumn | ScoreColumn], anew: list[Plugin], *moved: bool
    ) -> dict[str, Rows]:
        """Let plugins that keep count of pods look at what has moved: by name, the rows with perhaps another answer.

        One that answers None is asked anew.
        """
        told: dict[str, Rows] = {}
        for column in columns:
            plugin = column.tiers.plugin
            if plugin not in anew:
                hook = "rescore" if moved else "refilter"
                rows = runner.asked("", plugin, hook, cycle, cycle.pod, *moved)
                if rows is None:
                    anew.append(plugin)
                elif isinstance(rows, np.ndarray):
                    told[column.tiers.name] = rows
                else:
                    raise Broken(column.tiers.name, f"{hook} must return rows or None, not {rows!r}")
        return told

    # ── filters ──────────────────────────────────────────────────────────────────────────────────────────────

    def _refilter_few(self, cycle: Cycle, touched: list[int], told: Mapping[str, Rows]) -> tuple[Rows, Rows]:
        """Ask again about a few rows on which pods came or went.  Which became feasible, and which no longer are."""
        nodes = [NodeInfo(cycle.table, row) for row in touched]
        flipped: dict[int, None] = {}
        for column in self._lively_filters:
            for node in nodes:
                if column.ask_one(cycle, node):
                    flipped[node.row] = None
        for column in self._refiltered:
            if column.active:
                for row in told[column.tiers.name].tolist():
                    if column.ask_one(cycle, NodeInfo(cycle.table, row)):
                        flipped[row] = None
        for row in touched:
            self._current[row] = False
        return self._turned(_rows(list(flipped))) if flipped else (NO_ROWS, NO_ROWS)

    def _refilter(
        self, cycle: Cycle, changed: Rows, touched: Rows, anew: Sequence[Plugin], told: Mapping[str, Rows]
    ) -> tuple[Rows, Rows]:
        """Ask again wherever an answer may have changed.  Which rows became feasible, and which no longer are."""
        awake = {column.tiers.name for column in self.filters if column.active}
        self._ask_pre_filters(cycle, [plugin for plugin in self.profile.pre_filter if plugin in anew])
        flipped = []
        for column in self.filters:
            name = column.tiers.name
            if not column.active:
                flipped.append(column.sleep())
            elif name not in awake or column.tiers.plugin in anew:
                flipped.append(column.ask(cycle, cycle.nodes.rows))
            elif column.follows:
                flipped.append(column.ask(cycle, told.get(name, NO_ROWS)))
            else:
                flipped.append(column.ask(cycle, changed if column.reach == "node" else touched))
        self._current[touched] = False
        return self._turned(joined(*flipped))

    def _turned(self, rows: Rows) -> tuple[Rows, Rows]:
        """Of rows about which some filter changed its mind: those that are feasible now, and those that were."""
        if not len(rows):
            return NO_ROWS, NO_ROWS
        now, before = self._passes(rows), self.standing.ok[rows]
        return rows[now & ~before], rows[before & ~now]

    def _passes(self, rows: Rows) -> Mask:
        """Which rows no filter turns down."""
        passes: Mask = np.ones(len(rows), dtype=np.bool_)
        for column in self.filters:
            if column.rejecting:
                passes &= column.codes[rows] == 0
        return passes

    def _ask_pre_filters(self, cycle: Cycle, plugins: Iterable[Plugin]) -> None:
        """Ask pre_filters; columns whose filter may be skipped fall asleep, others wake up."""
        for plugin in plugins:
            name = name_of(plugin)
            answer = runner.asked(runner.PRE_FILTER, plugin, "pre_filter", cycle, cycle.pod, cycle.nodes)
            if isinstance(answer, NodeSubset):
                raise NoBoard
            status = runner.as_status(answer, name, "pre_filter")
            if status.code is Code.SKIP:
                cycle.skip_filter.add(name)
            elif status.ok:
                cycle.skip_filter.discard(name)
            else:
                raise NoBoard
        for column in self.filters:
            active = column.tiers.name not in cycle.skip_filter
            if active != column.active:
                self.history.note(column, "active", None, column.active)
                column.active = active
        self._lively_filters = [
            column for column in self.filters if column.active and column.reach == "row" and not column.follows
        ]

    # ── scores ───────────────────────────────────────────────────────────────────────────────────────────────

    def _rescore_few(
        self, cycle: Cycle, touched: list[int], told: Mapping[str, Rows], came: list[int], left: list[int]
    ) -> None:
        """Ask again about a few rows, and add up."""
        ok, table = self.standing.ok, cycle.table
        strangers = [NodeInfo(table, row) for row in came if not self._current[row]]
        nodes = [NodeInfo(table, row) for row in touched if ok[row] and row not in came]
        for column in self._active_scores:
            if column.follows:
                others = told.get(column.tiers.name, NO_ROWS).tolist()
                rows = dict.fromkeys([*came, *(row for row in others if ok[row])])
                asked = [NodeInfo(table, row) for row in rows]
            elif column.reach == "row":
                asked = strangers + nodes if strangers else nodes
            else:
                asked = strangers
            if (asked or came or left) and not column.ask_few(cycle, asked, came, left):
                column.normalize(cycle, self.feasible)
        for row in (*came, *touched):
            self._current[row] = ok[row]
        if came:
            self._add_up(_rows(came))

    def _rescore(
        self,
        cycle: Cycle,
        changed: Rows,
        touched: Rows,
        anew: Sequence[Plugin],
        told: Mapping[str, Rows],
        came: Rows,
        left: Rows,
    ) -> None:
        """Ask again wherever a score may have changed, and add up."""
        ok, new = self.standing.ok, self._new
        awake = {column.tiers.name for column in self._active_scores}
        if anew:
            self._ask_pre_scores(cycle, [plugin for plugin in self.profile.pre_score if plugin in anew])
        strangers = came[~self._current[came]] if len(came) else came
        new[came] = True
        turned = len(came) + len(left)
        came_few, left_few = (came.tolist(), left.tolist()) if turned <= FEW else ([], [])
        by_reach: dict[str, tuple[Rows, list[NodeInfo]]] = {}  # most columns are asked about the same rows
        for column in self._active_scores:
            name = column.tiers.name
            if name not in awake or column.tiers.plugin in anew:
                column.fill(cycle, self.feasible)
                continue
            if column.follows:
                asked, nodes = self._feasible_of(cycle, joined(told.get(name, NO_ROWS), came))
            else:
                if column.reach not in by_reach:
                    rows = joined(changed if column.reach == "node" else touched, strangers)
                    by_reach[column.reach] = self._feasible_of(cycle, rows)
                asked, nodes = by_reach[column.reach]
            if len(asked) + turned > FEW:
                enough = column.ask(cycle, asked, came, left, new)
            elif nodes or turned:
                enough = column.ask_few(cycle, nodes, came_few, left_few)
            else:
                continue
            if not enough:
                column.normalize(cycle, self.feasible)
        new[came] = False
        if anew:
            self._current[:] = ok  # what the others hold is not today's
        else:
            self._current[touched] = ok[touched]
            self._current[came] = True
        if awake != {column.tiers.name for column in self._active_scores}:
            self._add_up(self.feasible)
        elif len(came):
            self._add_up(came)

    def _feasible_of(self, cycle: Cycle, rows: Rows) -> tuple[Rows, list[NodeInfo]]:
        """Those of some rows that are feasible; where they are few, also one by one."""
        if not len(rows):
            return rows, []
        rows = rows[self.standing.ok[rows]]
        return rows, [NodeInfo(cycle.table, row) for row in rows.tolist()] if len(rows) <= FEW else []

    def _add_up(self, rows: Rows) -> None:
        totals = np.full(len(rows), self.standing.base, dtype=np.int64)
        for column in self._active_scores:
            totals += column.norm[rows] * column.weight
        self.standing.put(rows, totals)

    def _ask_pre_scores(self, cycle: Cycle, plugins: Iterable[Plugin]) -> None:
        """Ask pre_scores; columns whose score may be skipped fall asleep, others wake up."""
        nodes = Nodes(cycle.table, self.feasible)
        for plugin in plugins:
            name = name_of(plugin)
            answer = runner.asked(runner.PRE_SCORE, plugin, "pre_score", cycle, cycle.pod, nodes)
            status = runner.as_status(answer, name, "pre_score")
            if status.code is Code.SKIP:
                cycle.skip_score.add(name)
            elif status.ok:
                cycle.skip_score.discard(name)
            else:
                raise NoBoard
        for column in self.scores:
            active = column.tiers.name not in cycle.skip_score
            if active != column.active:
                self.history.note(column, "active", None, column.active)
                column.active = active
        self._active_scores = [column for column in self.scores if column.active]

    # ── telling a Decision ───────────────────────────────────────────────────────────────────────────────────

    def fill(self, decision: Decision, version: int, rows: Rows) -> bool:
        """Write the columns of a version into a decision, as the long way would have; False if they are not kept.

        Args:
            rows: all rows, in the order nodes were tried in.
        """
        twins = self.history.at(version, [*self.filters, *self.scores])
        if twins is None:
            return False
        left = rows
        for filtering in self.filters:
            column: FilterColumn = twins[id(filtering)]
            if column.active and len(left):
                turned_down = column.codes[left] != 0
                if turned_down.any():
                    decision.rejected.add(column.tiers.name, left[turned_down], column.verdict(left[turned_down]))
                    left = left[~turned_down]
        decision.rejectors = frozenset(part.plugin for part in decision.rejected.parts)
        decision.feasible = decision.best_rows = left
        if len(left) > 1:
            marks: list[ScoreColumn] = [twins[id(column)] for column in self.scores if twins[id(column)].active]
            decision.scores = {column.tiers.name: column.norm[left] * column.weight for column in marks}
            totals = np.full(len(left), self.standing.base, dtype=np.int64)
            for scores in decision.scores.values():
                totals += scores
            decision.totals = totals
            decision.best_rows = np.sort(left[totals == totals.max()])
        return True


def _few(touched: list[int], told: Mapping[str, Rows]) -> bool:
    count = len(touched)
    for rows in told.values():
        count += len(rows)
    return count <= FEW


def _rows(rows: list[int]) -> Rows:
    return np.array(rows, dtype=np.int32)
