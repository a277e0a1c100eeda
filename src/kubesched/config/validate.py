"""What a configuration may not say, though every field has its type: the rules of kube-scheduler, in its words.

The faults come in kube-scheduler's order: the connection, the election, parallelism, each profile, the queue sorts
of all profiles, percentages and backoffs, extenders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import msgspec

from kubesched.api.names import check_qualified_name
from kubesched.api.quantity import is_extended_resource
from kubesched.api.time import Duration, parse_duration
from kubesched.config.faults import Fault, invalid, shown
from kubesched.config.points import MULTI_POINT
from kubesched.config.registry import Registry
from kubesched.config.schema import (
    API_VERSION,
    Configuration,
    ExtenderConfig,
    LeaderElection,
    PluginConfig,
    PluginSet,
    ProfileConfig,
)
from kubesched.framework.errors import ConfigError
from kubesched.framework.features import Features
from kubesched.plugins import IN_TREE

CLOUD_LIMITS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")
_PLACEMENT = ("placementGenerate", "placementScore")
_MAX = 2**63 - 1
_SCORE_MAX_OF_EXTENDERS = 100  # 0 to 10, times 10, times the weight
_JITTER = 1.2


def faults_in(configuration: Configuration, registry: Registry, features: Features | None = None) -> Iterator[Fault]:
    """Everything that is wrong with a completed configuration, in order."""
    gates = features or Features()
    if configuration.client_connection.burst < 0:
        yield Fault("clientConnection.burst", invalid(configuration.client_connection.burst, "must be non-negative"))
    yield from _election(configuration.leader_election)
    if configuration.parallelism <= 0:
        problem = invalid(configuration.parallelism, "should be an integer value greater than zero")
        yield Fault("parallelism", problem)
    yield from _profiles(configuration.profiles, registry, gates)
    yield from _percentage("percentageOfNodesToScore", configuration.percentage_of_nodes_to_score)
    yield from _backoffs(configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds)
    yield from _extenders(configuration.extenders)


# ── election, percentages, backoffs ──────────────────────────────────────────────────────────────────────────


def _election(election: LeaderElection) -> Iterator[Fault]:
    if not election.leader_elect:
        return
    spans: dict[str, Duration] = {}
    for name, text in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        try:
            spans[name] = parse_duration(text)
        except ValueError as error:
            yield Fault(f"leaderElection.{name}", invalid(text, str(error)))
            continue
        if spans[name] <= 0:
            yield Fault(f"leaderElection.{name}", invalid(text, "must be greater than zero"))
    if len(spans) == 3:
        if spans["leaseDuration"] <= spans["renewDeadline"]:
            problem = invalid(election.renew_deadline, "must be greater than `RenewDeadline`")
            yield Fault("leaderElection.leaseDuration", problem)
        elif 0 < spans["renewDeadline"] <= spans["retryPeriod"] * _JITTER:  # as the elector itself wants it
            problem = invalid(election.renew_deadline, "must be greater than `RetryPeriod` times 1.2")
            yield Fault("leaderElection.renewDeadline", problem)
    if election.resource_lock != "leases":
        yield Fault(
            "leaderElection.resourceLock", invalid(election.resource_lock, 'resourceLock value must be "leases"')
        )


def _percentage(path: str, percentage: int | None) -> Iterator[Fault]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield Fault(path, invalid(percentage, "not in valid range [0-100]"))


def _backoffs(initial: int, longest: int) -> Iterator[Fault]:
    if initial <= 0:
        yield Fault("podInitialBackoffSeconds", invalid(initial, "must be greater than 0"))
    if longest < initial:
        problem = invalid(longest, "must be greater than or equal to PodInitialBackoffSeconds")
        yield Fault("podMaxBackoffSeconds", problem)
    elif longest > _MAX // 10**9:
        yield Fault("podMaxBackoffSeconds", invalid(longest, f"must be at most {_MAX // 10**9}, which is 292 years"))


# ── profiles ─────────────────────────────────────────────────────────────────────────────────────────────────


def _profiles(profiles: Sequence[ProfileConfig], registry: Registry, gates: Features) -> Iterator[Fault]:
    seen: dict[str, int] = {}
    for at, profile in enumerate(profiles):
        path = f"profiles[{at}]"
        name = profile.scheduler_name
        if not name:
            yield Fault(f"{path}.schedulerName", "Required value", "only a single profile may leave it out")
        yield from _percentage(f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score)
        yield from _removed(profile, path)
        yield from _plugin_configs(profile.plugin_config, f"{path}.pluginConfig", registry, gates)
        if name in seen:
            remedy = f"profiles[{seen[name]}] has it, too"
            yield Fault(f"{path}.schedulerName", "Duplicate value: {}", remedy)
        seen[name] = at
    yield from _queue_sorts(profiles)


def _removed(profile: ProfileConfig, path: str) -> Iterator[Fault]:
    if profile.plugins is None:
        return
    for point, listed in profile.plugins.each():
        if point in (MULTI_POINT, *_PLACEMENT):
            continue
        for at, ref in enumerate(listed.enabled):
            if ref.name in CLOUD_LIMITS:
                yield Fault(
                    f"{path}.plugins.{point}.enabled[{at}]", _was_invalid(ref.name), "NodeVolumeLimits is enough"
                )


def _was_invalid(name: str) -> str:
    # Kept from kube-scheduler: the first version is quoted without its group.
    return invalid(name, f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")')


def _plugin_configs(configs: Sequence[PluginConfig], path: str, registry: Registry, gates: Features) -> Iterator[Fault]:
    seen: set[str] = set()
    for at, config in enumerate(configs):
        here = f"{path}[{at}]"
        if config.name in seen:
            yield Fault(here, f"Duplicate value: {shown(config.name)}")
        seen.add(config.name)
        if config.name in CLOUD_LIMITS:
            yield Fault(here, _was_invalid(config.name), "NodeVolumeLimits has no args")
        else:
            yield from _args(config, here, registry, gates)


def _args(config: PluginConfig, path: str, registry: Registry, gates: Features) -> Iterator[Fault]:
    args = config.args or {}
    kind, version = args.get("kind", ""), args.get("apiVersion", API_VERSION)
    if config.name in IN_TREE:
        if kind not in ("", f"{config.name}Args"):
            yield Fault(f"{path}.args", invalid(kind, "has to match plugin args"), f"write {config.name}Args")
            return
        if version != API_VERSION:
            problem = f"no kind {shown(kind)} is registered for version {shown(version)}"
            yield Fault(f"{path}.args.apiVersion", problem, f"write {API_VERSION}")
    try:
        yield from registry.args_faults(config.name, config.args, gates, f"{path}.args")
    except ConfigError as error:  # a plugin of somebody's that cannot be imported
        yield Fault(f"{path}.name", error.problem, error.remedy)


def _queue_sorts(profiles: Sequence[ProfileConfig]) -> Iterator[Fault]:
    first, *others = profiles
    canon = first.plugins.queue_sort if first.plugins else PluginSet()
    if len(canon.enabled) > 1:
        problem = invalid(len(canon.enabled), "only one queue sort plugin can be enabled")
        yield Fault("profiles[0].plugins.queueSort.Enabled", problem)
    name = canon.enabled[0].name if canon.enabled else ""
    args = next((config.args for config in first.plugin_config if config.name == name), None)
    for at, profile in enumerate(others, 1):
        mine = profile.plugins.queue_sort if profile.plugins else PluginSet()
        if mine != canon:
            listed = msgspec.json.encode(mine).decode()
            problem = f"Invalid value: {listed}: must be the same for all profiles"
            yield Fault(f"profiles[{at}].plugins.queueSort", problem)
        for config in profile.plugin_config:
            if name and config.name == name and config.args != args:
                problem = f"Invalid value: {msgspec.json.encode(config.args).decode()}: queueSort must be the same"
                yield Fault(f"profiles[{at}].pluginConfig.args", f"{problem} for all profiles")


# ── extenders ────────────────────────────────────────────────────────────────────────────────────────────────


def _extenders(extenders: Sequence[ExtenderConfig]) -> Iterator[Fault]:
    seen: set[str] = set()
    for at, extender in enumerate(extenders):
        path = f"extenders[{at}]"
        yield from _address(extender, path)
        if extender.prioritize_verb and extender.weight <= 0:
            yield Fault(f"{path}.weight", invalid(extender.weight, "must have a positive weight applied to it"))
        elif extender.weight * _SCORE_MAX_OF_EXTENDERS > _MAX:
            yield Fault(f"{path}.weight", invalid(extender.weight, "total score could overflow"))
        for i, resource in enumerate(extender.managed_resources):
            where = f"{path}.managedResources[{i}].name"
            problems = [problem for problem in (check_qualified_name(resource.name) or "").split("; ") if problem]
            yield from (Fault(where, invalid(resource.name, problem)) for problem in problems)
            if not problems and not is_extended_resource(resource.name):
                yield Fault(where, invalid(resource.name, "is an invalid extended resource name"))
            if resource.name in seen:
                yield Fault(where, invalid(resource.name, "duplicate extender managed resource name"))
            seen.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        problem = invalid(f"found {binders} extenders implementing bind", "only one extender can implement bind")
        yield Fault("extenders", problem)


def _address(extender: ExtenderConfig, path: str) -> Iterator[Fault]:
    """Beyond kube-scheduler, which finds this out when it first asks."""
    try:
        url = urlsplit(extender.url_prefix)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        usable = False
    if not usable:
        problem = invalid(extender.url_prefix, "must be a URL of http or https")
        yield Fault(f"{path}.urlPrefix", problem, "as https://extender.kube-system.svc:8443/scheduler")
    try:
        if parse_duration(extender.http_timeout) <= 0:
            yield Fault(f"{path}.httpTimeout", invalid(extender.http_timeout, "must be greater than zero"))
    except ValueError as error:
        yield Fault(f"{path}.httpTimeout", invalid(extender.http_timeout, str(error)))
