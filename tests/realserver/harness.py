"""A real Kubernetes control plane for one test run: etcd, kube-apiserver and, when asked for, kube-scheduler.

    with RealCluster(directory) as cluster:
        cluster.client().create("/api/v1/nodes", {...})
        cluster.kubectl("get", "nodes")
        kubeconfig = cluster.kubeconfig("alice", groups=["developers"])

Everything is made for the run and ends with it: keys, certificates, tokens, data, processes. All of it listens on
loopback alone. There is no controller manager and no kubelet: service accounts get no default account, namespaces are
not emptied, nodes do not become ready by themselves, and deleted pods that were bound go only with a grace of zero.
The two admission plugins that count on those parts are therefore off unless `Options` says otherwise.
"""

import http.client
import json
import os
import secrets
import shutil
import socket
import ssl
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml
from tests.realserver import binaries, pki
from tests.realserver.client import Client
from tests.realserver.process import Server, free_port, wait_until
from tests.realserver.tcpproxy import TcpProxy, Tls

ADMIN = "admin"
SCHEDULER = "system:kube-scheduler"


@dataclass(frozen=True)
class Options:
    """What may differ from one cluster to the next."""

    authorization: Literal["RBAC", "AlwaysAllow"] = "RBAC"
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    # Users who may come with a token, and their groups; certificates can be had for anybody, at any time.
    users: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # Both wait for controllers that do not run here.
    admission_off: Sequence[str] = ("ServiceAccount", "TaintNodesByCondition")
    watch_cache: bool = True
    # Resources without a watch cache, as `pods` or `leases.coordination.k8s.io`. The caches size themselves.
    uncached: Sequence[str] = ()
    # How often the API server compacts etcd; `RealCluster.compact` does it at once.
    compaction_interval: str = "5m"
    # What the audit log keeps of each request; empty for no audit log.
    audit: Literal["", "Metadata", "Request", "RequestResponse"] = ""
    # Whether etcd waits for the disk at every write. Tests need not; a benchmark that compares rates must.
    durable: bool = False
    # Any other flags of kube-apiserver, without the dashes; they win over ours.
    apiserver_flags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """What a command said."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


class Scheduler(Server):
    """A running kube-scheduler; `url` is its secure port."""

    url: str = ""


class RealCluster:
    """etcd and kube-apiserver, started on entry, stopped on exit; `apiserver` and `etcd` can be stopped and started."""

    def __init__(self, directory: Path, options: Options | None = None) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.options = options or Options()
        self.ca_file = directory / "ca.crt"
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.tokens = {user: secrets.token_urlsafe(32) for user in self._groups()}
        self.serving = pki.Authority("kubesched-test-serving")
        self.clients = pki.Authority("kubesched-test-clients")
        self.etcd_port = free_port()
        self._others: list[Server] = []
        self._proxies: list[TcpProxy] = []
        self._kubeconfigs = 0
        self._write_files()
        self.etcd = self._etcd()
        self.apiserver = self._apiserver()

    # ── coming and going ─────────────────────────────────────────────────────────────────────────────

    def start(self) -> "RealCluster":
        try:
            self.etcd.start()
            self.apiserver.start()
        except BaseException:       # also Ctrl-C in the middle: nothing is left running
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop everything this cluster started, and drop its data; the logs stay."""
        with ExitStack() as ends:       # the last first, and each of them even if another fails
            for server in (self.etcd, self.apiserver, *self._others):
                ends.callback(server.stop)
            for proxy in self._proxies:
                ends.callback(proxy.stop)
        shutil.rmtree(self.directory / "etcd", ignore_errors=True)

    def __enter__(self) -> "RealCluster":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ── talking to it ────────────────────────────────────────────────────────────────────────────────

    def client(self, user: str = ADMIN, *, via: TcpProxy | None = None) -> Client:
        """Plain HTTP in the name of a user who has a token."""
        return Client(via.url if via else self.url, self.trust(), self.tokens[user])

    def trust(self) -> ssl.SSLContext:
        """A context that trusts this cluster's serving certificates, and no others."""
        context = ssl.create_default_context(cafile=str(self.ca_file))
        context.verify_flags |= ssl.VERIFY_X509_STRICT      # as Python 3.13 and later do by themselves
        return context

    def kubectl(self, *arguments: str, user: str = ADMIN, kubeconfig: Path | None = None, stdin: str | None = None,
                timeout: float = 60) -> Run:
        """Run the real kubectl; it sees a home of its own and nothing of the user's configuration."""
        home = self.directory / "kubectl-home"
        home.mkdir(exist_ok=True)
        command = [str(binaries.find("kubectl")), "--kubeconfig", str(kubeconfig or self.kubeconfig(user)),
                   *arguments]
        finished = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout,
                                  env={"PATH": os.environ.get("PATH", ""), "HOME": str(home)})
        return Run(finished.returncode, finished.stdout, finished.stderr)

    def kubeconfig(self, user: str = ADMIN, *, groups: Sequence[str] = (), via: TcpProxy | None = None,
                   token: str | None = None) -> Path:
        """Write a kubeconfig for a user: with the given token, else their own token, else a client certificate.

        `groups` are for the certificate. Through a proxy that ends TLS only tokens work, and through one that
        does not, everything.
        """
        token = token or (None if groups else self.tokens.get(user))
        self._kubeconfigs += 1
        if token is None:
            assert via is None or via.tls is None, f"{user} has no token, and a certificate ends at the proxy"
            name = f"client-{self._kubeconfigs}"
            certificate, key = self.clients.client(user, groups).write(self.directory, name)
            credentials = {"client-certificate": str(certificate), "client-key": str(key)}
        else:
            credentials = {"token": token}
        path = self.directory / f"kubeconfig-{self._kubeconfigs}.yaml"
        cluster = {"server": via.url if via else self.url, "certificate-authority": str(self.ca_file)}
        pki.write_secret(path, yaml.safe_dump({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "current-context": "test",
        }).encode())
        return path

    def service_account_token(self, namespace: str, name: str, *, seconds: int = 3600) -> str:
        """A token for a service account that exists, as a pod would have it mounted; 600 s is the least."""
        body = {"spec": {"expirationSeconds": seconds}}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        token: str = self.client().create(path, body)["status"]["token"]
        return token

    def proxy(self, *, ends_tls: bool = True, certificate: pki.Pair | None = None) -> TcpProxy:
        """A proxy in front of the API server that can break connections; it is stopped with the cluster.

        One that ends TLS sees requests and can strike them, and may show another certificate than a good one; one
        that does not passes any client's bytes untouched.
        """
        tls = None
        if ends_tls:
            facing_clients = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            paths = (certificate or self.serving.serving()).write(self.directory, f"proxy-{len(self._proxies)}")
            facing_clients.load_cert_chain(*paths)
            facing_clients.set_alpn_protocols(["http/1.1"])     # requests are to be read, so no HTTP/2
            facing_server = self.trust()
            facing_server.set_alpn_protocols(["http/1.1"])
            tls = Tls(facing_clients, facing_server)
        proxy = TcpProxy(("127.0.0.1", self.port), tls).start()
        self._proxies.append(proxy)
        return proxy

    # ── the real kube-scheduler ──────────────────────────────────────────────────────────────────────

    def start_scheduler(self, configuration: Mapping[str, Any] | None = None, *, flags: Mapping[str, str] | None = None,
                        via: TcpProxy | None = None) -> Scheduler:
        """Start the real kube-scheduler and wait until it is ready; stop it with `stop`, or with the cluster.

        `configuration` is a KubeSchedulerConfiguration; what it does not say is filled in: where the API server is,
        and that nobody need be elected. Several may run at once.
        """
        name = f"kube-scheduler-{len(self._others)}"
        port = free_port()
        kubeconfig = str(self.kubeconfig(SCHEDULER, via=via))
        settings = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            **(configuration or {}),
        }
        settings["clientConnection"] = {**settings.get("clientConnection", {}), "kubeconfig": kubeconfig}
        path = self.directory / f"{name}.yaml"
        path.write_text(yaml.safe_dump(settings))
        certificate, key = self.serving.serving().write(self.directory, name)
        command = _command("kube-scheduler", {
            "config": str(path),
            "bind-address": "127.0.0.1",
            "secure-port": str(port),
            "tls-cert-file": str(certificate),
            "tls-private-key-file": str(key),
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            **_gates(self.options.feature_gates),
            **(flags or {}),
        })
        url = f"https://127.0.0.1:{port}"
        stranger = Client(url, self.trust())
        scheduler = Scheduler(name, command, log=self.directory / f"{name}.log",
                              ready=lambda: stranger.request("GET", "/readyz", timeout=5).status == 200)
        scheduler.url = url
        self._others.append(scheduler)
        scheduler.start()
        return scheduler

    # ── making its life hard ─────────────────────────────────────────────────────────────────────────

    def compact(self) -> int:
        """Let etcd forget every revision but the latest, and say which that is.

        The API server's watch caches still know some of the past: stop and start it for a 410 Gone on older versions.
        """
        latest = int(self._etcd_call("/v3/kv/range", {"key": "AA=="})["header"]["revision"])
        self._etcd_call("/v3/kv/compaction", {"revision": str(latest), "physical": True})
        return latest

    def rotate_serving_certificate(self, *, new_authority: bool = False, timeout: float = 90) -> None:
        """Give the API server another certificate, and wait until it answers with it.

        With a new authority, the file of trusted certificates first holds the old and the new one, as an operator
        would do it; whoever read it only at the start is then locked out.
        """
        if new_authority:
            former, self.serving = self.serving, pki.Authority("kubesched-test-serving-rotated")
            pki.write_secret(self.ca_file, former.certificate + self.serving.certificate)
        pair = self.serving.serving()
        pair.write(self.directory, "apiserver")
        wanted = pki.serial_number(pair.certificate)
        wait_until(lambda: pki.serial_number(self.presented_certificate()) == wanted, timeout=timeout,
                   what="the API server to answer with its new certificate")

    def presented_certificate(self) -> bytes:
        """The certificate the API server answers with now, DER."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE     # it is looked at, not trusted
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as plain, \
                context.wrap_socket(plain) as wrapped:
            presented = wrapped.getpeercert(binary_form=True)
        assert presented is not None
        return presented

    def audit_events(self) -> list[dict[str, Any]]:
        """Every request so far, as the API server's audit log has it."""
        assert self.options.audit, "ask for an audit log: Options(audit='Metadata')"
        return [json.loads(line) for line in self._audit_log.read_text().splitlines()]

    # ── how it is put together ───────────────────────────────────────────────────────────────────────

    def _groups(self) -> dict[str, Sequence[str]]:
        return {ADMIN: ["system:masters"], SCHEDULER: [], **self.options.users}

    @property
    def _audit_log(self) -> Path:
        return self.directory / "audit.log"

    def _write_files(self) -> None:
        pki.write_secret(self.ca_file, self.serving.certificate)
        pki.write_secret(self.directory / "client-ca.crt", self.clients.certificate)
        self.serving.serving().write(self.directory, "apiserver")
        pki.service_account_keys().write(self.directory, "service-accounts")
        lines = [f'{self.tokens[user]},{user},{user},"{",".join(groups)}"' for user, groups in self._groups().items()]
        pki.write_secret(self.directory / "tokens.csv", "\n".join(lines).encode())
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
                  "rules": [{"level": self.options.audit or "None"}]}
        (self.directory / "audit-policy.yaml").write_text(yaml.safe_dump(policy))

    def _etcd(self) -> Server:
        clients = f"http://127.0.0.1:{self.etcd_port}"
        peers = f"http://127.0.0.1:{free_port()}"
        command = _command("etcd", {
            "data-dir": str(self.directory / "etcd"),
            "listen-client-urls": clients,
            "advertise-client-urls": clients,
            "listen-peer-urls": peers,
            "initial-advertise-peer-urls": peers,
            "initial-cluster": f"default={peers}",
            "log-level": "warn",
            **({} if self.options.durable else {"unsafe-no-fsync": "true"}),
        })
        return Server("etcd", command, log=self.directory / "etcd.log", ready=self._etcd_ready)

    def _apiserver(self) -> Server:
        options, files = self.options, self.directory
        command = _command("kube-apiserver", {
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "endpoint-reconciler-type": "none",     # nobody reaches it through the `kubernetes` service
            "secure-port": str(self.port),
            "etcd-servers": f"http://127.0.0.1:{self.etcd_port}",
            "etcd-compaction-interval": options.compaction_interval,
            "tls-cert-file": str(files / "apiserver.crt"),
            "tls-private-key-file": str(files / "apiserver.key"),
            "cert-dir": str(files / "generated"),
            "client-ca-file": str(files / "client-ca.crt"),
            "token-auth-file": str(files / "tokens.csv"),
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": str(files / "service-accounts.crt"),
            "service-account-signing-key-file": str(files / "service-accounts.key"),
            "service-cluster-ip-range": "10.0.0.0/24",
            "authorization-mode": options.authorization,
            "allow-privileged": "true",
            "profiling": "false",
            "watch-cache": str(options.watch_cache).lower(),
            **({"disable-admission-plugins": ",".join(options.admission_off)} if options.admission_off else {}),
            **({"watch-cache-sizes": ",".join(f"{name}#0" for name in options.uncached)} if options.uncached else {}),
            **({"audit-policy-file": str(files / "audit-policy.yaml"), "audit-log-path": str(self._audit_log)}
               if options.audit else {}),
            **_gates(options.feature_gates),
            **options.apiserver_flags,
        })
        return Server("kube-apiserver", command, log=files / "kube-apiserver.log", ready=self._apiserver_ready)

    def _apiserver_ready(self) -> bool:
        # Asked by name, for with AlwaysAllow nobody is anonymous. The namespace is made just after the server calls
        # itself ready, and every client counts on it.
        paths = ("/readyz", "/api/v1/namespaces/default")
        return all(self.client().request("GET", path, timeout=5).status == 200 for path in paths)

    def _etcd_ready(self) -> bool:
        return bool(self._etcd_call("/v3/kv/range", {"key": "AA=="})["header"])

    def _etcd_call(self, path: str, body: Mapping[str, Any]) -> Any:
        """Ask etcd over its JSON gateway."""
        connection = http.client.HTTPConnection("127.0.0.1", self.etcd_port, timeout=30)
        try:
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            answer = response.read()
            assert response.status == 200, f"etcd answered {response.status} to {path}: {answer.decode()}"
            return json.loads(answer)
        finally:
            connection.close()


def _command(binary: str, flags: Mapping[str, str]) -> list[str]:
    return [str(binaries.find(binary)), *(f"--{name}={value}" for name, value in flags.items())]


def _gates(gates: Mapping[str, bool]) -> dict[str, str]:
    return {"feature-gates": ",".join(f"{name}={str(on).lower()}" for name, on in gates.items())} if gates else {}
