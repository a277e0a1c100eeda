"""Stage 1 — random: every node is as good as any other, so the choice is luck.

A scheduler takes a pod and answers with a node.  The smallest one has a single plugin that gives every node the
same score; among the best, luck decides.  Run it: the pod lands on a cordoned node, where nobody wanted it.
Good.  Now you want filters.
"""

from kubesched import Core, Profile, SimpleQueue
from kubesched.tutorial.stage import Stage


class AnyNode:
    def score(self, cycle, pod, node):
        return 0


def scheduler():
    return Core(Profile(AnyNode()), queue=SimpleQueue())


STAGE = Stage(1, "random", scheduler, "cordoned")

if __name__ == "__main__":
    STAGE.play()
