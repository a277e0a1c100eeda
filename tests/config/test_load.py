"""Reading whole files: what loads, what does not, and that every fault has its line and a remedy."""

from pathlib import Path

import pytest
from tests.config.documents import V1, document, loaded, refused

from kubesched.assemble import profiles_of
from kubesched.config.load import load, load_file, load_text
from kubesched.framework.errors import ConfigError

# ── is it one at all? ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"", f"f.yaml: is not a KubeSchedulerConfiguration (begin with apiVersion: {V1})"),
        (b"- a", f"f.yaml:1: is not a KubeSchedulerConfiguration (begin with apiVersion: {V1})"),
        (
            b"profiles: []",
            f"f.yaml:1: apiVersion: Required value (write apiVersion: {V1} and kind: KubeSchedulerConfiguration)",
        ),
        (
            f"apiVersion: {V1}".encode(),
            f"f.yaml:1: kind: Required value (write apiVersion: {V1} and kind: KubeSchedulerConfiguration)",
        ),
        (f"apiVersion: {V1}\nkind: 7".encode(), "f.yaml:2: kind: must be a string"),
        (
            f"apiVersion: {V1}\nkind: KubeSchedulerConfig".encode(),
            (
                f'f.yaml:2: kind: no kind "KubeSchedulerConfig" is registered for version "{V1}" '
                '(did you mean "KubeSchedulerConfiguration"?)'
            ),
        ),
        (
            b"apiVersion: v1\nkind: ConfigMap\ndata:\n  my-scheduler.yaml: x\n",
            (
                'f.yaml:2: kind: no kind "ConfigMap" is registered for version "v1" '
                "(this is the ConfigMap, not a file in it; save one by itself: my-scheduler.yaml)"
            ),
        ),
        (
            b"apiVersion: v1\nkind: Policy\npredicates: []\n",
            (
                'f.yaml:2: kind: no kind "Policy" is registered for version "v1" '
                "(policies went with Kubernetes 1.23; write a KubeSchedulerConfiguration with profiles)"
            ),
        ),
        (
            b"apiVersion: kubescheduler.config.k8s.io/v1alpha2\nkind: KubeSchedulerConfiguration\n",
            (
                'f.yaml:1: apiVersion: no kind "KubeSchedulerConfiguration" is registered for version '
                '"kubescheduler.config.k8s.io/v1alpha2" (versions that are read: kubescheduler.config.k8s.io/v1, '
                "kubescheduler.config.k8s.io/v1beta3, kubescheduler.config.k8s.io/v1beta2, "
                "kubescheduler.config.k8s.io/v1beta1)"
            ),
        ),
        (
            b"apiVersion: kubescheduler.config.k8s.o/v1\nkind: KubeSchedulerConfiguration\n",
            (
                'f.yaml:1: apiVersion: no kind "KubeSchedulerConfiguration" is registered for version '
                f'"kubescheduler.config.k8s.o/v1" (did you mean "{V1}"?)'
            ),
        ),
    ],
)
def test_what_is_no_configuration_is_told_so(data: bytes, line: str) -> None:
    assert refused(data) == [line]


# ── unknown fields and wrong types ───────────────────────────────────────────────────────────────────────────


