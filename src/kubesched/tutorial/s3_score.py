"""Stage 3 — score: of the nodes that will do, one is better than the others.

NodeNumber likes the node whose last digit is the pod's: pod1 goes to node1, pod3 to node3.  A name that does not
end in a digit is no mistake; it just matches nothing.
"""

from kubesched import Core, Profile, SimpleQueue
from kubesched.tutorial import s2_filter
from kubesched.tutorial.stage import Stage


class NodeNumber:
    def score(self, cycle, pod, node):
        return 10 if pod.name[-1].isdecimal() and pod.name[-1] == node.name[-1] else 0


def scheduler(score=None):
    return Core(Profile(s2_filter.NodeUnschedulable(), score or NodeNumber()), queue=SimpleQueue())


STAGE = Stage(3, "score", scheduler, "numbered", after=s2_filter)

if __name__ == "__main__":
    STAGE.play()
