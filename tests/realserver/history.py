"""What really happened, from etcd itself: every version of every pod, node and Lease, in the one order there is.

A watch of the API server can be cut, compacted away or lag, and a scheduler's own log says what it believes.  etcd's
revisions do neither, whatever is done to the servers in front of it.  For its values to be readable, the API server
must store JSON: `Options(apiserver_flags=JSON_STORAGE)`.
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, NamedTuple

JSON_STORAGE = {"storage-media-type": "application/json"}
_FIRST, _BEHIND = "/registry/leases/", "/registry/pods0"  # Events come before, and there are many of them

Json = dict[str, Any]


class Version(NamedTuple):
    """One change of one object."""

    kind: str  # `pods`, `minions` (nodes), `leases` …
    key: str  # namespace/name, or name
    obj: Json | None  # None when it was deleted
    revision: int
    heard: float  # by our monotonic clock


class History:
    """Follows etcd in a thread of its own and tells each version to whoever listens, in order."""

    def __init__(self, port: int, listen: Callable[[Version], None]) -> None:
        self._port, self._listen = port, listen
        self._socket: socket.socket | None = None
        self._over = False
        self.failed: BaseException | None = None
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="history", daemon=True)

    def __enter__(self) -> History:
        self._thread.start()
        assert self._begun.wait(30), "etcd does not answer"
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        if self._socket is not None:
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(30)

    def _follow(self) -> None:
        try:
            self._read()
        except Exception as problem:  # told to whoever asks how it went
            if not self._over:
                self.failed = problem

    def _read(self) -> None:
        """The whole past, then everything as it happens."""
        with closing(http.client.HTTPConnection("127.0.0.1", self._port)) as connection:
            span = {"key": _base64(_FIRST), "range_end": _base64(_BEHIND)}
            connection.request("POST", "/v3/kv/range", json.dumps(span))
            there = json.loads(connection.getresponse().read())
            for kv in there.get("kvs", ()):
                self._tell(kv, gone=False)
            start = str(int(there["header"]["revision"]) + 1)
            wanted = {"create_request": {**span, "start_revision": start}}
            connection.request("POST", "/v3/watch", json.dumps(wanted))
            self._socket = connection.sock
            with connection.getresponse() as response:
                self._watch(response)

    def _watch(self, response: http.client.HTTPResponse) -> None:
        while line := response.readline():
            result = json.loads(line)["result"]
            if result.get("canceled"):
                raise RuntimeError(f"etcd ended the watch: {result}")
            self._begun.set()
            for event in result.get("events", ()):
                self._tell(event["kv"], gone=event.get("type") == "DELETE")

    def _tell(self, kv: Json, *, gone: bool) -> None:
        _, _, kind, key = base64.b64decode(kv["key"]).decode().split("/", 3)
        obj = None if gone else json.loads(base64.b64decode(kv["value"]))
        self._listen(Version(kind, key, obj, int(kv["mod_revision"]), time.monotonic()))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
