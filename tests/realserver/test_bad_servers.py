"""An API server that is not itself: garbage, pages of a gateway, broken connections, silence, and very large objects.

kubesched says what is wrong, waits, and goes on when it is over; no pod is lost on the way.
"""

from collections.abc import Callable

import pytest
from tests.realserver.faults import CutResponse, LoseRequest, Reply, RequestFault
from tests.realserver.harness import RealCluster
from tests.realserver.scheduling import Kubesched, MakeNode, bound, ours, pods_of

EVERYTHING, LISTS = r"[A-Z]+ /", r"GET /api/v1/(nodes|pods)"
PAGE = (("Content-Type", "text/html"),)
BEGINNING, TROUBLE = "The API server cannot be used yet; trying again", "Trouble talking to the API server"
ANSWERS: dict[str, tuple[str, RequestFault, str, str]] = {
    "garbage wherever one asks": (EVERYTHING, Reply(200, b"\xff\x00{[garbage"), TROUBLE, "the first view was cut off"),
    "a gateway's page": (EVERYTHING, Reply(502, b"<html>Bad Gateway</html>", PAGE), BEGINNING, "502"),
    "connections that end at once": (EVERYTHING, LoseRequest("close"), BEGINNING, ""),
    "garbage instead of lists": (LISTS, Reply(200, b'{"kind":"List","items":7}'), TROUBLE, ""),
    "lists that end in the middle": (LISTS, CutResponse(400), TROUBLE, ""),
    "errors instead of lists": (LISTS, Reply(500, b"oops", PAGE), TROUBLE, "the server answered 500: oops"),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_what_it_says_is_told_and_waited_out(
    case: str, real_cluster: RealCluster, namespace: str, make_node: MakeNode, start: Callable[..., Kubesched]
) -> None:
    pattern, fault, message, said = ANSWERS[case]
    client, pods, node = real_cluster.client(), pods_of(namespace), make_node()
    client.create(pods, ours("web"))
    proxy = real_cluster.proxy()
    order = proxy.on(pattern, fault, times=None)
    running = start(wait=False, kubeconfig=real_cluster.kubeconfig(via=proxy))
    line = running.until_said(message)
    assert said in line.get("err", "") + line.get("note", ""), line
    order.wait()
    proxy.forget(order)
    assert client.until(pods, "web", bound)["spec"]["nodeName"] == node
    assert "Traceback" not in running.tail()


@pytest.mark.slow
def test_silence_is_not_waited_for_for_ever(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, start: Callable[..., Kubesched]
) -> None:
    client, pods, node = real_cluster.client(), pods_of(namespace), make_node()
    client.create(pods, ours("web"))
    proxy = real_cluster.proxy()
    order = proxy.on(LISTS, LoseRequest("hang"), times=2)
    running = start(wait=False, kubeconfig=real_cluster.kubeconfig(via=proxy))
    order.wait(2, timeout=120)
    running.until_said(TROUBLE, timeout=120)
    assert client.until(pods, "web", bound, timeout=120)["spec"]["nodeName"] == node


def test_an_object_as_large_as_can_be_stored_is_scheduled_like_any_other(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, start: Callable[..., Kubesched]
) -> None:
    client, pods, node = real_cluster.client(), pods_of(namespace), make_node()
    start()
    env = [{"name": f"V{number}", "value": "x" * 10_000} for number in range(130)]  # etcd takes 1.5 MiB
    container = {"name": "main", "image": "pause", "env": env}
    client.create(pods, ours("large", containers=[container]))
    client.create(pods, ours("small"))
    assert client.until(pods, "large", bound)["spec"]["nodeName"] == node
    client.until(pods, "small", bound)
