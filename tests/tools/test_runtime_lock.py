"""What an image installs is what kubesched needs to run, with everything that needs, and nothing else."""

from tools.runtime_lock import ROOT, packages, runtime

LOCK = """\
# made by a tool
server==1.0 \\
    --hash=sha256:aa
    # via kubesched (pyproject.toml)
part==2.0 ; python_version < '3.12' \\
    --hash=sha256:bb
    # via
    #   piece
    #   server
piece==2.1 \\
    --hash=sha256:cc
    # via part
tester==3.0 \\
    --hash=sha256:dd
    # via kubesched (pyproject.toml)
"""


def names(lock: str) -> list[str]:
    return [name for name, _ in packages(lock)]


def test_what_a_dependency_needs_comes_along_and_what_tests_need_does_not() -> None:
    assert names(runtime(LOCK, ["server>=0.9"])) == ["server", "part", "piece"]


def test_hashes_and_markers_stay_as_they_are() -> None:
    assert "part==2.0 ; python_version < '3.12' \\\n    --hash=sha256:bb\n" in runtime(LOCK, ["server"])


def test_the_lock_of_kubesched_has_all_that_runs_and_no_test_tool() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    found = names(runtime(lock, ["aiohttp>=3", "prometheus_client>=0.2"]))
    assert {"aiohttp", "yarl", "prometheus-client"} <= set(found)
    assert not {"pytest", "mypy", "ruff"} & set(found)