def test_every_unknown_field_and_wrong_type_is_found_at_once_with_its_line() -> None:
    assert refused("""
        paralelism: 4
        podMaxBackoffSeconds: "x"
        leaderElection: yes
        profiles:
        - schedulerName: 7
          plugins:
            scor: {enabled: []}
            score: {enabled: [{nam: x, weight: 3000000000}], disabled: NodeName}
          pluginConfig:
          - name: NodeResourcesFit
            arg: {}
        extenders:
        - urlPrefix: http://e
          enableHttps: true
          weight: 1.5
    """) == [
        'f.yaml:3: paralelism: unknown field "paralelism" (did you mean "parallelism"?)',
        'f.yaml:4: podMaxBackoffSeconds: must be an integer, not the string "x"',
        "f.yaml:5: leaderElection: must be a mapping, not true",
        'f.yaml:7: profiles[0].schedulerName: must be a string, not 7 (in quotes: "7")',
        'f.yaml:9: profiles[0].plugins.scor: unknown field "scor" (did you mean "score"?)',
        'f.yaml:10: profiles[0].plugins.score.enabled[0].nam: unknown field "nam" (did you mean "name"?)',
        (
            "f.yaml:10: profiles[0].plugins.score.enabled[0].weight: Invalid value: 3000000000: "
            "must be an integer from -2147483648 to 2147483647"
        ),
        'f.yaml:10: profiles[0].plugins.score.disabled: must be a list, not the string "NodeName"',
        'f.yaml:13: profiles[0].pluginConfig[0].arg: unknown field "arg" (did you mean "args"?)',
        'f.yaml:16: extenders[0].enableHttps: unknown field "enableHttps" (did you mean "enableHTTPS"?)',
        "f.yaml:17: extenders[0].weight: must be an integer, not 1.5",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("parallelism: true", "f.yaml:3: parallelism: must be an integer, not true"),
        ("parallelism: [1]", "f.yaml:3: parallelism: must be an integer, not a list"),
        ("profiles: {a: 1}", "f.yaml:3: profiles: must be a list, not a mapping"),
        ("profiles: [null]", "f.yaml:3: profiles[0]: must be a mapping, not nothing"),
        ("profiles: [a]", 'f.yaml:3: profiles[0]: must be a mapping, not the string "a"'),
        ("enableProfiling: 1", "f.yaml:3: enableProfiling: must be true or false, not 1"),
        ("clientConnection: {qps: fast}", 'f.yaml:3: clientConnection.qps: must be a number, not the string "fast"'),
        ("leaderElection: {leaseDuration: 15}", "f.yaml:3: leaderElection.leaseDuration: must be a string, not 15"),
        ("apiversion: v1", 'f.yaml:3: apiversion: unknown field "apiversion"'),
        ("parallelism: 1\nparallelism: 2", 'f.yaml:4: key "parallelism" already set in map (first on line 3)'),
        ("profiles: *p", "f.yaml:3: has the alias *p (write the value where it is needed)"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(text: str, line: str) -> None:
    assert refused(text)[0].startswith(line)


def test_as_text_one_error_stands_bare_and_several_in_brackets() -> None:
    with pytest.raises(ConfigError) as one:
        load({"parallelism": 0})
    with pytest.raises(ConfigError) as two:
        load({"parallelism": 0, "podInitialBackoffSeconds": 0})

    bare = "parallelism: Invalid value: 0: should be an integer value greater than zero"
    assert str(one.value) == bare
    assert str(two.value) == f"[{bare}, podInitialBackoffSeconds: Invalid value: 0: must be greater than 0]"


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_of_a_mounted_config_map_is_read_through_its_links(tmp_path: Path) -> None:
    """As the kubelet mounts one: the file links into ..data, which links to a dated folder."""
    dated = tmp_path / "..2026_01_01_00_00_00.1234"
    dated.mkdir()
    (dated / "my-scheduler-config.yaml").write_bytes(document("profiles: [{schedulerName: my-scheduler}]"))
    (tmp_path / "..data").symlink_to(dated.name)
    mounted = tmp_path / "my-scheduler-config.yaml"
    mounted.symlink_to("..data/my-scheduler-config.yaml")

    [profile] = load_file(mounted).configuration.profiles

    assert profile.scheduler_name == "my-scheduler"


@pytest.mark.parametrize(
    ("make", "remedy"),
    [(lambda path: None, "no such file or directory"), (lambda path: path.mkdir(), "is a directory")],
)
def test_a_file_that_cannot_be_read_is_named(make, remedy: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    make(path)

    with pytest.raises(ConfigError) as caught:
        load_file(path)

    assert caught.value.lines() == [f"{path}: cannot be read ({remedy})"]


def test_a_huge_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(ConfigError, match="at most 1,048,576 are read"):
        load_file(path)


# ── what people really have ──────────────────────────────────────────────────────────────────────────────────

SECOND_SCHEDULER = """
# A second scheduler beside the default one, as the Kubernetes documentation has it.
profiles:
  - schedulerName: my-scheduler
leaderElection:
  leaderElect: false
"""
NO_SCORING = """
clientConnection:
  kubeconfig: "/etc/srv/kubernetes/kube-scheduler/kubeconfig"
profiles:
  - schedulerName: default-scheduler
    plugins:
      score:
        disabled:
        - name: PodTopologySpread
        enabled:
        - name: NodeResourcesFit
          weight: 5
  - schedulerName: no-scoring-scheduler
    plugins:
      preScore:
        disabled:
        - name: '*'
      score:
        disabled:
        - name: '*'
"""
BIN_PACKING = """
profiles:
- pluginConfig:
  - args:
      scoringStrategy:
        resources:
        - name: intel.com/foo
          weight: 3
        - name: cpu
          weight: 1
        requestedToCapacityRatio:
          shape:
          - utilization: 0
            score: 0
          - utilization: 100
            score: 10
        type: RequestedToCapacityRatio
    name: NodeResourcesFit
"""
SPREADING = """
profiles:
  - schedulerName: default-scheduler
    pluginConfig:
      - name: PodTopologySpread
        args:
          defaultConstraints:
            - maxSkew: 1
              topologyKey: topology.kubernetes.io/zone
              whenUnsatisfiable: ScheduleAnyway
          defaultingType: List
"""
ADDED_AFFINITY = """
profiles:
  - schedulerName: default-scheduler
  - schedulerName: foo-scheduler
    pluginConfig:
      - name: NodeAffinity
        args:
          addedAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
              nodeSelectorTerms:
              - matchExpressions:
                - key: scheduler-profile
                  operator: In
                  values:
                  - foo
"""
EXTENDERS = """
extenders:
- urlPrefix: "http://127.0.0.1:8888/scheduler/"
  filterVerb: "filter"
  prioritizeVerb: "prioritize"
  weight: 2
  enableHTTPS: false
  nodeCacheCapable: true
  httpTimeout: 30s
  ignorable: true
  managedResources:
  - name: example.com/gpu
    ignoredByScheduler: true
"""


@pytest.mark.parametrize("text", [SECOND_SCHEDULER, NO_SCORING, BIN_PACKING, SPREADING, ADDED_AFFINITY, EXTENDERS])
@pytest.mark.parametrize("version", ["v1", "v1beta3", "v1beta2"])
def test_files_as_users_have_them_load_in_every_version(text: str, version: str) -> None:
    found = loaded(text, version)

    assert len(profiles_of(found.configuration)) == len(found.configuration.profiles)
    assert len(found.notes) == {"v1": 0, "v1beta3": 1, "v1beta2": 1 + len(found.configuration.profiles)}[version] - (
        version == "v1beta2" and text is NO_SCORING
    )


def test_json_loads_as_yaml_does() -> None:
    data = b'{\n\t"apiVersion": "%s",\n\t"kind": "KubeSchedulerConfiguration",\n\t"parallelism": 0\n}' % V1.encode()

    assert refused(data) == ["f.yaml:4: parallelism: Invalid value: 0: should be an integer value greater than zero"]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (
            "profiles: [{pluginConfig: [{name: NodeResourceFit, args: {}}]}]",
            (
                'profiles[0].pluginConfig[0]: "NodeResourceFit" is not enabled, so its arguments are not used '
                '(did you mean "NodeResourcesFit"?)'
            ),
        ),
        (
            "profiles: [{plugins: {multiPoint: {disabled: [{name: NodePorts}]}}, pluginConfig: [{name: NodePorts}]}]",
            'profiles[0].pluginConfig[0]: "NodePorts" is not enabled, so its arguments are not used',
        ),
        (
            "profiles: [{plugins: {filter: {disabled: [{name: NodeAfinity}]}}}]",
            (
                'profiles[0].plugins.filter.disabled[0]: there is no plugin "NodeAfinity" to disable '
                '(did you mean "NodeAffinity"?)'
            ),
        ),
    ],
)
def test_a_name_that_means_nobody_is_worth_a_word(text: str, note: str) -> None:
    assert loaded(text).notes == (note,)


@pytest.mark.parametrize("name", ["*", "NodeName", "SelectorSpread", "EBSLimits"])
def test_disabling_a_plugin_that_is_or_was_is_not(name: str) -> None:
    assert loaded(f"profiles: [{{plugins: {{filter: {{disabled: [{{name: '{name}'}}]}}}}}}]").notes == ()


def test_a_mapping_may_leave_out_what_a_file_must_say() -> None:
    assert load({"parallelism": 4}) == load({"apiVersion": V1, "kind": "KubeSchedulerConfiguration", "parallelism": 4})


def test_bytes_without_a_name_have_lines_all_the_same() -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(document("parallelism: 0"))

    assert caught.value.lines()[0].startswith("line 3: parallelism: ")
