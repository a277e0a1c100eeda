"""kube-scheduler's rules for values, in its words and its order."""

from typing import Any

import pytest
from tests.config.documents import refused

from kubesched.config.load import load
from kubesched.framework.errors import ConfigError


def faults(raw: dict[str, Any]) -> list[str]:
    """Every fault as a line."""
    with pytest.raises(ConfigError) as caught:
        load(raw)
    return [str(fault) for fault in caught.value.faults]


def profile(**fields: Any) -> dict[str, Any]:
    return {"profiles": [fields]}


def election(**fields: Any) -> dict[str, Any]:
    return {"leaderElection": fields}


def extender(**fields: Any) -> dict[str, Any]:
    return {"extenders": [{"urlPrefix": "https://e/", **fields}]}


INVALID_VERSION = (
    'was invalid in version "v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1") '
    "(NodeVolumeLimits"
)


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        ({"parallelism": 0}, "parallelism: Invalid value: 0: should be an integer value greater than zero"),
        ({"parallelism": -1}, "parallelism: Invalid value: -1: should be an integer value greater than zero"),
        ({"clientConnection": {"burst": -1}}, "clientConnection.burst: Invalid value: -1: must be non-negative"),
        # leader election
        (
            election(renewDeadline="-1s"),
            'leaderElection.renewDeadline: Invalid value: "-1s": must be greater than zero',
        ),
        (election(retryPeriod="-1s"), 'leaderElection.retryPeriod: Invalid value: "-1s": must be greater than zero'),
        (
            election(leaseDuration="10s", renewDeadline="10s"),
            'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
        ),
        (
            election(renewDeadline="2s"),
            'leaderElection.renewDeadline: Invalid value: "2s": must be greater than `RetryPeriod` times 1.2',
        ),
        (
            election(resourceLock="endpoints"),
            'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
        ),
        (
            election(leaseDuration="15"),
            (
                "leaderElection.leaseDuration: Invalid value: \"15\": '15' is not a duration; "
                "write numbers with units, such as 10s, 1h2m3.5s or 300ms"
            ),
        ),
        # percentages and backoffs
        ({"percentageOfNodesToScore": -1}, "percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"),
        ({"percentageOfNodesToScore": 101}, "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"),
        (
            profile(percentageOfNodesToScore=101),
            "profiles[0].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        ),
        ({"podInitialBackoffSeconds": 0}, "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"),
        (
            {"podInitialBackoffSeconds": 11},
            "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
        ),
        (
            {"podMaxBackoffSeconds": 2**62},
            f"podMaxBackoffSeconds: Invalid value: {2**62}: must be at most 9223372036, which is 292 years",
        ),
        # profiles
        (
            {"profiles": [{"schedulerName": "a"}, {}]},
            "profiles[1].schedulerName: Required value (only a single profile may leave it out)",
        ),
        (
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]},
            "profiles[1].schedulerName: Duplicate value: {} (profiles[0] has it, too)",
        ),
        (
            profile(plugins={"filter": {"enabled": [{"name": "NodeName"}, {"name": "EBSLimits"}]}}),
            f'profiles[0].plugins.filter.enabled[1]: Invalid value: "EBSLimits": {INVALID_VERSION} is enough)',
        ),
        (
            profile(pluginConfig=[{"name": "CinderLimits"}]),
            f'profiles[0].pluginConfig[0]: Invalid value: "CinderLimits": {INVALID_VERSION} has no args)',
        ),
        (
            profile(pluginConfig=[{"name": "X"}, {"name": "X"}]),
            'profiles[0].pluginConfig[1]: Duplicate value: "X"',
        ),
        # queue sorts
        (
            profile(plugins={"queueSort": {"enabled": [{"name": "A"}, {"name": "B"}]}}),
            "profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled",
        ),
        (
            {
                "profiles": [
                    {"schedulerName": "a"},
                    {"schedulerName": "b", "plugins": {"queueSort": {"enabled": [{"name": "B"}]}}},
                ]
            },
            (
                'profiles[1].plugins.queueSort: Invalid value: {"enabled":[{"name":"B"}]}: '
                "must be the same for all profiles"
            ),
        ),
        (
            {
                "profiles": [
                    {
                        "schedulerName": name,
                        "plugins": {"queueSort": {"enabled": [{"name": "B"}]}},
                        "pluginConfig": [{"name": "B", "args": {"for": name}}],
                    }
                    for name in "ab"
                ]
            },
            'profiles[1].pluginConfig.args: Invalid value: {"for":"b"}: queueSort must be the same for all profiles',
        ),
        # extenders
        (
            extender(prioritizeVerb="p"),
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
        ),
        (
            extender(prioritizeVerb="p", weight=-2),
            "extenders[0].weight: Invalid value: -2: must have a positive weight applied to it",
        ),
        (
            extender(prioritizeVerb="p", weight=2**62),
            f"extenders[0].weight: Invalid value: {2**62}: total score could overflow",
        ),
        (
            extender(managedResources=[{"name": "cpu"}]),
            'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name',
        ),
        (
            extender(managedResources=[{"name": "kubernetes.io/foo"}]),
            (
                'extenders[0].managedResources[0].name: Invalid value: "kubernetes.io/foo": '
                "is an invalid extended resource name"
            ),
        ),
        (
            extender(managedResources=[{"name": "e.com/a"}, {"name": "e.com/a"}]),
            'extenders[0].managedResources[1].name: Invalid value: "e.com/a": duplicate extender managed resource name',
        ),
        (
            {"extenders": [{"urlPrefix": f"https://e{i}", "bindVerb": "bind"} for i in range(2)]},
            'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
        ),
        (
            extender(httpTimeout="-5s"),
            'extenders[0].httpTimeout: Invalid value: "-5s": must be greater than zero',
        ),
        *(
            (
                {"extenders": [{"urlPrefix": url}]},
                (
                    f'extenders[0].urlPrefix: Invalid value: "{url}": must be a URL of http or https '
                    "(as https://extender.kube-system.svc:8443/scheduler)"
                ),
            )
            for url in (
                "",
                "extender:8888",
                "file:///etc/passwd",
                "http://",
                "http://e:99999/",
                "http://[::1",
                "gopher://e/",
            )
        ),
    ],
)
def test_a_value_that_may_not_be_is_named_with_its_place_and_why(raw: dict[str, Any], line: str) -> None:
    assert faults(raw) == [line]


