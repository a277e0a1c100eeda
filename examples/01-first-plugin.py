"""A plugin is a class with a hook.  This one likes the node whose last digit is the pod's."""

from kubesched import Core, Profile, Simulation


class NodeNumber:
    def score(self, cycle, pod, node):
        return 100 if pod.name[-1] == node.name[-1] else 0


simulation = Simulation(Core(Profile(NodeNumber())))
for number in range(10):
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    simulation.client.create({"kind": "Node", "metadata": {"name": f"node{number}"}, "status": {"allocatable": room}})
for name in ("pod1", "pod3", "pod8"):
    simulation.client.create({"kind": "Pod", "metadata": {"name": name}})

simulation.run()

for pod in simulation.client.list("Pod"):
    print(pod["metadata"]["name"], "→", pod["spec"]["nodeName"])
