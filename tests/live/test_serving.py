"""The port of a running scheduler: who may ask, and what is answered."""

import asyncio
import contextlib
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kubesched.apiserver.tls import make_certificates, write_private
from kubesched.assemble import profiles_of
from kubesched.config.defaults import complete
from kubesched.config.document import document
from kubesched.config.load import load
from kubesched.config.schema import Configuration
from kubesched.framework.errors import ConfigError, Unreachable
from kubesched.live import contact
from kubesched.live.answers import CoreAnswers
from kubesched.live.certificate import Serving, Wanted
from kubesched.live.contact import Contact, NoContact
from kubesched.live.guard import Guard, Person
from kubesched.live.serving import EXPLAIN, HEALTH, QUEUE, Face
from kubesched.telemetry.metrics import Metrics
from kubesched.testing import node, pod, run, scheduler

TOKEN = "let-me-in"
CLOSED = (
    *("/metrics", "/metrics/resources", "/metrics/slis", "/configz", f"{EXPLAIN}?pod=a", QUEUE),
    *("/", "/debug/pprof", "/nothing"),
)


class Desk:
    """An API server's word on who is who; counts how often it is asked."""

    def __init__(self, people: Mapping[str, Person] = {}, allowed: Mapping[str, tuple[str, ...]] = {}) -> None:
        self.people, self.allowed = people, allowed
        self.asked = 0
        self.broken = False

    async def who(self, token: str) -> Person | None:
        self.asked += 1
        if self.broken:
            raise Unreachable("connection refused")
        return self.people.get(token)

    async def may(self, person: Person, verb: str, path: str) -> bool:
        self.asked += 1
        return verb == "get" and path in self.allowed.get(person.name, ())


class Answer:
    def __init__(self, status: int, headers: Mapping[str, str], body: str) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Ask = Callable[..., Awaitable[Answer]]


def serve(core: Any, guard: Guard, talk: Callable[[Ask], Awaitable[None]], *, wanted: Wanted | None = None,
          client: tuple[bytes, bytes] | None = None, tmp: Path | None = None, **answers: Any) -> None:
    """Serve a core over TLS and let `talk` ask it."""
    serving = Serving(wanted or Wanted())
    told = CoreAnswers(core, Metrics(), complete(Configuration()), **answers)

    async def both() -> None:
        face = Face(told, guard, serving.context)
        await face.start()
        trust = ssl.create_default_context(cadata=serving.authority.decode())
        if client is not None:
            assert tmp is not None
            trust.load_cert_chain(write_private(tmp / "client.pem", client[0] + client[1]))
        try:
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session:

                async def ask(path: str, token: str = TOKEN, method: str = "GET") -> Answer:
                    headers = {"Authorization": f"Bearer {token}"} if token else {}
                    async with session.request(method, face.url + path, headers=headers) as response:
                        return Answer(response.status, dict(response.headers), await response.text())

                await talk(ask)
        finally:
            await face.stop()

    asyncio.run(both())


def guard(**told: Any) -> Guard:
    return Guard(lambda: 0.0, token=TOKEN, **told)


def small() -> Any:
    core = scheduler(node("n1", cpu=1), pod("fits", cpu=1), pod("big", cpu=9))
    run(core)
    return core


# ── who may ask ──────────────────────────────────────────────────────────────────────────────────────────────


def test_health_is_for_everybody_and_nothing_else_is() -> None:
    async def talk(ask: Ask) -> None:
        for path in HEALTH:
            assert (await ask(path, token="")).status == 200
        for path in CLOSED:
            assert (await ask(path, token="")).status == 401, path
            assert (await ask(path, token="guessed")).status == 401, path
            assert (await ask(path, token=TOKEN + "x")).status == 401, path

    serve(small(), guard(), talk)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(method: str) -> None:
    async def talk(ask: Ask) -> None:
        for path in ("/metrics", "/healthz", QUEUE):
            assert (await ask(path, method=method)).status == 405

    serve(small(), guard(), talk)


def test_the_api_server_says_who_somebody_is_and_what_they_may() -> None:
    desk = Desk({"anna": Person("anna"), "bert": Person("bert")}, {"anna": ("/metrics",)})

    async def talk(ask: Ask) -> None:
        assert (await ask("/metrics", token="anna")).status == 200
        refused = await ask("/metrics", token="bert")
        assert refused.status == 403
        assert refused.json["message"] == 'forbidden: User "bert" cannot get path "/metrics"'
        assert (await ask(QUEUE, token="anna")).status == 403
        assert (await ask("/metrics", token="nobody")).status == 401

    serve(small(), guard(reviewer=desk), talk)


def test_an_answer_holds_for_a_while_and_not_for_longer() -> None:
    desk = Desk({"anna": Person("anna")}, {"anna": ("/metrics",)})
    now = [0.0]

    async def talk(ask: Ask) -> None:
        await ask("/metrics", token="anna")
        await ask("/metrics", token="anna")
        assert desk.asked == 2  # who she is, and what she may
        desk.allowed = {}
        now[0] = 11.0
        assert (await ask("/metrics", token="anna")).status == 403

    serve(small(), Guard(lambda: now[0], reviewer=desk), talk)


