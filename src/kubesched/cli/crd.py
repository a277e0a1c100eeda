"""kubesched crd: the CustomResourceDefinition of a class, ready for `kubectl apply`."""

from __future__ import annotations

import inspect
import types
from pathlib import Path

import click
import yaml

from kubesched.api.crd import UnfitKind, definition_of
from kubesched.api.kinds import CustomResource
from kubesched.config.plugin_files import imported, module_of, place_of
from kubesched.framework.errors import KubeschedError


class NoDefinition(KubeschedError):
    """There is no custom resource where one was looked for, or none that a definition can be made of."""


@click.command()
@click.argument("place", metavar="FILE|MODULE[:CLASS]")
def crd(place: str) -> None:
    """Print the CustomResourceDefinitions of the classes in FILE or MODULE.

    \b
    kubesched crd budget.py | kubectl apply -f -
    kubesched crd acme.scheduling:Budget
    """
    module, path = _module(place)
    wanted = _class_of(place)
    found = [view for view in _kinds(module) if not wanted or view.__name__ == wanted]
    if not found:
        what = f"has no CustomResource called {wanted}" if wanted else "has no class that is a CustomResource"
        raise NoDefinition(f"{path} {what}; write class Budget(CustomResource, frozen=True)")
    for view in found:
        try:
            definition = definition_of(view)
        except UnfitKind as error:
            raise NoDefinition(f"{path}: {error}") from None
        click.echo("---")
        click.echo(yaml.safe_dump(definition, sort_keys=False, allow_unicode=True), nl=False)


def _kinds(module: types.ModuleType) -> list[type[CustomResource]]:
    own = (value for value in vars(module).values() if inspect.isclass(value) and issubclass(value, CustomResource))
    return [view for view in own if view.__module__ == module.__name__]


def _class_of(place: str) -> str:
    return place.rpartition(":")[2] if ":" in place else ""


def _module(place: str) -> tuple[types.ModuleType, str]:
    """The module of a file or a dotted name, and what to call it."""
    name = place.rpartition(":")[0] or place
    path = Path(name)
    is_file = name.endswith(".py")
    try:
        return (module_of(path) if is_file else imported(name)), name
    except FileNotFoundError:
        raise NoDefinition(f"{name}: there is no such file; give a Python file, or module:Class") from None
    except Exception as error:  # an import runs whatever the file says
        where = place_of(error, path) if is_file else name
        raise NoDefinition(f"{where}: cannot be imported: {type(error).__name__}: {error}") from error
