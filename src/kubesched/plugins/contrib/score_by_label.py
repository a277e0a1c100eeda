"""ScoreByLabel: a number on the node says how much it is liked."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta, Struct

from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.podinfo import PodInfo
from kubesched.cluster.types import Scores
from kubesched.framework.cycle import Cycle
from kubesched.framework.profile import MAX_SCORE
from kubesched.framework.tools import Tools

_INT64_MAX = 2**63 - 1
_DETAIL = 6  # the verbosity at which single scores are worth a line


class ScoreByLabelArgs(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Arguments of ScoreByLabel.

    Args:
        label_key: the label whose value is a node's score.
    """

    label_key: Annotated[str, Meta(min_length=1)] = "score-by-label"


class _Asked(NamedTuple):
    """The nodes that are scored, in order."""

    names: list[str]


class ScoreByLabel:
    """Score a node by the integer value of one of its labels.

    What it does:  score reads the label; normalize_score stretches the scores so that the best node has 100:
                   labels of 10, 5 and 1 become 100, 50 and 10. At -v=6 it remarks on both.
    Answers:       a score. A label that is absent, no integer, or negative counts as 0.
    Args:          labelKey, the label to read (score-by-label).
    Wakes on:      nothing: it never turns a pod down.
    Tiers:         score, normalize_score.
    """

    name = "ScoreByLabel"

    def __init__(self, args: ScoreByLabelArgs, tools: Tools) -> None:
        self._label = args.label_key
        self.tools = tools

    def score(self, cycle: Cycle, pod: PodInfo, node: NodeInfo) -> int:
        score = points(node.labels.get(self._label))
        if self.tools.heard(_DETAIL):
            self._asked(cycle).append(node.name)
            self._remark(pod, f"Label score for node {node.name} is {self._label} = {score}")
        return score

    def normalize_score(self, cycle: Cycle, pod: PodInfo, scores: Scores) -> Scores:
        highest = int(scores.max(initial=0))
        if highest == 0:
            final = scores
        elif highest <= _INT64_MAX // MAX_SCORE:
            final = scores * MAX_SCORE // highest
        else:  # larger than a column can multiply: exactly, one by one
            final = np.array([int(score) * MAX_SCORE // highest for score in scores], np.int64)
        if self.tools.heard(_DETAIL):
            for name, score in zip(self._asked(cycle), final.tolist(), strict=True):
                self._remark(pod, f"Final score for node {name} is {score}")
        return final

    def _asked(self, cycle: Cycle) -> list[str]:
        """The names of the nodes that have been scored in this cycle, to be remarked on once more."""
        asked = cycle.find(_Asked)
        if asked is None:
            asked = _Asked([])
            cycle.put(asked)
        return asked.names

    def _remark(self, pod: PodInfo, text: str) -> None:
        self.tools.note(text, verbosity=_DETAIL, pod=pod.key)


def points(value: str | None) -> int:
    """The score a label's value stands for."""
    if value is None or not value.isascii() or not value.isdecimal():
        return 0
    score = int(value)
    return score if score <= _INT64_MAX else 0
