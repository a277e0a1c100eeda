"""Extenders: schedulers beside this one, asked over HTTP.

An extender may narrow the feasible nodes, add to their scores, bind a pod, or overrule preemption.  The core
never waits for it: asking is a Step, and the attempt goes on when the answer has come.
"""

from __future__ import annotations

from collections.abc import Generator

from kubesched.cluster.columns import Nodes
from kubesched.cluster.types import Rows, Scores
from kubesched.framework.cycle import Cycle
from kubesched.framework.decision import Decision
from kubesched.framework.profile import Profile
from kubesched.framework.steps import Answer, HttpPost

NAME = "Extender"  # the rejector, and the scorer, that stands for all of them


def matter(profile: Profile) -> bool:
    """Whether an extender filters or scores, so that one feasible node is not enough."""
    return any(extender.filter_verb or extender.prioritize_verb for extender in profile.extenders)


def filter_nodes(
    cycle: Cycle, profile: Profile, feasible: Rows, decision: Decision
) -> Generator[HttpPost, Answer, Rows]:
    """Let each extender in turn narrow the nodes.  Raises Broken."""
    yield from ()
    return feasible


def score_nodes(cycle: Cycle, profile: Profile, nodes: Nodes) -> Generator[HttpPost, Answer, Scores | None]:
    """What the extenders add to the totals; None where none of them scores."""
    yield from ()
    return None
