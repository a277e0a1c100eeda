"""Extenders: schedulers beside this one, asked over HTTP.

An extender may narrow the feasible nodes, add to their scores, bind a pod, or overrule preemption.  The core
never waits for it: asking is a Step, and the attempt goes on when the answer has come.

An extender that fails, or answers what it may not (`extender_wire`), ends the attempt, unless it is ignorable; a
failure to score is never worth an attempt.  Unlike kube-scheduler, nodes an extender returns whole are only names
here: scores keep looking at the cluster, not at what came back.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from kubesched.cluster.columns import Nodes
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.types import Rows, Scores
from kubesched.core import extender_wire as wire
from kubesched.core.extender_wire import SCORE_MAX, Refused
from kubesched.core.runner import Broken
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision, PostFilterResult
from kubesched.framework.extender import Extender, Proposal, Proposals
from kubesched.framework.profile import MAX_SCORE, Profile
from kubesched.framework.status import SUCCESS, Status, error, unresolvable, unschedulable
from kubesched.framework.steps import Answer, HttpPost

NAME = "Extender"  # the rejector, and the scorer, that stands for all of them
NO_CANDIDATE = "preemption: no candidate node for preemption"


def matter(profile: Profile) -> bool:
    """Whether an extender filters or scores, so that one feasible node is not enough."""
    return any(extender.filter_verb or extender.prioritize_verb for extender in profile.extenders)


def _interested(profile: Profile, pod: PodInfo, verb: str) -> Iterator[Extender]:
    """The extenders to ask, in order: those that have the verb, and manage something the pod wants."""
    return (one for one in profile.extenders if getattr(one, verb) and one.interested(pod.pod))


# ── which nodes, and how good ────────────────────────────────────────────────────────────────────────────────


def filter_nodes(
    cycle: Cycle, profile: Profile, feasible: Rows, decision: Decision
) -> Generator[HttpPost, Answer, Rows]:
    """Let each extender in turn narrow the nodes.  Raises Broken."""
    for extender in _interested(profile, cycle.pod, "filter_verb"):
        if not len(feasible):
            break
        nodes = Nodes(cycle.table, feasible)
        answer = yield wire.about_nodes(extender, extender.filter_verb, cycle.pod, nodes)
        try:
            said = wire.filtered(extender, answer, nodes.names)
        except Refused as refused:
            _forgive(extender, refused, cycle)
            continue
        for row, name in zip(feasible.tolist(), nodes.names, strict=True):
            if name in said.unresolvable:
                decision.rejected.one_by_one[row] = unresolvable(said.unresolvable[name])
            elif name in said.failed:
                decision.rejected.one_by_one[row] = unschedulable(said.failed[name])
        feasible = feasible[np.array([name in said.names for name in nodes.names], dtype=np.bool_)]
    return feasible


def _forgive(extender: Extender, refused: Refused, cycle: Cycle) -> None:
    """Go on without an extender that may be ignored.  Raises Broken for any other."""
    if not extender.ignorable:
        raise Broken(NAME, str(refused)) from refused
    cycle.note(f"extender {extender.url_prefix} is ignored: {refused}")


def score_nodes(cycle: Cycle, profile: Profile, nodes: Nodes) -> Generator[HttpPost, Answer, Scores | None]:
    """What the extenders add to the totals; None where none of them scores."""
    total: Scores | None = None
    for extender in _interested(profile, cycle.pod, "prioritize_verb"):
        answer = yield wire.about_nodes(extender, extender.prioritize_verb, cycle.pod, nodes)
        try:
            said = wire.scores(extender, answer)
        except Refused as refused:
            cycle.note(f"the scores of extender {extender.url_prefix} do not count: {refused}")
            continue
        factor = extender.weight * (MAX_SCORE // SCORE_MAX)
        scores = np.array([said.get(name, 0) * factor for name in nodes.names], dtype=np.int64)
        total = scores if total is None else total + scores
    return total


# ── binding ──────────────────────────────────────────────────────────────────────────────────────────────────


def binders(profile: Profile, pod: PodInfo) -> Iterator[Extender]:
    """The extenders that would bind this pod, in the order they are asked.

    They bind by requests of their own, which no fence of ours can stop; when nobody knows what came of one, a read
    of the pod decides.
    """
    return _interested(profile, pod, "bind_verb")


def bound(extender: Extender, answer: Answer) -> Status:
    """What an extender's answer to a binding comes to."""
    try:
        wire.bound(extender, answer)
    except Refused as refused:
        return error(str(refused))
    return SUCCESS


# ── preemption ───────────────────────────────────────────────────────────────────────────────────────────────

Victims: TypeAlias = Generator[HttpPost, Answer, PostFilterResult]


def narrow_victims(cycle: Cycle, profile: Profile, result: PostFilterResult) -> Victims:
    """Let extenders strike out nodes where room was to be made, or name other victims, and choose again."""
    proposals = cycle.find(Proposals)
    asked = list(_interested(profile, cycle.pod, "preempt_verb"))
    if proposals is None or not result.victims or not asked:
        return result
    left = {one.node: one for one in proposals.found}
    for extender in asked:
        if not left:
            break
        answer = yield wire.about_victims(extender, cycle.pod, left)
        try:
            left = _agreed(extender, answer, cycle, left)
        except Refused as refused:
            if not extender.ignorable:
                return PostFilterResult(error(f"preemption: {refused}"))
            cycle.note(f"extender {extender.url_prefix} is ignored: {refused}")
    best = min(left.values(), key=proposals.price, default=None)
    if best is None:
        return PostFilterResult(unschedulable(NO_CANDIDATE))
    return PostFilterResult(result.status, best.node, best.victims)


def _agreed(extender: Extender, answer: Answer, cycle: Cycle, left: Mapping[str, Proposal]) -> dict[str, Proposal]:
    pods_on = {name: _pods_on(cycle, name) for name in left}
    said = wire.agreed(extender, answer, cycle.pod, pods_on)
    kept: dict[str, Proposal] = {}
    for name in left:  # in our order, whatever the extender's
        if name not in said:
            continue
        if said[name].victims:
            kept[name] = said[name]
        elif not extender.ignorable:
            raise Refused(f'expected at least one victim pod on node "{name}"')
    return kept


def _pods_on(cycle: Cycle, name: str) -> tuple[PodInfo, ...]:
    node = cycle.nodes.named(name)
    return () if node is None else tuple(node.pods)
