"""What every test shares: how hard Hypothesis tries, and answers recorded beside the tests."""

from collections.abc import Callable

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
        "--golden",
        action="store_true",
        help="write the recorded answers again, for review, instead of comparing with them",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("stage7.txt", text)`: the text is what golden/stage7.txt beside the test says.

    With --golden the file is written instead, and whoever does that looks at the difference.
    """

    def compare(name: str, text: str) -> None:
        path = request.path.parent / "golden" / name
        if request.config.getoption("golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"nothing is recorded in {path}; `make golden` writes it"
        assert text == path.read_text(encoding="utf-8")

    return compare
