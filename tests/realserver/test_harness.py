"""The harness keeps its promises: outages, rotations and lost history on demand, and nothing left behind."""

import http.client
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.realserver import binaries
from tests.realserver.client import Client
from tests.realserver.faults import LoseResponse
from tests.realserver.fixtures import pod, require_binaries
from tests.realserver.harness import Options, RealCluster
from tests.realserver.process import DidNotStart, Server, free_port

ROOT = Path(__file__).resolve().parents[2]
NODES = "/api/v1/nodes"
Start = Callable[[Options], RealCluster]


# ── what a cluster can be put through ────────────────────────────────────────────────────────────────


def test_an_outage_keeps_port_and_data_and_a_compaction_makes_old_versions_gone(own_cluster: Start) -> None:
    cluster = own_cluster(Options(authorization="AlwaysAllow", audit="Metadata", users={"bob": []}))
    bob = cluster.client("bob")     # has no role at all: here everybody may do everything
    old = bob.create(NODES, {"metadata": {"name": "survivor"}})["metadata"]["resourceVersion"]
    bob.create(NODES, {"metadata": {"name": "another"}})

    cluster.apiserver.stop()
    with pytest.raises(ConnectionRefusedError):
        bob.get(NODES)
    cluster.compact()
    cluster.apiserver.start()

    assert [node["metadata"]["name"] for node in bob.get(NODES)["items"]] == ["another", "survivor"]
    [gone] = bob.watch(NODES, resourceVersion=old)
    assert (gone["type"], gone["object"]["code"], gone["object"]["reason"]) == ("ERROR", 410, "Expired")
    posted = [event for event in cluster.audit_events() if event["verb"] == "create" and event["requestURI"] == NODES]
    assert [event["user"]["username"] for event in posted] == ["bob", "bob"]


@pytest.fixture(scope="module")
def spare_cluster(real_binaries: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """A cluster whose API server may be paused and whose certificates may be rotated."""
    options = Options(feature_gates={"GenericWorkload": True}, uncached=["events"],
                      apiserver_flags={"runtime-config": "scheduling.k8s.io/v1alpha2=true"})
    with RealCluster(tmp_path_factory.mktemp("spare-cluster"), options) as cluster:
        yield cluster


def test_feature_gates_and_flags_reach_the_server(spare_cluster: RealCluster) -> None:
    served = spare_cluster.client().get("/apis/scheduling.k8s.io/v1alpha2")
    assert "podgroups" in [resource["name"] for resource in served["resources"]]


def test_a_paused_api_server_accepts_but_does_not_answer(spare_cluster: RealCluster) -> None:
    client = spare_cluster.client()
    spare_cluster.apiserver.pause()
    try:
        with pytest.raises(TimeoutError):
            client.request("GET", "/version", timeout=0.2)
    finally:
        spare_cluster.apiserver.resume()
    client.get("/version")


def test_a_rotated_serving_certificate_of_the_same_authority_is_trusted_as_before(spare_cluster: RealCluster) -> None:
    client, before = spare_cluster.client(), spare_cluster.presented_certificate()
    spare_cluster.rotate_serving_certificate()
    assert spare_cluster.presented_certificate() != before
    client.get("/version")


def test_a_new_authority_locks_out_who_does_not_read_the_file_again(spare_cluster: RealCluster) -> None:
    before = spare_cluster.client()
    spare_cluster.rotate_serving_certificate(new_authority=True)
    with pytest.raises(ssl.SSLCertVerificationError):
        before.get("/version")
    spare_cluster.client().get("/version")


def test_a_wrong_host_or_an_expired_certificate_can_be_had(real_cluster: RealCluster) -> None:
    """What a client must refuse, for tests that see whether it does."""
    for pair, complaint in [
        (real_cluster.serving.serving(["elsewhere.example"]), "IP address mismatch"),
        (real_cluster.serving.serving(expired=True), "certificate has expired"),
    ]:
        proxy = real_cluster.proxy(certificate=pair)
        with pytest.raises(ssl.SSLCertVerificationError, match=complaint):
            real_cluster.client(via=proxy).get("/version")


def test_a_proxy_that_does_not_end_tls_passes_client_certificates(real_cluster: RealCluster) -> None:
    proxy = real_cluster.proxy(ends_tls=False)
    kubeconfig = real_cluster.kubeconfig("carol", groups=["system:masters"], via=proxy)
    whoami = real_cluster.kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}", kubeconfig=kubeconfig)
    assert (whoami.stdout, whoami.stderr) == ("carol", "")


def test_the_real_kube_scheduler_runs_behind_a_proxy_that_loses_its_answers(
    real_cluster: RealCluster, namespace: str, make_node: Callable[..., str]
) -> None:
    proxy = real_cluster.proxy()
    order = proxy.on(r"^POST \S+/binding", LoseResponse())
    scheduler = real_cluster.start_scheduler({"profiles": [{"schedulerName": "behind-a-proxy"}]}, via=proxy)
    client, pods, node = real_cluster.client(), f"/api/v1/namespaces/{namespace}/pods", make_node()
    client.create(pods, pod("web", schedulerName="behind-a-proxy"))

    bound = client.until(pods, "web", lambda seen: "nodeName" in seen["spec"])

    assert bound["spec"]["nodeName"] == node
    assert order.wait_for_answer() == 201
    scheduler.stop()


