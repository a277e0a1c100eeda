"""From which nodes a volume can be used, and where there is room for one to be made.

A cluster may have a volume, or a report of free room, for every single node: each says "on the node of this host
name" and nothing more.  Asking every node about each of them would take nodes times volumes; here such a
question is answered by looking up who has that value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kubesched.api.labels import IN
from kubesched.api.objects import CSINode, NodeSelector, PersistentVolume
from kubesched.api.selectors import NodeTerm, Selector, compile_node_selector
from kubesched.cluster.columns import Nodes
from kubesched.cluster.nodeinfo import NodeInfo
from kubesched.cluster.objects import Objects
from kubesched.cluster.types import Mask
from kubesched.cluster.vocab import ABSENT
from kubesched.plugins.csi_migration import in_tree_disk, required_affinity
from kubesched.plugins.node_affinity import match_term

Positions: TypeAlias = npt.NDArray[np.intp]  # which nodes of a selection, by their place in it


# ── one node ─────────────────────────────────────────────────────────────────────────────────────────────────


def reachable(volume: PersistentVolume, node: NodeInfo, objects: Objects) -> bool:
    """Whether a volume can be used on a node."""
    return matches(required_affinity(volume, objects.get(CSINode, node.name)), node.labels)


def required_by(volume: PersistentVolume) -> NodeSelector | None:
    """The nodes a volume itself asks for."""
    return None if volume.spec.node_affinity is None else volume.spec.node_affinity.required


def matches(required: NodeSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels is asked for.

    Kept from kube-scheduler: a volume's affinity is asked about labels only; the fields of a node do not count.
    """
    if required is None:
        return True
    plain = _plain(required)
    if plain is not None:
        return labels.get(plain[0]) in plain[1]
    return compile_node_selector(required).matches(labels, "")


def _plain(required: NodeSelector) -> tuple[str, Sequence[str]] | None:
    """The label and the values of an affinity that asks for nothing else.

    A name or a value that is none need not be looked for: no node has it.
    """
    if len(required.node_selector_terms) != 1:
        return None
    [term] = required.node_selector_terms
    if term.match_fields or len(term.match_expressions) != 1 or term.match_expressions[0].operator != IN:
        return None
    return term.match_expressions[0].key, term.match_expressions[0].values


# ── many nodes ───────────────────────────────────────────────────────────────────────────────────────────────


class Reach:
    """A selection of nodes, and who has which value of a label."""

    def __init__(self, nodes: Nodes, objects: Objects) -> None:
        self.nodes = nodes
        self.objects = objects
        self._all: Positions = np.arange(len(nodes))
        self._sorted: dict[str, tuple[Positions, npt.NDArray[np.int32]]] = {}  # by label: order, codes in that order

    def of(self, required: NodeSelector | None) -> Positions:
        """The nodes an affinity asks for: `matches` about all of them."""
        if required is None:
            return self._all
        plain = _plain(required)
        if plain is not None:
            return self._with_values(*plain)
        matched: Mask = np.zeros(len(self.nodes), dtype=np.bool_)
        for term in compile_node_selector(required).terms:
            # A term of fields alone has nothing left to ask, and asks nothing: it matches.
            alone = bool(term.fields) and not term.requirements
            matched |= True if alone else match_term(NodeTerm(term.requirements, (), term.errors), self.nodes)
        return np.flatnonzero(matched)

    def to(self, volume: PersistentVolume) -> Mask:
        """From which nodes a volume can be used: `reachable` about all of them."""
        if in_tree_disk(volume.spec) is not None:
            each = (reachable(volume, node, self.objects) for node in self.nodes)
            return np.fromiter(each, dtype=np.bool_, count=len(self.nodes))
        return self._mask(self.of(required_by(volume)))

    def anywhere(self, selectors: Iterable[Selector] | None) -> Mask:
        """The nodes one of the selectors means; None means all."""
        if selectors is None:
            return np.ones(len(self.nodes), dtype=np.bool_)
        matched: Mask = np.zeros(len(self.nodes), dtype=np.bool_)
        for selector in selectors:
            if selector.empty:
                matched[:] = True
            elif len(selector.requirements) == 1 and selector.requirements[0].operator == IN:
                matched[self._with_values(selector.requirements[0].key, selector.requirements[0].values)] = True
            elif not selector.nothing:
                matched |= match_term(NodeTerm(selector.requirements), self.nodes)
        return matched

    def _with_values(self, key: str, values: Iterable[str]) -> Positions:
        if key not in self._sorted:
            codes = self.nodes.label(key)
            order = np.argsort(codes, kind="stable")
            self._sorted[key] = order, codes[order]
        order, codes = self._sorted[key]
        vocab = self.nodes.table.label(key).vocab
        found = [vocab.find(value) for value in dict.fromkeys(values)]
        spans = [np.searchsorted(codes, (code, code + 1)) for code in found if code != ABSENT]
        parts = [order[first:last] for first, last in spans]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else self._all[:0]

    def _mask(self, at: Positions) -> Mask:
        mask: Mask = np.zeros(len(self.nodes), dtype=np.bool_)
        mask[at] = True
        return mask
