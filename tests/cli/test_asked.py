"""`kubesched queue` and `kubesched explain POD`: a running scheduler is asked, or a sentence says why it cannot be."""

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubesched.config.defaults import complete
from kubesched.config.schema import Configuration
from kubesched.core.core import Core
from kubesched.live import contact
from kubesched.live.answers import CoreAnswers
from kubesched.live.certificate import Serving, Wanted
from kubesched.live.contact import Contact
from kubesched.live.guard import Guard
from kubesched.live.serving import Face
from kubesched.telemetry.metrics import Metrics
from kubesched.testing import node, pod, run, scheduler

TOKEN = "the owner's"


class Served:
    """A core whose port is open, in a thread of its own; nobody knows of it yet."""

    def __init__(self, core: Core, **answers: Any) -> None:
        self.core, self.serving = core, Serving(Wanted())
        told = CoreAnswers(core, Metrics(), complete(Configuration()), **answers)
        self.face = Face(told, Guard(lambda: 0.0, token=TOKEN), self.serving.context)
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self.face.start())
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def contact(self) -> Contact:
        authority = self.serving.authority.decode()
        return Contact(url=self.face.url, token=TOKEN, authority=authority, pid=os.getpid())

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self.face.stop())
        self._loop.close()


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedulers that run on this machine for other reasons are not seen."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    served: list[Served] = []

    def start(*objects: Any, ask: bool = True, **answers: Any) -> Served:
        core = scheduler(*objects)
        run(core)
        served.append(Served(core, **answers))
        if ask:
            contact.leave(served[-1].contact())
        return served[-1]

    yield start
    for one in served:
        one.close()


def small(serve: Callable[..., Served], **how: Any) -> Served:
    return serve(node("n1", cpu=1), pod("fits", cpu=1), pod("big", cpu=9), **how)


# ── explain ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_explain_tells_what_became_of_a_pod_and_what_would_become_of_it_now(serve: Any, kubesched: Any) -> None:
    small(serve)
    told = kubesched("explain", "default/big")
    assert (told.status, told.err) == (0, "")
    first, *rest = told.out.splitlines()
    assert first == "default/big: parked until something happens that may help"
    assert any(line.startswith("  tried once, waiting since ") for line in rest)
    assert any("0/1 nodes are available: 1 Insufficient cpu." in line for line in rest)
    assert "  default/big  unschedulable: 0 of 1 nodes fit" in rest[rest.index("now:") :]


def test_explain_says_why_not_this_node(serve: Any, kubesched: Any) -> None:
    small(serve)
    told = kubesched("explain", "big", "--node", "n1").out
    assert "why not n1?  NodeResourcesFit: wants cpu 9000m, free 0m of 1000m" in told


def test_explain_tells_where_a_pod_went(serve: Any, kubesched: Any) -> None:
    small(serve)
    told = kubesched("explain", "default/fits").out
    assert "placed on n1" in told


def test_explain_is_json_for_machines(serve: Any, kubesched: Any) -> None:
    small(serve)
    told = json.loads(kubesched("explain", "big", "-o", "json").out)
    assert (told["state"], told["rejectors"]) == ("Parked", ["NodeResourcesFit"])


def test_a_pod_nobody_knows_is_a_sentence(serve: Any, kubesched: Any) -> None:
    small(serve)
    told = kubesched("explain", "shop/nobody")
    assert told.status == 1
    assert "pod shop/nobody is not known: it does not exist, is bound already, or names another" in told.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("big", "--cluster", "x"), "needs no files and no settings"),
        (("big", "--feature-gates", "A=true"), "needs no files and no settings"),
        (("--server", "https://h:1"), "say which pod to ask that scheduler about"),
        ((), "--cluster FILE --pod FILE"),
    ],
)
def test_questions_that_make_no_sense(kubesched: Any, words: tuple[str, ...], problem: str) -> None:
    told = kubesched("explain", *words)
    assert told.status == 2
    assert problem in " ".join(told.err.split())


