"""Stage 6 — queue: a pod that does not fit is not lost; it is parked.

PriorityQueue is Kubernetes' own: what was turned down sleeps until something happens that may help.  The filter
here registers nothing, so nothing wakes the pod when node10 arrives.  What saves it is the flush: whoever has
slept for five minutes is tried again.  Nobody should have to wait for that.
"""

from kubesched import Core, PriorityQueue, Profile
from kubesched.tutorial import s2_filter, s5_permit
from kubesched.tutorial.stage import Stage


class NodeUnschedulable(s2_filter.NodeUnschedulable):
    def events_to_register(self):
        return ()  # nobody tells the queue anything


def scheduler(filter=None):
    return Core(Profile(filter or NodeUnschedulable(), s5_permit.NodeNumber()), queue=PriorityQueue())


STAGE = Stage(6, "queue", scheduler, "cordoned", after=s5_permit)

if __name__ == "__main__":
    STAGE.play()
