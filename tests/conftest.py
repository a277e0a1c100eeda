"""What every test shares: Hypothesis profiles, and the switch for tests that need a real kube-apiserver."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# `ci` says the same thing every time, so a red build is red again on the next machine; `nightly` goes
# looking for what nobody has seen yet: `pytest --hypothesis-profile nightly`.
settings.register_profile(
    "ci",
    derandomize=True,
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "nightly",
    max_examples=2_000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--realserver",
        metavar="KUBECONFIG",
        type=Path,
        default=None,
        help="also run the tests marked `realserver`, against the cluster of this kubeconfig",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("realserver") is not None:
        return
    skip = pytest.mark.skip(reason="needs a real kube-apiserver: --realserver KUBECONFIG")
    for item in items:
        if item.get_closest_marker("realserver"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def realserver(request: pytest.FixtureRequest) -> Path:
    """The kubeconfig of the real cluster this run may use."""
    kubeconfig: Path = request.config.getoption("realserver")
    return kubeconfig