def test_when_nobody_can_be_asked_the_answer_is_no() -> None:
    desk = Desk()
    desk.broken = True

    async def talk(ask: Ask) -> None:
        assert (await ask("/metrics", token="anna")).status == 503
        assert (await ask("/healthz", token="anna")).status == 200

    serve(small(), guard(reviewer=desk), talk)


def test_a_client_certificate_names_its_bearer(tmp_path: Path) -> None:
    made = make_certificates()
    authority = write_private(tmp_path / "clients.crt", made.ca)
    desk = Desk(allowed={"kubernetes-admin": ("/metrics",)})

    async def talk(ask: Ask) -> None:
        assert (await ask("/metrics", token="")).status == 200
        assert (await ask(QUEUE, token="")).status == 403

    client = (made.client_certificate, made.client_key)
    wanted = Wanted(client_ca_file=str(authority))
    serve(small(), guard(reviewer=desk), talk, wanted=wanted, client=client, tmp=tmp_path)


def test_a_certificate_of_a_foreign_authority_opens_nothing(tmp_path: Path) -> None:
    authority = write_private(tmp_path / "clients.crt", make_certificates().ca)
    stranger = make_certificates()

    async def talk(ask: Ask) -> None:
        with pytest.raises(aiohttp.ClientError):
            await ask("/metrics", token="")

    client = (stranger.client_certificate, stranger.client_key)
    serve(small(), guard(), talk, wanted=Wanted(client_ca_file=str(authority)), client=client, tmp=tmp_path)


# ── what is answered ─────────────────────────────────────────────────────────────────────────────────────────


def test_metrics_have_the_type_that_scrapers_expect() -> None:
    async def talk(ask: Ask) -> None:
        told = await ask("/metrics")
        assert told.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert 'scheduler_pending_pods{queue="unschedulable"} 1.0' in told.body
        assert 'scheduler_cache_size{type="assumed_pods"} 1.0' in told.body
        resources = await ask("/metrics/resources")
        big = 'pod="big",node="",scheduler="default-scheduler",priority="",resource="cpu",unit="cores"} 9.0'
        assert big in resources.body

    serve(small(), guard(), talk)


def test_a_scheduler_that_does_not_lead_says_nothing_of_pods() -> None:
    async def talk(ask: Ask) -> None:
        assert "kube_pod_resource_request{" not in (await ask("/metrics/resources")).body

    serve(small(), guard(), talk, leads=lambda: False)


def test_readyz_waits_for_the_first_view_and_tells_of_each_check() -> None:
    core = scheduler(wait_for=("Pod", "Node"))

    async def talk(ask: Ask) -> None:
        told = await ask("/readyz?verbose", token="")
        assert told.status == 500
        assert "[-]sched-handler-sync failed: not everything has been seen yet: Node, Pod" in told.body
        assert (await ask("/readyz/shutdown", token="")).body == "ok"
        assert (await ask("/readyz?exclude=sched-handler-sync", token="")).status == 200
        assert (await ask("/readyz/nonsense", token="")).status == 404
        core.unsynced.clear()
        assert (await ask("/readyz", token="")).body == "ok"
        core.draining = True
        assert (await ask("/readyz", token="")).status == 500
        assert (await ask("/livez", token="")).body == "ok"

    free = (*HEALTH, "/readyz/*")
    serve(core, guard(always=free), talk)


def test_health_checks_are_counted_as_they_were_asked_for() -> None:
    core = scheduler(wait_for=("Pod",))

    async def talk(ask: Ask) -> None:
        await ask("/readyz")
        core.unsynced.clear()
        await ask("/readyz")
        told = (await ask("/metrics/slis")).body
        assert 'kubernetes_healthcheck{name="sched-handler-sync",type="readyz"} 1.0' in told
        counted = 'kubernetes_healthchecks_total{name="sched-handler-sync",status="%s",type="readyz"} 1.0'
        assert counted % "error" in told
        assert counted % "success" in told

    serve(core, guard(), talk)


def test_configz_is_the_whole_configuration_and_reads_back_to_itself() -> None:
    async def talk(ask: Ask) -> None:
        told = (await ask("/configz")).json["componentconfig"]
        assert told["leaderElection"]["resourceName"] == "kube-scheduler"
        assert told["podInitialBackoffSeconds"] == 1
        [profile] = told["profiles"]
        args = {one["name"]: one["args"] for one in profile["pluginConfig"]}
        assert args["VolumeBinding"]["bindTimeoutSeconds"] == 600
        assert args["NodeResourcesFit"]["scoringStrategy"]["type"] == "LeastAllocated"
        again = load(told)
        assert document(again, profiles_of(again)) == told
        profile["pluginConfig"] = []
        assert load(told) == complete(Configuration())

    serve(small(), guard(), talk)


