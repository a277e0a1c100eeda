"""What kubesched says of itself, beside the real kube-scheduler: metrics, configuration, health, queue, pods."""

import json
import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample
from tests.realserver.client import Client
from tests.realserver.fixtures import pod
from tests.realserver.harness import RealCluster, Scheduler
from tests.realserver.process import wait_until
from tests.realserver.scheduling import (
    NAME,
    THEIRS,
    Kubesched,
    MakeNode,
    asking,
    bound,
    judged,
    ours,
    pods_of,
)

from kubesched.assemble import profiles_of
from kubesched.config.load import load
from kubesched.config.outline import outline
from kubesched.telemetry.series import NOT_HERE

# ── metrics ──────────────────────────────────────────────────────────────────────────────────────────────────


class Family(NamedTuple):
    """One metric as it was scraped."""

    kind: str
    labels: set[tuple[str, ...]]
    bounds: set[str]
    samples: list[Sample]

    def values(self, *labels: str) -> set[tuple[str, ...]]:
        return {tuple(sample.labels[label] for label in labels) for sample in self.samples}


def families(text: str) -> dict[str, Family]:
    found = {}
    for family in text_string_to_metric_families(text):
        names = {tuple(sorted(set(sample.labels) - {"le"})) for sample in family.samples}
        bounds = {f"{float(sample.labels['le']):.9g}" for sample in family.samples if "le" in sample.labels}
        found[family.name] = Family(family.type, names, bounds, family.samples)
    return found


def theirs(kube_scheduler: Scheduler, cluster: RealCluster, path: str) -> str:
    client = Client(kube_scheduler.url, cluster.trust(), cluster.tokens["admin"])
    return client.request("GET", path).body.decode()


def test_metrics_have_the_types_labels_and_buckets_of_kube_schedulers(
    real_cluster: RealCluster,
    namespace: str,
    make_node: MakeNode,
    start: Callable[..., Kubesched],
    kube_scheduler: Scheduler,
) -> None:
    client, pods = real_cluster.client(), pods_of(namespace)
    for _ in range(2):
        make_node(cpu="1")
    running = start()
    for at, name in enumerate((THEIRS, NAME)):
        client.create(pods, pod(f"fits-{at}", schedulerName=name))
        client.create(pods, pod(f"big-{at}", schedulerName=name, containers=asking("3")))
        client.until(pods, f"fits-{at}", bound)
        client.until(pods, f"big-{at}", judged)
    real = families(theirs(kube_scheduler, real_cluster, "/metrics"))
    own = families(running.ask("/metrics").body.decode())
    comparable = {name for name in real if name.startswith(("scheduler_", "rest_client_", "kubernetes_"))}
    left_out = {name.removesuffix("_total") for name in NOT_HERE}
    shared = comparable & own.keys()
    assert comparable - shared <= left_out
    assert not shared & left_out
    assert len(shared) >= 20
    for name in shared:
        assert own[name].kind == real[name].kind, name
        assert own[name].bounds == real[name].bounds, name
        if real[name].labels and own[name].labels:
            assert own[name].labels <= real[name].labels, name
    for name, label in (("scheduler_pending_pods", "queue"), ("scheduler_cache_size", "type")):
        assert own[name].values(label) == real[name].values(label), name
    for name, labels in SAME_VALUES.items():
        assert own[name].values(*labels) <= real[name].values(*labels), name
    assert "process_cpu_seconds" in own


SAME_VALUES = {
    "scheduler_queue_incoming_pods": ("queue", "event"),
    "scheduler_plugin_evaluation": ("plugin", "extension_point"),
    "scheduler_schedule_attempts": ("result",),
    "scheduler_pod_scheduling_sli_duration_seconds": ("attempts",),
}
"""Every value we have of these labels, kube-scheduler has after the same has happened."""


# ── configuration and health ─────────────────────────────────────────────────────────────────────────────────


def test_configz_means_what_kube_schedulers_means(
    real_cluster: RealCluster, start: Callable[..., Kubesched], kube_scheduler: Scheduler
) -> None:
    """Both say their whole configuration, defaults and all; read back, the two are one scheduler."""
    running = start({"profiles": [{"schedulerName": THEIRS}]})
    real = json.loads(theirs(kube_scheduler, real_cluster, "/configz"))["componentconfig"]
    own = json.loads(running.ask("/configz").body)["componentconfig"]
    assert own.keys() - real.keys() == {"extenders", "delayCacheUntilActive"}  # of which Go shows none that is empty
    assert real.pop("percentageOfNodesToScore") == 0  # where nothing is said, ours scores every node
    assert real.keys() - own.keys() == set()
    for said in (real, own):
        said["clientConnection"]["kubeconfig"] = ""
    assert meaning(own) == meaning(real)
    names = [[one["name"] for one in said["profiles"][0]["pluginConfig"]] for said in (own, real)]
    assert names[0] == names[1]


