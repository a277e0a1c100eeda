"""Stage 5 — permit: hold a placed pod back until someone, or the clock, lets it go.

A pod bound for node3 waits three seconds, one bound for node1 a single second, side by side: while a pod waits it
holds its room, and the scheduler goes on with the next.  As in Kubernetes a timeout would reject; what lets the
pod go is the plugin, through its tools.
"""

from kubesched import SUCCESS, Tools, Wait, seconds
from kubesched.tutorial import s4_prescore
from kubesched.tutorial.stage import Stage


class NodeNumber(s4_prescore.NodeNumber):
    tools: Tools  # every plugin is given its own

    def permit(self, cycle, pod, node):
        if not node[-1].isdecimal():
            return SUCCESS
        self.tools.allow_after(pod, seconds(int(node[-1])))  # node9 binds nine seconds later
        return Wait(seconds(10))


def scheduler():
    return s4_prescore.scheduler(NodeNumber())


STAGE = Stage(5, "permit", scheduler, "numbered", after=s4_prescore)

if __name__ == "__main__":
    STAGE.play()
