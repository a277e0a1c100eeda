"""Runs one hook over the chosen rows: in columns where a plugin offers that, else node by node.

Go asks each node in turn which plugin turns it down first.  Here each plugin is asked in turn about the nodes
that are left; the rejector of a node is the same plugin, and later plugins have less to do.

A plugin that raises, or answers nonsense, ends its pod's attempt and nothing else: `Broken` carries what
kube-scheduler would say, and the attempt becomes an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.trial import Trial
from kubesched.cluster.types import Rows, Scores
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import PostFilterResult, Rejected
from kubesched.framework.errors import InternalError, KubeschedError, shown, words
from kubesched.framework.hooks import RESTLESS, NodeSubset, Nomination, Plugin, name_of
from kubesched.framework.profile import MAX_SCORE, MIN_SCORE, Profile, Tiers
from kubesched.framework.status import SKIP, SUCCESS, Code, Status, error, unresolvable, unschedulable
from kubesched.framework.vector import Verdict

_INT64_MAX = (1 << 63) - 1

# Where something went wrong, as kube-scheduler says it; the plugin's name is filled in when there is need.
PRE_FILTER = 'running PreFilter plugin "{}": '
_FILTER = 'running "{}" filter plugin: '
PRE_SCORE = 'running PreScore plugin "{}": '
_SCORE = 'running Score plugins: plugin "{}" failed with: '
_NORMALIZE = 'running Normalize on Score plugins: plugin "{}" failed with: '


class Broken(KubeschedError):
    """A plugin could not answer; the text is what an operator reads."""

    def __init__(self, plugin: str, text: str) -> None:
        self.plugin, self.text = plugin, text
        super().__init__(text)

    @property
    def accident(self) -> bool:
        """Whether the plugin raised what it did not mean to say."""
        return self.__cause__ is not None and not isinstance(self.__cause__, KubeschedError)


# ── pre_filter ───────────────────────────────────────────────────────────────────────────────────────────────


class PreFiltered(NamedTuple):
    """What all pre_filters said: a status, the nodes they leave (None: all), and who narrowed them."""

    status: Status
    names: frozenset[str] | None
    narrowed_by: tuple[str, ...]


def pre_filter(cycle: Cycle, profile: Profile) -> PreFiltered:
    """Run every pre_filter.  Raises Broken."""
    kept: Status = SUCCESS
    names: frozenset[str] | None = None
    narrowed_by: list[str] = []
    for plugin in profile.pre_filter:
        name = name_of(plugin)
        answer = asked(PRE_FILTER, plugin, "pre_filter", cycle, cycle.pod, cycle.nodes)
        if isinstance(answer, NodeSubset):
            if not _are_names(answer.names):
                raise Broken(name, f"{name}.pre_filter must name nodes in a set of strings, not {shown(answer.names)}")
            narrowed_by.append(name)
            names = answer.names if names is None else names & answer.names
            if not names:
                return PreFiltered(unresolvable(_contradiction(narrowed_by)), names, tuple(narrowed_by))
            continue
        status = as_status(answer, name, "pre_filter")
        if status.code is Code.SKIP:
            cycle.skip_filter.add(name)
        elif status.code is Code.UNRESOLVABLE:
            return PreFiltered(status.by(name), None, ())
        elif status.code is Code.UNSCHEDULABLE:
            kept = status.by(name)  # others may still find it unresolvable
        elif not status.ok:
            raise Broken(name, PRE_FILTER.format(name) + _error_text(status))
    return PreFiltered(kept, names, tuple(narrowed_by))


def _are_names(names: object) -> bool:
    return isinstance(names, (set, frozenset)) and all(isinstance(name, str) for name in names)


def _contradiction(plugins: Sequence[str]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously"


# ── filter ───────────────────────────────────────────────────────────────────────────────────────────────────


def filter_rows(cycle: Cycle, filters: Iterable[Tiers], nodes: Nodes, rejected: Rejected) -> Rows:
    """Ask every filter about the nodes that are left; those turned down go to `rejected`.  Raises Broken."""
    for tiers in filters:
        if tiers.name in cycle.skip_filter or not len(nodes):
            continue
        verdict = verdict_of(cycle, tiers, nodes)
        ok = verdict.ok
        if not ok.all():
            turned_down = ~ok
            rejected.add(tiers.name, nodes.rows[turned_down], verdict.take(turned_down))
            nodes = nodes.where(ok)
    return nodes.rows


def verdict_of(cycle: Cycle, tiers: Tiers, nodes: Nodes) -> Verdict:
    """One filter's answers for a selection of nodes.  Raises Broken."""
    if tiers.all is None:
        verdict = Verdict(len(nodes))
        for i, node in enumerate(nodes):
            status = filter_one(cycle, tiers, node)
            if not status.ok:
                verdict.answer(i, status)
        return verdict
    answer = asked(_FILTER, tiers.plugin, "filter_all", cycle, cycle.pod, nodes)
    where = _FILTER.format(tiers.name)
    if not isinstance(answer, Verdict) or len(answer) != len(nodes):
        raise Broken(tiers.name, f"{where}filter_all must return a Verdict with one answer per node")
    broken = answer.fault
    if broken:
        raise Broken(tiers.name, where + broken)
    return answer