# ── nothing is left behind ───────────────────────────────────────────────────────────────────────────

PARENT = """
import signal
import sys
from pathlib import Path
from tests.realserver.process import Server

signal.signal(signal.SIGINT, signal.default_int_handler)  # what a script starts in the background is born deaf to it
held = sys.argv[1]      # a pipe both processes keep open for as long as they live
command = ["sh", "-c", f"sleep 1000 > {held} & sleep 1000 > {held}"]
Server("sleepers", command, log=Path(held + ".log"), ready=lambda: True).start()
print("started", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, None])
def test_processes_end_with_the_test_run_however_it_ends(ending: signal.Signals | None, tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    with subprocess.Popen([sys.executable, "-c", PARENT, str(held)], cwd=ROOT, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent, held.open("rb") as alive:
        assert parent.stdout is not None
        assert parent.stdin is not None
        assert parent.stdout.readline() == b"started\n"
        if ending is None:
            parent.stdin.close()
        else:
            parent.send_signal(ending)
        assert alive.read() == b""      # returns when the last of them is gone


def test_a_server_can_be_stopped_politely_and_started_again(tmp_path: Path) -> None:
    command = ["sh", "-c", "trap 'echo bye; exit 0' TERM; echo hello; while :; do sleep 0.01; done"]
    log = tmp_path / "log"
    server = Server("polite", command, log=log, ready=lambda: log.read_text().endswith("hello\n"))
    for _ in range(2):
        server.start()
        server.stop(grace=30)
        assert not server.alive
    assert log.read_text() == "hello\nbye\n" * 2


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    server = Server("hasty", ["sh", "-c", "echo unknown flag: --fast >&2; exit 3"], log=tmp_path / "log",
                    ready=lambda: False)
    with pytest.raises(DidNotStart, match=r"hasty ended with 3 before it was ready:\nunknown flag: --fast"):
        server.start()
    server.stop()


def test_ports_are_never_handed_out_twice() -> None:
    ports = [free_port() for _ in range(20)]
    assert len(set(ports)) == 20


# ── where the binaries come from ─────────────────────────────────────────────────────────────────────


def put_binaries(directory: Path, names: tuple[str, ...] = binaries.NAMES) -> Path:
    directory.mkdir(parents=True)
    for name in names:
        (directory / name).touch(mode=0o755)
    return directory


def test_the_users_own_binaries_come_before_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "ROOT", tmp_path)
    ours = put_binaries(tmp_path / ".envtest" / "bin")
    theirs = put_binaries(tmp_path / "assets", ("etcd", "kube-apiserver", "kubectl"))
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(theirs))
    assert [binaries.find(name).parent for name in binaries.NAMES] == [theirs, theirs, ours, theirs]
    assert binaries.missing() is None


def test_absent_binaries_skip_or_where_required_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binaries, "ROOT", tmp_path)
    put_binaries(tmp_path / ".envtest" / "bin", ("etcd", "kubectl"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    line = "real servers left out: no kube-apiserver, kube-scheduler in .envtest/bin; `make envtest` builds them"
    monkeypatch.delenv("KUBESCHED_REQUIRE_ENVTEST", raising=False)
    with pytest.raises(pytest.skip.Exception) as skipped:
        require_binaries()
    assert str(skipped.value) == line
    monkeypatch.setenv("KUBESCHED_REQUIRE_ENVTEST", "1")
    with pytest.raises(pytest.fail.Exception) as failed:
        require_binaries()
    assert str(failed.value) == line


@pytest.fixture
def builder(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The build tool in a checkout where nothing has been built, on a machine without Go."""
    for name in ("tools/build_envtest.py", "envtest/go.mod", "envtest/go.sum"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(tmp_path / "tools" / "build_envtest.py"), *arguments]
        return subprocess.run(command, env={"PATH": "", **environment}, capture_output=True, text=True)

    return run


def test_without_go_the_build_says_what_would_help(builder: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    refused = builder()
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == (
        "envtest: the real servers are not built and there is no `go` to build them with: install Go 1.26 or newer, "
        "or point KUBEBUILDER_ASSETS at a directory that holds the binaries\n")
    possible = builder("--if-possible")
    assert (possible.returncode, possible.stderr) == (0, refused.stderr)
    assert builder("--if-possible", KUBESCHED_REQUIRE_ENVTEST="1").returncode == 1


def test_binaries_the_user_has_are_not_built(
    builder: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    assets = put_binaries(tmp_path / "assets")
    content = builder(KUBEBUILDER_ASSETS=str(assets))
    assert (content.returncode, content.stderr) == (0, "")
    assert "nothing to build" in content.stdout
    assert not (tmp_path / ".envtest").exists()


def test_a_stranger_to_the_certificates_is_refused(real_cluster: RealCluster) -> None:
    distrustful = Client(real_cluster.url, ssl.create_default_context())
    with pytest.raises(ssl.SSLCertVerificationError):
        distrustful.get("/version")


def test_ports_serve_tls_alone(real_cluster: RealCluster) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", real_cluster.port, timeout=10)
    connection.request("GET", "/version")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (400, b"Client sent an HTTP request to an HTTPS server.\n")
    connection.close()
