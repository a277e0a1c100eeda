"""Read a kubeconfig: which server, whom to trust, what to show.

The file is read as strictly as a configuration (no aliases, no key twice, not without end), and every complaint names
the file and the place in it.  Paths in it are relative to where it stands.  What no scheduler should use is refused
with what to do instead: passwords, the auth providers that Kubernetes removed, programs nobody allowed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field

from kubesched.config.faults import did_you_mean
from kubesched.config.yaml import parse
from kubesched.framework.errors import ConfigError
from kubesched.live.access import Access, ClientCertificate, Credential, Nothing, Together, Token, check_url
from kubesched.live.exec_credential import Exec, ExecCredential, ExecPolicy


class Cluster(Struct, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class User(Struct, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: Any = None
    impersonate: str = field(default="", name="as")
    impersonate_uid: str = field(default="", name="as-uid")
    impersonate_groups: tuple[str, ...] = field(default=(), name="as-groups")


class Context(Struct, frozen=True):
    cluster: str = ""
    user: str = ""


class NamedCluster(Struct, frozen=True):
    name: str
    cluster: Cluster = Cluster()


class NamedUser(Struct, frozen=True):
    name: str
    user: User | None = None


class NamedContext(Struct, frozen=True):
    name: str
    context: Context = Context()


class Kubeconfig(Struct, frozen=True):
    clusters: tuple[NamedCluster, ...] | None = None
    users: tuple[NamedUser, ...] | None = None
    contexts: tuple[NamedContext, ...] | None = None
    current_context: str = field(default="", name="current-context")


class Finder(NamedTuple):
    """Where files are looked for, and what errors name."""

    folder: Path
    where: str

    def __call__(self, what: str, data: str, file: str) -> Path | bytes | None:
        """What is given in place, or where it stands; data wins over a file, as in client-go."""
        if not data:
            return self.folder / file if file else None
        try:
            return base64.b64decode("".join(data.split()), validate=True)
        except (binascii.Error, ValueError):
            remedy = f"write what base64 -w0 prints, or name the file in {what}"
            raise ConfigError(f"{self.where}: {what}-data", "is no base64", remedy) from None


N = TypeVar("N", NamedCluster, NamedUser, NamedContext)


def load(path: Path, *, context: str = "", insecure: bool = False, policy: ExecPolicy | None = None) -> Access:
    """How to reach the server a kubeconfig names.  Raises ConfigError.

    Args:
        context: instead of the current one.
        insecure: that `insecure-skip-tls-verify` may be obeyed; it takes both.
        policy: which programs may be run for credentials; none where it is not given.
    """
    file = str(path)
    wanted = _read(path)
    name = context or wanted.current_context
    if not name:
        raise ConfigError(file, "no context is chosen", "set current-context, or name a context")
    chosen = _find(wanted.contexts, name, f"{file}: contexts").context
    cluster = _find(wanted.clusters, chosen.cluster, f"{file}: clusters").cluster
    user = (_find(wanted.users, chosen.user, f"{file}: users").user if chosen.user else None) or User()
    where = f"{file}: cluster {chosen.cluster!r}"
    if cluster.insecure_skip_tls_verify and not insecure:
        problem = "insecure-skip-tls-verify would let anybody pose as the API server"
        raise ConfigError(where, problem, "give certificate-authority, or add --insecure-skip-tls-verify to insist")
    if not cluster.server:
        raise ConfigError(where, "no server is named", "server: https://HOST:PORT")
    find = Finder(path.parent, where)
    authority = find("certificate-authority", cluster.certificate_authority_data, cluster.certificate_authority)
    return Access(
        cluster.server,
        _credential(user, Finder(path.parent, f"{file}: user {chosen.user!r}"), policy or ExecPolicy()),
        ca=authority,
        server_name=cluster.tls_server_name,
        proxy=_proxy(cluster.proxy_url, where),
        impersonate=_impersonation(user, f"{file}: user {chosen.user!r}"),
        insecure=cluster.insecure_skip_tls_verify,
        where=where,
    )


def _read(path: Path) -> Kubeconfig:
    try:
        with path.open("rb") as file:
            data = file.read((1 << 20) + 1)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        remedy = "name one with --kubeconfig or clientConnection.kubeconfig"
        raise ConfigError(str(path), f"the kubeconfig cannot be read: {why}", remedy) from None
    tree = parse(data, str(path))
    if not isinstance(tree, dict):
        raise ConfigError(str(path), "is no kubeconfig", "it begins with apiVersion: v1, kind: Config")
    if tree.get("kind", "Config") != "Config" or tree.get("apiVersion", "v1") != "v1":
        raise ConfigError(str(path), f"is a {tree.get('kind')} of {tree.get('apiVersion')}, not a Config of v1")
    try:
        return msgspec.convert(_without_nulls(tree), Kubeconfig)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at ")
        raise ConfigError(f"{path}: {place.strip('`$.') or 'the whole'}", what.replace("`", "").lower()) from None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _find(listed: Sequence[N] | None, name: str, where: str) -> N:
    names = [one.name for one in listed or ()]
    for one in listed or ():
        if one.name == name:
            return one
    remedy = did_you_mean(name, names) or (f"there are {', '.join(names)}" if names else "there are none")
    raise ConfigError(where, f"there is no {name!r}", remedy)


# ── users ────────────────────────────────────────────────────────────────────────────────────────────────────


def _credential(user: User, find: Finder, policy: ExecPolicy) -> Credential:
    where = find.where
    if user.username or user.password:
        raise ConfigError(where, "no API server takes a password any more", "use a token or a client certificate")
    if user.auth_provider is not None:
        problem = "auth-provider was removed in Kubernetes 1.26"
        raise ConfigError(where, problem, "use the exec program of your provider")
    certificate = find("client-certificate", user.client_certificate_data, user.client_certificate)
    key = find("client-key", user.client_key_data, user.client_key)
    if (certificate is None) != (key is None):
        given, missing = ("certificate", "key")[:: 1 if key is None else -1]
        raise ConfigError(where, f"there is a client-{given}, and no client-{missing}")
    # As in client-go: a certificate is shown in any case, and a token file wins over a token.
    said: Credential | None = None
    if user.token_file:
        said = Token(find.folder / user.token_file, f"{where}: tokenFile")
    elif user.token:
        said = Token(user.token.encode(), f"{where}: token")
    if certificate is not None and key is not None:
        shown = ClientCertificate(certificate, key, where)
        return shown if said is None else Together(shown, said)
    if said is not None or user.exec is None:
        return said or Nothing()
    return ExecCredential(user.exec, policy, f"{where}: exec")


def _impersonation(user: User, where: str) -> dict[str, str]:
    if not user.impersonate:
        if user.impersonate_uid or user.impersonate_groups:
            raise ConfigError(where, "as-uid and as-groups need `as`")
        return {}
    if len(user.impersonate_groups) > 1:
        raise ConfigError(where, "as-groups may name one group", "give the user those groups instead")
    said = {"Impersonate-User": user.impersonate, "Impersonate-Uid": user.impersonate_uid}
    said["Impersonate-Group"] = "".join(user.impersonate_groups)
    for value in said.values():
        if not value.isprintable() or not value.isascii():
            raise ConfigError(where, "what is impersonated must be printable ASCII")
    return {name: value for name, value in said.items() if value}


def _proxy(url: str, where: str) -> str:
    if not url:
        return ""
    if url.startswith("socks5"):
        raise ConfigError(f"{where}: proxy-url", "SOCKS proxies are not supported", "use an HTTP proxy")
    return check_url(url, f"{where}: proxy-url", plain=True)
