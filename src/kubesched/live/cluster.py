"""A cluster in a box: the API server with its port and its certificate, its nodes, its actors and its scheduler.

    with EmbeddedCluster(nodes=make_nodes(3)).in_background() as cluster:
        cluster.kubeconfig(path)            # and then kubectl, or any other client

Safe by default: TLS, a bearer token, loopback only.  Everything happens in one thread, the one that calls `run`, or a
thread of its own in the background; from elsewhere use `cluster.call`.
"""

from __future__ import annotations

import ssl
import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random, SystemRandom
from types import TracebackType
from typing import Any

from kubesched.actors.cast import cast
from kubesched.actors.node_agent import ready_status
from kubesched.api.crd import UnfitKind, definition_of
from kubesched.api.kinds import KNOWN, CustomResource
from kubesched.api.time import Instant
from kubesched.apiserver import kubeconfig, tls
from kubesched.apiserver.access import Authenticator
from kubesched.apiserver.admission import Rules
from kubesched.apiserver.http import HttpFace, is_loopback
from kubesched.apiserver.inprocess import InProcess
from kubesched.apiserver.persistence import DataDirError, Journal
from kubesched.apiserver.requests import ADMIN
from kubesched.apiserver.server import ApiServer
from kubesched.apiserver.status import ApiError
from kubesched.apiserver.store import Store
from kubesched.core.core import Core
from kubesched.drive.loop import drive
from kubesched.drive.tap import Listener, Tap
from kubesched.framework.errors import KubeschedError
from kubesched.live.dump import Restored, restore
from kubesched.live.embedded import EmbeddedWorld
from kubesched.live.pace import Pace

Json = dict[str, Any]

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TOKEN_FILE, TLS_FOLDER = "token", "tls"


class CannotServe(KubeschedError):
    """The API server cannot be started; says why."""


def make_nodes(count: int, zones: Sequence[str] = (), capacity: Json | None = None) -> list[Json]:
    """Nodes that are there and ready: node-0, node-1, … over these zones in turn."""
    return [_node(f"node-{number}", zones[number % len(zones)] if zones else "", capacity) for number in range(count)]


def _node(name: str, zone: str, capacity: Json | None) -> Json:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if zone:
        labels |= {ZONE: zone, REGION: "region-1"}
    status = {"capacity": capacity} if capacity else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


