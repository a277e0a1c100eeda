"""The port of a running scheduler: health, metrics, configuration, and questions about its pods.

The paths are kube-scheduler's, and two of our own.  HTTPS only, on loopback unless told otherwise.  Whoever asks for
more than health must say who they are (guard.py).  Everything is answered between two events of the scheduler, so an
answer never shows half of a change.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

import msgspec
from aiohttp import web

from kubesched.live.guard import Denied, Guard, Visitor
from kubesched.telemetry.slis import Slis

T = TypeVar("T")
Json = dict[str, Any]

TEXT = "text/plain; charset=utf-8"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
JSON = "application/json"
HEALTH = ("/healthz", "/livez", "/readyz")
EXPLAIN, QUEUE = "/debug/kubesched/explain", "/debug/kubesched/queue"
_BODY_BYTES_MAX = 64 * 1024


class Answers(Protocol):
    """What can be asked.  Every method is called between two events, and must not take long."""

    def checks(self, path: str) -> Mapping[str, str]:
        """The checks of a health path: name → what is wrong, empty where nothing is."""
        ...

    def metrics(self) -> bytes: ...
    def resources(self) -> bytes: ...
    def configuration(self) -> Json: ...
    def explain(self, pod: str, node: str = "") -> Json | None:
        """How a pod came to where it is, and what an attempt would find now; None for a pod that is not known."""
        ...

    def queue(self) -> Json: ...


Between = Callable[[Callable[[], T]], Awaitable[T]]
"""Runs a question between two events."""


async def at_once(question: Callable[[], T]) -> T:
    """For a server in the scheduler's own thread, where a request is never handled in the middle of an event."""
    return question()


class Face:
    """The scheduler's port.

    Args:
        answers: what answers.
        guard: who may ask.
        tls: the server side of TLS.
        between: how to ask between two events.
    """

    def __init__(
        self,
        answers: Answers,
        guard: Guard,
        tls: ssl.SSLContext,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        between: Between[Any] = at_once,
    ) -> None:
        self.host, self.port = host, port
        self._answers, self._guard, self._tls, self._between = answers, guard, tls, between
        self._slis = Slis()
        self._runner: web.ServerRunner | None = None
        self._listener: asyncio.Server | None = None
        self._paths: Mapping[str, Callable[[web.BaseRequest], Awaitable[web.Response]]] = {
            **dict.fromkeys(HEALTH, self._health),
            "/metrics": self._metrics,
            "/metrics/resources": self._resources,
            "/metrics/slis": self._health_counts,
            "/configz": self._configz,
            EXPLAIN: self._explain,
            QUEUE: self._queue,
            "/": self._index,
        }

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}"

    async def start(self) -> None:
        """Listen; afterwards `port` is the port that was taken."""
        handler = web.Server(self._handle, access_log=None)
        self._runner = web.ServerRunner(handler, shutdown_timeout=1.0)
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(handler, self.host or None, self.port, ssl=self._tls)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()
        if self._runner is not None:
            await self._runner.cleanup()
        self._runner = self._listener = None

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        try:
            return await self._answer(request)
        except Denied as denied:
            return _status(denied.code, denied.reason, str(denied))
        except Exception as problem:
            # A bug of ours, or a scheduler that is just going: the one who asks must not take it for an answer.
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"{request.method} {request.path} failed", "exception": problem}
            )
            return _status(500, "InternalError", f"{type(problem).__name__} while answering {request.path}")

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        path = request.path.rstrip("/") or "/"
        root = next((health for health in HEALTH if path.startswith(f"{health}/")), path)
        if request.method not in ("GET", "HEAD"):
            return _status(405, "MethodNotAllowed", f"{request.method} is not supported here", {"Allow": "GET, HEAD"})
        await self._guard.admit(_visitor(request), "get", path)
        page = self._paths.get(root)
        if page is None:
            return _status(404, "NotFound", f"there is no page {path}; / lists them")
        return await page(request)

    async def _health(self, request: web.BaseRequest) -> web.Response:
        """As kube-scheduler's: `ok`, or each check with what is wrong; one check alone below its path."""
        root, _, one = request.path.rstrip("/").removeprefix("/").partition("/")
        excluded = set(request.query.getall("exclude", []))
        checks = await self._between(lambda: self._answers.checks(f"/{root}"))
        if one and one not in checks:
            return _status(404, "NotFound", f"there is no check {one}; there are: {', '.join(checks)}")
        asked = {name: problem for name, problem in checks.items() if name not in excluded and one in ("", name)}
        for name, problem in asked.items():
            self._slis.observe(root, name, well=not problem)
        failed = any(asked.values())
        if not failed and "verbose" not in request.query:
            return _text("ok")
        lines = [f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok" for name, problem in asked.items()]
        lines += [f"{root} check {'failed' if failed else 'passed'}", ""]
        return _text("\n".join(lines), 500 if failed else 200)

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        return web.Response(body=await self._between(self._answers.metrics), headers=_headers(PROMETHEUS))

    async def _resources(self, request: web.BaseRequest) -> web.Response:
        return web.Response(body=await self._between(self._answers.resources), headers=_headers(PROMETHEUS))

    async def _health_counts(self, request: web.BaseRequest) -> web.Response:
        return web.Response(body=self._slis.text(), headers=_headers(PROMETHEUS))

    async def _configz(self, request: web.BaseRequest) -> web.Response:
        return _json({"componentconfig": await self._between(self._answers.configuration)})

    async def _explain(self, request: web.BaseRequest) -> web.Response:
        pod = request.query.get("pod", "")
        if not pod:
            return _status(400, "BadRequest", f"say which: {EXPLAIN}?pod=namespace/name")
        told = await self._between(lambda: self._answers.explain(pod, request.query.get("node", "")))
        if told is None:
            problem = f"pod {pod} is not known: it does not exist, is bound already, or names another scheduler"
            return _status(404, "NotFound", problem)
        return _json(told)

    async def _queue(self, request: web.BaseRequest) -> web.Response:
        return _json(await self._between(self._answers.queue))

    async def _index(self, request: web.BaseRequest) -> web.Response:
        return _json({"paths": sorted(self._paths)})


def _visitor(request: web.BaseRequest) -> Visitor:
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    transport = request.transport
    certificate = None if transport is None else transport.get_extra_info("peercert")
    return Visitor(token.strip() if kind.lower() == "bearer" else "", certificate or {})


def _headers(kind: str) -> dict[str, str]:
    return {"Content-Type": kind, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def _text(text: str, status: int = 200) -> web.Response:
    return web.Response(status=status, body=text.encode(), headers=_headers(TEXT))


def _json(told: Any, status: int = 200, more: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(told), headers={**_headers(JSON), **(more or {})})


def _status(code: int, reason: str, message: str, more: Mapping[str, str] | None = None) -> web.Response:
    """A refusal, as Kubernetes words it."""
    told = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return _json({**told, "message": message, "reason": reason, "code": code}, code, more)
