"""Plugins named on a command line join the profiles of a configuration that does not mention them.

`--plugin budget.py` shall be enough to try a plugin: it takes part wherever it has a hook.  A configuration that says
something about it is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs

from kubesched.config.defaults import complete
from kubesched.config.points import mentioned
from kubesched.config.registry import Registry
from kubesched.config.schema import Configuration, PluginRef, Plugins, PluginSet, ProfileConfig
from kubesched.framework.features import Features
from kubesched.framework.hooks import points_of

QUEUE_SORT = "queueSort"


def joined(
    configuration: Configuration, names: Sequence[str], registry: Registry, features: Features | None = None
) -> Configuration:
    """A configuration in which these plugins of a registry take part.  Raises ConfigError."""
    if not names:
        return configuration
    configuration = complete(configuration, features)
    return structs.replace(
        configuration, profiles=tuple(_with_all(profile, names, registry) for profile in configuration.profiles)
    )


def _with_all(profile: ProfileConfig, names: Iterable[str], registry: Registry) -> ProfileConfig:
    plugins = profile.plugins
    assert plugins is not None, "the profiles of a completed configuration say which plugins they have"
    for name in names:
        if name not in mentioned(plugins):
            plugins = _with(plugins, name, sorts=QUEUE_SORT in points_of(registry.get(name)))
    return structs.replace(profile, plugins=plugins)


def _with(plugins: Plugins, name: str, *, sorts: bool) -> Plugins:
    """These plugins and one more; an order of the queue takes the place of the order there is."""
    ref = PluginRef(name=name)
    more = structs.replace(plugins.multi_point, enabled=(*plugins.multi_point.enabled, ref))
    plugins = structs.replace(plugins, multi_point=more)
    if sorts:
        order = PluginSet(enabled=(ref,), disabled=(PluginRef(name="*"),))
        plugins = structs.replace(plugins, queue_sort=order)
    return plugins
