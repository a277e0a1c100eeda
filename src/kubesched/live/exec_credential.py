"""Credentials made by another program, as a kubeconfig's `exec` names it: only by programs that were allowed.

A kubeconfig comes from somewhere, and `exec` in it runs whatever it says with the rights of whoever reads it.  So by
default nothing runs.  An operator may allow programs by absolute path, and by the SHA-256 of their content.  An allowed
program is run without a shell and with little of our environment, has half a minute and 64 KiB to answer, and is
stopped with everything it started when it takes longer (SEC-06).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from kubesched.api.time import parse_rfc3339
from kubesched.framework.errors import ConfigError
from kubesched.framework.plain import plain
from kubesched.live.access import Proof

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
ANSWER_BYTES_MAX = 64 << 10
TIMEOUT = 30.0  # seconds
RENEW_BEFORE = 60.0
KEPT = ("HOME", "PATH")  # of our environment


class Variable(Struct, frozen=True):
    name: str
    value: str


class Exec(Struct, frozen=True, rename="camel"):
    """`exec` of a kubeconfig's user."""

    command: str
    api_version: str = ""
    args: tuple[str, ...] | None = None
    env: tuple[Variable, ...] | None = None
    install_hint: str = ""
    interactive_mode: str = ""
    provide_cluster_info: bool = False


class _Status(Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _Answer(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: _Status | None = None


class ExecPolicy(Struct, frozen=True):
    """Which programs may be run: absolute path → SHA-256 of the file in hex, or empty for whatever stands there."""

    allowed: Mapping[str, str] = {}


class _Listening(asyncio.SubprocessProtocol):
    """Hears what a program says, until it has ended or said too much."""

    def __init__(self) -> None:
        self.said = bytearray()
        loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = loop.create_future()
        self.exited: asyncio.Future[None] = loop.create_future()
        self._silent = False

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.said += data
        if len(self.said) > ANSWER_BYTES_MAX:
            self._finish()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._silent = True
        if self.exited.done():
            self._finish()

    def process_exited(self) -> None:
        self.exited.set_result(None)
        if self._silent:
            self._finish()

    def _finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)


class ExecCredential:
    """Runs the program when a proof is needed, and keeps what it says until shortly before it expires.

    Args:
        where: what errors name.
        clock: seconds since 1970.
    """

    def __init__(
        self, wanted: Exec, policy: ExecPolicy, where: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._wanted, self._policy, self._where, self._clock = wanted, policy, where, clock
        self._proof: Proof | None = None
        self._until = float("inf")
        self._running: asyncio.Task[Proof] | None = None
        self._check()

    async def proof(self) -> Proof:
        if self._proof is None or self._clock() >= self._until - RENEW_BEFORE:
            if self._running is None:  # many requests may wait for one answer
                self._running = asyncio.get_running_loop().create_task(self._run())
                self._running.add_done_callback(self._done)
            return await asyncio.shield(self._running)
        return self._proof

    def distrust(self) -> None:
        self._proof = None

    def _done(self, task: asyncio.Task[Proof]) -> None:
        self._running = None
        if not task.cancelled() and task.exception() is None:
            self._proof = task.result()

    # ── may it be run? ───────────────────────────────────────────────────────────────────────────────────────

    def _check(self) -> None:
        command = self._wanted.command
        if self._wanted.api_version not in VERSIONS:
            problem = f"apiVersion {plain(self._wanted.api_version, 80)!r} is not understood"
            raise self._error(problem, f"one of {', '.join(VERSIONS)}")
        if self._wanted.interactive_mode == "Always":
            raise self._error("the program wants a terminal, and a scheduler has none")
        if command not in self._policy.allowed:
            problem = f"it names a program to run, {plain(command, 200)!r}, and that is not allowed"
            raise self._error(problem, f"--allow-exec {plain(command, 200)}, with an absolute path, if you trust it")
        if not os.path.isabs(command) or not command.isprintable():
            raise self._error(f"{plain(command, 200)!r} is no absolute path")

    def _check_content(self) -> None:
        wanted = self._policy.allowed[self._wanted.command]
        if not wanted:
            return
        try:
            found = hashlib.sha256(Path(self._wanted.command).read_bytes()).hexdigest()
        except OSError as error:
            raise self._error(f"{self._wanted.command} cannot be read: {(error.strerror or '').lower()}") from None
        if found != wanted.lower():
            raise self._error(f"{self._wanted.command} is not the program that was allowed: its SHA-256 is {found}")

    # ── running it ───────────────────────────────────────────────────────────────────────────────────────────

    async def _run(self) -> Proof:
        self._check_content()
        wanted = self._wanted
        info = {"apiVersion": wanted.api_version, "kind": "ExecCredential", "spec": {"interactive": False}}
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment |= {one.name: one.value for one in wanted.env or ()}
        environment["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(info).decode()
        loop = asyncio.get_running_loop()
        try:
            running, heard = await loop.subprocess_exec(
                _Listening,
                wanted.command,
                *(wanted.args or ()),
                stdin=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise self._error(f"{wanted.command} cannot be run: {why}", plain(wanted.install_hint, 200)) from None
        try:
            await asyncio.wait_for(heard.done, TIMEOUT)
            return self._understand(self._checked(heard, running.get_returncode()))
        except TimeoutError:
            raise self._error(f"{wanted.command} did not answer within {TIMEOUT:g} s") from None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(running.get_pid(), signal.SIGKILL)
            await heard.exited
            running.close()

    def _checked(self, heard: _Listening, code: int | None) -> bytes:
        command = self._wanted.command
        if len(heard.said) > ANSWER_BYTES_MAX:
            raise self._error(f"{command} said more than {ANSWER_BYTES_MAX >> 10} KiB")
        if code != 0:
            raise self._error(f"{command} failed with status {code}", "run it by hand to see why")
        return bytes(heard.said)

    def _understand(self, said: bytes) -> Proof:
        command = self._wanted.command
        try:
            answer = msgspec.json.decode(said, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # never shown: it may hold a secret
            raise self._error(f"{command} did not answer with an ExecCredential") from None
        status = answer.status
        if answer.kind != "ExecCredential" or answer.api_version != self._wanted.api_version or status is None:
            raise self._error(f"{command} did not answer with an ExecCredential of {self._wanted.api_version}")
        pair = (status.client_certificate_data, status.client_key_data)
        if not (status.token or all(pair)) or any(pair) != all(pair):
            raise self._error(f"{command} gave neither a token nor a certificate with its key")
        try:
            expires = status.expiration_timestamp
            self._until = parse_rfc3339(expires) / 1e9 if expires else float("inf")
        except ValueError:
            raise self._error(f"{command} gave an expirationTimestamp that is no time") from None
        return Proof(status.token.strip(), pair[0].encode(), pair[1].encode())

    def _error(self, problem: str, remedy: str = "") -> ConfigError:
        return ConfigError(self._where, problem, remedy)
