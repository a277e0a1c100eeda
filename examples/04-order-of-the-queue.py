"""Who is tried first is a plugin too: the pod that asks for least goes first, so that many are served soon."""

from kubesched import Core, Profile, Simulation


class SmallestFirst:
    def key(self, pod):
        return pod.info.requests.get("cpu", 0), pod.added


simulation = Simulation(Core(Profile(SmallestFirst())))
client = simulation.client
client.create({"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "9", "pods": "10"}}})
for name, cpu in (("large", "4"), ("small", "1"), ("medium", "2")):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    client.create({"kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}})

simulation.listen(lambda moment: [print(decision.pod) for decision in moment.decisions])
simulation.run()