def filter_one(cycle: Cycle, tiers: Tiers, node: NodeInfo) -> Status:
    """One filter's answer for one node.  Raises Broken."""
    if tiers.one is not None:
        try:
            answer = tiers.plugin.filter(cycle, cycle.pod, node)
        except Exception as problem:
            raise _broken(_FILTER, tiers.plugin, problem) from problem
        status = as_status(answer, tiers.name, "filter")
    else:
        alone = Nodes(cycle.table, np.array([node.row], dtype=np.int32))
        status = verdict_of(cycle, tiers, alone).status(0)
    if status.ok or status.rejected:
        return status
    raise Broken(tiers.name, _FILTER.format(tiers.name) + _error_text(status))


def filter_node(cycle: Cycle, profile: Profile, node: NodeInfo) -> Status:
    """The first no of all filters for one node, as things stand.  Raises Broken."""
    for tiers in profile.filters:
        if tiers.name not in cycle.skip_filter:
            status = filter_one(cycle, tiers, node)
            if not status.ok:
                return status.by(tiers.name)
    return SUCCESS


# ── filters, asked about a cluster that is slightly different ────────────────────────────────────────────────


class Examiner:
    """Judges a node under a Trial: tells plugins of its moves, and counts nominated pods in.

    Kept from kube-scheduler: a node with pods nominated to it, of the same or a higher priority, must take the
    pod both with them (they may come) and without them (they may not).
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._trial: Trial | None = None
        self._seen = 0
        self._scratch: dict[type, Any] = {}
        self._minding: list[Tiers] | None = None  # see spare(); None: nobody has asked yet
        self._fine: frozenset[int] = frozenset()

    def __call__(self, cycle: Cycle, node: NodeInfo, trial: Trial) -> Status:
        if trial is not self._trial:
            self._trial, self._seen, self._scratch = trial, 0, cycle.cloned_scratch()
        usual = cycle.scratch
        cycle.scratch = self._scratch
        try:
            self._follow(cycle, trial)
            return self._judge(cycle, node)
        finally:
            cycle.scratch = usual

    def spare(self, cycle: Cycle, node: NodeInfo, others: Sequence[PodInfo]) -> Sequence[PodInfo] | Status | None:
        """Who of `others` cannot stay beside the cycle's pod, worked out rather than tried; None: it must be tried.

        It can be worked out where just one filter minds who is on the node, and offers to do it.
        """
        if self._minding is None:
            try:
                self._minding, self._fine = self._look_for_minding(cycle)
            except Broken:
                self._minding = []  # a trial will tell whose pod it costs
        if not self._minding or node.row not in self._fine or node.name in cycle.nominated:
            return None
        answer = asked(_FILTER, self._minding[0].plugin, "spare", cycle, cycle.pod, node, others)
        if isinstance(answer, Status):
            return as_status(answer, self._minding[0].name, "spare")
        if isinstance(answer, Sequence) and all(isinstance(one, PodInfo) for one in answer):
            return answer
        raise Broken(self._minding[0].name, f"{self._minding[0].name}.spare must return pods, not {shown(answer)}")

    def _look_for_minding(self, cycle: Cycle) -> tuple[list[Tiers], frozenset[int]]:
        """The one filter that minds who is on a node, if it offers spare; and the rows that pass all others."""
        active = [tiers for tiers in self._profile.filters if tiers.name not in cycle.skip_filter]
        minding = [tiers for tiers in active if not _blind(cycle, tiers.plugin)]
        if len(minding) != 1 or not _offers_spare(minding[0].plugin):
            return [], frozenset()
        others = [tiers for tiers in active if tiers is not minding[0]]
        nobody = Rejected([], 0)
        return minding, frozenset(filter_rows(cycle, others, cycle.nodes, nobody).tolist())

    def _follow(self, cycle: Cycle, trial: Trial) -> None:
        for move in trial.log[self._seen :]:
            row = cycle.table.row_of[move.node]
            _tell(cycle, self._profile, move.placed, move.pod, NodeInfo(cycle.table, row))
        self._seen = len(trial.log)

    def _judge(self, cycle: Cycle, node: NodeInfo) -> Status:
        promised = [
            info
            for info in cycle.nominated.get(node.name, ())
            if info.priority >= cycle.pod.priority and info.uid != cycle.pod.uid
        ]
        if promised:
            without = cycle.scratch
            with Trial(cycle.table) as trial:
                cycle.scratch = cycle.cloned_scratch()
                try:
                    for info in promised:
                        trial.place(info, node.name)
                        _tell(cycle, self._profile, True, info, node)
                    status = filter_node(cycle, self._profile, node)
                finally:
                    cycle.scratch = without
            if not status.ok:
                return status
        return filter_node(cycle, self._profile, node)


def _offers_spare(plugin: Plugin) -> bool:
    """Whether it has a spare that goes with its filter: a class that changes the one must change the other."""
    for owner in type(plugin).__mro__:
        if "spare" in vars(owner):
            return getattr(plugin, "spare", None) is not None
        if "filter" in vars(owner) or "filter_all" in vars(owner):
            return False
    return False


def _blind(cycle: Cycle, plugin: Plugin) -> bool:
    """Whether a filter, for the cycle's pod, answers for a node the same whoever is on it: as boards want to know."""
    if getattr(plugin, "board", None) != "node" or hasattr(plugin, "remove_pod") or hasattr(plugin, "refilter"):
        return False
    where = _FILTER
    alike = (
        asked(where, plugin, "alike", cycle, cycle.pod)
        if hasattr(plugin, "alike")
        else asked(where, plugin, "sign_pod", cycle.pod)
    )
    if alike is None or isinstance(alike, Status):
        return False
    return not hasattr(plugin, "outlook") or asked(where, plugin, "outlook", cycle, cycle.pod) is not RESTLESS


