"""`kubesched manifests`: what it takes to run in a cluster, for kubectl apply, Kustomize or Helm."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.assemble import profiles_of
from kubesched.cli.config import GATES, assembled
from kubesched.config.gates import features_of, gates_of
from kubesched.config.load import load
from kubesched.config.registry import Registry
from kubesched.live.manifests import Placing, named, objects, placed, yaml_documents


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
@GATES
def manifests(
    file: Path | None, name: str, namespace: str, image: str, replicas: int, as_default: bool, feature_gates: str
) -> None:
    """Print everything a scheduler with this configuration needs in a cluster, as YAML for kubectl apply.

    Beside kube-scheduler it has a name and a lease of its own: pods choose it by spec.schedulerName.  With
    --as-default it stands in for kube-scheduler, and holds its lease.
    """
    features = features_of(gates_of(feature_gates))
    loaded, _ = assembled(file, features)
    placing = named(Placing(name=name, namespace=namespace, image=image, replicas=replicas, as_default=as_default))
    said = placed(loaded.source.tree or {}, placing)
    registry = Registry(folder=Path() if file is None or str(file) == "-" else file.parent)
    configuration = load(said, features=features, registry=registry)
    profiles = profiles_of(configuration, features=features, registry=registry)
    click.echo(yaml_documents(objects(said, configuration.leader_election, profiles, placing)), nl=False)
