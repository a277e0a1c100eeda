"""A kind of your own is a class; a plugin that reads it declares so, and is woken when it changes."""

from msgspec import Struct

from kubesched import SUCCESS, Core, CustomResource, Profile, Simulation, seconds, unschedulable


class Quota(Struct, frozen=True, rename="camel"):
    max_pods: int = 0


class NodeQuota(CustomResource, frozen=True):
    """How many pods the node of the same name may hold."""

    group = "acme.example"
    version = "v1"
    scope = "Cluster"
    spec: Quota = Quota()


class RespectQuota:
    reads = (NodeQuota,)

    def filter(self, cycle, pod, node):
        quota = cycle.objects.get(NodeQuota, node.name)
        allowed = 0 if quota is None else quota.spec.max_pods
        return SUCCESS if node.pod_count < allowed else unschedulable(f"quota of {allowed} used up")


simulation = Simulation(Core(Profile(RespectQuota())))
client = simulation.client
client.create({"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"pods": "10"}}})
for name in "abc":
    client.create({"kind": "Pod", "metadata": {"name": name}})
for second, allowed in ((1, 1), (60, 3)):
    quota = {"kind": "NodeQuota", "metadata": {"name": "n1"}, "spec": {"maxPods": allowed}}
    change = (lambda q=quota: client.create(q)) if second == 1 else (lambda q=quota: client.patch("NodeQuota", "n1", q))
    simulation.at(seconds(second), change)

for moment in (0.5, 30, 61):
    simulation.run(until=seconds(moment))
    bound = [pod["metadata"]["name"] for pod in client.list("Pod") if "nodeName" in pod.get("spec", {})]
    print(f"at {moment} s: {bound}")
