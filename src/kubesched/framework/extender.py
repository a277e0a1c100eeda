"""An extender as the core sees it: which questions it answers, about which pods, and how much it counts.

Where it lives and how to reach it safely is the business of the world that carries out an HttpPost.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kubesched.api.objects import Pod
from kubesched.cluster.podinfo import PodInfo


class Extender(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A scheduler beside this one, asked over HTTP."""

    number: int = 0  # its place in the configuration; an HttpPost names it by this
    url_prefix: str = ""
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    node_cache_capable: bool = False
    managed_resources: tuple[str, ...] = ()
    ignorable: bool = False

    def interested(self, pod: Pod) -> bool:
        """Whether it wants to hear of this pod: it manages everything, or something the pod asks for."""
        if not self.managed_resources:
            return True
        return any(
            name in self.managed_resources
            for container in (*pod.spec.containers, *pod.spec.init_containers)
            for name in (*container.resources.requests, *container.resources.limits)
        )


class Proposal(Struct, frozen=True):
    """Pods that would leave a node to make room, and how many budgets that would overdraw."""

    node: str
    victims: tuple[PodInfo, ...]
    violations: int = 0


class Proposals(Struct, frozen=True):
    """What a post_filter that evicts chose from; put into the cycle, it lets extenders have their say.

    An extender may strike nodes out, or name other victims; what remains is weighed again by `price`, and the
    cheapest is taken, of equals the first.
    """

    found: tuple[Proposal, ...]
    price: Callable[[Proposal], tuple[int, ...]]
