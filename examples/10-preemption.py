"""A pod of higher priority makes room for itself, and never sleeps through its victims' departure."""

from kubesched import Core, Simulation, seconds
from kubesched.assemble import default_profile

simulation = Simulation(Core(default_profile(tie="name")))
client = simulation.client
client.create({"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}})


def add(name, cpu, priority):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec = {"priority": priority, "containers": [container]}
    client.create({"kind": "Pod", "metadata": {"name": name}, "spec": spec})


for name in ("batch-1", "batch-2"):
    add(name, "2", 0)
simulation.at(seconds(5), lambda: add("urgent", "1", 1000))
simulation.run(until=seconds(30))

for pod in client.list("Pod"):
    print(pod["metadata"]["name"], "on", pod["spec"].get("nodeName"))
for record in simulation.core.story("default/urgent"):
    print(record)
