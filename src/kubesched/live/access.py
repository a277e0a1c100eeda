"""How to reach an API server and be let in: its address, whom to trust there, and what to show.

All of it may change while a scheduler runs: tokens of service accounts live for an hour, authorities and client
certificates are rotated on disk.  So nothing is read only once: files are looked at again every minute, and at once
when the server does not accept what it was shown (SEC-03, SEC-04).  A file that has become unreadable meanwhile is
no reason to forget what it said.

TLS is always verified, from version 1.2 on; only someone who says so both in the kubeconfig and on the command line
gets a connection to just anybody (SEC-05).
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from kubesched.framework.errors import ConfigError
from kubesched.live.certificate import load_from_memory

LOOK_AGAIN_AFTER = 60.0  # seconds
TOKEN_BYTES_MAX = 64 << 10
PEM_BYTES_MAX = 4 << 20


class Proof(NamedTuple):
    """What is shown to the server: a bearer token, a client certificate with its key (PEM), or nothing."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""


class Credential(Protocol):
    """Where a proof comes from."""

    async def proof(self) -> Proof:
        """What to show now.  Raises ConfigError."""
        ...

    def distrust(self) -> None:
        """The server did not accept it: do not show the same again without looking."""
        ...


class Pass(NamedTuple):
    """What a request needs besides itself."""

    url: str
    headers: Mapping[str, str]
    tls: ssl.SSLContext | None
    server_name: str | None
    proxy: str | None


class Text:
    """Bytes from a file that may change, or from no file at all.

    Args:
        what: how an error names it.
        check: raises ConfigError for bytes that cannot be meant.
    """

    def __init__(
        self,
        source: Path | bytes,
        what: str,
        bytes_max: int = PEM_BYTES_MAX,
        check: Callable[[bytes], object] = lambda value: None,
    ) -> None:
        self._source, self._what, self._bytes_max, self._check = source, what, bytes_max, check
        self.value = self._read()

    def refresh(self) -> bool:
        """Look again; True if it has changed.  What cannot be read now stays as it was."""
        try:
            value = self._read()
        except ConfigError:
            return False
        changed, self.value = value != self.value, value
        return changed

    def _read(self) -> bytes:
        if isinstance(self._source, bytes):
            self._check(self._source)
            return self._source
        try:
            with self._source.open("rb") as file:
                value = file.read(self._bytes_max + 1)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise ConfigError(self._what, f"{self._source} cannot be read: {why}") from None
        if not value.strip():
            raise ConfigError(self._what, f"{self._source} is empty")
        if len(value) > self._bytes_max:
            raise ConfigError(self._what, f"{self._source} is longer than {self._bytes_max} bytes", "is it the file?")
        self._check(value)
        return value


