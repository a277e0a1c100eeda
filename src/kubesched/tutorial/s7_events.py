"""Stage 7 — event handlers: who turned a pod down knows what could change that.

The filter says so: a node that is added, or one whose taints change, as they do when it is uncordoned.  Now the
pod is bound right after node10 arrives, three seconds in.  The difference to stage 6 is one line, and five
minutes.
"""

from kubesched import Action, Hint
from kubesched.tutorial import s6_queue
from kubesched.tutorial.stage import Stage


class NodeUnschedulable(s6_queue.NodeUnschedulable):
    def events_to_register(self):
        return (Hint("Node", Action.ADD | Action.UPDATE_NODE_TAINT),)


def scheduler():
    return s6_queue.scheduler(NodeUnschedulable())


STAGE = Stage(7, "event handlers", scheduler, "cordoned", after=s6_queue)

if __name__ == "__main__":
    STAGE.play()
