"""Old versions: what they meant is kept, every change is said in a line, and what cannot be kept is refused."""

from typing import Any

import pytest
from tests.config.documents import V1, loaded, refused

from kubesched.assemble import profiles_of
from kubesched.framework.profile import Profile

KEPT = "profiles[0].plugins.multiPoint: TaintToleration, NodeAffinity, InterPodAffinity keep the weight 1 that"


def profile(text: str, version: str) -> Profile:
    """The first profile of a configuration."""
    return next(iter(profiles_of(loaded(text, version).configuration).values()))


def notes(text: str, version: str) -> list[str]:
    """What was said of the conversion, after the first line, which is always the same."""
    first, *others = loaded(text, version).notes
    assert first == f"apiVersion: kubescheduler.config.k8s.io/{version} is read as {V1}"
    return others


def plugin(text: str, version: str, name: str) -> Any:
    return next(one for one in profile(text, version).plugins if type(one).__name__ == name)


def names(plugins: tuple[Any, ...]) -> list[str]:
    return [type(one).__name__ for one in plugins]


# ── weights ──────────────────────────────────────────────────────────────────────────────────────────────────

NEW_WEIGHTS = {"TaintToleration": 3, "NodeAffinity": 2, "InterPodAffinity": 2}
OLD_WEIGHTS = {"TaintToleration": 1, "NodeAffinity": 1, "InterPodAffinity": 1}


@pytest.mark.parametrize(
    ("version", "weights"),
    [("v1", NEW_WEIGHTS), ("v1beta3", NEW_WEIGHTS), ("v1beta2", OLD_WEIGHTS), ("v1beta1", OLD_WEIGHTS)],
)
@pytest.mark.parametrize("text", ["", "profiles: []", "profiles: [{}]", "profiles: [{schedulerName: a, plugins: {}}]"])
def test_a_file_that_relies_on_the_weights_of_its_version_keeps_them(
    version: str, weights: dict[str, int], text: str
) -> None:
    found = profile(text, version).weights

    assert {name: found[name] for name in weights} == weights
    assert (found["PodTopologySpread"], found["NodeResourcesFit"], found["ImageLocality"]) == (2, 1, 1)


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_what_a_file_says_of_weights_counts_before_those_of_its_version(version: str) -> None:
    text = """
        profiles:
        - plugins:
            score:
              enabled: [{name: NodeAffinity, weight: 7}]
              disabled: [{name: InterPodAffinity}]
    """

    weights = profile(text, version).weights

    assert (weights["NodeAffinity"], weights["TaintToleration"]) == (7, 1)
    assert "InterPodAffinity" not in weights
    assert notes(text, version) == [
        f"profiles[0].plugins.multiPoint: TaintToleration keep the weight 1 that {version} gives them"
    ]


@pytest.mark.parametrize("version", ["v1", "v1beta3", "v1beta2", "v1beta1"])
def test_a_star_disables_all_scores_in_every_version(version: str) -> None:
    found = profile('profiles: [{plugins: {score: {disabled: [{name: "*"}]}}}]', version)

    assert found.score == ()
    assert len(found.filter) == 14


# ── the fields around ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2", "v1beta3"])
def test_fields_that_moved_are_named_and_dropped(version: str) -> None:
    text = """
        healthzBindAddress: 0.0.0.0:10251
        metricsBindAddress: 0.0.0.0:10251
        clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}
        leaderElection: {leaderElect: false, resourceLock: endpointsleases}
        profiles: [{schedulerName: a, plugins: {multiPoint: {enabled: [{name: NodeAffinity, weight: 3}]}}}]
    """

    found = loaded(text, version)

    where = "dropped; where to serve is said on the command line (--bind-address, --secure-port)"
    assert found.notes[1:4] == (
        f"healthzBindAddress: {where}",
        f"metricsBindAddress: {where}",
        "leaderElection.resourceLock: endpointsleases is now leases",
    )
    assert found.configuration.client_connection.kubeconfig == "/etc/kubernetes/scheduler.conf"
    assert not found.configuration.leader_election.leader_elect