def test_a_journal_can_be_asked_too(kubesched: Any, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("cluster: [{node: n1, cpu: 1}, {pod: big, cpu: 9}]\nuntil: 5s\n")
    assert kubesched("sim", "s.yaml", "--journal", "run.jsonl").status == 0
    told = kubesched("explain", "big", "--journal", "run.jsonl", "--node", "n1")
    assert told.status == 0
    assert told.out.startswith("default/big: parked until something happens that may help")
    assert "why not n1?  NodeResourcesFit: wants cpu 9000m, free 1000m of 1000m" in told.out
    unknown = kubesched("explain", "shop/nobody", "--journal", "run.jsonl")
    assert unknown.status == 1
    assert "run.jsonl: pod shop/nobody is not known at its end" in unknown.err
    assert kubesched("explain", "big", "--journal", "missing").status == 2
    assert kubesched("explain", "--journal", "run.jsonl").status == 2


# ── the queue ────────────────────────────────────────────────────────────────────────────────────────────────


def test_queue_lists_who_waits_where_and_for_what(serve: Any, kubesched: Any) -> None:
    small(serve)
    first, heading, *rows = kubesched("queue").out.splitlines()
    assert first == "0 active, 0 backing off, 1 unschedulable, 0 gated, 1 on their way"
    assert heading.split() == ["pod", "where", "attempts", "since", "turned", "down", "by"]
    assert rows[0].split() == ["default/fits", "binding", "on", "n1"]
    name, where, attempts, _, rejector = rows[1].split()
    assert (name, where, attempts, rejector) == ("default/big", "unschedulable", "1", "NodeResourcesFit")
    assert "NodeAdd" in kubesched("queue", "-o", "wide").out
    assert json.loads(kubesched("queue", "-o", "json").out)["leads"] is True


def test_queue_says_what_keeps_a_scheduler_from_working(serve: Any, kubesched: Any) -> None:
    served = serve(leads=lambda: False)
    served.core.unsynced.update({"Node", "Pod"})
    served.core.draining = True
    lines = kubesched("queue").out.splitlines()
    assert lines == [
        "0 active, 0 backing off, 0 unschedulable, 0 gated, 0 on their way",
        "another scheduler holds the lease: this one waits for its turn",
        "nothing is tried before all of these have been seen: Node, Pod",
        "it is on its way out: nothing new is tried",
    ]


# ── whom to ask, and how that goes wrong ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("command", [("queue",), ("explain", "a/b")])
def test_nobody_there_is_a_sentence_with_a_remedy(kubesched: Any, command: tuple[str, ...]) -> None:
    told = kubesched(*command)
    assert told.status == 1
    assert "no scheduler of yours runs on this machine" in told.err
    assert "--server https://HOST:PORT" in told.err


def test_of_another_machines_scheduler_one_needs_a_token_and_an_authority(
    serve: Any, kubesched: Any, tmp_path: Path
) -> None:
    served = small(serve, ask=False)
    server = ("--server", served.face.url)
    assert "say with which token to ask it" in kubesched("queue", *server).err
    token, authority = tmp_path / "token", tmp_path / "ca.pem"
    token.write_text(TOKEN + "\n")
    authority.write_bytes(served.serving.authority)
    doubted = kubesched("queue", *server, "--token-file", str(token))
    assert doubted.status == 1
    assert "shows a certificate that is not trusted" in doubted.err
    assert kubesched("queue", *server, "--token-file", str(token), "--ca-file", str(authority)).status == 0
    token.write_text("guessed")
    refused = kubesched("queue", *server, "--token-file", str(token), "--ca-file", str(authority))
    assert refused.status == 1
    assert "refuses to tell: Unauthorized" in refused.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--server", "http://h:1", "--token-file", "token"), "is no address of a scheduler: write https://HOST:PORT"),
        (("--server", "nonsense", "--token-file", "token"), "is no address of a scheduler"),
        (("--server", "https://h:port", "--token-file", "token"), "is no address of a scheduler"),
        (("--server", "https://[::1", "--token-file", "token"), "is no address of a scheduler"),
        (("--server", "https://h:1", "--token-file", "lines"), "lines holds no token"),
        (("--server", "https://127.0.0.1:1", "--token-file", "token"), "does the scheduler run there?"),
        (("--server", "https://h:1", "--token-file", "missing"), "missing cannot be read: no such file or directory"),
        (("--server", "https://h:1", "--token-file", "token", "--ca-file", "token"), "token holds no certificate"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(
    kubesched: Any, tmp_path: Path, words: tuple[str, ...], problem: str
) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "lines").write_text("t\nX-Evil: yes\n")
    told = kubesched("queue", *words)
    assert told.status == 1
    assert problem in told.err
