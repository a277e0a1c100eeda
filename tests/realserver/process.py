"""Processes of a test run: started with a log, waited for, and stopped whatever happens.

Three things end them: `stop`, which tests and context managers call; `atexit`, when a run is interrupted; and a small
guard process that reads a pipe from us, notices when we are gone without a word (kill -9, a crashed worker) and kills
what we left. Each server is a session of its own, so Ctrl-C reaches only us, and killing it takes its children too.
"""

import atexit
import fcntl
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

POLL_SECONDS = 0.05


class DidNotStart(Exception):
    """A server ended, or was not ready in time; carries the end of its log."""


class Server:
    """One process that can be started, stopped and started again with the same command."""

    def __init__(self, name: str, command: Sequence[str], *, log: Path, ready: Callable[[], bool],
                 environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.command = list(command)
        self.log = log
        self._ready = ready
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, *, timeout: float = 60) -> "Server":
        """Start it and wait until it is ready."""
        self.launch()
        self.wait_until_ready(timeout=timeout)
        return self

    def launch(self) -> None:
        """Start it without waiting."""
        assert not self.alive, f"{self.name} is running already"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env=self._environment,
            )
        _guard().watch(self)

    def wait_until_ready(self, *, timeout: float = 60) -> None:
        def ready() -> bool:
            if not self.alive:
                raise DidNotStart(f"{self.name} ended with {self.returncode} before it was ready:\n{self.tail()}")
            return self._ready()

        try:
            wait_until(ready, timeout=timeout, what=f"{self.name} to be ready")
        except TimeoutError as late:
            raise DidNotStart(f"{late}:\n{self.tail()}") from None

    def stop(self, *, grace: float = 0) -> None:
        """End it: a polite SIGTERM where `grace` seconds are given for it, then SIGKILL to all its children."""
        process = self._process
        if process is None:
            return
        try:
            if grace and process.poll() is None:
                process.terminate()
                try:
                    process.wait(grace)
                except subprocess.TimeoutExpired:
                    pass
        finally:
            _signal_group(process.pid, signal.SIGKILL)
            process.wait()
            _guard().forget(self, process.pid)
            self._process = None

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def pause(self) -> None:
        """Freeze it as a stalled machine would: connections stay open, nothing answers."""
        _signal_group(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        _signal_group(self.pid, signal.SIGCONT)

    @property
    def returncode(self) -> int | None:
        return None if self._process is None else self._process.poll()

    def tail(self, lines: int = 25) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


def wait_until(so: Callable[[], bool], *, timeout: float, what: str) -> None:
    """Ask again and again; not being able to ask counts as no."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            if so():
                return
        except (OSError, http.client.HTTPException):
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout:.0f} s for {what}")
        time.sleep(POLL_SECONDS)    # another program tells nobody when it is ready; it can only be asked


# ── whatever happens ─────────────────────────────────────────────────────────────────────────────────

# Reads "+pid" and "-pid" lines; when the pipe closes, whatever was not withdrawn is killed with its group.
_GUARD = """
import os, signal, sys
left = set()
for line in sys.stdin:
    (left.add if line[0] == "+" else left.discard)(int(line[1:]))
for pid in left:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


class _Guard:
    def __init__(self) -> None:
        self.owner = os.getpid()
        self._running: dict[int, Server] = {}
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _GUARD], stdin=subprocess.PIPE, start_new_session=True, text=True
        )
        atexit.register(self._end_all)

    def watch(self, server: Server) -> None:
        with self._lock:
            self._running[server.pid] = server
        self._tell(f"+{server.pid}")

    def forget(self, server: Server, pid: int) -> None:
        with self._lock:
            self._running.pop(pid, None)
        self._tell(f"-{pid}")

    def _tell(self, line: str) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        pipe.write(f"{line}\n")
        pipe.flush()

    def _end_all(self) -> None:
        if os.getpid() != self.owner:   # a forked child leaves its parent's servers alone
            return
        for server in list(self._running.values()):
            server.stop()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


_the_guard: _Guard | None = None


def _guard() -> _Guard:
    global _the_guard
    if _the_guard is None or _the_guard.owner != os.getpid():
        _the_guard = _Guard()
    return _the_guard


def _signal_group(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass


# ── ports ────────────────────────────────────────────────────────────────────────────────────────────

_reserved: dict[int, int] = {}     # port → descriptor of its lock file


def free_port() -> int:
    """A loopback port that stays ours until this process ends, also while the server behind it is down.

    Taken from below the range the kernel hands to outgoing connections, and marked with a lock file, so that neither
    a passing connection nor another test run sits on it when a stopped server comes back.
    """
    locks = Path(tempfile.gettempdir(), f"kubesched-ports-{os.getuid()}")
    locks.mkdir(mode=0o700, exist_ok=True)
    for port in _candidates():
        if port in _reserved:
            continue
        lock = os.open(locks / str(port), os.O_WRONLY | os.O_CREAT, 0o600)
        if _locked(lock) and _unused(port):
            _reserved[port] = lock
            return port
        os.close(lock)
    raise DidNotStart("no free loopback port found")


def _candidates() -> Iterator[int]:
    try:
        below = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        below = 32768
    first = max(1024, below - 10_000)
    span = below - first if below > first else 10_000
    start = os.getpid() * 17 % span     # runs side by side begin their search apart
    return (first + (start + step) % span for step in range(span))


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _unused(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
