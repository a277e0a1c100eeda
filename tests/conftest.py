"""What every test shares: how hard Hypothesis tries."""

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
