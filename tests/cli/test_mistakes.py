"""Mistakes of a user, in every command: a sentence that names the thing, an exit status, and never a traceback.

The fixture `kubesched` holds every command to the last of these.
"""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubesched.cli.main import COMMANDS, FAILED, MISUSED, run

NOWHERE = ("--master", "https://127.0.0.1:1")  # mistakes are told before anybody is asked
UP = ("up", "--port", "0", "--kubeconfig", "made/kubeconfig")

FILES: dict[str, bytes] = {
    "empty": b"",
    "binary": bytes(range(256)),
    "broken.yaml": b"a: [1, 2\nb: }\n",
    "broken.json": b'{"a": ',
    "deep.json": b"[" * 100_000,
    "list.yaml": b"- 1\n- 2\n",
    "word.yaml": b"hello\n",
    "pod.yaml": b"apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: []}\n",
}
UNREADABLE = ("missing", "folder", "pod.yaml/below", *(name for name in FILES if name != "pod.yaml"))

READERS: dict[str, tuple[str, ...]] = {
    "config check": ("config", "check", "{}"),
    "config show": ("config", "show", "{}"),
    "conformance": ("conformance", "{}"),
    "crd": ("crd", "{}"),
    "explain --cluster": ("explain", "--cluster", "{}", "--pod", "pod.yaml"),
    "explain --pod": ("explain", "--cluster", "pod.yaml", "--pod", "{}"),
    "explain --config": ("explain", "--cluster", "pod.yaml", "--pod", "pod.yaml", "--config", "{}"),
    "fuzz": ("fuzz", "{}"),
    "manifests": ("manifests", "--config", "{}"),
    "plugins": ("plugins", "--plugin", "{}"),
    "queue": ("queue", "--server", "https://127.0.0.1:1", "--token-file", "word.yaml", "--ca-file", "{}"),
    "rbac": ("rbac", "--config", "{}"),
    "replay": ("replay", "{}"),
    "run --config": ("run", "--config", "{}"),
    "run --kubeconfig": ("run", "--kubeconfig", "{}"),
    "run --plugin": ("run", "--plugin", "{}", *NOWHERE),
    "run --client-ca-file": ("run", "--client-ca-file", "{}", *NOWHERE),
    "run --tls-cert-file": ("run", "--tls-cert-file", "{}", "--tls-private-key-file", "{}", *NOWHERE),
    "run --authentication-kubeconfig": ("run", "--authentication-kubeconfig", "{}", *NOWHERE),
    "sim": ("sim", "{}"),
    "up --from": (*UP, "--from", "{}"),
    "up --nodes-file": (*UP, "--nodes-file", "{}"),
    "up --plugin": (*UP, "--plugin", "{}"),
    "up --scheduler-config": (*UP, "--scheduler-config", "{}"),
}
"""Every option that names a file to be read."""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    (tmp_path / "folder").mkdir()
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)


@pytest.mark.parametrize("reader", READERS)
def test_a_file_that_cannot_be_read_or_understood_is_named(kubesched: Any, reader: str) -> None:
    for name in UNREADABLE:
        told = kubesched(*(word.format(name) for word in READERS[reader]))
        assert told.status in (FAILED, MISUSED), name
        assert name in told.err, told.err
        assert len(told.err.splitlines()) <= 5, told.err


def test_every_command_that_reads_a_file_is_in_the_table() -> None:
    told = {name.split()[0] for name in READERS}
    assert COMMANDS.keys() - told == {"bench", "completion", "new", "tutorial"}


# ── plugins and classes ──────────────────────────────────────────────────────────────────────────────────────

MODULES = {
    "syntax.py": ("def (:\n", "syntax.py:1"),
    "raises.py": ('x = 1\nraise RuntimeError("not today")\n', "raises.py:2"),
    "ends.py": ("x = 1\nimport sys\nsys.exit(3)\n", "ends.py:3"),
    "nothing.py": ("x = 1\n", "nothing.py"),
}


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(
    "command",
    [("run", *NOWHERE, "--plugin"), (*UP, "--plugin"), ("plugins", "--plugin"), ("crd",)],
    ids=lambda one: one[0],
)
def test_a_file_of_python_that_does_not_import_is_told_by_line(
    kubesched: Any, tmp_path: Path, module: str, command: tuple[str, ...]
) -> None:
    text, where = MODULES[module]
    (tmp_path / module).write_text(text)
    told = kubesched(*command, module)
    assert told.status == FAILED
    assert where in told.err


