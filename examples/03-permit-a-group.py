"""Permit holds placed pods back: three pods of a group start together, or none of them does."""

from kubesched import SUCCESS, Core, Profile, Simulation, Tools, Wait, seconds


class Together:
    tools: Tools

    def permit(self, cycle, pod, node):
        group = pod.pod.labels.get("group")
        if group is None:
            return SUCCESS
        waiting = [other.pod for other in self.tools.waiting if other.pod.pod.labels.get("group") == group]
        if len(waiting) < 2:
            return Wait(seconds(60))  # a timeout would turn the pod down
        for other in waiting:
            self.tools.allow(other)
        return SUCCESS


simulation = Simulation(Core(Profile(Together())))
client = simulation.client
client.create({"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"pods": "10"}}})


def add(name):
    client.create({"kind": "Pod", "metadata": {"name": name, "labels": {"group": "g"}}})


for second, name in ((1, "a"), (4, "b"), (9, "c")):
    simulation.at(seconds(second), lambda name=name: add(name))
simulation.run(until=seconds(20))

for name in "abc":
    last = simulation.core.story(f"default/{name}")[-1]
    print(name, last.state.value, f"after {(last.at - simulation.world.start) / 1e9:.0f} s")