def test_explain_tells_how_a_pod_came_where_it_is() -> None:
    async def talk(ask: Ask) -> None:
        told = (await ask(f"{EXPLAIN}?pod=default/big")).json
        assert told["state"] == "Parked"
        assert told["attempts"] == 1
        assert told["rejectors"] == ["NodeResourcesFit"]
        assert told["attempt"]["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert [move["cause"] for move in told["story"]] == ["admitted", "popped", "unfit"]
        assert "NodeAdd" in told["wakes"]
        assert told["now"][0] == "default/big  unschedulable: 0 of 1 nodes fit"
        assert (await ask(f"{EXPLAIN}?pod=big")).json == told
        why = (await ask(f"{EXPLAIN}?pod=big&node=n1")).json["now"]
        assert any("NodeResourcesFit" in line for line in why)
        assert (await ask(f"{EXPLAIN}?pod=big&node=n9")).json["now"] == ["there is no node n9"]
        assert (await ask(f"{EXPLAIN}?pod=nobody")).status == 404
        assert (await ask(EXPLAIN)).status == 400

    serve(small(), guard(), talk)


def test_the_queue_lists_who_waits_and_who_is_on_the_way() -> None:
    async def talk(ask: Ask) -> None:
        told = (await ask(QUEUE)).json
        assert told["counts"] == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 0}
        assert [pod["pod"] for pod in told["pods"]] == ["default/big"]
        assert told["inFlight"] == [{"pod": "default/fits", "node": "n1", "state": "Binding"}]

    serve(small(), guard(), talk)


def test_a_fault_while_answering_is_no_answer() -> None:
    core = small()
    core.mirror.table = None
    heard: list[Any] = []

    async def talk(ask: Ask) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: heard.append(context))
        assert (await ask("/metrics")).status == 500
        assert (await ask("/livez", token="")).status == 200

    serve(core, guard(), talk)
    assert len(heard) == 1


# ── certificates ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_certificate_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    def put(seconds: int) -> bytes:
        made = make_certificates()
        for name, content in (("tls.crt", made.server_certificate), ("tls.key", made.server_key)):
            os.utime(write_private(tmp_path / name, content), (seconds, seconds))
        return made.ca

    put(1)
    serving = Serving(Wanted(cert_file=str(tmp_path / "tls.crt"), key_file=str(tmp_path / "tls.key")))
    assert not serving.refresh()
    put(2)
    assert serving.refresh()
    assert not serving.refresh()


def test_half_a_pair_and_a_bad_pair_are_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--tls-cert-file is given without --tls-private-key-file"):
        Serving(Wanted(cert_file="x"))
    with pytest.raises(ConfigError, match="cannot be used: no such file or directory"):
        Serving(Wanted(cert_file=str(tmp_path / "no.crt"), key_file=str(tmp_path / "no.key")))
    with pytest.raises(ConfigError, match="--tls-min-version VersionTLS10 is not served"):
        Serving(Wanted(min_version="VersionTLS10"))
    with pytest.raises(ConfigError, match="--client-ca-file"):
        Serving(Wanted(client_ca_file=str(tmp_path / "no.crt")))


# ── where it can be asked ────────────────────────────────────────────────────────────────────────────────────


def test_a_contact_is_for_its_owners_eyes_and_found_while_its_scheduler_runs(tmp_path: Path) -> None:
    here = tmp_path / "kubesched"
    told = Contact(url="https://127.0.0.1:1", token="secret", pid=os.getpid())
    left = contact.leave(told, here)
    assert left is not None
    assert left.stat().st_mode & 0o077 == 0
    assert contact.find(here) == told
    assert contact.at("https://127.0.0.1:1/", here) == told


def test_a_contact_whose_scheduler_has_gone_is_not_one(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    contact.leave(Contact(url="https://127.0.0.1:1", token="", pid=ended.pid), tmp_path)
    with pytest.raises(NoContact, match="no scheduler of yours runs on this machine"):
        contact.find(tmp_path)


def test_a_folder_others_may_write_to_is_not_trusted(tmp_path: Path) -> None:
    contact.leave(Contact(url="https://127.0.0.1:1", token="", pid=os.getpid()), tmp_path)
    tmp_path.chmod(0o777)
    with pytest.raises(NoContact):
        contact.find(tmp_path)
    assert contact.leave(Contact(url="https://127.0.0.1:2", token="", pid=os.getpid()), tmp_path) is None


def test_of_two_schedulers_one_must_be_named(tmp_path: Path) -> None:
    contact.leave(Contact(url="https://127.0.0.1:1", token="", pid=os.getpid()), tmp_path)
    with contextlib.ExitStack() as after:
        other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        after.callback(other.communicate)
        contact.leave(Contact(url="https://127.0.0.1:2", token="", pid=other.pid), tmp_path)
        with pytest.raises(NoContact, match="2 schedulers run here: https://"):
            contact.find(tmp_path)