def _tell(cycle: Cycle, profile: Profile, placed: bool, other: Any, node: NodeInfo) -> None:
    hook, title = ("add_pod", "AddPod") if placed else ("remove_pod", "RemovePod")
    for plugin in profile.pre_filter:
        name = name_of(plugin)
        if name not in cycle.skip_filter and hasattr(plugin, hook):
            asked(f'running {title} on PreFilter plugin "{{}}": ', plugin, hook, cycle, cycle.pod, other, node)


# ── post_filter ──────────────────────────────────────────────────────────────────────────────────────────────


def post_filter(cycle: Cycle, profile: Profile, rejected: Rejected) -> PostFilterResult:
    """Ask post_filters in turn to make room.  The first that manages, or finds it hopeless, ends it."""
    node: str | None = None
    victims: tuple[Any, ...] = ()
    reasons: list[str] = []
    first = ""
    for plugin in profile.post_filter:
        name = name_of(plugin)
        try:
            answer = asked("", plugin, "post_filter", cycle, cycle.pod, rejected)
            nomination = _checked(answer, name) if isinstance(answer, Nomination) else None
            status = as_status(nomination.status if nomination else answer, name, "post_filter")
        except Broken as broken:
            # Kept from kube-scheduler: what a PostFilter plugin says itself is told as it is, in the pod's message.
            where = f'running PostFilter plugin "{name}": ' if broken.accident else ""
            return PostFilterResult(error(where + broken.text).by(name))
        if status.ok:
            return PostFilterResult(
                status, nomination.node if nomination else None, nomination.victims if nomination else ()
            )
        if status.code is Code.UNRESOLVABLE:
            return PostFilterResult(status.by(name), nomination.node if nomination else None)
        if not status.rejected:
            return PostFilterResult(error(_error_text(status)).by(name))
        if nomination is not None:
            node, victims = nomination.node, nomination.victims
        reasons.extend(status.reasons)
        first = first or name
    return PostFilterResult(unschedulable(*reasons).by(first), node, victims)


