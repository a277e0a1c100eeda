"""A pod with what scheduling asks of it worked out once: requests, ports, claims, affinity terms.

A pod is looked at thousands of times — by every filter, for every node, and again as a neighbour of later
pods — and never changes.  Whatever needs parsing is therefore parsed here, when the pod arrives.
A pod whose terms cannot be parsed is still a pod: `errors` says what is wrong, and plugins that need the
broken part turn it down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from kubesched.api.objects import (
    Container,
    ContainerStatus,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    ResourceList,
    ResourceRequirements,
)
from kubesched.api.quantity import is_scalar_resource, resource_amount
from kubesched.api.selectors import (
    NOTHING,
    NodeMatcher,
    Selector,
    SelectorError,
    compile_label_selector,
    compile_node_selector,
)

CPU, MEMORY, EPHEMERAL_STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"

# What a container is taken to use when it does not say, for scoring only (100m and 200Mi).
UNSAID: Mapping[str, int] = {CPU: 100, MEMORY: 200 * 1024 * 1024}

Requests = dict[str, int]

_COUNTABLE = 2**63 - 1  # what a column can hold


class HostPort(NamedTuple):
    ip: str
    protocol: str
    port: int


class AffinityTerm(NamedTuple):
    """One pod (anti-)affinity term, ready to ask.  A required term has weight 0."""

    namespaces: frozenset[str]
    selector: Selector
    topology_key: str
    namespace_selector: Selector
    weight: int = 0

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str] | None) -> bool:
        """Whether a pod with these labels in this namespace is meant; None for labels nobody looked up."""
        here = namespace in self.namespaces or self.namespace_selector.matches(namespace_labels or {})
        return here and self.selector.matches(labels)


class PodInfo:
    """A pod and what follows from its spec.  Treat it as immutable; pods are told apart by uid."""

    def __init__(self, pod: Pod) -> None:
        meta = pod.metadata
        self.pod = pod
        self.uid = meta.uid
        self.name = meta.name
        self.namespace = meta.namespace
        self.key = f"{meta.namespace}/{meta.name}"
        self.labels = meta.labels
        self.priority = pod.spec.priority or 0
        self.errors: tuple[str, ...] = ()
        # What every place it is put in asks for.  Ports: those of sidecars first, then of ordinary containers.
        self.host_ports = _host_ports(pod)
        self.claims = _claims(pod)
        # Pods with the same key look the same to every label selector that counts pods.
        self.class_key = (meta.namespace, tuple(sorted(meta.labels.items())), pod.terminating)
        affinity = pod.spec.affinity
        self.has_affinity = affinity is not None and (
            affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
        )
        self.required_affinity: tuple[AffinityTerm, ...] = ()
        self.required_anti_affinity: tuple[AffinityTerm, ...] = ()
        self.preferred_affinity: tuple[AffinityTerm, ...] = ()
        self.preferred_anti_affinity: tuple[AffinityTerm, ...] = ()
        if affinity is not None and self.has_affinity:
            near, away = affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()
            self.required_affinity = self._required("requiredAffinityTerms", near)
            self.required_anti_affinity = self._required("requiredAntiAffinityTerms", away)
            self.preferred_affinity = self._preferred("preferredAffinityTerms", near)
            self.preferred_anti_affinity = self._preferred("preferredAntiAffinityTerms", away)

    def __repr__(self) -> str:
        return f"PodInfo({self.key!r}, uid={self.uid!r})"

    def measure(self) -> None:
        """Work out its amounts now.  Raises ValueError for quantities nobody can read, or count together."""
        scored = dict(zip((CPU, MEMORY), self.nonzero_usage, strict=True))
        for amounts in (self.requests, self.usage, scored):
            for name, amount in amounts.items():
                if amount < 0:
                    raise ValueError(f"its containers together ask for {amount} of {name}, less than nothing")
                if amount > _COUNTABLE:
                    raise ValueError(f"its containers together ask for {amount} of {name}; {_COUNTABLE} is the most")

    # ── resources ────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def requests(self) -> Requests:
        """What the pod needs to be placed: resource → milli-CPU or whole units."""
        return pod_requests(self.pod)

    @cached_property
    def usage(self) -> Requests:
        """What the pod takes from the node it is on; a pod being resized in place takes the larger of both sizes."""
        return pod_requests(self.pod, status=True)

    @cached_property
    def guessed_requests(self) -> Requests:
        """As `requests`, with a guess for containers that do not say, and whatever `spec.resources` says left out."""
        return pod_requests(self.pod, pod_level=False, missing=UNSAID)

    @cached_property
    def nonzero_usage(self) -> tuple[int, int]:
        """CPU and memory as `usage`, with a guess for containers that do not say."""
        spec = self.pod.spec
        missing = UNSAID
        if spec.resources is not None and spec.resources.requests:
            missing = {name: amount for name, amount in UNSAID.items() if name not in self.usage}
        amounts = pod_requests(self.pod, status=True, missing=missing)
        return amounts.get(CPU, 0), amounts.get(MEMORY, 0)

    # ── what else it asks ────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def node_matcher(self) -> NodeMatcher | None:
        """Its required node affinity, or None where it has none."""
        affinity = self.pod.spec.affinity
        if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
            return None
        return compile_node_selector(affinity.node_affinity.required)

    def wants_node(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether its nodeSelector and required node affinity allow a node with these labels and this name."""
        selector = self.pod.spec.node_selector
        if selector and any(labels.get(key) != value for key, value in selector.items()):
            return False
        matcher = self.node_matcher
        return matcher is None or matcher.matches(labels, name)

    # ── as a neighbour of other pods ─────────────────────────────────────────────────────────────────────────

    @cached_property
    def fingerprint(self) -> bytes:
        """Pods with the same fingerprint differ in nothing that says where they may go: made by one template."""
        pod = self.pod
        return msgspec.json.encode((self.namespace, self.labels, pod.metadata.owner_references, pod.spec))

    @cached_property
    def affinity_key(self) -> bytes:
        """Pods with the same key ask the same of their neighbours."""
        affinity = self.pod.spec.affinity
        assert affinity is not None
        terms = (self.namespace, affinity.pod_affinity, affinity.pod_anti_affinity)
        return msgspec.json.encode(terms)

    def _required(self, name: str, affinity: PodAffinity) -> tuple[AffinityTerm, ...]:
        return self._terms(name, [(term, 0) for term in affinity.required])

    def _preferred(self, name: str, affinity: PodAffinity) -> tuple[AffinityTerm, ...]:
        return self._terms(name, [(term.pod_affinity_term, term.weight) for term in affinity.preferred])

    def _terms(self, name: str, weighted: Sequence[tuple[PodAffinityTerm, int]]) -> tuple[AffinityTerm, ...]:
        """One list of terms.  Kept from kube-scheduler: a broken one takes its whole list with it."""
        try:
            return tuple(self._term(term, weight) for term, weight in weighted)
        except SelectorError as error:
            self.errors += (f"{name}: {error}",)
            return ()

    def _term(self, term: PodAffinityTerm, weight: int) -> AffinityTerm:
        namespaces = term.namespaces
        if not namespaces and term.namespace_selector is None:
            namespaces = (self.namespace,)
        return AffinityTerm(
            frozenset(namespaces),
            compile_label_selector(term.label_selector),
            term.topology_key,
            NOTHING if term.namespace_selector is None else compile_label_selector(term.namespace_selector),
            weight,
        )


