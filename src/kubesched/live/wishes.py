"""What was asked of `kubesched run`: the configuration, where the API server is, the port, and the rest as values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from kubesched.api.time import Duration, parse_duration
from kubesched.assemble import PARKED_MAX
from kubesched.config.registry import Registry
from kubesched.config.schema import Configuration, LeaderElection
from kubesched.framework.features import Features
from kubesched.framework.profile import TieRule
from kubesched.live import incluster, kubeconfig
from kubesched.live.access import Access, check_url
from kubesched.live.certificate import Wanted
from kubesched.live.exec_credential import ExecPolicy
from kubesched.live.guard import ALWAYS
from kubesched.wire.elector import LeaseOptions


class Serve(Struct, frozen=True, kw_only=True):
    """The port: where it is, and who may ask.

    Args:
        port: 0 takes a free one; None serves nothing.
        ttl: for how many seconds the API server's word about a visitor holds.
        authentication, authorization: kubeconfigs, where visitors are not reviewed in the scheduler's own name.
    """

    address: str = "127.0.0.1"
    port: int | None = 10259
    certificate: Wanted = Wanted()
    always: tuple[str, ...] = ALWAYS
    ttl: float = 10.0
    authentication: str = ""
    authorization: str = ""


class Wish(Struct, frozen=True, kw_only=True):
    """Everything that was asked for.

    Args:
        said: the configuration file as it was read, for the journal.
        master: the API server's URL, instead of the kubeconfig's.
        insecure: obey a kubeconfig that says insecure-skip-tls-verify.
        execs: programs a kubeconfig may run for credentials: path → SHA-256, or empty.
        reload: reads the configuration again, to see whether it is right; raises ConfigError.
    """

    configuration: Configuration
    features: Features = Features()
    registry: Registry | None = None
    said: dict[str, Any] = {}
    gates: dict[str, bool] = {}
    master: str = ""
    insecure: bool = False
    execs: dict[str, str] = {}
    serve: Serve = Serve()
    parked_max: Duration = PARKED_MAX
    tie: TieRule = "seeded"
    seed: int = 0
    shadow: bool = False
    journal: Path | None = None
    disabled_metrics: tuple[str, ...] = ()
    version: str = ""
    reload: Callable[[], object] | None = None


def access_of(path: str, wish: Wish) -> Access:
    """How to reach the API server and be let in, by a kubeconfig or as a pod of the cluster.  Raises ConfigError."""
    if path:
        policy = ExecPolicy(wish.execs)
        access = kubeconfig.load(Path(path).expanduser(), insecure=wish.insecure, policy=policy)
    elif wish.master:
        access = Access(wish.master, where="--master")
    else:
        access = incluster.load()
    if wish.master:
        access.server = check_url(wish.master, "--master")
    return access


def election_of(said: LeaderElection, shadow: bool) -> LeaseOptions | None:
    """The Lease to hold; None where nobody is elected."""
    if shadow or not said.leader_elect:
        return None
    return LeaseOptions(
        namespace=said.resource_namespace,
        name=said.resource_name,
        duration=parse_duration(said.lease_duration),
        renew_deadline=parse_duration(said.renew_deadline),
        retry_period=parse_duration(said.retry_period),
    )