# ── where something is to be written ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "command",
    [
        ("run", "--write-config-to", "pod.yaml/x"),
        ("up", "--port", "0", "--kubeconfig", "pod.yaml/x"),
        (*UP, "--data-dir", "pod.yaml"),
        ("new", "plugin", "Budget", "--into", "pod.yaml/x"),
        ("sim", "scenario.yaml", "--journal", "pod.yaml/x"),
    ],
    ids=lambda one: " ".join(one[:2]),
)
def test_a_place_that_cannot_be_written_to_is_named(kubesched: Any, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "scenario.yaml").write_text("cluster: [{node: n1}]\n")
    told = kubesched(*command)
    assert told.status in (FAILED, MISUSED)
    assert "pod.yaml" in told.err


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_port_that_is_taken_is_named_with_a_remedy(kubesched: Any, taken: int) -> None:
    run_it = kubesched("run", *NOWHERE, "--secure-port", str(taken))
    assert run_it.status == FAILED
    assert f"cannot serve on 127.0.0.1:{taken}: address already in use (choose another with --secure-port" in run_it.err
    up = kubesched("up", "--port", str(taken), "--kubeconfig", "k")
    assert up.status == FAILED
    assert str(taken) in up.err


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS: list[tuple[tuple[str, ...], str]] = [
    (("rum",), 'there is no command "rum"; did you mean "run"?'),
    (("zzz",), 'there is no command "zzz"; there are: bench, completion'),
    (("run", "--confg", "x"), "No such option '--confg'. (Did you mean one of: '--config', '--kubeconfig'?)"),
    (("config", "chek"), "Did you mean one of: 'check', 'schema'?"),
    (("run",), "name a kubeconfig with --kubeconfig or clientConnection.kubeconfig"),
    (("run", "--master", "nonsense"), "'nonsense' is no URL of a server (write https://HOST:PORT)"),
    (("run", *NOWHERE, "--secure-port", "99999"), "--secure-port 99999 is no port"),
    (("run", *NOWHERE, "--secure-port=-1"), "--secure-port -1 is no port"),
    (("run", *NOWHERE, "--bind-address", "192.0.2.1"), "cannot assign requested address"),
    (("run", *NOWHERE, "--bind-address", "not an address"), "cannot serve on not an address:10259"),
    (("run", *NOWHERE, "--allow-exec", "relative"), "--allow-exec 'relative' is no absolute path"),
    (("run", *NOWHERE, "--allow-exec", "/bin/true=abc"), "--allow-exec: 'abc' is no SHA-256"),
    (("run", *NOWHERE, "--pod-max-in-unschedulable-pods-duration=-5s"), "-5s is less than nothing"),
    (("run", *NOWHERE, "--tls-min-version", "TLS9"), "--tls-min-version TLS9 is not served"),
    (("run", "--leader-elect=maybe"), "--leader-elect: 'maybe' is not true or false"),
    (("run", "--leader-elect-lease-duration=soon"), "is not a duration, as 15s or 1m30s"),
    (("run", "--vmodule", "a=1"), "--vmodule: all lines come from one list of messages: use -v"),
    (("run", "--feature-gates", "Nope=true"), "unrecognized feature gate: Nope"),
    (("run", "--emulated-version", "1.20"), "--emulated-version 1.20 cannot be had"),
    (("run", "--disabled-metrics", "nope"), "--disabled-metrics names nope, which is no metric"),
    (("run", "--logging-format", "xml"), "--logging-format xml is unknown (text or json)"),
    (("manifests", "--name", "Not A Name"), "--name 'Not A Name': a lowercase RFC 1123 label"),
    (("manifests", "--namespace", "x_y"), "--namespace 'x_y': a lowercase RFC 1123 label"),
    (("manifests", "--image", "a b"), "--image 'a b' is no image"),
    (("rbac", "--name", "x" * 64), "must be no more than 63"),
    ((*UP, "--nodes-file", "pod.yaml"), "pod.yaml has no Node in it"),
    (("up", "--nodes", "1", "--nodes-file", "x"), "give one of the two"),
    (("up", "--zones", ",,"), "is no name for a zone"),
    (("plugins", "show", "NodeNam"), 'plugin "NodeNam" does not exist (did you mean "NodeName"?)'),
    (("tutorial", "9"), "9 is not in the range"),
    (("bench", "--workload", "x"), "'x' is not one of"),
    (("fuzz", "--seeds", "5..1"), "ends before it begins"),
    (("new", "plugin", "../x"), "is no name for a plugin; write it like a class"),
]


@pytest.mark.parametrize(("words", "sentence"), WORDS, ids=lambda one: " ".join(one) if isinstance(one, tuple) else "")
def test_a_word_that_makes_no_sense_is_told_with_a_remedy(
    kubesched: Any, words: tuple[str, ...], sentence: str
) -> None:
    told = kubesched(*words)
    assert told.status in (FAILED, MISUSED)
    assert sentence in told.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_tells_what_it_does(kubesched: Any, command: str) -> None:
    told = kubesched(command, "--help")
    assert told.status == 0
    usage, _, first, *_ = told.out.splitlines()
    assert usage.startswith(f"Usage: kubesched {command}")
    assert first.strip()
    assert kubesched(command, "--no-such-thing").status == MISUSED


def test_a_full_disk_is_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(*arguments: object, **named: object) -> None:
        raise OSError(28, os.strerror(28), "journal")

    monkeypatch.setattr("kubesched.cli.main.kubesched.main", full)
    assert run(["sim", "x"]) == FAILED
    assert capsys.readouterr().err == "error: journal: no space left on device\n"


def test_an_interruption_has_its_own_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **named: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kubesched.cli.main.Commands.invoke", interrupted)
    assert run(["tutorial"]) == 130