def test_in_v1_the_moved_fields_are_unknown() -> None:
    [line] = refused("healthzBindAddress: 0.0.0.0:10251")

    assert line == 'f.yaml:3: healthzBindAddress: unknown field "healthzBindAddress"'


def test_arguments_of_the_old_version_are_read_as_those_of_the_new() -> None:
    text = """
        profiles:
        - pluginConfig:
          - name: InterPodAffinity
            args:
              apiVersion: kubescheduler.config.k8s.io/v1beta3
              kind: InterPodAffinityArgs
              hardPodAffinityWeight: 7
    """

    assert plugin(text, "v1beta3", "InterPodAffinity").args.hard_pod_affinity_weight == 7


def test_a_fault_in_an_old_file_has_the_line_it_has_in_the_file() -> None:
    lines = refused(
        """
        healthzBindAddress: 0.0.0.0:10251
        profiles:
        - plugins: {score: {enabled: [{name: NodePreferAvoidPods}]}}
          pluginConfig:
          - name: NodeResourcesLeastAllocated
            args: {resources: [{name: cpu, weight: 1}]}
          - name: InterPodAffinity
            args: {hardPodAffinityWeight: 101}
          - name: NodeAffinity
            args: {addedAfinity: {}}
        """,
        "v1beta1",
    )

    assert [line.split(": ")[0] for line in lines] == ["f.yaml:10", "f.yaml:12"]


# ── plugins that are gone ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2", "v1beta3"])
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("NodePreferAvoidPods", "the annotation it read is gone from Kubernetes"),
        ("SelectorSpread", "PodTopologySpread does this by its system defaults"),
        ("EBSLimits", "NodeVolumeLimits counts the volumes of every CSI driver"),
        ("GCEPDLimits", "NodeVolumeLimits counts the volumes of every CSI driver"),
        ("AzureDiskLimits", "NodeVolumeLimits counts the volumes of every CSI driver"),
        ("CinderLimits", "NodeVolumeLimits counts the volumes of every CSI driver"),
    ],
)
def test_a_plugin_that_is_gone_is_dropped_with_a_word_or_silently_if_it_was_disabled(
    version: str, name: str, why: str
) -> None:
    enabled = f"profiles: [{{plugins: {{filter: {{enabled: [{{name: {name}}}]}}}}}}]"
    disabled = f"profiles: [{{plugins: {{filter: {{disabled: [{{name: {name}}}]}}}}}}]"

    assert f"profiles[0].plugins.filter: {name} is dropped; {why}" in notes(enabled, version)
    assert not any(name in note for note in notes(disabled, version))
    assert len(profile(enabled, version).filter) == 14


def test_service_affinity_is_refused_as_nothing_does_its_work() -> None:
    assert refused("profiles: [{plugins: {filter: {enabled: [{name: ServiceAffinity}]}}}]", "v1beta1") == [
        (
            "f.yaml:3: profiles[0].plugins.filter.enabled: ServiceAffinity has no successor "
            "(use pod affinity in the pods it was for)"
        )
    ]


def test_in_v1_a_plugin_that_is_gone_is_unknown_and_its_successor_named() -> None:
    from kubesched.framework.errors import UnknownPlugin

    with pytest.raises(UnknownPlugin) as caught:
        profile("profiles: [{plugins: {score: {enabled: [{name: NodeResourcesMostAllocated}]}}}]", "v1")

    assert caught.value.remedy == "use NodeResourcesFit with scoringStrategy.type MostAllocated"