def _checked(nomination: Nomination, plugin: str) -> Nomination:
    """A nomination somebody can act on.  Raises Broken."""
    node: object = nomination.node
    victims: object = nomination.victims
    if not isinstance(node, str):
        raise Broken(plugin, f"{plugin}.post_filter must nominate a node by its name, not {shown(node)}")
    if not isinstance(victims, tuple) or not all(isinstance(victim, PodInfo) for victim in victims):
        raise Broken(plugin, f"{plugin}.post_filter must name victims as a tuple of pods, not {shown(victims)}")
    if victims and not node:
        raise Broken(plugin, f"{plugin}.post_filter names victims and no node")
    return nomination


# ── pre_score, score, normalize_score ────────────────────────────────────────────────────────────────────────


def pre_score(cycle: Cycle, profile: Profile, nodes: Nodes) -> None:
    """Run every pre_score.  Raises Broken."""
    for plugin in profile.pre_score:
        name = name_of(plugin)
        status = as_status(asked(PRE_SCORE, plugin, "pre_score", cycle, cycle.pod, nodes), name, "pre_score")
        if status.code is Code.SKIP:
            cycle.skip_score.add(name)
        elif not status.ok:
            raise Broken(name, PRE_SCORE.format(name) + _error_text(status))


def score(cycle: Cycle, profile: Profile, nodes: Nodes) -> dict[str, Scores]:
    """Every score plugin's word on every node: normalised, checked, weighted.  Raises Broken."""
    weighted: dict[str, Scores] = {}
    for tiers in profile.scores:
        if tiers.name in cycle.skip_score:
            continue
        scores = normalized(cycle, tiers, raw_scores(cycle, tiers, nodes))
        low, high = int(scores.min()), int(scores.max())
        if low < MIN_SCORE or high > MAX_SCORE:
            raise Broken(tiers.name, _out_of_range(tiers.name, low if low < MIN_SCORE else high))
        weighted[tiers.name] = scores * profile.weights[tiers.name]
    return weighted


def normalized(cycle: Cycle, tiers: Tiers, scores: Scores) -> Scores:
    """Raw scores as the plugin itself normalises them, if it does.  Raises Broken."""
    if not hasattr(tiers.plugin, "normalize_score"):
        return scores
    answer = asked(_NORMALIZE, tiers.plugin, "normalize_score", cycle, cycle.pod, scores)
    return _as_scores(answer, len(scores), tiers.name, _NORMALIZE)