class EmbeddedCluster:
    """An API server, what acts in it, and a scheduler.

    Args:
        core: the scheduler; None: nobody schedules here, so that another scheduler can.
        nodes: Node objects to begin with; those without a status become ready machines.
        objects: whatever else is there from the beginning, whole, as in another cluster.
        speed: how many seconds pass in the cluster while one passes here.
        data_dir: where objects are kept; None: in memory.
        host, port: where to listen; port 0 takes a free one.
        plain: HTTP without TLS and without a token, for measurements; on loopback only.
        acting: whether kubelets and controllers are played.
        seed: of uids and generated names; None: nobody can guess them.
    """

    def __init__(
        self,
        core: Core | None = None,
        *,
        nodes: Iterable[Json] = (),
        objects: Iterable[Json] = (),
        speed: float = 1.0,
        data_dir: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        plain: bool = False,
        acting: bool = True,
        seed: int | None = None,
        listeners: Iterable[Listener] = (),
    ) -> None:
        if plain and not is_loopback(host):
            raise CannotServe(f"refusing to serve plain HTTP on {host}: use TLS, or listen on 127.0.0.1")
        self.pace = Pace(speed)
        self.core = core
        self.token = _token(data_dir)
        self.server = self._make_server(data_dir, plain, acting, seed)
        self._folder = tempfile.TemporaryDirectory(prefix="kubesched-")  # 0700
        self.client = InProcess(self.server, "kubesched")
        own = {} if core is None else {name: core.kinds[name] for name in core.own_kinds}
        self._define(core.own_kinds.values() if core is not None else ())
        self.restored = self._populate(nodes, objects)
        actors = cast() if acting else ()
        heard = {} if core is None else {**KNOWN, **own}  # without a scheduler nobody follows what changes
        self.world = EmbeddedWorld(self.server, self.pace, actors=actors, kinds=heard)
        if core is not None and not core.position:
            core.unsynced.update(self.world.kinds)  # nothing is tried before the first view is complete
        self.tap = None if core is None else Tap(core, *listeners)
        self._certificates: tls.Certificates | None = None
        context = None if plain else self._tls(data_dir, host)
        self.face = HttpFace(self.server, host=host, port=port, tls=context)
        self._thread: threading.Thread | None = None

    # ── what it is made of ───────────────────────────────────────────────────────────────────────────────────

    def _make_server(self, data_dir: Path | None, plain: bool, acting: bool, seed: int | None) -> ApiServer:
        try:
            journal = None if data_dir is None else Journal(data_dir)
        except DataDirError as error:
            raise CannotServe(str(error)) from None
        luck = SystemRandom() if seed is None else Random(seed)
        store = Store(now=self.pace.now, luck=luck, journal=journal)
        authenticator = Authenticator({self.token: ADMIN}, everyone=ADMIN if plain else None)
        # With actors, what a real cluster's admission leaves for controllers to lift is lifted here too.
        rules = Rules(taint_new_nodes=acting, protect_storage=acting)
        server = ApiServer(store, now=self.pace.now, rules=rules, authenticator=authenticator)
        with store.batch():
            server.bootstrap()
        return server

    def _define(self, views: Iterable[type[CustomResource]]) -> None:
        """Serve the kinds that only the plugins know; one that was defined before stays as it was."""
        for view in views:
            try:
                self.client.request("POST", DEFINITIONS, definition_of(view))
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise CannotServe(f"{view.__name__}: the API server refuses its definition: {error}") from None
            except UnfitKind as error:
                raise CannotServe(str(error)) from None

    def _populate(self, nodes: Iterable[Json], objects: Iterable[Json]) -> Restored:
        """Nodes first; those that say nothing of themselves are ready machines.  What became of the objects."""
        now = self.pace.now()
        ready = [_ready(node, number, now) for number, node in enumerate(nodes)]
        with self.server.store.batch():
            restore(self.server, ready)
            return restore(self.server, objects)

    def _tls(self, data_dir: Path | None, host: str) -> ssl.SSLContext:
        names = [] if host in tls.LOCAL_NAMES else [host]
        if data_dir is None:
            self._certificates = tls.make_certificates(names)
        else:
            self._certificates = tls.load_or_make(data_dir / TLS_FOLDER, names)
        return self._certificates.context(Path(self._folder.name))

    @property
    def url(self) -> str:
        return self.face.url

    @property
    def ca(self) -> bytes:
        """The certificate clients are to trust; empty without TLS."""
        return b"" if self._certificates is None else self._certificates.ca

    def write_kubeconfig(self, path: Path) -> Path:
        """Write the file that points kubectl here, for its owner's eyes only."""
        return kubeconfig.write_kubeconfig(path, self.url, self.token, self.ca)

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────

    def listen(self) -> None:
        """Open the port.  Raises CannotServe."""
        try:
            self.world.loop.run_until_complete(self.face.start())
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise CannotServe(f"cannot listen on {self.face.host}:{self.face.port}: {why}") from None

    def run(self) -> None:
        """Live, until `stop` is called.  `listen` first."""
        try:
            drive(self.tap or Nobody(), self.world)
        finally:
            self.close()

    def stop(self) -> None:
        """End `run`, from the same thread or a signal handler of its loop."""
        self.world.stop()

    def close(self) -> None:
        """Let go of the port, the files and the loop."""
        loop = self.world.loop
        if not loop.is_closed():
            loop.run_until_complete(self.face.stop())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
            self.server.close()
        self._folder.cleanup()

    # ── in the background ────────────────────────────────────────────────────────────────────────────────────

    def in_background(self) -> EmbeddedCluster:
        """Live in a thread of its own; returns when the port is open."""
        self.listen()
        self._thread = threading.Thread(target=self.run, name="kubesched", daemon=True)
        self._thread.start()
        return self

    def call(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a function between two events, while the cluster lives in the background."""
        return self.world.call(lambda: function(*args, **kwargs))

    def __enter__(self) -> EmbeddedCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None and self._thread.is_alive():
            self.world.loop.call_soon_threadsafe(self.stop)
            self._thread.join()
        else:
            self.close()


class Nobody:
    """Who decides nothing: a cluster without a scheduler still lives."""

    ready = False
    deadline: Instant | None = None

    def handle(self, event: Any, now: Instant) -> list[Any]:
        return []


def _ready(node: Json, number: int, now: Instant) -> Json:
    """A node that says nothing of itself, as its kubelet would register it."""
    if (node.get("status") or {}).get("conditions"):
        return node
    return {**node, "status": {**(node.get("status") or {}), **ready_status(node, number, now)}}


def _token(data_dir: Path | None) -> str:
    """A token nobody can guess; with a data folder the same one again after a restart."""
    if data_dir is None:
        return kubeconfig.make_token()
    path = data_dir / TOKEN_FILE
    try:
        kept = path.read_text().strip()
    except FileNotFoundError:
        kept = ""
    except OSError as error:
        raise CannotServe(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}") from None
    if not kept:
        kept = kubeconfig.make_token()
        tls.write_private(path, kept.encode())
    return kept
