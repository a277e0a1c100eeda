"""`kubesched run`: schedule a real cluster, with kube-scheduler's configuration file and flags."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from msgspec import structs

from kubesched import __version__
from kubesched.api.time import parse_duration
from kubesched.assemble import profiles_of
from kubesched.cli.flags import BY_NAME, kube_scheduler_flags, notes, said
from kubesched.config.defaults import complete
from kubesched.config.document import document
from kubesched.config.gates import features_of, gates_of
from kubesched.config.joining import joined
from kubesched.config.load import Loaded, Source, load_file
from kubesched.config.plugin_files import afresh
from kubesched.config.registry import Registry
from kubesched.config.schema import Configuration
from kubesched.config.validate import faults_in
from kubesched.framework.errors import ConfigError
from kubesched.framework.features import Features
from kubesched.live.certificate import Wanted
from kubesched.live.listening import Writer
from kubesched.live.manifests import plain, yaml_text
from kubesched.live.running import Running, wall_clock
from kubesched.live.wishes import Serve, Wish
from kubesched.telemetry import logs
from kubesched.telemetry.series import BY_NAME as METRICS

Told = Mapping[str, Any]

_ELECTION: Mapping[str, str] = {
    "leader-elect": "leader_elect",
    "leader-elect-lease-duration": "lease_duration",
    "leader-elect-renew-deadline": "renew_deadline",
    "leader-elect-retry-period": "retry_period",
    "leader-elect-resource-lock": "resource_lock",
    "leader-elect-resource-name": "resource_name",
    "leader-elect-resource-namespace": "resource_namespace",
}
_TTLS = ("authentication-token-webhook-cache-ttl", "authorization-webhook-cache-authorized-ttl")
_VERSION = "1.36"
_PORT_MAX = 65535


@click.command()
@click.option("--plugin", "plugins", multiple=True, metavar="FILE", help="Use the plugins in this Python file too.")
@click.option("--shadow", is_flag=True, help="Decide everything and write nothing; tell where others decide otherwise.")
@click.option("--journal", metavar="FILE", type=click.Path(path_type=Path), help="Write everything down for replay.")
@click.option("--tie", type=click.Choice(["seeded", "name", "first"]), default="seeded", help="How ties are broken.")
@click.option("--seed", type=int, default=None, help="Of all luck; drawn anew where it is not said.")
@click.option("--insecure-skip-tls-verify", "insecure", is_flag=True, help="Obey a kubeconfig that says so.")
@click.option(
    "--allow-exec",
    "execs",
    multiple=True,
    metavar="PATH[=SHA256]",
    help="A program that the kubeconfig may run for credentials; none may unless it is named.",
)
@kube_scheduler_flags
@click.pass_context
def run(
    context: click.Context,
    plugins: tuple[str, ...],
    shadow: bool,
    journal: Path | None,
    tie: Any,
    seed: int | None,
    insecure: bool,
    execs: tuple[str, ...],
) -> None:
    """Schedule a real cluster.

    Takes kube-scheduler's configuration file and its flags, every one of them; a flag that cannot be honoured says
    why.  Without --kubeconfig, and where the configuration names none, it runs as a pod of the cluster does.

    Signals: TERM lets go in peace, a second one at once; HUP reads the configuration again; USR2 dumps queue and
    cache and compares them with what the API server has.
    """
    told = said(context)
    _check(told)
    writer = Writer(
        sys.stderr, wall_clock, verbosity=told.get("v", 0), as_json=told.get("logging-format", "text") == "json"
    )
    features, registry, loaded = _read(told, plugins)
    for note in (*loaded.notes, *notes(told)):
        writer.say(logs.NOTED, note=note)
    if "write-config-to" in told:
        _write_config(Path(told["write-config-to"]), _whole(loaded, features, registry))
        return
    wish = Wish(
        configuration=loaded.configuration,
        features=features,
        registry=registry,
        # Plugins that joined on the command line are not in the file; a journal must know of them.
        said=_whole(loaded, features, registry) if plugins else plain(loaded.source.tree or {}),
        gates=_gates(told),
        master=told.get("master", ""),
        insecure=insecure,
        execs=dict(_exec(one) for one in execs),
        serve=_serve(told),
        parked_max=parse_duration(told.get("pod-max-in-unschedulable-pods-duration", "5m")),
        tie=tie,
        seed=int.from_bytes(os.urandom(4), "big") if seed is None else seed,
        shadow=shadow,
        journal=journal,
        disabled_metrics=told.get("disabled-metrics", ()),
        version=__version__,
        reload=_reloading(told, plugins),
    )
    running = Running(wish, writer)
    status = running.run()
    if running.restarts and status == 0:
        os.execv(sys.executable, [sys.executable, "-m", "kubesched", *sys.argv[1:]])
    context.exit(status)


# ── the configuration, and what flags say of it ──────────────────────────────────────────────────────────────


def _read(told: Told, plugins: tuple[str, ...]) -> tuple[Features, Registry, Loaded]:
    """The configuration as the file and the flags say it.  Raises ConfigError."""
    features = features_of(_gates(told))
    file = Path(told["config"]) if "config" in told else None
    registry = Registry(folder=Path() if file is None else file.parent)
    names = [name for plugin in plugins for name in registry.add_file(Path(plugin))]
    if file is None:
        loaded = Loaded(complete(_from_flags(told), features), (), Source())
    else:
        loaded = load_file(file, features=features, registry=registry)
    configuration = joined(loaded.configuration, names, registry, features)
    changes = {field: told[flag] for flag, field in _ELECTION.items() if flag in told}
    election = structs.replace(configuration.leader_election, **changes)
    client = configuration.client_connection
    if "kubeconfig" in told and not client.kubeconfig:
        client = structs.replace(client, kubeconfig=told["kubeconfig"])
    configuration = structs.replace(configuration, leader_election=election, client_connection=client)
    for fault in faults_in(configuration, registry, features):
        raise ConfigError(fault.path, fault.problem, fault.remedy)
    return features, registry, loaded._replace(configuration=configuration)


def _from_flags(told: Told) -> Configuration:
    """Without a file the flags alone define the configuration."""
    configuration = Configuration()
    client = configuration.client_connection
    changes = {"qps": told.get("kube-api-qps", client.qps), "burst": told.get("kube-api-burst", client.burst)}
    return structs.replace(configuration, client_connection=structs.replace(client, **changes))


def _reloading(told: Told, plugins: tuple[str, ...]) -> Callable[[], object]:
    """Read everything again, to see whether it could be used."""

    def again() -> object:
        with afresh():
            return _read(told, plugins)

    return again


def _gates(told: Told) -> dict[str, bool]:
    listed = (one.removeprefix("kube:") for one in told.get("feature-gates", ()))
    return gates_of(",".join(listed))


def _whole(loaded: Loaded, features: Features, registry: Registry) -> dict[str, Any]:
    """The configuration with everything said."""
    profiles = profiles_of(loaded.configuration, features=features, registry=registry)
    return document(loaded.configuration, profiles)


def _write_config(path: Path, whole: dict[str, Any]) -> None:
    try:
        path.write_text(yaml_text(whole), encoding="utf-8")
    except OSError as problem:
        raise ConfigError("", f"{path} cannot be written: {(problem.strerror or str(problem)).lower()}") from None


# ── what else flags say ──────────────────────────────────────────────────────────────────────────────────────


def _check(told: Told) -> None:
    """What a flag may not say.  Raises ConfigError."""
    if told.get("logging-format", "text") not in ("text", "json"):
        raise ConfigError("", f"--logging-format {told['logging-format']} is unknown", "text or json")
    for version in told.get("emulated-version", ()):
        if version.removeprefix("kube=") != _VERSION:
            raise ConfigError("", f"--emulated-version {version} cannot be had", f"kubesched does what {_VERSION} does")
    if not 0 <= told.get("secure-port", 0) <= _PORT_MAX:
        raise ConfigError("", f"--secure-port {told['secure-port']} is no port", f"0 for none, or up to {_PORT_MAX}")
    for name in ("pod-max-in-unschedulable-pods-duration", *_TTLS):
        if parse_duration(told.get(name, "0s")) < 0:
            raise ConfigError("", f"--{name} {told[name]} is less than nothing")
    for name in told.get("disabled-metrics", ()):
        if name not in METRICS:
            raise ConfigError("", f"--disabled-metrics names {name}, which is no metric", "see /metrics")


def _serve(told: Told) -> Serve:
    def value(name: str) -> Any:
        return told.get(name, BY_NAME[name].default)

    port = int(value("secure-port"))
    always = value("authorization-always-allow-paths")
    return Serve(
        address=str(value("bind-address")),
        port=port or None,
        certificate=Wanted(
            cert_file=value("tls-cert-file"),
            key_file=value("tls-private-key-file"),
            client_ca_file=value("client-ca-file"),
            min_version=value("tls-min-version") or "VersionTLS12",
            ciphers=tuple(filter(None, map(_cipher, value("tls-cipher-suites")))),
        ),
        always=tuple(always.split(",")) if isinstance(always, str) else always,
        ttl=min(parse_duration(value(name)) for name in _TTLS) / 1e9,
        authentication=value("authentication-kubeconfig"),
        authorization=value("authorization-kubeconfig"),
    )


def _cipher(name: str) -> str:
    """A cipher suite as OpenSSL calls it; those of TLS 1.3 are always there, and need no word."""
    if not name.startswith("TLS_"):
        return name
    exchange, found, cipher = name.removeprefix("TLS_").partition("_WITH_")
    if not found:
        return ""
    cipher = cipher.replace("AES_128", "AES128").replace("AES_256", "AES256")
    cipher = cipher.removesuffix("_SHA256") if "CHACHA20" in cipher else cipher
    return f"{exchange}-{cipher}".replace("_", "-").removeprefix("RSA-")


def _exec(said: str) -> tuple[str, str]:
    path, _, digest = said.partition("=")
    if not path.startswith("/"):
        raise ConfigError("", f"--allow-exec {path!r} is no absolute path", "write where the program is: /usr/bin/…")
    if digest and not re.fullmatch("[0-9a-fA-F]{64}", digest):
        raise ConfigError("", f"--allow-exec: {digest!r} is no SHA-256", "64 hexadecimal digits, as sha256sum prints")
    return path, digest