def meaning(said: Any) -> Any:
    configuration = load(said)
    return outline(configuration, profiles_of(configuration))


def test_health_is_what_kube_schedulers_is(
    real_cluster: RealCluster, start: Callable[..., Kubesched], kube_scheduler: Scheduler
) -> None:
    running = start()
    for path in ("/healthz", "/livez", "/readyz"):
        for query in ("", "?verbose"):
            assert running.ask(path + query).body.decode() == theirs(kube_scheduler, real_cluster, path + query)
    real, own = theirs(kube_scheduler, real_cluster, "/metrics/slis"), running.ask("/metrics/slis").body.decode()
    for name in ("kubernetes_healthcheck", "kubernetes_healthchecks"):
        about = families(own)[name]
        assert about.kind == families(real)[name].kind
        assert about.values("name", "type") == families(real)[name].values("name", "type")


# ── its queue and its pods ───────────────────────────────────────────────────────────────────────────────────


def test_it_can_be_asked_on_its_machine_and_with_a_token_of_the_cluster(
    real_cluster: RealCluster, namespace: str, make_node: MakeNode, start: Callable[..., Kubesched], tmp_path: Path
) -> None:
    make_node(cpu="1")
    running, client, pods = start(), real_cluster.client(), pods_of(namespace)
    client.create(pods, ours("big", containers=asking("2")))
    client.until(pods, "big", judged)
    told = running.cli("queue")
    assert re.search(rf"{namespace}/big +unschedulable +1 ", told.stdout), told.stdout + told.stderr
    [listed] = [one for one in json.loads(running.cli("queue", "-o", "json").stdout)["pods"] if "big" in one["pod"]]
    assert listed["rejectors"] == ["NodeResourcesFit"]
    explained = running.cli("explain", f"{namespace}/big").stdout
    assert explained.startswith(f"{namespace}/big: parked until something happens that may help")
    assert re.search(r"last attempt \S+: 0/\d+ nodes are available: \d+ Insufficient cpu", explained)
    stranger = Client(running.contact.url, _trust(running))
    assert stranger.request("GET", "/metrics").status == 401
    assert stranger.request("GET", "/healthz").status == 200
    token = tmp_path / "token"
    token.write_text(real_cluster.tokens["admin"])
    ca = tmp_path / "ca"
    ca.write_text(running.contact.authority)
    elsewhere = ("--server", running.contact.url.replace("127.0.0.1", "localhost"), "--ca-file", str(ca))
    assert running.cli("queue", *elsewhere, "--token-file", str(token)).returncode == 0
    token.write_text("nobody's")
    refused = running.cli("queue", *elsewhere, "--token-file", str(token))
    assert refused.returncode == 1
    assert "refuses to tell: Unauthorized" in refused.stderr


def _trust(running: Kubesched) -> Any:
    return ssl.create_default_context(cadata=running.contact.authority)


def test_a_shadow_writes_nothing_and_tells_where_kube_scheduler_went(
    real_cluster: RealCluster,
    namespace: str,
    make_node: MakeNode,
    start: Callable[..., Kubesched],
    kube_scheduler: Scheduler,
) -> None:
    client, pods = real_cluster.client(), pods_of(namespace)
    make_node(cpu="2")
    make_node(cpu="8")
    shadow = start({"profiles": [{"schedulerName": THEIRS}]}, flags=("--shadow",))
    for at in range(5):
        client.create(pods, pod(f"web-{at}", schedulerName=THEIRS))
        client.until(pods, f"web-{at}", bound)
    compared = "Another scheduler bound pod; compared with our decision"
    wait_until(lambda: len(shadow.said(compared)) == 5, timeout=20, what="five comparisons")
    for line in shadow.said(compared):
        assert client.get(f"{pods}/{line['pod'].partition('/')[2]}")["spec"]["nodeName"] == line["theirs"]
        assert line["result"] in ("same", "tied"), line
    text = shadow.ask("/metrics").body.decode()
    posts = re.findall(r'rest_client_requests_total\{code="\d+",host="[^"]+",method="(PATCH|DELETE|PUT)"', text)
    assert posts == []


