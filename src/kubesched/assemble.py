"""The composition root: from a configuration to profiles, and from profiles to a scheduler.

The only place that knows everyone.  A profile's plugins are looked up, made with their arguments, and listed per
extension point; whatever cannot be assembled is a ConfigError with its path in the configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesched.api.time import Duration, minutes, seconds
from kubesched.config.defaults import complete, default_plugins
from kubesched.config.points import mentioned, spread, weights_of
from kubesched.config.registry import Registry
from kubesched.config.schema import Configuration, ExtenderConfig, PluginConfig, Plugins, ProfileConfig
from kubesched.core.core import Core
from kubesched.core.queue import PriorityQueue, Queue
from kubesched.framework.errors import ConfigError, UnknownPlugin
from kubesched.framework.extender import Extender
from kubesched.framework.features import Features
from kubesched.framework.hooks import Plugin, name_of, points_of
from kubesched.framework.profile import Profile, TieRule, go_name

PARKED_MAX: Duration = minutes(5)


def build(
    configuration: Configuration | None = None,
    *,
    features: Features | None = None,
    registry: Registry | None = None,
    tie: TieRule = "seeded",
    seed: int = 0,
    queue: Queue | None = None,
    parked_max: Duration = PARKED_MAX,
    checks: bool = True,
    wait_for: Iterable[str] = (),
) -> Core:
    """A scheduler as configured; kube-scheduler's default where nothing is.  Raises ConfigError.

    Args:
        queue: instead of the one the configuration describes.
        parked_max: how long a pod may sleep before it is tried without a reason.
    """
    gates = features or Features()
    configuration = complete(configuration or Configuration(), gates)
    profiles = profiles_of(configuration, tie, features=gates, registry=registry)
    if queue is None:
        queue = PriorityQueue(
            backoff_initial=seconds(configuration.pod_initial_backoff_seconds),
            backoff_max=seconds(configuration.pod_max_backoff_seconds),
            parked_max=parked_max,
            pop_from_backoff=gates.scheduler_pop_from_backoff_q,
        )
    return Core(profiles, queue=queue, seed=seed, checks=checks, features=gates, wait_for=wait_for)


def default_profile(tie: TieRule = "seeded", features: Features | None = None) -> Profile:
    """The profile of kube-scheduler v1.36 where nothing is configured."""
    [profile] = profiles_of(Configuration(), tie, features=features).values()
    return profile


def profiles_of(
    configuration: Configuration,
    tie: TieRule = "seeded",
    *,
    features: Features | None = None,
    registry: Registry | None = None,
) -> dict[str, Profile]:
    """The profiles of a configuration, by scheduler name.  Raises ConfigError."""
    gates = features or Features()
    configuration = complete(configuration, gates)
    registry = registry or Registry()
    extenders = extenders_of(configuration.extenders)
    ignored = [
        resource.name
        for extender in configuration.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    ]
    profiles: dict[str, Profile] = {}
    for at, config in enumerate(configuration.profiles):
        percentage = config.percentage_of_nodes_to_score
        maker = _Maker(config, f"profiles[{at}]", registry, gates)
        profile = maker.profile(
            tie=tie,
            percentage=configuration.percentage_of_nodes_to_score if percentage is None else percentage,
            extenders=extenders,
            ignored=ignored,
        )
        if profile.name in profiles:
            problem = f'duplicate profile with scheduler name "{profile.name}"'
            raise ConfigError(f"profiles[{at}].schedulerName", problem)
        profiles[profile.name] = profile
    _check_queue_sorts(profiles)
    return profiles


def extenders_of(configs: Iterable[ExtenderConfig]) -> tuple[Extender, ...]:
    """The extenders in the order they are asked: those that may be ignored come last."""
    extenders = [
        Extender(
            number=number,
            url_prefix=config.url_prefix,
            filter_verb=config.filter_verb,
            prioritize_verb=config.prioritize_verb,
            preempt_verb=config.preempt_verb,
            bind_verb=config.bind_verb,
            weight=config.weight,
            node_cache_capable=config.node_cache_capable,
            managed_resources=tuple(resource.name for resource in config.managed_resources),
            ignorable=config.ignorable,
        )
        for number, config in enumerate(configs)
    ]
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


class _Maker:
    """Makes one profile."""

    def __init__(self, config: ProfileConfig, path: str, registry: Registry, features: Features) -> None:
        self._config, self._path, self._registry, self._features = config, path, registry, features
        self._made: dict[str, Plugin] = {}

    def profile(
        self, *, tie: TieRule, percentage: int | None, extenders: tuple[Extender, ...], ignored: list[str]
    ) -> Profile:
        plugins = self._config.plugins or default_plugins(self._features)
        args = self._args()
        self._make_all(plugins, self._with_ignored(args, ignored) if ignored else args)
        try:
            names = spread(plugins, self._hooks_of)
            weights = weights_of(plugins)
            profile = Profile(
                name=self._config.scheduler_name,
                weights={name_of(plugin): weights.get(name, 1) for name, plugin in self._made.items()},
                percentage_of_nodes_to_score=percentage,
                tie=tie,
                points={point: [self._made[name] for name in listed] for point, listed in names.items()},
                extenders=extenders,
            )
        except ConfigError as error:
            path = f"{self._path}.plugins" + (f".{error.path}" if error.path else "")
            raise ConfigError(path, error.problem, error.remedy) from error
        self._check_complete(profile)
        return profile

    def _hooks_of(self, name: str) -> tuple[str, ...]:
        return points_of(self._made[name])

    def _args(self) -> dict[str, tuple[str, PluginConfig]]:
        """By plugin, its arguments and where they are."""
        args: dict[str, tuple[str, PluginConfig]] = {}
        for at, config in enumerate(self._config.plugin_config):
            path = f"{self._path}.pluginConfig[{at}]"
            if config.name in args:
                raise ConfigError(path, f"repeated config for plugin {config.name}")
            args[config.name] = (path, config)
        return args

    def _make_all(self, plugins: Plugins, args: Mapping[str, tuple[str, PluginConfig]]) -> None:
        for name, mention in mentioned(plugins).items():
            path, config = args.get(name, (self._path, PluginConfig()))
            try:
                if self._registry.find(name) is None:
                    point = mention.partition(".")[0]
                    what = go_name("preFilter" if point == "multiPoint" else point)
                    raise UnknownPlugin("", f'{what} "{name}" does not exist', self._registry.suggestion(name))
                self._made[name] = self._registry.make(name, config.args, self._features, f"{path}.args")
            except ConfigError as error:
                if error.path:
                    raise
                where = f"{self._path}.plugins.{mention}.name"
                raise type(error)(where, error.problem, error.remedy) from error

    def _with_ignored(
        self, args: dict[str, tuple[str, PluginConfig]], ignored: list[str]
    ) -> dict[str, tuple[str, PluginConfig]]:
        """Kept from kube-scheduler: resources an extender counts itself replace those NodeResourcesFit ignores."""
        fit = "NodeResourcesFit"
        if fit not in mentioned(self._config.plugins or default_plugins(self._features)):
            problem = "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
            remedy = f"enable {fit}, or take ignoredByScheduler out"
            raise ConfigError(f"{self._path}.pluginConfig", problem, remedy)
        path, config = args.get(fit, (self._path, PluginConfig(name=fit)))
        changed = {**(config.args or {}), "ignoredResources": ignored}
        return {**args, fit: (path, PluginConfig(name=fit, args=changed))}

    def _check_complete(self, profile: Profile) -> None:
        where = f'profile with scheduler name "{profile.name}"'
        if len(profile.queue_sort) != 1:
            problem = f"only one queue sort plugin required for {where}, but got {len(profile.queue_sort)}"
            raise ConfigError(f"{self._path}.plugins.queueSort", problem, "enable PrioritySort")
        if not profile.bind:
            problem = f"at least one bind plugin is needed for {where}"
            raise ConfigError(f"{self._path}.plugins.bind", problem, "enable DefaultBinder")


def _check_queue_sorts(profiles: Mapping[str, Profile]) -> None:
    """All profiles share one queue, so they must sort it alike."""
    first: Plugin | None = None
    for at, (name, profile) in enumerate(profiles.items()):
        [sort] = profile.queue_sort
        path = f"profiles[{at}].plugins.queueSort"
        if first is None:
            first = sort
        elif name_of(sort) != name_of(first):
            problem = f'different queue sort plugins for profile "{name}": "{name_of(sort)}", first: "{name_of(first)}"'
            raise ConfigError(path, problem)
        elif getattr(sort, "args", None) != getattr(first, "args", None):
            raise ConfigError(path, f'different queue sort plugin args for profile "{name}"')
