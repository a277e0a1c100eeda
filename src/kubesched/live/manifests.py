"""What it takes to run in a cluster, as objects for kubectl: an account, its rights, the configuration, a Deployment.

One list of objects is the source of everything under deploy/: the plain manifests, the Kustomize base, and the Helm
chart, whose values stand in for what the others have written out.  The pod runs as nobody, with a file system it
cannot write to and without any capability, as the `restricted` Pod Security Standard asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from msgspec import Struct

from kubesched.api.names import check_dns1123_label
from kubesched.config.defaults import DEFAULT_SCHEDULER
from kubesched.config.schema import API_VERSION, KIND, LeaderElection
from kubesched.framework.errors import ConfigError
from kubesched.framework.profile import Profile
from kubesched.live.role import Right, cluster_rights, lease_rights, rules

Json = dict[str, Any]

PORT = 10259
NOBODY = 65532
CONFIG_FOLDER, CONFIG_FILE = "/etc/kubesched", "config.yaml"
RUN_FOLDER = "/run/kubesched"
DEFAULT_LEASE = LeaderElection()


class Placing(Struct, frozen=True, kw_only=True):
    """Under which name, and where.

    Args:
        as_default: schedule the pods that name no scheduler, instead of kube-scheduler and on its lease.
        flags: of `kubesched run`, besides those that every deployment has.
        files: what lies beside the configuration, by name.
    """

    name: str = "kubesched"
    namespace: str = "kube-system"
    image: str = "kubesched:latest"
    replicas: int = 2
    as_default: bool = False
    flags: tuple[str, ...] = ()
    files: dict[str, str] = {}


def named(placing: Placing) -> Placing:
    """The same, if Kubernetes can take its names.  Raises ConfigError."""
    for option, name in (("--name", placing.name), ("--namespace", placing.namespace)):
        problem = check_dns1123_label(name)
        if problem is not None:
            raise ConfigError("", f"{option} {name!r}: {problem}")
    if not placing.image or any(char.isspace() for char in placing.image):
        raise ConfigError("", f"--image {placing.image!r} is no image", "write it as registry/repository:tag")
    return placing


def placed(said: Mapping[str, Any], placing: Placing) -> Json:
    """A configuration file as it is deployed: whose pods it schedules, and which lease it holds.  Raises ConfigError.

    Beside kube-scheduler the pods must name it, and it has a lease of its own.  In its place it takes over
    kube-scheduler's lease, so that the two can never be at work at the same moment.
    """
    told: Json = {"apiVersion": API_VERSION, "kind": KIND, **plain(said)}
    # A kubeconfig is a file of this machine; a pod of the cluster has its account instead.
    told.get("clientConnection", {}).pop("kubeconfig", None)
    profiles = told.get("profiles") or [{}]
    names = [profile.get("schedulerName", "") for profile in profiles]
    if placing.as_default:
        if DEFAULT_SCHEDULER not in names and names != [""]:
            problem = f"no profile is for the pods that name no scheduler: {', '.join(names)}"
            raise ConfigError("profiles", problem, f"call one {DEFAULT_SCHEDULER}, or leave --as-default out")
        return told
    if len(names) > 1 and DEFAULT_SCHEDULER in names:
        problem = f"{DEFAULT_SCHEDULER} is kube-scheduler's own name"
        raise ConfigError("profiles", problem, "give that profile another schedulerName, or deploy with --as-default")
    if names in ([""], [DEFAULT_SCHEDULER]):
        told["profiles"] = [{**profiles[0], "schedulerName": placing.name}]
    election = told.get("leaderElection") or {}
    if election.get("resourceName", DEFAULT_LEASE.resource_name) == DEFAULT_LEASE.resource_name:
        own = {"resourceName": placing.name, "resourceNamespace": placing.namespace}
        told["leaderElection"] = {**election, **own}
    return told


def objects(
    said: Mapping[str, Any], election: LeaderElection, profiles: Mapping[str, Profile], placing: Placing
) -> list[Json]:
    """Everything, in the order in which it should be created.

    Args:
        said: the configuration file, as `placed` says; `election` and `profiles` are what it means.
    """
    return [
        *_namespace(placing),
        _account(placing),
        *role_objects(election, profiles, placing),
        _config_map(said, placing),
        _deployment(placing),
    ]


_THERE_ALREADY = ("default", "kube-system")


def _namespace(placing: Placing) -> list[Json]:
    """A namespace of its own; those that every cluster has are left alone."""
    if placing.namespace in _THERE_ALREADY:
        return []
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": placing.namespace}}]


# ── the account and its rights ───────────────────────────────────────────────────────────────────────────────


def role_objects(election: LeaderElection, profiles: Mapping[str, Profile], placing: Placing) -> list[Json]:
    """The roles a scheduler needs, and their bindings to its account."""
    told = _role("ClusterRole", placing.name, "", cluster_rights(profiles), placing)
    lease = lease_rights(election)
    if lease:
        told += _role("Role", placing.name, election.resource_namespace, lease, placing)
    return told


def _role(kind: str, name: str, namespace: str, rights: Sequence[Right], placing: Placing) -> list[Json]:
    meta = _meta(name, placing, namespace)
    account = {"kind": "ServiceAccount", "name": placing.name, "namespace": placing.namespace}
    api = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": f"{api}/v1", "kind": kind, "metadata": meta, "rules": rules(rights)},
        {
            "apiVersion": f"{api}/v1",
            "kind": f"{kind}Binding",
            "metadata": meta,
            "roleRef": {"apiGroup": api, "kind": kind, "name": name},
            "subjects": [account],
        },
    ]


def _account(placing: Placing) -> Json:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta(placing.name, placing, placing.namespace)}


# ── the configuration and who runs it ────────────────────────────────────────────────────────────────────────


def _config_map(said: Mapping[str, Any], placing: Placing) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _meta(placing.name, placing, placing.namespace),
        "data": {CONFIG_FILE: yaml_text(said), **placing.files},
    }


def _deployment(placing: Placing) -> Json:
    labels = _labels(placing)
    selector = {key: labels[key] for key in ("app.kubernetes.io/name", "app.kubernetes.io/instance")}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta(placing.name, placing, placing.namespace),
        "spec": {
            "replicas": placing.replicas,
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": labels}, "spec": _pod(placing, selector)},
        },
    }


def _pod(placing: Placing, selector: Mapping[str, str]) -> Json:
    term = {"labelSelector": {"matchLabels": dict(selector)}, "topologyKey": "kubernetes.io/hostname"}
    return {
        "serviceAccountName": placing.name,
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": 30,
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
            }
        },
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "runAsGroup": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(placing)],
        "volumes": [
            {"name": "config", "configMap": {"name": placing.name}},
            {"name": "run", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
        ],
    }


def _container(placing: Placing) -> Json:
    def probe(path: str, **more: int) -> Json:
        return {"httpGet": {"path": path, "port": PORT, "scheme": "HTTPS"}, "periodSeconds": 10, **more}

    return {
        "name": "kubesched",
        "image": placing.image,
        "args": ["run", f"--config={CONFIG_FOLDER}/{CONFIG_FILE}", "--bind-address=0.0.0.0", *placing.flags],
        "ports": [{"name": "https", "containerPort": PORT}],
        "startupProbe": probe("/livez", failureThreshold=30),
        "livenessProbe": probe("/livez", timeoutSeconds=15, failureThreshold=8),
        "readinessProbe": probe("/readyz", timeoutSeconds=15),
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # Where it leaves word of itself, so that `kubectl exec` can ask it: `kubesched queue`.
        "env": [{"name": "XDG_RUNTIME_DIR", "value": RUN_FOLDER}],
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
            {"name": "run", "mountPath": RUN_FOLDER},
        ],
    }


def _labels(placing: Placing) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "kubesched",
        "app.kubernetes.io/instance": placing.name,
        "app.kubernetes.io/component": "scheduler",
    }


def _meta(name: str, placing: Placing, namespace: str) -> Json:
    where = {"namespace": namespace} if namespace else {}
    return {"name": name, **where, "labels": _labels(placing)}


# ── as text ──────────────────────────────────────────────────────────────────────────────────────────────────


def plain(value: Any) -> Any:
    """The same in plain dictionaries and lists, whatever it was parsed into."""
    if isinstance(value, Mapping):
        return {str(key): plain(found) for key, found in value.items()}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


class _Dumper(yaml.SafeDumper):
    """YAML as people write it: lists indented, texts of several lines as blocks, nothing referred to."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.Node:
    short = all(isinstance(one, (str, int)) and len(str(one)) < _WORD for one in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=short)


_WORD = 24  # lists of words stand on one line
_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


def yaml_text(value: Any) -> str:
    """One document."""
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


def yaml_documents(told: Sequence[Json]) -> str:
    """Several documents in one text."""
    return "---\n".join(yaml_text(one) for one in told)