def test_a_lease_that_ends_before_it_is_renewed_is_named_twice() -> None:
    assert faults(election(leaseDuration="-1s")) == [
        'leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero',
        'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
    ]


@pytest.mark.parametrize("name", ["has a space/x", "e.com/", "e.com/a/b", "-e.com/x", "e.com/" + "x" * 64])
def test_a_managed_resource_has_a_qualified_name(name: str) -> None:
    lines = faults(extender(managedResources=[{"name": name}]))

    assert lines
    for line in lines:
        assert line.startswith(f'extenders[0].managedResources[0].name: Invalid value: "{name}": ')
        assert "extended resource name" not in line


@pytest.mark.parametrize(
    "raw",
    [
        election(leaderElect=False, leaseDuration="-1s", resourceLock="endpoints"),
        {"percentageOfNodesToScore": 0},
        {"percentageOfNodesToScore": 100},
        profile(percentageOfNodesToScore=0),
        {"podInitialBackoffSeconds": 10},
        profile(plugins={"multiPoint": {"enabled": [{"name": "NodeName"}]}}),
        profile(plugins={"filter": {"disabled": [{"name": "EBSLimits"}]}}),
        extender(weight=-1),
        extender(urlPrefix="http://127.0.0.1:8888/scheduler"),
        extender(urlPrefix="https://[::1]:8888"),
    ],
)
def test_what_may_be_is_accepted(raw: dict[str, Any]) -> None:
    load(raw)


def test_faults_come_in_the_order_of_kube_scheduler() -> None:
    lines = refused("""
        extenders: [{urlPrefix: http://e, prioritizeVerb: p}]
        podMaxBackoffSeconds: -1
        podInitialBackoffSeconds: 0
        percentageOfNodesToScore: 101
        profiles:
        - schedulerName: a
          plugins: {filter: {enabled: [{name: EBSLimits}]}, queueSort: {enabled: [{name: A}, {name: B}]}}
          pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]
          percentageOfNodesToScore: -1
        - percentageOfNodesToScore: -1
        parallelism: 0
        leaderElection: {resourceLock: x}
        clientConnection: {burst: -1}
    """)

    assert [line.split(": ")[1] for line in lines] == [
        "clientConnection.burst",
        "leaderElection.resourceLock",
        "parallelism",
        "profiles[0].percentageOfNodesToScore",
        "profiles[0].plugins.filter.enabled[0]",
        "profiles[0].pluginConfig[0].args.hardPodAffinityWeight",
        "profiles[1].schedulerName",
        "profiles[1].percentageOfNodesToScore",
        "profiles[0].plugins.queueSort.Enabled",
        "profiles[1].plugins.queueSort",
        "percentageOfNodesToScore",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "extenders[0].weight",
    ]
    assert [int(line.split(":")[1]) for line in lines] == [15, 14, 13, 11, 9, 10, 12, 12, 9, 12, 6, 5, 4, 3]
