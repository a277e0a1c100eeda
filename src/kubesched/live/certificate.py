"""The server side of TLS: a certificate from files, read again when they change, or one of our own, made in memory.

Python's ssl module wants keys as files.  A key of our own lives in a file that has no name and no disk behind it, so
a scheduler runs on a file system it cannot write to, and leaves no key behind.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from kubesched.apiserver.tls import make_certificates
from kubesched.framework.errors import ConfigError

VERSIONS = {
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}


class Wanted(Struct, frozen=True, kw_only=True):
    """What was said of the certificate on the command line."""

    cert_file: str = ""
    key_file: str = ""
    client_ca_file: str = ""
    min_version: str = "VersionTLS12"
    ciphers: tuple[str, ...] = ()


class Serving:
    """A TLS context, and the authority that vouches for it where we made that ourselves (PEM)."""

    def __init__(self, wanted: Wanted, names: Sequence[str] = ()) -> None:
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority = b""
        self._wanted = wanted
        self._stamp: tuple[float, float] | None = None
        self._set_versions()
        if wanted.client_ca_file:
            self._trust_clients()
        if wanted.cert_file or wanted.key_file:
            self._load()
        else:
            made = make_certificates(names)
            self.authority = made.ca
            load_from_memory(self.context, made.server_certificate + made.server_key)

    def refresh(self) -> bool:
        """Read the files again if they have changed; True if so.  A bad pair is an error, and the old one stays."""
        if not self._wanted.cert_file or self._stamp == self._stamps():
            return False
        self._load()
        return True

    def _load(self) -> None:
        cert, key = self._wanted.cert_file, self._wanted.key_file
        if not (cert and key):
            given, missing = ("--tls-cert-file", "--tls-private-key-file")[:: 1 if cert else -1]
            raise ConfigError("", f"{given} is given without {missing}", "give both, or neither for one made in memory")
        stamp = self._stamps()
        try:
            self.context.load_cert_chain(cert, key)
        except OSError as problem:  # ssl.SSLError is one
            what = problem.strerror or str(problem)
            raise ConfigError("", f"certificate {cert} with key {key} cannot be used: {what.lower()}") from None
        self._stamp = stamp

    def _stamps(self) -> tuple[float, float] | None:
        try:
            return os.stat(self._wanted.cert_file).st_mtime, os.stat(self._wanted.key_file).st_mtime
        except OSError:
            return None

    def _trust_clients(self) -> None:
        try:
            self.context.load_verify_locations(self._wanted.client_ca_file)
        except OSError as problem:
            what = (problem.strerror or str(problem)).lower()
            raise ConfigError("", f"--client-ca-file {self._wanted.client_ca_file} cannot be used: {what}") from None
        self.context.verify_mode = ssl.CERT_OPTIONAL

    def _set_versions(self) -> None:
        wanted = self._wanted
        if wanted.min_version not in VERSIONS:
            problem = f"--tls-min-version {wanted.min_version} is not served"
            raise ConfigError("", problem, f"one of {', '.join(VERSIONS)}")
        self.context.minimum_version = VERSIONS[wanted.min_version]
        if wanted.ciphers:
            try:
                self.context.set_ciphers(":".join(wanted.ciphers))
            except ssl.SSLError:
                problem = f"--tls-cipher-suites: no suite of {', '.join(wanted.ciphers)} is known"
                raise ConfigError("", problem, "write them as OpenSSL does: ECDHE-ECDSA-AES128-GCM-SHA256") from None


def load_from_memory(context: ssl.SSLContext, pem: bytes) -> None:
    """Give a context a certificate and its key without leaving either on a disk."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kubesched-serving")
        with os.fdopen(descriptor, "wb") as file:
            file.write(pem)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        return
    with tempfile.TemporaryDirectory() as folder:  # readable by us alone
        path = Path(folder, "serving.pem")
        path.write_bytes(pem)
        context.load_cert_chain(path)
