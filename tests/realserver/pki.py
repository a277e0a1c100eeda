"""Certificates and keys for one run of the real servers: made, used and thrown away with it.

Everything a strict verifier asks for is there (key identifiers, critical constraints, usages), because Python 3.13
and later refuse home-made certificates that lack them. Serving and client certificates come from different
authorities, so that one can be rotated under a test without the other.
"""

import datetime
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK = ("127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
A_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def write(self, directory: Path, name: str) -> tuple[Path, Path]:
        """Put both where a server reads them; each file appears whole, and the key is nobody else's."""
        paths = directory / f"{name}.crt", directory / f"{name}.key"
        write_secret(paths[0], self.certificate)
        write_secret(paths[1], self.key)
        return paths


class Authority:
    """Signs certificates for one purpose."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._certificate = (
            _begun(subject, subject, self._key.public_key(), *_lifetime())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = self._certificate.public_bytes(serialization.Encoding.PEM)

    def serving(self, hosts: Sequence[str] = LOOPBACK, *, expired: bool = False) -> Pair:
        """A certificate for a server that answers as `hosts`."""
        names = x509.SubjectAlternativeName([_general(host) for host in hosts])
        return self._issue(_named(hosts[0]), ExtendedKeyUsageOID.SERVER_AUTH, expired, names)

    def client(self, user: str, groups: Sequence[str] = (), *, expired: bool = False) -> Pair:
        """A certificate by which the API server knows `user` as a member of `groups`."""
        return self._issue(_named(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, expired)

    def _issue(self, subject: x509.Name, purpose: x509.ObjectIdentifier, expired: bool,
               names: x509.SubjectAlternativeName | None = None) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _begun(subject, self._certificate.subject, key.public_key(), *_lifetime(expired))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        return Pair(signed.public_bytes(serialization.Encoding.PEM), _pem(key))


def service_account_keys() -> Pair:
    """The key the API server signs service account tokens with; the `certificate` is the bare public key."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return Pair(public, _pem(key))


def serial_number(certificate: bytes) -> int:
    """What tells two certificates of one server apart; PEM or DER."""
    load = x509.load_pem_x509_certificate if certificate.startswith(b"-----") else x509.load_der_x509_certificate
    return load(certificate).serial_number


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read and that nobody ever sees half written."""
    beside = path.with_name(f".{path.name}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.replace(beside, path)


def _lifetime(expired: bool = False) -> tuple[datetime.datetime, datetime.datetime]:
    now = datetime.datetime.now(datetime.UTC)
    return (now - 2 * A_DAY, now - A_DAY) if expired else (now - A_DAY, now + A_DAY)


def _begun(subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey,
           since: datetime.datetime, until: datetime.datetime) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _named(user: str, groups: Sequence[str] = ()) -> x509.Name:
    return x509.Name([
        *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
        x509.NameAttribute(NameOID.COMMON_NAME, user),
    ])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(**granted: bool) -> x509.KeyUsage:
    every = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")
    return x509.KeyUsage(**{use: granted.get(use, False) for use in every})


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