class Token:
    """A bearer token, from a file or given once."""

    def __init__(self, source: Path | bytes, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what, self._clock, self._read_at = what, clock, clock()
        self._text = Text(source, what, TOKEN_BYTES_MAX, self._decoded)

    async def proof(self) -> Proof:
        if self._clock() - self._read_at >= LOOK_AGAIN_AFTER:
            self.distrust()
        return Proof(token=self._decoded(self._text.value))

    def distrust(self) -> None:
        self._text.refresh()
        self._read_at = self._clock()

    def _decoded(self, value: bytes) -> str:
        token = value.strip()
        if not token.isascii() or any(byte <= 32 or byte == 127 for byte in token):
            raise ConfigError(self._what, "a token is one line of ASCII without spaces")
        return token.decode()


class ClientCertificate:
    """A certificate and its key, from files or given once."""

    def __init__(
        self, certificate: Path | bytes, key: Path | bytes, what: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._certificate, self._key = Text(certificate, f"{what} certificate"), Text(key, f"{what} key")
        self._clock, self._read_at = clock, clock()

    async def proof(self) -> Proof:
        if self._clock() - self._read_at >= LOOK_AGAIN_AFTER:
            self.distrust()
        return Proof("", self._certificate.value, self._key.value)

    def distrust(self) -> None:
        self._certificate.refresh()
        self._key.refresh()
        self._read_at = self._clock()


class Together:
    """A certificate and a token: the server takes whichever it understands."""

    def __init__(self, certificate: Credential, token: Credential) -> None:
        self._certificate, self._token = certificate, token

    async def proof(self) -> Proof:
        shown = await self._certificate.proof()
        return shown._replace(token=(await self._token.proof()).token)

    def distrust(self) -> None:
        self._certificate.distrust()
        self._token.distrust()


class Nothing:
    """No credential at all."""

    async def proof(self) -> Proof:
        return Proof()

    def distrust(self) -> None:
        pass


class Access:
    """One API server, and how to be let in.

    Args:
        server: its URL, as `https://10.0.0.1:6443`; a path before the API's own is kept.
        ca: the authorities to trust instead of the system's: PEM, or a file of it.
        server_name: whom its certificate must name, where that is not the host of the URL.
        impersonate: headers that ask to act as somebody else.
        insecure: do not look at its certificate; whoever sets this has been asked twice.
        where: what errors name, as `kubeconfig:clusters[0]`.
    """

    def __init__(
        self,
        server: str,
        credential: Credential | None = None,
        *,
        ca: Path | bytes | None = None,
        server_name: str = "",
        proxy: str = "",
        impersonate: Mapping[str, str] | None = None,
        insecure: bool = False,
        where: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.server, self.insecure = check_url(server, where, plain=insecure), insecure
        self._credential: Credential = credential or Nothing()
        self._server_name, self._proxy, self._where = server_name, proxy, where
        self._ca = None if ca is None else Text(ca, where, check=self._check_authority)
        self._headers = dict(impersonate or {})
        self._clock, self._looked_at = clock, clock()
        self._made: tuple[tuple[bytes, bytes, bytes], ssl.SSLContext] | None = None

    @property
    def _secure(self) -> bool:
        return self.server.startswith("https:")

    async def current(self) -> Pass:
        """What to use for the next request.  Raises ConfigError."""
        if self._clock() - self._looked_at >= LOOK_AGAIN_AFTER:
            self._look_again()
        proof = await self._credential.proof()
        headers = {**self._headers, "Authorization": f"Bearer {proof.token}"} if proof.token else self._headers
        tls = self._context(proof) if self._secure else None
        return Pass(self.server, headers, tls, self._server_name or None, self._proxy or None)

    def distrust(self) -> None:
        """The server did not let us in, or did not prove who it is: look at everything again."""
        self._credential.distrust()
        self._look_again()

    def _look_again(self) -> None:
        self._looked_at = self._clock()
        if self._ca is not None:
            self._ca.refresh()

    def _check_authority(self, value: bytes) -> None:
        make_context(value, Proof(), insecure=False, where=self._where)

    def _context(self, proof: Proof) -> ssl.SSLContext:
        """The client side of TLS; a new one whenever what it is made of has changed, so old connections die out."""
        authority = b"" if self._ca is None else self._ca.value
        made_of = (authority, proof.certificate, proof.key)
        if self._made is None or self._made[0] != made_of:
            try:
                self._made = (made_of, make_context(authority, proof, insecure=self.insecure, where=self._where))
            except ConfigError:
                if self._made is None:
                    raise  # else a certificate was replaced, and its key not yet: the old pair still serves
        return self._made[1]


def make_context(authority: bytes, proof: Proof, *, insecure: bool, where: str) -> ssl.SSLContext:
    """The client side of TLS; the system's authorities are trusted where none is given.  Raises ConfigError."""
    try:
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        problem = f"the certificate authority is no PEM: {error}"
        raise ConfigError(where, problem, "give the CA of the cluster") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Clusters make their own authorities, and many lack what RFC 5280 asks of public ones.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if proof.certificate:
        try:
            load_from_memory(context, proof.certificate.rstrip() + b"\n" + proof.key)
        except (ssl.SSLError, ValueError) as error:
            why = f"the client certificate and its key cannot be used: {error}"
            raise ConfigError(where, why, "both are PEM, and belong together") from None
    return context


def check_url(url: str, where: str, *, plain: bool = False) -> str:
    """A server's URL without its last slash.  Raises ConfigError; unencrypted only on this machine, or if `plain`."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise ConfigError(where, f"server {url!r} is no URL: {error}") from None
    if parts.scheme not in ("https", "http") or not host or parts.query or parts.fragment or parts.username:
        raise ConfigError(where, f"server {url!r} is no URL of a server", "write https://HOST:PORT")
    if parts.scheme == "http" and not plain and not is_local(host):
        problem = f"server {url} is not encrypted: anybody on the way could read the token"
        raise ConfigError(where, problem, "use https")
    return url.rstrip("/")


def is_local(host: str) -> bool:
    """Whether only this machine can be meant."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