# ── strategies ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_scoring_plugin_of_v1beta1_is_a_strategy_with_its_weight_and_arguments() -> None:
    text = """
        profiles:
        - plugins:
            score:
              disabled: [{name: NodeResourcesLeastAllocated}]
              enabled: [{name: NodeResourcesMostAllocated, weight: 5}]
          pluginConfig:
          - name: NodeResourcesMostAllocated
            args:
              apiVersion: kubescheduler.config.k8s.io/v1beta1
              kind: NodeResourcesMostAllocatedArgs
              resources: [{name: cpu, weight: 2}]
    """

    args = plugin(text, "v1beta1", "NodeResourcesFit").args

    assert args.scoring_strategy.type == "MostAllocated"
    assert [(one.name, one.weight) for one in args.scoring_strategy.resources] == [("cpu", 2)]
    assert profile(text, "v1beta1").weights["NodeResourcesFit"] == 5
    assert notes(text, "v1beta1")[:2] == [
        (
            "profiles[0].plugins.score: NodeResourcesMostAllocated is now NodeResourcesFit "
            "with scoringStrategy.type MostAllocated"
        ),
        (
            "profiles[0].pluginConfig: the arguments of NodeResourcesMostAllocated are now "
            "the scoringStrategy of NodeResourcesFit"
        ),
    ]


def test_a_shape_goes_along_and_what_fit_was_told_stays() -> None:
    text = """
        profiles:
        - plugins:
            score:
              disabled: [{name: "*"}]
              enabled: [{name: RequestedToCapacityRatio}]
          pluginConfig:
          - name: NodeResourcesFit
            args: {ignoredResources: [example.com/a]}
          - name: RequestedToCapacityRatio
            args: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}], resources: [{name: cpu}]}
    """

    args = plugin(text, "v1beta1", "NodeResourcesFit").args

    assert args.ignored_resources == ("example.com/a",)
    assert args.scoring_strategy.type == "RequestedToCapacityRatio"
    assert [point.score for point in args.scoring_strategy.requested_to_capacity_ratio.shape] == [0, 10]
    assert names(profile(text, "v1beta1").score) == ["NodeResourcesFit"]


def test_least_allocated_was_the_default_and_its_arguments_count() -> None:
    text = """
        profiles:
        - pluginConfig:
          - name: NodeResourcesLeastAllocated
            args: {resources: [{name: memory, weight: 3}]}
    """

    strategy = plugin(text, "v1beta1", "NodeResourcesFit").args.scoring_strategy

    assert strategy.type == "LeastAllocated"
    assert [(one.name, one.weight) for one in strategy.resources] == [("memory", 3)]


def test_without_a_strategy_fit_does_not_score() -> None:
    text = "profiles: [{plugins: {score: {disabled: [{name: NodeResourcesLeastAllocated}]}}}]"

    found = profile(text, "v1beta1")

    assert "NodeResourcesFit" not in names(found.score)
    assert "NodeResourcesFit" in names(found.filter)
    assert notes(text, "v1beta1")[0] == (
        "profiles[0].plugins.score: NodeResourcesLeastAllocated was disabled, so NodeResourcesFit is"
    )


@pytest.mark.parametrize(
    ("text", "which"),
    [
        ("enabled: [{name: NodeResourcesMostAllocated}]", "NodeResourcesLeastAllocated and NodeResourcesMostAllocated"),
        (
            'disabled: [{name: "*"}], enabled: [{name: RequestedToCapacityRatio}, {name: NodeResourcesMostAllocated}]',
            "RequestedToCapacityRatio and NodeResourcesMostAllocated",
        ),
    ],
)
def test_two_strategies_at_once_are_refused(text: str, which: str) -> None:
    assert refused(f"profiles: [{{plugins: {{score: {{{text}}}}}}}]", "v1beta1") == [
        (
            f"f.yaml:3: profiles[0].plugins.score: {which} cannot both score: NodeResourcesFit has one strategy "
            "(keep one, and disable the others)"
        )
    ]


