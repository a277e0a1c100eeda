"""A filter says no, and says what may undo its no: the pod sleeps until a node is labelled, and not a second longer."""

from kubesched import SUCCESS, Action, Core, Hint, Profile, Simulation, seconds, unschedulable


class OnlyFast:
    def filter(self, cycle, pod, node):
        return SUCCESS if node.labels.get("disk") == "ssd" else unschedulable("node(s) had slow disks")

    def events_to_register(self):
        return (Hint("Node", Action.ADD | Action.UPDATE_NODE_LABEL),)


simulation = Simulation(Core(Profile(OnlyFast())))
client = simulation.client
for name in ("n1", "n2"):
    client.create({"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"pods": "10"}}})
client.create({"kind": "Pod", "metadata": {"name": "web"}})
simulation.at(seconds(7), lambda: client.patch("Node", "n2", {"metadata": {"labels": {"disk": "ssd"}}}))

simulation.run(until=seconds(5))
print("at 5 s:", simulation.core.why("default/web").message)
simulation.run(until=seconds(10))
print("at 10 s:", client.get("Pod", "web")["spec"]["nodeName"])
for record in simulation.core.story("default/web"):
    print(record)
