"""`kubesched rbac`: the rights a configuration needs, and no others."""

from __future__ import annotations

from pathlib import Path

import click

from kubesched.cli.config import GATES, assembled
from kubesched.cli.plugging import plugin_files
from kubesched.config.gates import features_of, gates_of
from kubesched.live.manifests import Placing, named, role_objects, yaml_documents


@click.command()
@click.option("--config", "file", type=click.Path(path_type=Path, allow_dash=True), help="The configuration.")
@click.option("--name", default=Placing().name, show_default=True, help="Of the roles and of the account.")
@click.option("--namespace", default=Placing().namespace, show_default=True, help="Of the account.")
@plugin_files
@GATES
def rbac(file: Path | None, name: str, namespace: str, plugins: tuple[Path, ...], feature_gates: str) -> None:
    """Print the roles that a scheduler with this configuration needs, as YAML for kubectl apply.

    They follow from what its plugins declare that they read and write; without --config, from the default profile.
    """
    loaded, profiles = assembled(file, features_of(gates_of(feature_gates)), plugins)
    placing = named(Placing(name=name, namespace=namespace))
    told = role_objects(loaded.configuration.leader_election, profiles, placing)
    click.echo(yaml_documents(told), nl=False)