def test_arguments_of_a_strategy_nobody_enabled_are_dropped_with_a_word() -> None:
    text = "profiles: [{pluginConfig: [{name: RequestedToCapacityRatio, args: {shape: []}}]}]"

    assert notes(text, "v1beta1")[0] == (
        "profiles[0].pluginConfig: the arguments of RequestedToCapacityRatio are dropped; it was not enabled"
    )


# ── node labels, and spreading ───────────────────────────────────────────────────────────────────────────────

NODE_LABEL = """
    profiles:
    - plugins: {filter: {enabled: [{name: NodeLabel}]}}
      pluginConfig:
      - name: NodeLabel
        args: {presentLabels: [a], absentLabels: [b]}
"""


def expressions(text: str) -> list[list[tuple[str, str]]]:
    required = plugin(text, "v1beta1", "NodeAffinity").args.added_affinity.required
    return [[(one.key, one.operator) for one in term.match_expressions] for term in required.node_selector_terms]


def test_labels_nodes_must_have_or_must_not_become_added_affinity() -> None:
    assert expressions(NODE_LABEL) == [[("a", "Exists"), ("b", "DoesNotExist")]]
    assert "profiles[0].plugins: NodeLabel is now the addedAffinity of NodeAffinity" in notes(NODE_LABEL, "v1beta1")


def test_they_are_added_to_every_term_that_is_there() -> None:
    text = (
        NODE_LABEL
        + """
      - name: NodeAffinity
        args:
          addedAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
              nodeSelectorTerms:
              - matchExpressions: [{key: c, operator: Exists}]
              - matchFields: [{key: metadata.name, operator: In, values: [n1]}]
"""
    )

    assert expressions(text) == [
        [("c", "Exists"), ("a", "Exists"), ("b", "DoesNotExist")],
        [("a", "Exists"), ("b", "DoesNotExist")],
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "args: {",
            "args: {presentLabelsPreference: [c], ",
            "profiles[0].pluginConfig: NodeLabel scores by labels, and has no successor that does",
        ),
        (
            "[{name: NodeLabel}]",
            "[{name: NodeLabel}], disabled: [{name: NodeAffinity}]",
            "profiles[0].plugins.filter.disabled: NodeLabel is now part of NodeAffinity, which is disabled",
        ),
        ("[a]", "a", "profiles[0].pluginConfig.args.presentLabels: must be a list"),
    ],
)
def test_node_labels_that_cannot_be_kept_are_refused(old: str, new: str, problem: str) -> None:
    [line] = refused(NODE_LABEL.replace(old, new), "v1beta1")

    assert line.partition(": ")[2].startswith(problem)


def test_default_constraints_meant_a_list_of_them() -> None:
    text = """
        profiles:
        - pluginConfig:
          - name: PodTopologySpread
            args:
              defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]
    """

    assert plugin(text, "v1beta1", "PodTopologySpread").args.defaulting_type == "List"
    assert "has to" not in "".join(notes(text, "v1beta1"))
    assert "when .defaultConstraints are not empty" in refused(text, "v1beta2")[0]


# ── whatever it is ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2", "v1beta3"])
@pytest.mark.parametrize(
    "text",
    [
        "profiles: 7",
        "profiles: [7]",
        "profiles: [{plugins: []}]",
        "profiles: [{plugins: {score: 7, filter: [x], multiPoint: {enabled: 7}}}]",
        "profiles: [{plugins: {score: {enabled: [{name: [x]}, 7], disabled: {a: b}}}}]",
        "profiles: [{pluginConfig: {name: NodeLabel}}]",
        "profiles: [{plugins: {filter: {enabled: [{name: NodeLabel}]}}, pluginConfig: [{name: NodeLabel}, 7]}]",
        "leaderElection: 7",
        "leaderElection: {resourceLock: [endpoints]}",
    ],
)
def test_a_document_of_the_wrong_shape_is_refused_as_it_would_be_in_v1(text: str, version: str) -> None:
    assert all(line.startswith("f.yaml:3: ") for line in refused(text, version))
