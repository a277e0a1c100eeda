"""A permit plugin for scenarios: pods labelled `patience: N` are held back for N seconds, the rest pass."""

from kubesched import SUCCESS, Tools, Wait, seconds


class Patience:
    """Hold pods back for as many seconds as their label says."""

    tools: Tools

    def permit(self, cycle, pod, node):
        asked = pod.pod.metadata.labels.get("patience", "")
        if not asked.isdigit():
            return SUCCESS
        self.tools.allow_after(pod, seconds(int(asked)))
        self.tools.note("Holding a pod back", pod=pod.key, seconds=asked)
        return Wait(seconds(30))
