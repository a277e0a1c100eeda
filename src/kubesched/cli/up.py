"""kubesched up: a whole cluster in this process, for kubectl and for any other client."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from kubesched.assemble import build
from kubesched.cli.listening import Listening, counted, verbose
from kubesched.cli.main import printable
from kubesched.cli.plugging import classes_in, plugin_files
from kubesched.config.gates import features_of, gates_of
from kubesched.config.joining import joined
from kubesched.config.load import load_file
from kubesched.config.registry import Registry
from kubesched.config.schema import Configuration
from kubesched.core.core import Core
from kubesched.framework.features import Features
from kubesched.live.cluster import CannotServe, EmbeddedCluster, make_nodes
from kubesched.live.dump import read_objects

PORT = 6443  # where clients expect a cluster; taken by somebody else, another will do
NODES_MAX = 100_000
_ZONE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


class Zones(click.ParamType[tuple[str, ...]]):
    """Names of zones, or how many."""

    name = "zones"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        text = str(value)
        if text.isdecimal() and 0 < int(text) <= 1000:
            return tuple(f"zone-{number + 1}" for number in range(int(text)))
        names = tuple(name.strip() for name in text.split(","))
        for name in names:
            if not _ZONE.fullmatch(name):
                self.fail(f"{name!r} is no name for a zone; write za,zb,zc, or how many there are", param, ctx)
        return names


@click.command()
@click.option("--nodes", type=click.IntRange(0, NODES_MAX), default=None, metavar="N", help="How many nodes. [3]")
@click.option("--nodes-file", type=click.Path(path_type=Path), help="Node objects instead: YAML or JSON, also a List.")
@click.option("--zones", type=Zones(), default=(), metavar="A,B,…", help="Zones of the nodes: names, or a number.")
@click.option("--scheduler-config", type=click.Path(path_type=Path), help="A KubeSchedulerConfiguration.")
@plugin_files
@click.option("--feature-gates", default="", metavar="NAME=BOOL,…", help="Feature gates of the scheduler.")
@click.option("--no-scheduler", is_flag=True, help="Nobody schedules, so that another scheduler can.")
@click.option("--port", type=click.IntRange(0, 65535), default=None, help=f"Where to listen; 0 for any. [{PORT}]")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Where to write it. [~/.kubesched/kubeconfig]")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Keep everything here, for the next time.")
@click.option("--from", "dump", type=click.Path(path_type=Path), help="Load what `kubectl get -o yaml` printed.")
@click.option("--speed", type=click.FloatRange(0.001, 10_000), default=1.0, metavar="X", help="How fast time passes.")
@click.option("--plain-http", is_flag=True, help="No TLS and no token, for measurements; on loopback only.")
@verbose
def up(
    nodes: int | None,
    nodes_file: Path | None,
    zones: tuple[str, ...],
    scheduler_config: Path | None,
    plugins: tuple[Path, ...],
    feature_gates: str,
    no_scheduler: bool,
    port: int | None,
    kubeconfig: Path | None,
    data_dir: Path | None,
    dump: Path | None,
    speed: float,
    plain_http: bool,
    verbose: int,
) -> None:
    """Start a cluster in this process: an API server, nodes that behave, and the scheduler.

    Unmodified kubectl and any other client work against it.  It listens on this machine only, behind TLS and a
    token; the kubeconfig it writes has both.  Ctrl-C ends it.
    """
    if nodes is not None and nodes_file is not None:
        raise click.UsageError("--nodes makes nodes and --nodes-file brings them: give one of the two")
    features = features_of(gates_of(feature_gates))
    listening = Listening(verbose, (), ())
    core = None if no_scheduler else _core(scheduler_config, plugins, features)
    if core is not None:
        core.verbosity = verbose
    cluster = _listening_cluster(
        port,
        core=core,
        nodes=_nodes(nodes, nodes_file, zones, dump, data_dir),
        objects=[] if dump is None else read_objects(dump),
        speed=speed,
        data_dir=data_dir,
        plain=plain_http,
        listeners=listening.listeners,
    )
    path = _kubeconfig(kubeconfig, cluster)
    try:
        cluster.write_kubeconfig(path)
    except OSError as error:
        cluster.close()
        why = (error.strerror or str(error)).lower()
        problem = f"{path}: the kubeconfig cannot be written: {why}"
        raise CannotServe(f"{problem}; say where with --kubeconfig PATH") from None
    for line in _greeting(cluster, path, data_dir):
        click.echo(printable(line))
    _run(cluster, live=sys.stdout.isatty() and not verbose)


def _core(config: Path | None, plugins: tuple[Path, ...], features: Features) -> Core:
    """The scheduler.  Raises ConfigError."""
    own = classes_in(plugins)
    registry = Registry(own, Path() if config is None else config.parent)
    configuration = Configuration()
    if config is not None:
        loaded = load_file(config, features=features, registry=registry)
        for note in loaded.notes:
            click.echo(f"note: {config}: {printable(note)}", err=True)
        configuration = loaded.configuration
    return build(joined(configuration, list(own), registry, features), features=features, registry=registry)


def _nodes(
    count: int | None, file: Path | None, zones: tuple[str, ...], dump: Path | None, data_dir: Path | None
) -> list[dict[str, Any]]:
    """The nodes to begin with; three, where nothing else brings any."""
    if file is not None:
        nodes = [obj for obj in read_objects(file) if obj["kind"] == "Node"]
        if not nodes:
            raise CannotServe(f"{file} has no Node in it; kubectl get nodes -o yaml prints some")
        return nodes
    if count is None:
        known = dump is not None or (data_dir is not None and data_dir.exists())
        count = 0 if known else 3
    return make_nodes(count, zones)


def _listening_cluster(port: int | None, **settings: Any) -> EmbeddedCluster:
    """A cluster with its port open.  Raises CannotServe."""
    cluster = EmbeddedCluster(port=PORT if port is None else port, **settings)
    try:
        cluster.listen()
    except CannotServe:
        if port is not None:
            cluster.close()
            raise
        cluster.face.port = 0
        cluster.listen()
    return cluster


def _kubeconfig(path: Path | None, cluster: EmbeddedCluster) -> Path:
    if path is not None:
        return path
    name = "kubeconfig" if cluster.face.port == PORT else f"kubeconfig-{cluster.face.port}"
    return Path.home() / ".kubesched" / name


def _greeting(cluster: EmbeddedCluster, path: Path, data_dir: Path | None) -> Iterator[str]:
    store = cluster.server.store
    there = f"{counted(store.count('nodes'), 'node')}, {counted(store.count('pods'), 'pod')}"
    yield f"kubesched is up at {cluster.url} with {there}"
    if cluster.restored.counts:
        yield from (f"  {line}" for line in cluster.restored.lines())
    yield ""
    yield f"  export KUBECONFIG={path.absolute()}"
    yield "  kubectl get nodes"
    yield ""
    kept = f"what is in it is kept in {data_dir}" if data_dir is not None else "nothing is kept"
    yield f"Ctrl-C ends it; {kept}."


def _run(cluster: EmbeddedCluster, live: bool) -> None:
    """Live until somebody says that it is enough."""
    loop = cluster.world.loop
    signals = (signal.SIGINT, signal.SIGTERM)

    def end() -> None:
        for number in signals:
            loop.remove_signal_handler(number)  # a second one ends it at once
        cluster.stop()

    for number in signals:
        loop.add_signal_handler(number, end)
    if live:
        from kubesched.cli.dashboard import shown

        with shown(cluster):
            cluster.run()
    else:
        cluster.run()
    click.echo("kubesched is down")
