"""Plain HTTP to an API server: one request, one answer, nothing hidden.

A test that records what the server says must see the very status, reason and message; client libraries retry,
translate and swallow. So here is the standard library, a token and JSON.
"""

import http.client
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


class Timeout(AssertionError):
    """What a test waited for did not happen."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        """The machine-readable reason of a metav1.Status; empty when there is none."""
        return str(self.json.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self.json.get("message", ""))

    def must_be(self, *statuses: int) -> "Answer":
        assert self.status in statuses, f"the API server answered {self.status}, not {statuses}: {self.body.decode()}"
        return self


@dataclass(frozen=True)
class Client:
    """Requests in the name of one user."""

    url: str
    trust: ssl.SSLContext
    token: str = ""

    def request(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json",
                timeout: float = 30) -> Answer:
        connection = self._connection(timeout)
        try:
            connection.request(method, path, body=None if body is None else json.dumps(body),
                               headers=self._headers(content_type))
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        return self.request("GET", path).must_be(200).json

    def create(self, path: str, body: Any) -> Any:
        return self.request("POST", path, body).must_be(201).json

    def patch(self, path: str, body: Any, content_type: str = MERGE_PATCH) -> Any:
        return self.request("PATCH", path, body, content_type=content_type).must_be(200).json

    def delete(self, path: str, *, grace: int | None = None) -> Any:
        options = {} if grace is None else {"gracePeriodSeconds": grace}
        return self.request("DELETE", path, options).must_be(200, 202).json

    def watch(self, path: str, *, timeout: float = 30, **parameters: str) -> Iterator[Any]:
        """Watch events as they come; ends when the server ends it, which it does after `timeout` seconds."""
        query = urlencode({"watch": "1", "timeoutSeconds": str(int(timeout)), **parameters})
        connection = self._connection(timeout + 5)
        try:
            connection.request("GET", f"{path}?{query}", headers=self._headers("application/json"))
            response = connection.getresponse()
            assert response.status == 200, f"watching {path}: {response.status} {response.read().decode()}"
            while line := response.readline():
                yield json.loads(line)
        finally:
            connection.close()

    def until(self, collection: str, name: str, so: Callable[[Any], bool], *, timeout: float = 30) -> Any:
        """Wait until an object of a collection is as `so` wants it, and return it."""
        last = None
        for event in self.watch(collection, timeout=timeout, fieldSelector=f"metadata.name={name}"):
            last = event["object"]
            if event["type"] in ("ADDED", "MODIFIED") and so(last):
                return last
        raise Timeout(f"{collection}/{name} did not become so within {timeout:.0f} s; last seen: {json.dumps(last)}")

    def _connection(self, timeout: float) -> http.client.HTTPSConnection:
        address = urlsplit(self.url)
        assert address.hostname is not None
        return http.client.HTTPSConnection(address.hostname, address.port, context=self.trust, timeout=timeout)

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        return headers | {"Authorization": f"Bearer {self.token}"} if self.token else headers
