"""`kubesched manifests`: what it takes to run in a cluster, for kubectl apply, Kustomize or Helm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from msgspec import structs

from kubesched.assemble import profiles_of
from kubesched.cli.config import GATES, assembled, folder_of
from kubesched.cli.plugging import classes_in, plugin_files
from kubesched.config.gates import features_of, gates_of
from kubesched.config.joining import joined
from kubesched.config.load import load
from kubesched.config.registry import Registry
from kubesched.live.carrying import carried
from kubesched.live.manifests import CONFIG_FOLDER, Placing, named, objects, placed, yaml_documents


@click.command()
@click.option("--config", "file", type=click.Path(path_type=Path, allow_dash=True), help="The configuration.")
@click.option(
    "--name",
    default=Placing().name,
    show_default=True,
    help="Of every object; beside kube-scheduler also of the scheduler, as pods name it.",
)
@click.option("--namespace", default=Placing().namespace, show_default=True, help="Where it runs.")
@click.option("--image", default=Placing().image, show_default=True, help="What it runs.")
@click.option(
    "--replicas",
    default=Placing().replicas,
    show_default=True,
    type=click.IntRange(min=1),
    help="How many; one is at work, the others wait for it to fail.",
)
@click.option("--as-default", is_flag=True, help="Schedule the pods that name no scheduler, on kube-scheduler's lease.")
@plugin_files
@GATES
def manifests(
    file: Path | None,
    name: str,
    namespace: str,
    image: str,
    replicas: int,
    as_default: bool,
    plugins: tuple[Path, ...],
    feature_gates: str,
) -> None:
    """Print everything a scheduler with this configuration needs in a cluster, as YAML for kubectl apply.

    Beside kube-scheduler it has a name and a lease of its own: pods choose it by spec.schedulerName.  With
    --as-default it stands in for kube-scheduler, and holds its lease.  Files of plugins go along in the ConfigMap.
    """
    placing = Placing(name=name, namespace=namespace, image=image, replicas=replicas, as_default=as_default)
    click.echo(deployed(file, named(placing), plugins, feature_gates), nl=False)


def deployed(file: Path | None, placing: Placing, plugins: Sequence[Path] = (), feature_gates: str = "") -> str:
    """All of it as YAML.  Raises ConfigError."""
    features = features_of(gates_of(feature_gates))
    loaded, _ = assembled(file, features, plugins)
    said = placed(loaded.source.tree or {}, placing)
    cargo = carried(said, folder_of(file), plugins)
    flags = [f"--plugin={CONFIG_FOLDER}/{plugin.name}" for plugin in plugins]
    flags += [f"--feature-gates={feature_gates}"] if feature_gates else []
    # What is placed may name another scheduler and another lease than the file did, so its rights are worked out anew.
    own = classes_in(plugins)
    registry = Registry(own, folder_of(file))
    configuration = joined(load(said, features=features, registry=registry), list(own), registry, features)
    profiles = profiles_of(configuration, features=features, registry=registry)
    whole = structs.replace(placing, flags=tuple(flags), files=cargo.files)
    return yaml_documents(objects(cargo.said, configuration.leader_election, profiles, whole))
