"""A whole cluster in this process, and the official Python client on it: stage 7 of the tutorial, over HTTPS.

Nine nodes are there, all cordoned, and a pod that wants one.  Three seconds later a tenth node arrives, and the pod is
bound to it at once and runs.  The cluster's clock runs ten times as fast as yours.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer

from kubernetes import client, config, watch

from kubesched.assemble import build
from kubesched.live.cluster import EmbeddedCluster

SPEED = 10
POD = {"metadata": {"name": "pod1"}, "spec": {"containers": [{"name": "c", "image": "pause:3.10"}]}}


def main(kubeconfig: str) -> None:
    with config.new_client_from_config(kubeconfig) as connection:
        core = client.CoreV1Api(connection)
        for number in range(9):
            core.create_node({"metadata": {"name": f"node{number}"}, "spec": {"unschedulable": True}})
        core.create_namespaced_pod("default", POD)
        print("node0 to node8 are there, all cordoned; pod1 is created")
        told = ""
        for event in watch.Watch().stream(core.list_namespaced_pod, "default", timeout_seconds=60):
            now = account(event["object"])
            if now and now != told:
                print(now)
                if not told:
                    Timer(3 / SPEED, arrive, [kubeconfig]).start()
                told = now
            if event["object"].status.phase == "Running":
                break


def arrive(kubeconfig: str) -> None:
    print("node10 arrives, open to pods")
    with config.new_client_from_config(kubeconfig) as connection:
        client.CoreV1Api(connection).create_node({"metadata": {"name": "node10"}})


def account(pod: client.V1Pod) -> str:
    """Where a pod is, in a line; nothing while nobody has tried it."""
    if pod.spec.node_name:
        return f"{pod.metadata.name} is on {pod.spec.node_name}: {pod.status.phase}"
    messages = [condition.message.partition(".")[0] for condition in pod.status.conditions or []]
    return "".join(f"{pod.metadata.name} is on no node: {message}" for message in messages)


if __name__ == "__main__":
    with TemporaryDirectory() as folder, EmbeddedCluster(build(), speed=SPEED).in_background() as cluster:
        main(str(cluster.write_kubeconfig(Path(folder) / "kubeconfig")))
