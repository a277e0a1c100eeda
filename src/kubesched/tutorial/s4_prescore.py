"""Stage 4 — pre-score: what is the same for every node is worked out once.

A score runs for each node.  The pod's digit does not change from node to node, so pre_score finds it once and
leaves it in the cycle, where score picks it up.  A pod without a digit has no preference: pre_score says SKIP,
and its score is never asked.
"""

from dataclasses import dataclass

from kubesched import SKIP, SUCCESS
from kubesched.tutorial import s3_score
from kubesched.tutorial.stage import Stage


@dataclass
class Suffix:
    digit: str


class NodeNumber(s3_score.NodeNumber):
    def pre_score(self, cycle, pod, nodes):
        if not pod.name[-1].isdecimal():
            return SKIP
        cycle.put(Suffix(pod.name[-1]))
        return SUCCESS

    def score(self, cycle, pod, node):
        return 10 if cycle.get(Suffix).digit == node.name[-1] else 0


def scheduler(score=None):
    return s3_score.scheduler(score or NodeNumber())


STAGE = Stage(4, "pre-score", scheduler, "numbered", after=s3_score)

if __name__ == "__main__":
    STAGE.play()
