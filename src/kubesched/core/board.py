"""Pods alike are scheduled alike, once: a cache of `schedule()` that is brought up to date instead of filled anew.

Pods of one workload ask the same questions about the same nodes.  A Board keeps the answers for one kind of pod:
each filter's verdict and each score plugin's raw and normalised score, per row of the table.  When the next such
pod comes, only rows that have changed since are asked about again; a plugin whose answers hang on more than the
row itself says so by its `outlook`, and is asked about all rows when that has changed.

Rule: a board never changes an answer.  Whatever it cannot keep exactly — nominated pods, extenders, sampling, a
plugin that declares nothing, a pre_filter that says no — it leaves to the long way.

What a plugin declares (framework/hooks.py, Boarded): whether its answer for a node hangs on the pods there
(`board`), what it reads of a pod (`alike`), and what of the cluster beyond a node's own row (`outlook`).

A Decision does not copy a board's columns.  The board writes down what it changes; columns of a moment that has
passed are made again from there, when somebody asks.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.table import NodeTable
from kubesched.cluster.types import Mask, Rows, Scores
from kubesched.core import runner
from kubesched.core.runner import Broken
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision
from kubesched.framework.hooks import RESTLESS, NodeSubset, Plugin, name_of
from kubesched.framework.profile import MAX_SCORE, MIN_SCORE, Profile, Tiers
from kubesched.framework.status import Code, Status
from kubesched.framework.vector import Verdict

ONE_BY_ONE = 3  # changed rows up to which scalar hooks are quicker than columns
REMEMBERED = 256  # versions of a board that decisions may still ask for
BOARDS_AT_MOST = 256
CELLS_AT_MOST = 64_000_000  # rows times columns over all boards: about half a gigabyte

_NOTHING = object()


def calm_of(cycle: Cycle) -> tuple[int, ...]:
    """Numbers that stay the same while nothing happens but pods coming and going."""
    table = cycle.table
    return cycle.objects.clock, table.node_clock, table.neighbours.shape


class NoBoard(Exception):
    """This pod, at this moment, is left to the long way."""


class FilterColumn:
    """One filter's word on every row.  `active` is False where its pre_filter said SKIP."""

    __slots__ = ("active", "bits", "codes", "more", "reach", "texts", "tiers")

    def __init__(self, tiers: Tiers, capacity: int) -> None:
        self.tiers = tiers
        self.reach = tiers.plugin.board
        self.active = True
        self.codes = np.zeros(capacity, dtype=np.uint8)
        self.bits = np.zeros(capacity, dtype=np.int64)
        self.texts: list[str] = []
        self.more: dict[int, tuple[str, ...]] = {}


class ScoreColumn:
    """One score plugin's word on every row that is feasible."""

    __slots__ = ("active", "norm", "normalizes", "raw", "reach", "tiers", "weight")

    def __init__(self, tiers: Tiers, weight: int, capacity: int) -> None:
        self.tiers = tiers
        self.reach = tiers.plugin.board
        self.weight = weight
        self.active = True
        self.normalizes = hasattr(tiers.plugin, "normalize_score")
        self.raw: Scores = np.zeros(capacity, dtype=np.int64)
        self.norm: Scores = np.zeros(capacity, dtype=np.int64)


