"""Asking a running scheduler over its port, for `kubesched queue` and `kubesched explain`: serving.py's other side.

On the machine where it runs, under the same user, nothing need be said: its contact is found.  Anywhere else it is
named by its URL, with a token the cluster accepts and the authority behind its certificate.
"""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from kubesched.framework.errors import KubeschedError
from kubesched.live import contact
from kubesched.live.contact import Contact
from kubesched.live.serving import EXPLAIN, QUEUE

Json = dict[str, Any]

_PORT = 10259  # where schedulers serve
_SECONDS = 30
_ANSWER_BYTES_MAX = 256 << 20


class NoAnswer(KubeschedError):
    """A running scheduler could not be asked, or would not answer."""


def whom(server: str = "", token_file: Path | None = None, ca_file: Path | None = None) -> Contact:
    """The scheduler to ask: the one that is named, else the one that runs here.  Raises KubeschedError."""
    if not server and token_file is None:
        return contact.find()
    known = contact.at(server) if server else contact.find()
    if known is not None and token_file is None:
        return known
    if token_file is None:
        raise NoAnswer(f"{server} does not run here, so say with which token to ask it: --token-file FILE")
    authority = "" if ca_file is None else _authority(ca_file)
    if known is not None:
        authority = authority or known.authority
        server = known.url
    token = _read(token_file).strip()
    if not (token and token.isascii() and token.isprintable()):
        raise NoAnswer(f"{token_file} holds no token: one line of plain letters is wanted")
    return Contact(url=server.rstrip("/"), token=token, authority=authority)


def explanation(of: Contact, pod: str, node: str = "") -> Json:
    """How a pod came to where it is, and why not to this node.  Raises NoAnswer."""
    about = f"&node={quote(node)}" if node else ""
    return _ask(of, f"{EXPLAIN}?pod={quote(pod, safe='/')}{about}")


def queue(of: Contact) -> Json:
    """Who waits, and for what.  Raises NoAnswer."""
    return _ask(of, QUEUE)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise NoAnswer(f"{path} cannot be read: it is not text") from None
    except OSError as problem:
        raise NoAnswer(f"{path} cannot be read: {(problem.strerror or str(problem)).lower()}") from None


def _authority(path: Path) -> str:
    """Certificates to trust, as PEM.  Raises NoAnswer."""
    text = _read(path)
    try:
        ssl.create_default_context().load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise NoAnswer(f"{path} holds no certificate; --ca-file wants PEM") from None
    return text


def _address(url: str) -> tuple[str, int]:
    """Host and port of a scheduler.  Raises NoAnswer."""
    try:
        parts = urlsplit(url)
        if parts.scheme == "https" and parts.hostname:
            return parts.hostname, _PORT if parts.port is None else parts.port
    except ValueError:  # a port that is no number, a bracket that is not closed
        pass
    raise NoAnswer(f"{url!r} is no address of a scheduler: write https://HOST:PORT")


def _ask(of: Contact, path: str) -> Json:
    host, port = _address(of.url)
    trust = ssl.create_default_context(cadata=of.authority or None)
    trust.verify_flags &= ~ssl.VERIFY_X509_STRICT  # authorities of clusters are older than that rule
    connection = http.client.HTTPSConnection(host, port, context=trust, timeout=_SECONDS)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {of.token}"})
        response = connection.getresponse()
        body = response.read(_ANSWER_BYTES_MAX)
    except ssl.SSLCertVerificationError as problem:
        what = f"{of.url} shows a certificate that is not trusted: {problem.verify_message}"
        raise NoAnswer(f"{what}; name the authority behind it with --ca-file") from None
    except (OSError, http.client.HTTPException) as problem:
        raise NoAnswer(f"{of.url} cannot be asked: {problem}; does the scheduler run there?") from None
    finally:
        connection.close()
    return _understood(of, response.status, body)


def _understood(of: Contact, status: int, body: bytes) -> Json:
    try:
        told: Json = json.loads(body)
    except ValueError:
        raise NoAnswer(f"{of.url} answered {status} and nothing that can be read; is that a scheduler?") from None
    if status == 200:
        return told
    message = str(told.get("message", f"status {status}"))
    if status in (401, 403):
        raise NoAnswer(f"{of.url} refuses to tell: {message}; a token is named with --token-file")
    raise NoAnswer(message if status == 404 else f"{of.url}: {message}")
