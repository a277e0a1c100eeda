"""The same filter twice: about one node, and about all of them in columns.  Both must agree; the second is faster."""

from kubesched import SUCCESS, Verdict, unschedulable
from kubesched.testing import node, pod, scheduler, tick


class RoomForTwo:
    """No node holds more than two pods."""

    def filter(self, cycle, pod, node):
        return unschedulable("two are enough") if node.pod_count >= 2 else SUCCESS

    def filter_all(self, cycle, pod, nodes):
        verdict = Verdict(len(nodes))
        verdict.reject(nodes.pod_count >= 2, "two are enough")
        return verdict


pods = [pod(name) for name in "abcde"]
core = scheduler(node("n1"), node("n2"), *pods, plugins=[RoomForTwo()])
for each in pods:
    tick(core)
    decision = core.why(each.key)
    print(each.name, "→", decision.node or decision.message)