class Board:
    """The answers for one kind of pod, under one profile.  Arrays are indexed by row of the table."""

    def __init__(self, profile: Profile, capacity: int) -> None:
        self.profile = profile
        self.cells = capacity * (2 + 2 * len(profile.filters) + 2 * len(profile.scores))  # its size, about
        self.version = 0
        self._table: NodeTable | None = None
        self._members = -1
        self._clock = 0
        self._objects_clock = -1
        self._outlooks: dict[str, Hashable] = {}
        self._scratch: dict[type, Any] = {}
        self._history: deque[tuple[int, list[tuple[Any, str, int | None, Any]]]] = deque(maxlen=REMEMBERED)
        self._undo: list[tuple[Any, str, int | None, Any]] = []
        self._skips: tuple[set[str], set[str]] = set(), set()
        self._skipped: set[str] = set()
        self._live_filters: list[FilterColumn] = []
        self._live_scores: list[ScoreColumn] = []
        self._calm: Hashable = None
        self._restless: list[Plugin] = []
        self._reaching = [plugin for plugin in _asked_of(profile) if hasattr(plugin, "outlook")]
        self.feasible: Rows = np.empty(0, dtype=np.int32)
        self.filters: list[FilterColumn] = []
        self.scores: list[ScoreColumn] = []

    def serves(self, table: NodeTable) -> bool:
        """Whether it can be brought up to date; if not, a new one must take its place."""
        if not self.version:
            return True
        return table is self._table and table.members == self._members and table.remembers(self._clock)

    # ── one pod ──────────────────────────────────────────────────────────────────────────────────────────────

    def decide(self, cycle: Cycle) -> Rows:
        """Bring the board up to date; returns the best rows, none where the pod fits nowhere.  Raises NoBoard."""
        cycle.scratch = self._scratch
        cycle.skip_filter, cycle.skip_score = self._skips
        try:
            self._update(cycle)
        except NoBoard:
            self._members = -1  # half up to date: nothing of this can be trusted
            raise
        except Broken as broken:
            self._members = -1
            raise NoBoard from broken
        self._best: Rows = np.empty(0, dtype=np.int32)
        if len(self.feasible):
            totals = np.where(self.ok, self.totals, -1)
            self._best = np.flatnonzero(totals == totals.max()).astype(np.int32)
        return self._best

    def _update(self, cycle: Cycle) -> None:
        table = cycle.table
        if not self.version:
            self._build(cycle)
            return
        changed, touched = table.changes_since(self._clock)
        reaching = self._with_new_outlook(cycle)
        if not touched and not reaching:
            return
        self._clock = table.clock
        self._undo = []
        if not (changed or reaching) and self._follow(cycle, touched):
            self.version += 1
            self._history.append((self.version, self._undo))
            return
        skips_changed = self._pre_filter(cycle, reaching)
        came = self._refilter(cycle, reaching, changed, touched, skips_changed)
        self._rescore(cycle, reaching, changed, touched, came)
        self._list_live()
        self.version += 1
        self._history.append((self.version, self._undo))

    def _follow(self, cycle: Cycle, touched: list[int]) -> bool:
        """The everyday change: pods came to a few rows, or left, and those still take one more like it.

        False where more has to be done: a verdict or a normalised score has changed.  What was written by then is
        right; it is written again.
        """
        if len(touched) > ONE_BY_ONE:
            return False
        table = cycle.table
        for row in touched:
            node = NodeInfo(table, row)
            for column in self._live_filters:
                if not runner.filter_one(cycle, column.tiers, node).ok or column.codes[row]:
                    return False
            if not self.ok[row]:
                continue  # another filter turns it down, and that one does not look at pods
            total = int(self.totals[row])
            for score in self._live_scores:
                raw = runner.raw_score(cycle, score.tiers, node)
                was = int(score.raw[row])
                if raw == was:
                    continue
                if score.normalizes or not MIN_SCORE <= raw <= MAX_SCORE:
                    return False
                self._undo.append((score, "raw", row, was))
                self._undo.append((score, "norm", row, was))
                score.raw[row] = score.norm[row] = raw
                total += (raw - was) * score.weight
            if total != self.totals[row]:
                self._undo.append((self, "totals", row, int(self.totals[row])))
                self.totals[row] = total
        return True

    def _list_live(self) -> None:
        """The columns that hang on the pods of a row: those asked again when pods come and go."""
        self._live_filters = [column for column in self.filters if column.active and column.reach == "row"]
        self._live_scores = [column for column in self.scores if column.active and column.reach == "row"]
        self._skips = (
            {column.tiers.name for column in self.filters if not column.active} | self._skipped,
            {column.tiers.name for column in self.scores if not column.active},
        )

    # ── from nothing ─────────────────────────────────────────────────────────────────────────────────────────

    def _build(self, cycle: Cycle) -> None:
        table, profile = cycle.table, self.profile
        capacity = len(table.generation)
        self._table, self._members, self._clock = None, table.members, table.clock
        self._scratch = cycle.scratch = {}
        cycle.skip_filter, cycle.skip_score = set(), set()
        self.filters = [FilterColumn(tiers, capacity) for tiers in profile.filters]
        self.scores = [ScoreColumn(tiers, profile.weights[tiers.name], capacity) for tiers in profile.scores]
        self.ok: Mask = np.zeros(capacity, dtype=np.bool_)
        self.totals: Scores = np.full(capacity, 0 if profile.score else 1, dtype=np.int64)
        self._with_new_outlook(cycle)
        for plugin in profile.pre_filter:
            self._ask_pre_filter(cycle, plugin)
        self._apply_skips(cycle.skip_filter)
        nodes = cycle.nodes
        for column in self.filters:
            if column.active:
                self._fill_filter(cycle, column, nodes)
        self._settle_ok(table)
        self._pre_score(cycle, profile.pre_score)
        for score in self.scores:
            if score.active:
                self._fill_score(cycle, score)
        self._list_live()
        self._history.clear()
        self._undo = []
        self.version += 1
        self._table = table

    def _ask_pre_filter(self, cycle: Cycle, plugin: Plugin) -> None:
        name = name_of(plugin)
        where = f'running PreFilter plugin "{name}": '
        answer = runner.asked(where, plugin, "pre_filter", cycle, cycle.pod, cycle.nodes)
        if isinstance(answer, NodeSubset):
            raise NoBoard
        status = runner.as_status(answer, name, "pre_filter")
        if status.code is Code.SKIP:
            cycle.skip_filter.add(name)
        elif status.ok:
            cycle.skip_filter.discard(name)
        else:
            raise NoBoard

    def _apply_skips(self, skipped: set[str]) -> bool:
        changed = False
        known = {column.tiers.name for column in self.filters}
        self._skipped = skipped - known
        for column in self.filters:
            active = column.tiers.name not in skipped
            if active != column.active:
                self._note(column, "active", None, column.active)
                column.active, changed = active, True
                if not active:
                    self._replace(column, "codes", np.zeros_like(column.codes))
        return changed

    def _pre_score(self, cycle: Cycle, plugins: Iterable[Plugin]) -> None:
        nodes = Nodes(cycle.table, self.feasible)
        skipping = {column.tiers.name: column for column in self.scores}
        for plugin in plugins:
            name = name_of(plugin)
            where = f'running PreScore plugin "{name}": '
            status = runner.as_status(
                runner.asked(where, plugin, "pre_score", cycle, cycle.pod, nodes), name, "pre_score"
            )
            if status.code is not Code.SKIP and not status.ok:
                raise NoBoard
            column = skipping.get(name)
            if column is not None and column.active != status.ok:
                self._note(column, "active", None, column.active)
                column.active = status.ok
                if not status.ok:
                    self._renormed(column, np.zeros_like(column.norm))

    # ── filters ──────────────────────────────────────────────────────────────────────────────────────────────

    def _with_new_outlook(self, cycle: Cycle) -> list[Plugin]:
        """The plugins that see another cluster than last time.

        An outlook can only change with the objects, the nodes or the groups of pods with affinity; while those are
        as they were, only plugins that are restless have anything new to see.
        """
        calm = calm_of(cycle)
        if calm == self._calm:
            return self._restless
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
        return changed

    def _pre_filter(self, cycle: Cycle, reaching: Sequence[Plugin]) -> bool:
        """Ask pre_filters again; True if a filter fell asleep or woke up by that."""
        asked = [plugin for plugin in reaching if plugin in self.profile.pre_filter]
        for plugin in asked:
            self._ask_pre_filter(cycle, plugin)
        return self._apply_skips(cycle.skip_filter) if asked else False

    def _refilter(
        self,
        cycle: Cycle,
        reaching: Sequence[Plugin],
        changed: list[int],
        touched: list[int],
        skips_changed: bool,
    ) -> list[int] | None:
        """Ask filters again where their answers may have changed.

        Returns the rows that have become feasible, or None where the feasible rows are the same as before.
        """
        again = [column for column in self.filters if column.active and column.tiers.plugin in reaching]
        anew = [self._fill_filter(cycle, column, cycle.nodes) for column in again]
        for column in self.filters:
            if column.active and column not in again:
                self._refill_filter(cycle, column, changed if column.reach == "node" else touched)
        if skips_changed or any(anew):
            return self._settle_all(cycle.table)
        return self._settle_rows(cycle.table, touched)

    def _settle_all(self, table: NodeTable) -> list[int] | None:
        old = self.ok
        self._note(self, "ok", None, old)
        self._note(self, "feasible", None, self.feasible)
        self.ok = np.zeros_like(old)
        self._settle_ok(table)
        return None if np.array_equal(old, self.ok) else np.flatnonzero(self.ok & ~old).tolist()

    def _settle_rows(self, table: NodeTable, touched: list[int]) -> list[int] | None:
        came: list[int] = []
        toggled = False
        for row in touched:
            ok = bool(table.alive[row]) and not any(column.codes[row] for column in self.filters)
            if ok != self.ok[row]:
                self._set(self, "ok", row, ok)
                toggled = True
                if ok:
                    came.append(row)
        if not toggled:
            return None
        order = table.rows
        self._replace(self, "feasible", order[self.ok[order]])
        return came

    def _fill_filter(self, cycle: Cycle, column: FilterColumn, nodes: Nodes) -> bool:
        """Ask a filter about all rows; True if any answer is another than before."""
        verdict = runner.verdict_of(cycle, column.tiers, nodes)
        _refuse_errors(verdict)
        rows = nodes.rows
        codes, bits = np.zeros_like(column.codes), np.zeros_like(column.bits)
        codes[rows] = verdict.codes
        if not verdict.codes.any() and not column.codes.any():
            return False
        bits[rows] = verdict.bits
        self._replace(column, "codes", codes)
        self._replace(column, "bits", bits)
        self._replace(column, "texts", verdict.texts)
        self._replace(column, "more", {int(rows[i]): reasons for i, reasons in verdict.more.items()})
        return True

    def _refill_filter(self, cycle: Cycle, column: FilterColumn, rows: list[int]) -> None:
        if not rows:
            return
        verdict = Verdict(0)
        verdict.texts = column.texts  # shared: new texts get new bits, old bits keep their meaning
        if len(rows) > ONE_BY_ONE and column.tiers.all is not None:
            nodes = Nodes(cycle.table, np.array(rows, dtype=np.int32))
            fresh = runner.verdict_of(cycle, column.tiers, nodes)
            statuses = [fresh.status(i) for i in range(len(rows))] if fresh.codes.any() else None
        else:
            table = cycle.table
            statuses = [runner.filter_one(cycle, column.tiers, NodeInfo(table, row)) for row in rows]
        for i, row in enumerate(rows):
            status = statuses[i] if statuses is not None else None
            self._write_status(column, row, status)

    def _write_status(self, column: FilterColumn, row: int, status: Status | None) -> None:
        code = 0 if status is None else int(status.code)
        if not code and not column.codes[row]:
            return
        self._set(column, "codes", row, code)
        bits, more = 0, []
        for reason in status.reasons if status is not None else ():
            known = column.texts.index(reason) if reason in column.texts else len(column.texts)
            if known == len(column.texts) and known < 63:
                column.texts.append(reason)
            if known < 63 and not bits >> known & 1:
                bits |= 1 << known
            else:
                more.append(reason)
        self._set(column, "bits", row, bits)
        if more or row in column.more:
            kept = {**column.more, row: tuple(more)}
            if not more:
                del kept[row]
            self._replace(column, "more", kept)

    def _settle_ok(self, table: NodeTable) -> None:
        """Work out from all columns which rows are feasible."""
        order = table.rows
        ok = np.ones(len(order), dtype=np.bool_)
        for column in self.filters:
            if column.active:
                ok &= column.codes[order] == 0
        self.ok[order] = ok
        self.feasible = order[ok]

    # ── scores ───────────────────────────────────────────────────────────────────────────────────────────────

    def _rescore(
        self, cycle: Cycle, reaching: Sequence[Plugin], changed: list[int], touched: list[int], came: list[int] | None
    ) -> None:
        """Ask score plugins again where their answers may have changed, and add up."""
        toggled = came is not None
        reached = self._reaching if toggled else reaching
        was_active = {column.tiers.name: column.active for column in self.scores}
        self._pre_score(cycle, [plugin for plugin in self.profile.pre_score if plugin in reached])
        for column in self.scores:
            if not column.active:
                continue
            if not was_active[column.tiers.name] or column.tiers.plugin in reached:
                self._fill_score(cycle, column)
                continue
            hanging = changed if column.reach == "node" else touched
            rows = list(dict.fromkeys([*(row for row in hanging if self.ok[row]), *(came or ())]))
            moved = self._refill_score(cycle, column, rows)
            if column.normalizes and (moved or toggled):
                self._normalize(cycle, column)

    def _fill_score(self, cycle: Cycle, column: ScoreColumn) -> None:
        raw = np.zeros_like(column.raw)
        if len(self.feasible):
            raw[self.feasible] = runner.raw_scores(cycle, column.tiers, Nodes(cycle.table, self.feasible))
        self._replace(column, "raw", raw)
        self._normalize(cycle, column)

    def _refill_score(self, cycle: Cycle, column: ScoreColumn, rows: list[int]) -> bool:
        if not rows:
            return False
        table = cycle.table
        if len(rows) > ONE_BY_ONE or column.tiers.one is None:
            fresh = runner.raw_scores(cycle, column.tiers, Nodes(table, np.array(rows, dtype=np.int32))).tolist()
        else:
            fresh = [runner.raw_score(cycle, column.tiers, NodeInfo(table, row)) for row in rows]
        moved = False
        for row, score in zip(rows, fresh, strict=True):
            if column.raw[row] != score:
                moved = True
                self._set(column, "raw", row, score)
                if not column.normalizes:
                    if not MIN_SCORE <= score <= MAX_SCORE:
                        raise NoBoard  # the long way says what is wrong with it
                    self._set(self, "totals", row, self.totals[row] + (score - column.norm[row]) * column.weight)
                    self._set(column, "norm", row, score)
        return moved

    def _normalize(self, cycle: Cycle, column: ScoreColumn) -> None:
        norm = np.zeros_like(column.norm)
        if len(self.feasible):
            scores = column.raw[self.feasible]
            if column.normalizes:
                scores = runner.normalized(cycle, column.tiers, scores)
            if int(scores.min()) < MIN_SCORE or int(scores.max()) > MAX_SCORE:
                raise NoBoard
            norm[self.feasible] = scores
        self._renormed(column, norm)

    def _renormed(self, column: ScoreColumn, norm: Scores) -> None:
        """A column's scores have changed, and with them the totals."""
        change = norm - column.norm
        self._replace(column, "norm", norm)
        self._replace(self, "totals", self.totals + (change * column.weight if column.weight != 1 else change))

    # ── history ──────────────────────────────────────────────────────────────────────────────────────────────

    def _note(self, owner: Any, name: str, row: int | None, old: Any) -> None:
        self._undo.append((owner, name, row, old))

    def _replace(self, owner: Any, name: str, new: Any) -> None:
        self._undo.append((owner, name, None, getattr(owner, name)))
        setattr(owner, name, new)

    def _set(self, owner: Any, name: str, row: int, value: Any) -> None:
        array = getattr(owner, name)
        self._undo.append((owner, name, row, array[row]))
        array[row] = value

    def at(self, version: int) -> Board | None:
        """The board as it was at a version; None if that is too long ago.  A copy: nobody else changes it."""
        if version < self.version - len(self._history):
            return None
        twins: dict[int, Any] = {}

        def twin_of(owner: Any) -> Any:
            if id(owner) not in twins:
                twins[id(owner)] = _copy(owner)
            return twins[id(owner)]

        twin: Board = twin_of(self)
        twin.filters = [twin_of(column) for column in self.filters]
        twin.scores = [twin_of(column) for column in self.scores]
        for made, undo in reversed(self._history):
            if made <= version:
                break
            for owner, name, row, old in reversed(undo):
                target = twin_of(owner)
                if row is None:
                    setattr(target, name, old.copy() if isinstance(old, np.ndarray) else old)
                else:
                    getattr(target, name)[row] = old
        return twin

    # ── telling a Decision ───────────────────────────────────────────────────────────────────────────────────

    def fill(self, decision: Decision, rows: Rows) -> None:
        """Write the columns into a decision, as the long way would have; `rows` is the order nodes were tried in."""
        left = rows
        for column in self.filters:
            if not column.active or not len(left):
                continue
            codes = column.codes[left]
            turned_down = codes != 0
            if turned_down.any():
                decision.rejected.add(column.tiers.name, left[turned_down], _verdict(column, left[turned_down]))
                left = left[~turned_down]
        decision.feasible = left
        if len(left) > 1:
            decision.scores = {c.tiers.name: c.norm[left] * c.weight for c in self.scores if c.active}
            decision.totals = self.totals[left]


