"""Make the certificates of a server that lives on one machine: a CA of its own, and a certificate it signed.

Clients are given the CA in their kubeconfig, so no warning is waved away and nobody else's certificate is trusted.
Keys are EC P-256: made in a millisecond, and understood by every client.  With a data folder the same certificates
serve again after a restart, until they are near their end.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=365)
RENEW_BEFORE = datetime.timedelta(days=30)
BACKDATED = datetime.timedelta(hours=1)
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_CLIENT_ORGANIZATION = "system:masters"


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM: the CA, the server's certificate and key, and a client certificate and key for an administrator."""

    ca: bytes
    server_certificate: bytes
    server_key: bytes
    client_certificate: bytes
    client_key: bytes

    def context(self, folder: Path) -> ssl.SSLContext:
        """The server side of TLS; folder is where the files are put for the ssl module, readable by us alone."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(write_private(folder / "server.pem", self.server_certificate + self.server_key))
        context.load_verify_locations(cadata=self.ca.decode())
        # Clients may show a certificate of our CA instead of a token, and need not.
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


def write_private(path: Path, content: bytes) -> Path:
    """Write a file that only we can read, whatever the umask, and never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    scratch = path.with_name(f"{path.name}.new")
    scratch.unlink(missing_ok=True)
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    scratch.replace(path)
    return path


def _name(common: str, organization: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization)] if organization else []
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternatives(names: Sequence[str]) -> x509.SubjectAlternativeName:
    found: list[x509.GeneralName] = []
    for name in dict.fromkeys(names):
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            found.append(x509.DNSName(name))
    return x509.SubjectAlternativeName(found)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def make_certificates(names: Sequence[str] = (), now: datetime.datetime | None = None) -> Certificates:
    """Make a CA and what it signs; names are further host names and addresses of the server."""
    now = now or datetime.datetime.now(datetime.UTC)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("kubesched-ca")
    identifier = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())

    def builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ca_name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - BACKDATED)
            .not_valid_after(now + LIFETIME)
        )

    ca = (
        builder(ca_name, ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(ca_key, hashes.SHA256())
    )

    def leaf(
        subject: x509.Name, purpose: x509.ObjectIdentifier, san: x509.SubjectAlternativeName | None
    ) -> tuple[bytes, bytes]:
        key = ec.generate_private_key(ec.SECP256R1())
        made = (
            builder(subject, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        )
        if san is not None:
            made = made.add_extension(san, critical=False)
        return _pem(made.sign(ca_key, hashes.SHA256())), _key_pem(key)

    alternatives = _alternatives([*LOCAL_NAMES, *names])
    server = leaf(_name("kube-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)
    client = leaf(_name("kubernetes-admin", _CLIENT_ORGANIZATION), ExtendedKeyUsageOID.CLIENT_AUTH, None)
    return Certificates(_pem(ca), *server, *client)


_FILES = ("ca.crt", "server.crt", "server.key", "client.crt", "client.key")


def load_or_make(folder: Path, names: Sequence[str] = ()) -> Certificates:
    """Return the certificates kept in a folder, made anew when missing, damaged, ending soon, or for other names."""
    try:
        kept = Certificates(*((folder / name).read_bytes() for name in _FILES))
        if _still_good(kept, names):
            return kept
    except (OSError, ValueError):
        pass
    made = make_certificates(names)
    parts = (made.ca, made.server_certificate, made.server_key, made.client_certificate, made.client_key)
    for name, content in zip(_FILES, parts, strict=True):
        write_private(folder / name, content)
    return made


def _still_good(kept: Certificates, names: Sequence[str]) -> bool:
    certificate = x509.load_pem_x509_certificate(kept.server_certificate)
    serialization.load_pem_private_key(kept.server_key, password=None)
    if certificate.not_valid_after_utc - datetime.datetime.now(datetime.UTC) < RENEW_BEFORE:
        return False
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(_alternatives([*LOCAL_NAMES, *names])) <= set(found)
