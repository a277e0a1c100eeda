"""Everything learned about one pod in one attempt.

A Decision is what `schedule()` returns.  Logs, metrics, Events, explanations and the web page are renderings of
it; nothing else remembers why a pod is where it is.  It keeps columns — one code and one bit set per row — and
makes sentences only when someone asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from kubesched.api.time import Instant
from kubesched.cluster.types import Rows, Scores
from kubesched.framework.remarks import Remarks
from kubesched.framework.status import SUCCESS, Code, Status, unresolvable
from kubesched.framework.vector import Verdict

if TYPE_CHECKING:
    from kubesched.cluster.podinfo import PodInfo

NO_NODES = "no nodes available to schedule pods"


class Outcome(Enum):
    PLACED = "placed"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


class Rejection(NamedTuple):
    """The rows one plugin turned down, and its answers for them."""

    plugin: str
    rows: Rows
    verdict: Verdict


_SILENT = unresolvable()


class Rejected:
    """Which nodes were turned down, by whom and why.  What a post_filter plugin is given.

    Nodes nobody was asked about share one answer: that of the pre_filter that ruled them out.
    """

    def __init__(self, names: list[str], node_count: int) -> None:
        self.names = names  # by row
        self.node_count = node_count
        self.parts: list[Rejection] = []
        self.absent: Status = _SILENT
        self.one_by_one: dict[int, Status] = {}  # rows judged alone: a nominated node, an extender's word

    def __len__(self) -> int:
        """How many nodes have an answer of their own."""
        return len(self._rows_judged)

    @property
    def _rows_judged(self) -> set[int]:
        rows = set(self.one_by_one)
        for part in self.parts:
            rows.update(part.rows.tolist())
        return rows

    def add(self, plugin: str, rows: Rows, verdict: Verdict) -> None:
        self.parts.append(Rejection(plugin, rows, verdict))

    def status(self, row: int) -> Status:
        """What was answered for a row: the plugin is filled in where one gave the answer."""
        for part in reversed(self.parts):
            found = np.flatnonzero(part.rows == row)
            if len(found):
                return part.verdict.status(int(found[0])).by(part.plugin)
        return self.one_by_one.get(row, self.absent)

    def each(self) -> Iterator[tuple[int, Status]]:
        """Every row with an answer of its own."""
        for part in self.parts:
            for i, row in enumerate(part.rows.tolist()):
                yield row, part.verdict.status(i).by(part.plugin)
        later = {row for part in self.parts for row in part.rows.tolist()}
        yield from ((row, status) for row, status in self.one_by_one.items() if row not in later)

    def rows_with(self, code: Code, all_rows: Rows) -> Rows:
        """The rows whose answer has exactly this code, in the given order."""
        codes = np.full(int(all_rows.max(initial=-1)) + 1, self.absent.code, dtype=np.uint8)
        for row, status in self.one_by_one.items():
            codes[row] = status.code
        for part in self.parts:
            codes[part.rows] = part.verdict.codes
        return all_rows[codes[all_rows] == code] if len(all_rows) else all_rows

    def counts(self) -> dict[str, int]:
        """How many nodes gave each reason."""
        totals: dict[str, int] = {}
        judged_again: set[int] = set()
        for part in self.parts:
            if self.one_by_one:
                judged_again.update(part.rows.tolist())
            for reason, count in part.verdict.counts().items():
                totals[reason] = totals.get(reason, 0) + count
        alone = [status for row, status in self.one_by_one.items() if row not in judged_again]
        for status in alone:
            for reason in status.reasons:
                totals[reason] = totals.get(reason, 0) + 1
        silent = self.node_count - len(alone) - sum(len(part.rows) for part in self.parts)
        if silent > 0:
            for reason in self.absent.reasons:
                totals[reason] = totals.get(reason, 0) + silent
        return totals


class PostFilterResult(NamedTuple):
    """What post_filter plugins made of it: a status, perhaps a nomination, and the pods to evict."""

    status: Status
    node: str | None = None  # None keeps an earlier nomination, "" takes it back
    victims: tuple[PodInfo, ...] = ()


class Columns(Protocol):
    """Columns of a moment that has passed, kept by somebody else."""

    def fill(self, decision: Decision) -> None:
        """Write feasible, rejected, rejectors, scores, totals and the best rows into a decision."""
        ...


_NO_ROWS: Rows = np.empty(0, dtype=np.int32)
_NOBODY: frozenset[str] = frozenset()


class Decision:
    """The account of one attempt.  Written by `schedule()` and the flight that follows; read by everyone else."""

    def __init__(
        self,
        pod: PodInfo,
        profile: str,
        number: int,
        at: Instant,
        names: list[str],
        node_count: int,
        remarks: Remarks | None = None,
    ) -> None:
        self.pod = pod.key
        self.uid = pod.uid
        self.profile = profile
        self.number = number
        self.at = at
        self.node_count = node_count
        self.outcome = Outcome.UNSCHEDULABLE
        self.node = ""
        self.pre_filter: Status | None = None  # set when a pre_filter turned the pod down for all nodes
        self.pre_filter_nodes: tuple[str, ...] | None = None  # set when pre_filters narrowed the nodes
        self._rejected = Rejected(names, node_count)
        self._feasible: Rows = _NO_ROWS
        self._scores: dict[str, Scores] = {}
        self._totals: Scores | None = None
        self._best_rows: Rows = _NO_ROWS
        self.columns: Columns | None = None  # where the columns are kept until somebody asks for them
        self.tie_rule = ""
        self.post_filter: PostFilterResult | None = None
        self.nominate: str | None = None  # promise room on this node; "" takes a promise back, None keeps it
        self.verdicts: dict[str, Verdict] | None = None  # every filter's word on every node, if that was asked for
        self.asked: Rows = _NO_ROWS  # those nodes, in the order of the words
        self.after: Status | None = None  # a no after the node was chosen: reserve, permit, pre_bind, bind
        self.error = ""
        self.accident = False  # a plugin raised what it did not mean to say, and that ended the attempt
        self._rejectors: frozenset[str] = _NOBODY
        self.pending: frozenset[str] = _NOBODY
        self.next_start = 0
        self.remarks = Remarks() if remarks is None else remarks

    def __repr__(self) -> str:
        return f"Decision({self.pod!r}, {self.node or self.outcome.value})"

    @property
    def names(self) -> list[str]:
        """Node names by row."""
        return self._rejected.names

    # ── columns, fetched when first asked for ────────────────────────────────────────────────────────────────

    def _fetch(self) -> None:
        columns, self.columns = self.columns, None
        if columns is not None:
            columns.fill(self)

    @property
    def rejected(self) -> Rejected:
        """Which nodes were turned down, by whom and why."""
        self._fetch()
        return self._rejected

    @property
    def feasible(self) -> Rows:
        """The rows that passed every filter, in the order they were tried."""
        self._fetch()
        return self._feasible

    @feasible.setter
    def feasible(self, rows: Rows) -> None:
        self._feasible = rows

    @property
    def scores(self) -> dict[str, Scores]:
        """Plugin → normalised and weighted scores, one per feasible row."""
        self._fetch()
        return self._scores

    @scores.setter
    def scores(self, scores: dict[str, Scores]) -> None:
        self._scores = scores

    @property
    def totals(self) -> Scores | None:
        """The sum of all scores per feasible row; None where nothing was scored."""
        self._fetch()
        return self._totals

    @totals.setter
    def totals(self, totals: Scores | None) -> None:
        self._totals = totals

    @property
    def best_rows(self) -> Rows:
        """The rows tied for the highest total, in the order of the table."""
        self._fetch()
        return self._best_rows

    @best_rows.setter
    def best_rows(self, rows: Rows) -> None:
        self._best_rows = rows

    @property
    def rejectors(self) -> frozenset[str]:
        """The plugins that turned the pod down, on some node or altogether."""
        self._fetch()
        return self._rejectors

    @rejectors.setter
    def rejectors(self, plugins: frozenset[str]) -> None:
        self._rejectors = plugins

    @property
    def best(self) -> tuple[str, ...]:
        """The nodes tied for the highest total, by name."""
        return tuple(sorted(self.names[row] for row in self.best_rows.tolist()))

    def note(self, text: str) -> None:
        self.remarks.add(text)

    @property
    def notes(self) -> list[str]:
        """What the core and the plugins remarked on the way, sentence by sentence."""
        return list(self.remarks)

    @property
    def placed(self) -> bool:
        return self.outcome is Outcome.PLACED

    @property
    def evaluated(self) -> int:
        """How many nodes were looked at."""
        return len(self.feasible) + len(self.rejected)

    @property
    def feasible_nodes(self) -> list[str]:
        return [self.names[row] for row in self.feasible.tolist()]

    def status(self, node: str) -> Status:
        """What the search said of a node: SUCCESS where the pod fits."""
        rows = [row for row, name in enumerate(self.names) if name == node]
        if not rows:
            raise KeyError(node)
        return SUCCESS if rows[0] in self.feasible else self.rejected.status(rows[0])

    def scores_of(self, node: str) -> Mapping[str, int]:
        """What each plugin contributed to a feasible node's total."""
        index = self.feasible_nodes.index(node)
        return {plugin: int(scores[index]) for plugin, scores in self.scores.items()}

    @property
    def message(self) -> str:
        """What an operator reads in the FailedScheduling event; empty for a pod that was placed."""
        # Not kept: whoever asks while the pod is in flight must not settle what is said after its flight has failed.
        return self._found if self.after is None else _single_node(self.after)

    @cached_property
    def _found(self) -> str:
        """What the search itself came to."""
        if self.outcome is Outcome.ERROR:
            return self.error
        if self.outcome is Outcome.PLACED:
            return ""
        if self.node_count == 0:
            return NO_NODES
        text = f"0/{self.node_count} nodes are available:"
        if self.pre_filter is not None:
            text += f" {self.pre_filter.message}."
        else:
            text += _counted(self.rejected.counts())
        if self.post_filter is not None and self.post_filter.status.message:
            text += f" {self.post_filter.status.message}"
        return text


def _counted(counts: Mapping[str, int]) -> str:
    lines = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f" {', '.join(lines)}." if lines else ""


def _single_node(status: Status) -> str:
    if status.rejected:
        return "0/1 nodes are available:" + _counted(dict.fromkeys(status.reasons, 1))
    return status.message