class BoardColumns:
    """A board's columns at a version, for the Decision that was made then."""

    __slots__ = ("_board", "_order", "_start", "_version")

    def __init__(self, board: Board, version: int, order: Rows, start: int) -> None:
        self._board, self._version, self._order, self._start = board, version, order, start

    def fill(self, decision: Decision) -> None:
        board = self._board.at(self._version)
        if board is None:
            decision.notes.append("the scores and verdicts of this attempt are no longer kept")
        else:
            board.fill(decision, np.roll(self._order, -(self._start % len(self._order))))


def _copy(owner: Any) -> Any:
    twin = object.__new__(type(owner))
    names = owner.__slots__ if hasattr(owner, "__slots__") else owner.__dict__
    for name in names:
        value = getattr(owner, name)
        object.__setattr__(twin, name, value.copy() if isinstance(value, np.ndarray) else value)
    return twin


def _verdict(column: FilterColumn, rows: Rows) -> Verdict:
    verdict = Verdict(0)
    verdict.codes, verdict.bits, verdict.texts = column.codes[rows], column.bits[rows], column.texts
    if column.more:
        verdict.more = {i: column.more[row] for i, row in enumerate(rows.tolist()) if row in column.more}
    return verdict


def _refuse_errors(verdict: Verdict) -> None:
    if (verdict.codes == Code.ERROR).any():
        raise NoBoard


