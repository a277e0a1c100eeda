"""What a KubeSchedulerConfiguration may say: every field of kubescheduler.config.k8s.io/v1, with its default.

A Configuration is what the file says and nothing more until `defaults.complete` has filled in the rest; a profile
whose `plugins` is None has said nothing about plugins.  Durations keep the text they are written in ("15s");
`kubesched.api.time.parse_duration` reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct, field

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"

Int32: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class PluginRef(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A plugin in a list.

    Args:
        name: of an in-tree plugin, of an installed one (entry point `kubesched.plugins`), or where to find its
            class: `package.module:Class` or `path/to/file.py:Class`.
        weight: how much its scores count; 0 is 1, or its weight in multiPoint.
    """

    name: str = ""
    weight: Int32 = 0


class PluginSet(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """What changes at an extension point.

    Args:
        enabled: added to the defaults, or put in place of the default of the same name.
        disabled: taken from the defaults; `*` takes all.
    """

    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()


class Plugins(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """The plugins of a profile by extension point; `multiPoint` means every point a plugin has a hook for."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()

    def each(self) -> Iterator[tuple[str, PluginSet]]:
        """Every set with its name in a configuration, `multiPoint` among them."""
        for attribute, point in zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True):
            yield point, getattr(self, attribute)

    def at(self, point: str) -> PluginSet:
        """The set of an extension point by its name in a configuration."""
        return dict(self.each())[point]


class PluginConfig(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """The arguments of one plugin."""

    name: str = ""
    args: dict[str, Any] | None = None


class ProfileConfig(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """One scheduler name, and the plugins that serve it.

    Args:
        scheduler_name: what pods name in spec.schedulerName; `default-scheduler` for an only profile.
        percentage_of_nodes_to_score: as the field of the same name above, for this profile.
    """

    scheduler_name: str = ""
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins | None = None
    plugin_config: tuple[PluginConfig, ...] = ()


class ExtenderTLS(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """How the connection to an extender is secured; certificates and keys by file, or as base64 in place."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""


class ManagedResource(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """An extended resource an extender looks after; pods that do not ask for one are none of its business."""

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderConfig(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A scheduler beside this one, asked over HTTP; a verb that is empty is a question it is not asked.

    Args:
        url_prefix: the verbs are appended to it.
        weight: how much its scores count.
        enable_https: speak TLS even where the prefix says http.
        http_timeout: how long an answer may take.
        node_cache_capable: it knows the nodes, so that names are enough.
        ignorable: if it does not answer, go on without it.
    """

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLS | None = None
    http_timeout: str = "5s"
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


class LeaderElection(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """Which of several schedulers of one cluster is at work: the one that holds the lease."""

    leader_elect: bool = True
    lease_duration: str = "15s"
    renew_deadline: str = "10s"
    retry_period: str = "2s"
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(
    Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """How to talk to the API server; without a kubeconfig, as pods of the cluster do."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: Int32 = 100


class Configuration(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A KubeSchedulerConfiguration.

    Args:
        parallelism: accepted; decisions do not depend on it.
        percentage_of_nodes_to_score: of a large cluster's nodes, how many feasible ones are enough.  Not set: all
            nodes are scored.  0: as kube-scheduler chooses by cluster size.  1 to 100: that percentage.
        pod_initial_backoff_seconds: how long a pod is left alone after its first failure; doubles each time.
        delay_cache_until_active: do not watch the cluster before the lease is held.
    """

    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[ProfileConfig, ...] = ()
    extenders: tuple[ExtenderConfig, ...] = ()
    delay_cache_until_active: bool = False
