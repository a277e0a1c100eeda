"""A hook never waits.  What must be asked of the API server before a pod is bound, pre_bind yields."""

from kubesched import SUCCESS, Core, Profile, Simulation, error
from kubesched.framework.steps import Patch


class Stamp:
    """Write on the node which pod came last."""

    def pre_bind(self, cycle, pod, node):
        answer = yield Patch("Node", node, {"metadata": {"annotations": {"acme.example/last": pod.name}}})
        return SUCCESS if answer.ok else error(f"the node could not be stamped: {answer.failure.message}")


simulation = Simulation(Core(Profile(Stamp())))
client = simulation.client
client.create({"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"pods": "10"}}})
client.create({"kind": "Pod", "metadata": {"name": "web"}})

simulation.run()

print(client.get("Node", "n1")["metadata"]["annotations"])
for record in simulation.core.story("default/web"):
    print(record)
