"""Stage 2 — filter: a node that will not do is turned down, with a reason.

The filter keeps the pod off cordoned nodes, and all nine are cordoned.  That a tenth arrives three seconds later
helps nobody: the queue of this stage forgets what does not fit.  It is called SimpleQueue for a reason.
"""

from kubesched import SUCCESS, Core, Profile, SimpleQueue, unresolvable
from kubesched.tutorial import s1_random
from kubesched.tutorial.stage import Stage


class NodeUnschedulable:
    def filter(self, cycle, pod, node):
        return unresolvable("node(s) were unschedulable") if node.unschedulable else SUCCESS


def scheduler():
    return Core(Profile(NodeUnschedulable(), s1_random.AnyNode()), queue=SimpleQueue())


STAGE = Stage(2, "filter", scheduler, "cordoned", after=s1_random)

if __name__ == "__main__":
    STAGE.play()