def _host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The node's ports a pod wants."""
    spec = pod.spec
    containers = spec.containers
    if spec.init_containers:
        containers = (*(c for c in spec.init_containers if c.restart_policy == "Always"), *containers)
    ports: list[HostPort] = []
    for container in containers:
        for port in container.ports:
            if port.host_port > 0:
                ports.append(HostPort(port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port))
    return tuple(ports)


def _claims(pod: Pod) -> tuple[str, ...]:
    """The names of the PersistentVolumeClaims a pod's volumes name (generic ephemeral volumes not included)."""
    claims: list[str] = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            claims.append(volume.persistent_volume_claim.claim_name)
    return tuple(claims)


# ── the effective request of a pod ───────────────────────────────────────────────────────────────────────────


def pod_requests(
    pod: Pod, *, status: bool = False, pod_level: bool = True, missing: Mapping[str, int] | None = None
) -> Requests:
    """Add up what a pod requests, as Kubernetes does.

    Containers add up; init containers run one after the other, beside the sidecars started before them, so the
    larger of both counts.  `spec.resources` replaces what its containers say; overhead comes on top.

    Args:
        status: take into account what the kubelet has allocated (a pod being resized in place).
        pod_level: honour `spec.resources`.
        missing: amounts for containers that do not name a resource at all.
    """
    spec = pod.spec
    statuses = _by_name(pod.status.container_statuses) if status else {}
    init_statuses = _by_name(pod.status.init_container_statuses) if status else {}
    infeasible = status and any(
        c.type == "PodResizePending" and c.reason == "Infeasible" for c in pod.status.conditions
    )

    total: Requests = {}
    for container in spec.containers:
        _add(total, _container_requests(container, statuses.get(container.name), infeasible, missing))

    sidecars: Requests = {}
    peak: Requests = {}
    for container in spec.init_containers:
        is_sidecar = container.restart_policy == "Always"
        seen = init_statuses.get(container.name) if is_sidecar else None
        wants = _container_requests(container, seen, infeasible, missing)
        if is_sidecar:
            _add(total, wants)
            _add(sidecars, wants)
            _raise(peak, sidecars)
        else:
            _add(wants, sidecars)
            _raise(peak, wants)
    _raise(total, peak)

    if pod_level and spec.resources is not None:
        wants = named = _amounts(spec.resources.requests)
        if status:
            wants = _resized(wants, pod.status.resources, pod.status.allocated_resources, infeasible)
        for name in named:
            if name in (CPU, MEMORY) or name.startswith("hugepages-"):
                total[name] = wants.get(name, 0)
    if spec.overhead:
        _add(total, _amounts(spec.overhead))
    return total


def _container_requests(
    container: Container, status: ContainerStatus | None, infeasible: bool, missing: Mapping[str, int] | None
) -> Requests:
    wants = _amounts(container.resources.requests)
    if status is not None:
        wants = _resized(wants, status.resources, status.allocated_resources, infeasible)
    for name, amount in (missing or {}).items():
        wants.setdefault(name, amount)
    return wants


def _resized(
    wants: Requests, actual: ResourceRequirements | None, allocated: ResourceList, infeasible: bool
) -> Requests:
    """A resize that is under way counts with the larger size; one that will never happen does not count."""
    if actual is None:
        return wants
    merged = {} if infeasible else dict(wants)
    _raise(merged, _amounts(actual.requests))
    _raise(merged, _amounts(allocated))
    return merged


def _amounts(resources: ResourceList) -> Requests:
    return {
        name: resource_amount(name, quantity)
        for name, quantity in resources.items()
        if name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)
    }


def _by_name(statuses: tuple[ContainerStatus, ...]) -> dict[str, ContainerStatus]:
    return {status.name: status for status in statuses}


def _add(total: Requests, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(floor: Requests, other: Mapping[str, int]) -> None:
    """Lift each amount to at least the other's."""
    for name, amount in other.items():
        if name not in floor or floor[name] < amount:
            floor[name] = amount
