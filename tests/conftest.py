"""What every test shares: how hard Hypothesis tries, and answers recorded beside the tests."""

from hypothesis import HealthCheck, settings

from kubesched.testing.golden import golden, page, pytest_addoption

__all__ = ["golden", "page", "pytest_addoption"]

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