# ── all boards ───────────────────────────────────────────────────────────────────────────────────────────────


class Boards:
    """Boards by profile and signature, the least recently used given up first."""

    def __init__(self, at_most: int = BOARDS_AT_MOST) -> None:
        self._at_most = at_most
        self._boards: OrderedDict[tuple[str, Hashable], Board] = OrderedDict()
        self._signatures: OrderedDict[tuple[str, bytes, Hashable], Hashable] = OrderedDict()
        self._met: OrderedDict[tuple[str, Hashable], None] = OrderedDict()  # kinds of pods met at least once
        self._able: dict[str, bool] = {}
        self._asked: dict[str, tuple[Plugin, ...]] = {}
        self._calm: Hashable = None
        self._context: Hashable = ()
        self.hits = 0

    def __len__(self) -> int:
        return len(self._boards)

    def find(self, cycle: Cycle, profile: Profile) -> Board | None:
        """The board for the cycle's pod; None where there cannot be one."""
        if not self._possible(cycle, profile):
            return None
        signature = self._signature(cycle, profile)
        if signature is None:
            return None
        key = (profile.name, signature)
        board = self._boards.get(key)
        if board is not None and board.serves(cycle.table):
            self._boards.move_to_end(key)
            return board
        if board is None and key not in self._met:
            self._meet(key)
            return None  # a pod that stays the only one of its kind is cheaper the long way
        board = self._boards[key] = Board(profile, len(cycle.table.generation))
        self._make_room()
        return board

    def _meet(self, key: tuple[str, Hashable]) -> None:
        self._met[key] = None
        if len(self._met) > 16 * self._at_most:
            self._met.popitem(last=False)

    def drop(self) -> None:
        """Give all of them up."""
        self._boards.clear()

    def _possible(self, cycle: Cycle, profile: Profile) -> bool:
        able = self._able.get(profile.name)
        if able is None:
            asked = self._asked[profile.name] = _asked_of(profile)
            able = all(getattr(plugin, "board", None) in ("node", "row") for plugin in asked)
            able = self._able[profile.name] = able and not profile.extenders
        undisturbed = not cycle.nominated and not cycle.table.trials
        return able and undisturbed and not cycle.pod.pod.status.nominated_node_name

    def _signature(self, cycle: Cycle, profile: Profile) -> Hashable | None:
        """What the profile's plugins read of a pod; worked out once per distinct pod spec."""
        calm = calm_of(cycle)
        if calm != self._calm:
            self._calm = calm
            asked = (plugin for plugin in self._asked[profile.name] if hasattr(plugin, "context"))
            self._context = tuple(plugin.context(cycle) for plugin in asked)
        key = (profile.name, cycle.pod.fingerprint, self._context)
        known = self._signatures.get(key, _NOTHING)
        if known is _NOTHING:
            known = self._signatures[key] = _signature(cycle, self._asked[profile.name])
            if len(self._signatures) > 16 * self._at_most:
                self._signatures.popitem(last=False)
        return known

    def _make_room(self) -> None:
        newest = next(reversed(self._boards.values()))
        room = min(self._at_most, max(1, CELLS_AT_MOST // newest.cells))
        while len(self._boards) > room:
            self._boards.popitem(last=False)


def _signature(cycle: Cycle, plugins: Sequence[Plugin]) -> Hashable | None:
    parts: list[Hashable] = []
    for plugin in plugins:
        alike = plugin.alike(cycle, cycle.pod) if hasattr(plugin, "alike") else plugin.sign_pod(cycle.pod)
        if alike is None or isinstance(alike, Status):
            return None
        parts.append(alike)
    return tuple(parts)


def _asked_of(profile: Profile) -> tuple[Plugin, ...]:
    """The plugins that have a say in where a pod goes, each once."""
    asked = (*profile.pre_filter, *profile.filter, *profile.pre_score, *profile.score)
    return tuple({id(plugin): plugin for plugin in asked}.values())
