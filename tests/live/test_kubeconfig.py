"""A kubeconfig is read strictly, obeyed where that is safe, and refused with what to do instead."""

from __future__ import annotations

import asyncio
import base64
import ssl
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.realserver.process import wait_until

from kubesched.apiserver import kubeconfig as ours
from kubesched.apiserver.tls import Certificates, make_certificates
from kubesched.framework.errors import ConfigError
from kubesched.live import incluster, kubeconfig
from kubesched.live.access import Access, ClientCertificate, Pass, Token
from kubesched.live.exec_credential import Exec, ExecCredential, ExecPolicy

Write = Callable[..., Path]


@pytest.fixture(scope="session")
def certificates() -> Certificates:
    return make_certificates()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a kubeconfig of one cluster and one user, each with these fields."""

    def write(cluster: dict[str, Any] | None = None, user: Any = None, **top: Any) -> Path:
        config: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}],
            "users": [{"name": "u", "user": {"token": "t0ken"} if user is None else user}],
            "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "main",
            **top,
        }
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(config))
        return path

    return write


def now(access: Access) -> Pass:
    return asyncio.run(access.current())


def refused(path: Path, **how: Any) -> str:
    with pytest.raises(ConfigError) as error:
        kubeconfig.load(path, **how)
    return str(error.value)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


# ── what works ───────────────────────────────────────────────────────────────────────────────────────────────


def test_what_kubesched_writes_it_reads(tmp_path: Path, certificates: Certificates) -> None:
    path = ours.write_kubeconfig(tmp_path / "k", "https://127.0.0.1:1", "secret", certificates.ca)
    way = now(kubeconfig.load(path))
    assert (way.url, way.headers, way.proxy) == ("https://127.0.0.1:1", {"Authorization": "Bearer secret"}, None)


def test_tls_is_verified_from_version_1_2_on(write: Write, certificates: Certificates) -> None:
    context = now(kubeconfig.load(write({"certificate-authority-data": b64(certificates.ca)}))).tls
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert len(context.get_ca_certs()) == 1


def test_without_an_authority_the_systems_are_trusted(write: Write) -> None:
    context = now(kubeconfig.load(write())).tls
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED


def test_files_are_looked_for_beside_the_kubeconfig(write: Write, tmp_path: Path, certificates: Certificates) -> None:
    (tmp_path / "pki").mkdir()
    (tmp_path / "pki" / "ca.crt").write_bytes(certificates.ca)
    (tmp_path / "pki" / "me.crt").write_bytes(certificates.client_certificate)
    (tmp_path / "pki" / "me.key").write_bytes(certificates.client_key)
    user = {"client-certificate": "pki/me.crt", "client-key": "pki/me.key"}
    way = now(kubeconfig.load(write({"certificate-authority": "pki/ca.crt"}, user)))
    assert way.headers == {}
    assert way.tls is not None


def test_a_client_certificate_in_place_leaves_no_key_behind(
    write: Write, tmp_path: Path, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    spare = tmp_path / "tmp"
    spare.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    user = {
        "client-certificate-data": b64(certificates.client_certificate),
        "client-key-data": b64(certificates.client_key),
    }
    assert now(kubeconfig.load(write(user=user))).tls is not None
    assert list(spare.iterdir()) == []


def test_a_certificate_and_a_token_are_both_shown(write: Write, certificates: Certificates) -> None:
    pair = {
        "client-certificate-data": b64(certificates.client_certificate),
        "client-key-data": b64(certificates.client_key),
    }
    assert now(kubeconfig.load(write(user={**pair, "token": "abc"}))).headers == {"Authorization": "Bearer abc"}


def test_server_name_proxy_and_impersonation(write: Write) -> None:
    cluster = {"tls-server-name": "kubernetes.default", "proxy-url": "http://proxy:3128"}
    user = {"token": "t", "as": "ops", "as-groups": ["admins"], "as-uid": "7"}
    way = now(kubeconfig.load(write(cluster, user)))
    assert (way.server_name, way.proxy) == ("kubernetes.default", "http://proxy:3128")
    assert way.headers == {
        "Impersonate-User": "ops",
        "Impersonate-Group": "admins",
        "Impersonate-Uid": "7",
        "Authorization": "Bearer t",
    }


def test_another_context_may_be_named(write: Write) -> None:
    clusters = [{"name": name, "cluster": {"server": f"https://{name}"}} for name in ("one", "two")]
    contexts = [{"name": name, "context": {"cluster": name, "user": "u"}} for name in ("one", "two")]
    path = write(clusters=clusters, contexts=contexts, **{"current-context": "one"})
    assert kubeconfig.load(path).server == "https://one"
    assert kubeconfig.load(path, context="two").server == "https://two"


def test_fields_nobody_reads_and_nulls_are_no_reason_to_fail(write: Write) -> None:
    path = write({"extensions": [{"name": "minikube"}], "disable-compression": True}, preferences={}, extensions=None)
    assert kubeconfig.load(path).server == "https://10.0.0.1:6443"


def test_a_path_in_front_of_the_api_is_kept(write: Write) -> None:
    assert kubeconfig.load(write({"server": "https://rancher/k8s/clusters/c-1/"})).server == (
        "https://rancher/k8s/clusters/c-1"
    )


# ── what does not ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("cluster", "user", "said"),
    [
        ({"server": ""}, None, "no server is named (server: https://HOST:PORT)"),
        ({"server": "10.0.0.1:6443"}, None, "is no URL of a server (write https://HOST:PORT)"),
        ({"server": "ftp://x"}, None, "is no URL of a server"),
        ({"server": "https://x:99999"}, None, "is no URL"),
        ({"server": "https://user:pw@x"}, None, "is no URL of a server"),
        ({"server": "http://10.0.0.1"}, None, "is not encrypted: anybody on the way could read the token (use https)"),
        ({"certificate-authority": "none.crt"}, None, "none.crt cannot be read: no such file or directory"),
        ({"certificate-authority-data": "%%%"}, None, "certificate-authority-data: is no base64"),
        ({"certificate-authority-data": b64(b"no pem")}, None, "the certificate authority is no PEM"),
        ({"insecure-skip-tls-verify": True}, None, "would let anybody pose as the API server"),
        ({"proxy-url": "socks5://x:1"}, None, "SOCKS proxies are not supported (use an HTTP proxy)"),
        ({"server": 7}, None, "clusters[0].cluster.server: expected str, got int"),
        (None, {"username": "a", "password": "b"}, "no API server takes a password any more"),
        (None, {"auth-provider": {"name": "gcp"}}, "auth-provider was removed in Kubernetes 1.26"),
        (None, {"tokenFile": "none"}, "tokenFile"),
        (None, {"token": "two words"}, "a token is one line of ASCII without spaces"),
        (None, {"token": "a\r\nX-Evil: 1"}, "a token is one line of ASCII without spaces"),
        (None, {"client-certificate": "x"}, "there is a client-certificate, and no client-key"),
        (None, {"client-key": "x"}, "there is a client-key, and no client-certificate"),
        (None, {"token": "t", "as-groups": ["x"]}, "as-uid and as-groups need `as`"),
        (None, {"token": "t", "as": "a\nb"}, "printable ASCII"),
        (None, {"exec": {"command": "/bin/sh", "apiVersion": "client.authentication.k8s.io/v1"}}, "is not allowed"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(
    write: Write, cluster: dict[str, Any] | None, user: Any, said: str
) -> None:
    path = write(cluster, user)
    sentence = refused(path)
    assert said in sentence
    assert str(path) in sentence or str(path.parent) in sentence


@pytest.mark.parametrize(
    ("top", "said"),
    [
        ({"current-context": ""}, "no context is chosen (set current-context, or name a context)"),
        ({"current-context": "mian"}, "there is no 'mian' (did you mean \"main\"?)"),
        ({"clusters": []}, "clusters: there is no 'c' (there are none)"),
        ({"users": None}, "users: there is no 'u'"),
        ({"kind": "Pod"}, "is a Pod of v1, not a Config of v1"),
        ({"clusters": "c"}, "clusters: expected array | null, got str"),
    ],
)
def test_what_does_not_fit_together_is_named(write: Write, top: dict[str, Any], said: str) -> None:
    assert said in refused(write(**top))


@pytest.mark.parametrize(
    "text", ["", "- a", "a: &x 1\nb: *x", "a: 1\na: 2", "a: !!python/object:os.system x", "\x00", "a: [" * 99]
)
def test_what_is_no_kubeconfig_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    refused(path)


def test_a_file_that_is_not_there_says_how_to_name_one(tmp_path: Path) -> None:
    assert "cannot be read: no such file or directory (name one with --kubeconfig" in refused(tmp_path / "none")


def test_to_trust_anybody_takes_the_file_and_the_command_line(write: Write) -> None:
    access = kubeconfig.load(write({"insecure-skip-tls-verify": True}), insecure=True)
    assert access.insecure
    context = now(access).tls
    assert context is not None
    assert context.verify_mode is ssl.CERT_NONE
    asked_only_here = now(kubeconfig.load(write(), insecure=True)).tls
    assert asked_only_here is not None
    assert asked_only_here.verify_mode is ssl.CERT_REQUIRED


def test_no_secret_is_in_any_message(write: Write, certificates: Certificates) -> None:
    secret = "s3cr3t words"
    for user in (
        {"token": secret},
        {"token": secret, "username": "x"},
        {"client-certificate-data": b64(secret.encode()), "client-key-data": b64(secret.encode())},
    ):
        with pytest.raises(ConfigError) as error:
            now(kubeconfig.load(write(user=user)))
        assert "s3cr3t" not in str(error.value)


# ── what changes on disk ─────────────────────────────────────────────────────────────────────────────────────


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_token_file_is_read_again_every_minute(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "token"
    file.write_text("one\n")
    token = Token(file, "token", clock)
    file.write_text("two\n")
    clock.now = 59
    assert asyncio.run(token.proof()).token == "one"
    clock.now = 60
    assert asyncio.run(token.proof()).token == "two"


def test_and_at_once_when_it_was_refused(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "token"
    file.write_text("one")
    access = Access("https://x", Token(file, "token", clock), clock=clock)
    file.write_text("two")
    access.distrust()
    assert now(access).headers == {"Authorization": "Bearer two"}


@pytest.mark.parametrize("broken", ["", None, "two words"])
def test_a_token_file_that_cannot_be_read_now_is_no_reason_to_forget_the_token(
    tmp_path: Path, broken: str | None
) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    token = Token(file, "token", Clock())
    if broken is None:
        file.unlink()
    else:
        file.write_text(broken)
    token.distrust()
    assert asyncio.run(token.proof()).token == "one"


def test_a_new_authority_makes_a_new_context_and_an_old_one_does_not(
    tmp_path: Path, certificates: Certificates
) -> None:
    clock, file = Clock(), tmp_path / "ca.crt"
    file.write_bytes(certificates.ca)
    access = Access("https://x", ca=file, clock=clock)
    before = now(access).tls
    clock.now = 61
    assert now(access).tls is before
    file.write_bytes(certificates.ca + make_certificates().ca)
    clock.now = 122
    after = now(access).tls
    assert after is not before
    assert after is not None
    assert len(after.get_ca_certs()) == 2


def test_a_certificate_whose_key_is_not_there_yet_does_not_replace_the_old_pair(
    tmp_path: Path, certificates: Certificates
) -> None:
    clock, pair = Clock(), (tmp_path / "crt", tmp_path / "key")
    pair[0].write_bytes(certificates.client_certificate)
    pair[1].write_bytes(certificates.client_key)
    access = Access("https://x", ClientCertificate(*pair, "user", clock), clock=clock)
    before = now(access).tls
    other = make_certificates()
    pair[0].write_bytes(other.client_certificate)
    clock.now = 61
    assert now(access).tls is before
    pair[1].write_bytes(other.client_key)
    clock.now = 122
    assert now(access).tls is not before


def test_an_authority_that_becomes_unreadable_stays_trusted(tmp_path: Path, certificates: Certificates) -> None:
    clock, file = Clock(), tmp_path / "ca.crt"
    file.write_bytes(certificates.ca)
    access = Access("https://x", ca=file, clock=clock)
    before = now(access).tls
    for content in (b"", b"half a cert"):
        file.write_bytes(content)
        clock.now += 61
        assert now(access).tls is before


# ── in a cluster ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_pod_uses_what_is_mounted(tmp_path: Path, certificates: Certificates) -> None:
    (tmp_path / "token").write_text("mounted")
    (tmp_path / "ca.crt").write_bytes(certificates.ca)
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    way = now(incluster.load(environment, tmp_path))
    assert way.url == "https://[fd00::1]:443"
    assert way.headers == {"Authorization": "Bearer mounted"}


def test_outside_a_pod_it_says_how_to_name_a_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"this is no pod of a cluster.*--kubeconfig"):
        incluster.load({}, tmp_path)
    with pytest.raises(ConfigError, match=r"no token is mounted.*automountServiceAccountToken"):
        incluster.load({"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}, tmp_path)


# ── programs ─────────────────────────────────────────────────────────────────────────────────────────────────

V1 = "client.authentication.k8s.io/v1"


def program(folder: Path, script: str) -> Path:
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def said(token: str = "made", **status: str) -> str:
    whole = {"token": token, **status}
    parts = ",".join(f'"{key}":"{value}"' for key, value in whole.items())
    return f'printf \'{{"apiVersion":"{V1}","kind":"ExecCredential","status":{{{parts}}}}}\''


def user(path: Path | str, **more: Any) -> dict[str, Any]:
    return {"exec": {"command": str(path), "apiVersion": V1, **more}}


def test_nothing_runs_unless_it_was_allowed(write: Write, tmp_path: Path) -> None:
    plugin = program(tmp_path, f"touch {tmp_path}/ran; {said()}")
    for policy in (None, ExecPolicy(), ExecPolicy({"/usr/bin/other": ""})):
        assert "that is not allowed (--allow-exec" in refused(write(user=user(plugin)), policy=policy)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("command", ["plugin", "./plugin", "/bin/sh\n-c", "sh -c 'x'", ""])
def test_a_program_is_named_by_its_absolute_path(write: Write, command: str) -> None:
    refused(write(user=user(command)), policy=ExecPolicy({command: ""}))


def test_an_allowed_program_makes_the_token(write: Write, tmp_path: Path) -> None:
    plugin = program(tmp_path, said("fresh"))
    access = kubeconfig.load(write(user=user(plugin)), policy=ExecPolicy({str(plugin): ""}))
    assert now(access).headers == {"Authorization": "Bearer fresh"}


def test_it_is_run_without_a_shell_and_with_little_of_our_environment(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "x")
    plugin = program(tmp_path, f'env > {tmp_path}/env; echo "$@" > {tmp_path}/args; {said()}')
    wanted = user(plugin, args=["a;b", "$(touch x)"], env=[{"name": "REGION", "value": "eu"}])
    now(kubeconfig.load(write(user=wanted), policy=ExecPolicy({str(plugin): ""})))
    environment = (tmp_path / "env").read_text()
    assert "SECRET_OF_OURS" not in environment
    assert "REGION=eu" in environment
    assert f'"apiVersion":"{V1}"' in environment
    assert (tmp_path / "args").read_text() == "a;b $(touch x)\n"


def test_what_it_says_is_kept_until_a_minute_before_it_expires(tmp_path: Path, write: Write) -> None:
    plugin = program(tmp_path, f"echo x >> {tmp_path}/runs; {said(expirationTimestamp='1970-01-01T01:00:00Z')}")
    clock = Clock()
    credential = ExecCredential(Exec(str(plugin), V1), ExecPolicy({str(plugin): ""}), "exec", clock)

    async def ask() -> None:
        await asyncio.gather(*(credential.proof() for _ in range(5)))

    for clock.now in (0, 100, 3539):
        asyncio.run(ask())
    assert (tmp_path / "runs").read_text() == "x\n"
    clock.now = 3540
    asyncio.run(ask())
    credential.distrust()
    asyncio.run(ask())
    assert (tmp_path / "runs").read_text() == "x\n" * 3


def test_a_program_that_is_not_the_one_that_was_allowed_does_not_run(write: Write, tmp_path: Path) -> None:
    plugin = program(tmp_path, f"touch {tmp_path}/ran; {said()}")
    access = kubeconfig.load(write(user=user(plugin)), policy=ExecPolicy({str(plugin): "0" * 64}))
    with pytest.raises(ConfigError, match="not the program that was allowed"):
        now(access)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 3", "failed with status 3"),
        ("echo no", "did not answer with an ExecCredential"),
        ("yes", "said more than 64 KiB"),
        (said(""), "neither a token nor a certificate with its key"),
        (said("", clientCertificateData="x"), "neither a token nor a certificate with its key"),
        (said(expirationTimestamp="soon"), "no time"),
        (said().replace("/v1", "/v1beta1"), f"did not answer with an ExecCredential of {V1}"),
    ],
)
def test_a_program_that_fails_is_named(write: Write, tmp_path: Path, script: str, why: str) -> None:
    plugin = program(tmp_path, script)
    access = kubeconfig.load(write(user=user(plugin)), policy=ExecPolicy({str(plugin): ""}))
    with pytest.raises(ConfigError) as error:
        now(access)
    assert why in str(error.value)
    assert str(plugin) in str(error.value)


def test_a_program_that_hangs_is_stopped_with_everything_it_started(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kubesched.live.exec_credential.TIMEOUT", 0.3)
    plugin = program(tmp_path, f"sleep 600 & echo $! > {tmp_path}/child; wait")
    access = kubeconfig.load(write(user=user(plugin)), policy=ExecPolicy({str(plugin): ""}))
    with pytest.raises(ConfigError, match="did not answer within"):
        now(access)
    status = Path("/proc", (tmp_path / "child").read_text().strip(), "status")
    wait_until(lambda: not status.exists() or "zombie" in status.read_text(), timeout=10, what="the child to end")


@pytest.mark.parametrize("version", ["", "client.authentication.k8s.io/v1alpha1", "v1"])
def test_old_protocols_are_refused(write: Write, version: str) -> None:
    wanted = {"exec": {"command": "/bin/true", "apiVersion": version}}
    assert "is not understood" in refused(write(user=wanted), policy=ExecPolicy({"/bin/true": ""}))