def _out_of_range(plugin: str, value: int) -> str:
    return (
        f'applying score defaultWeights on Score plugins: plugin "{plugin}" returns an invalid score {value}, '
        f"it should in the range of [{MIN_SCORE}, {MAX_SCORE}] after normalizing"
    )


def raw_scores(cycle: Cycle, tiers: Tiers, nodes: Nodes) -> Scores:
    """One score plugin's word on a selection of nodes, before normalising.  Raises Broken."""
    if tiers.all is not None:
        answer = asked(_SCORE, tiers.plugin, "score_all", cycle, cycle.pod, nodes)
        return _as_scores(answer, len(nodes), tiers.name, _SCORE)
    return np.array([raw_score(cycle, tiers, node) for node in nodes], dtype=np.int64)


def raw_score(cycle: Cycle, tiers: Tiers, node: NodeInfo) -> int:
    """One score plugin's word on one node, before normalising.  Raises Broken."""
    if tiers.one is None:
        return int(raw_scores(cycle, tiers, Nodes(cycle.table, np.array([node.row], dtype=np.int32)))[0])
    try:
        answer = tiers.plugin.score(cycle, cycle.pod, node)
    except Exception as problem:
        raise _broken(_SCORE, tiers.plugin, problem) from problem
    if type(answer) is int and -_INT64_MAX <= answer <= _INT64_MAX:
        return answer
    if isinstance(answer, Status):
        raise Broken(tiers.name, _SCORE.format(tiers.name) + _error_text(answer))
    if not isinstance(answer, (int, np.integer)) or isinstance(answer, bool):
        raise Broken(tiers.name, f"{_SCORE.format(tiers.name)}a score is an integer, not {shown(answer)}")
    if abs(int(answer)) > _INT64_MAX:
        raise Broken(tiers.name, f"{_SCORE.format(tiers.name)}a score of {shown(answer)} does not fit 64 bits")
    return int(answer)


def _as_scores(answer: Any, count: int, plugin: str, where: str) -> Scores:
    if isinstance(answer, Status):
        raise Broken(plugin, where.format(plugin) + _error_text(answer))
    if not isinstance(answer, np.ndarray) or answer.shape != (count,) or answer.dtype.kind not in "iu":
        raise Broken(
            plugin, f"{where.format(plugin)}scores are an integer array with one score per node, not {_shape(answer)}"
        )
    return answer.astype(np.int64, copy=False)


def _shape(answer: Any) -> str:
    if isinstance(answer, np.ndarray):
        return f"{answer.dtype} of shape {answer.shape}"
    return type(answer).__name__


# ── one hook of one plugin ───────────────────────────────────────────────────────────────────────────────────


def asked(where: str, plugin: Plugin, hook: str, *args: Any) -> Any:
    """A hook's answer.  Raises Broken, saying where, should the plugin raise.

    Args:
        where: what was being done, with `{}` for the plugin's name.
    """
    try:
        return getattr(plugin, hook)(*args)
    except Exception as problem:
        raise _broken(where, plugin, problem) from problem


def _broken(where: str, plugin: Plugin, problem: Exception) -> Broken:
    """What a hook that raised comes to.  A bug of ours goes on its way, and so does what is Broken already."""
    if isinstance(problem, (InternalError, Broken)):
        raise problem
    name = name_of(plugin)
    return Broken(name, where.format(name) + words(problem))


def as_status(answer: object, plugin: str, hook: str) -> Status:
    if answer is SUCCESS:
        return SUCCESS
    if isinstance(answer, Status):
        if answer is SKIP or answer.sound:
            return answer
        raise Broken(plugin, f"{plugin}.{hook} must return a Status of a Code and texts, not {shown(answer)}")
    if answer is None:
        return SUCCESS  # as Go's nil status
    raise Broken(plugin, f"{plugin}.{hook} must return a Status, not {shown(answer)}")


def _error_text(status: Status) -> str:
    return (status.message or status.code.text) if status.sound else f"it answered {shown(status)}"
