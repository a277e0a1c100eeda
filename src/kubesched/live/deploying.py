"""The files under deploy/, all made from the objects of manifests.py: a Kustomize base, and a Helm chart.

Neither can work out rights from a configuration, so both are for the default plugins; for any other configuration
`kubesched manifests --config FILE` prints what belongs to it.  In the chart, what differs between a scheduler beside
kube-scheduler and one in its place stands under a condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from kubesched.assemble import profiles_of
from kubesched.config.load import load
from kubesched.live.manifests import Placing, objects, placed, yaml_documents, yaml_text

Json = dict[str, Any]

_MADE = "# Made by `make deploy-files`; change src/kubesched/live/manifests.py instead.\n"
_REPLICAS = 424242
_CHART = Placing(name="NAME-HERE", namespace="NAMESPACE-HERE", image="IMAGE-HERE", replicas=_REPLICAS)
_STANDS_FOR: Mapping[str, str] = MappingProxyType(
    {
        "NAME-HERE": "{{ .Release.Name }}",
        "NAMESPACE-HERE": "{{ .Release.Namespace }}",
        "IMAGE-HERE": '"{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"',
        str(_REPLICAS): "{{ .Values.replicas }}",
    }
)
"""What is written out elsewhere, and what the chart has in its place."""

_VALUES = """\
# How many; one is at work, the others wait for it to fail.
replicas: 2

image:
  repository: kubesched
  tag: ""   # the chart's appVersion

# Schedule the pods that name no scheduler, on kube-scheduler's lease, instead of those that name this release.
asDefault: false
"""


def deploy_files(version: str) -> dict[str, str]:
    """Every file under deploy/ that is made, for this version of kubesched: its path there, and its text."""
    return {
        "kustomize/base/kustomization.yaml": _MADE + yaml_text(_kustomization()),
        "kustomize/base/kubesched.yaml": _MADE + yaml_documents(_objects(Placing())),
        "helm/kubesched/Chart.yaml": _MADE + yaml_text(_chart(version)),
        "helm/kubesched/values.yaml": _MADE + _VALUES,
        "helm/kubesched/templates/kubesched.yaml": _MADE + chart_template(),
    }


def chart_template() -> str:
    """All objects with what the values of a release decide, for Helm to fill in."""
    beside = _released(_CHART)
    instead = _released(Placing(**{**_fields(_CHART), "as_default": True}))
    assert [one["kind"] for one in beside] == [one["kind"] for one in instead], "a condition needs two sides"
    texts = []
    for one, other in zip(map(yaml_text, beside), map(yaml_text, instead), strict=True):
        if one == other:
            texts.append(one)
        else:
            texts.append(f"{{{{- if .Values.asDefault }}}}\n{other}{{{{- else }}}}\n{one}{{{{- end }}}}\n")
    whole = "---\n".join(texts)
    for stand_in, template in _STANDS_FOR.items():
        whole = whole.replace(stand_in, template)
    return whole


def _objects(placing: Placing) -> list[Json]:
    said = placed({}, placing)
    configuration = load(said)
    return objects(said, configuration.leader_election, profiles_of(configuration), placing)


def _released(placing: Placing) -> list[Json]:
    """The objects of a release.  Its namespace is not one of them: Helm makes it, or it was there before."""
    return [one for one in _objects(placing) if one["kind"] != "Namespace"]


def _fields(placing: Placing) -> Json:
    return {name: getattr(placing, name) for name in placing.__struct_fields__}


def _kustomization() -> Json:
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["kubesched.yaml"],
    }


def _chart(version: str) -> Json:
    return {
        "apiVersion": "v2",
        "name": "kubesched",
        "description": "A Kubernetes scheduler: kube-scheduler's decisions, explained.",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.33.0-0",
    }
