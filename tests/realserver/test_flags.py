"""kubesched run knows every flag of kube-scheduler, with its default."""

import re
import subprocess
from collections.abc import Iterator

from tests.realserver import binaries

from kubesched.cli.flags import BY_NAME, FLAGS

_FLAG = re.compile(r"^ +(?:-\w, )?--([a-z0-9-]+)(?: ([A-Za-z0-9]\S*(?:=\S+)?))?  ")
OURS_ALONE = {"bind-address"}  # a port on all interfaces is not a default for a program that people try at home
ELSEWHERE = {"version", "help"}  # of `kubesched` itself


def theirs() -> Iterator[tuple[str, str]]:
    """(name, default) of every flag that kube-scheduler's help shows."""
    text = subprocess.run(
        [str(binaries.find("kube-scheduler")), "--help"], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    for line in text.splitlines():
        found = _FLAG.match(line)
        if found:
            default = re.search(r"\(default (.*)\)$", line)
            yield found[1], "" if default is None else default[1].strip('"[]').replace(" ", "")


def test_no_flag_is_missing_and_none_is_invented(real_binaries: None) -> None:
    known = {name for name, _ in theirs()} - ELSEWHERE
    assert {flag.name for flag in FLAGS} - known == set()
    assert known - BY_NAME.keys() == set()


def test_defaults_are_kube_schedulers(real_binaries: None) -> None:
    told = {name: default for name, default in theirs() if default and name in BY_NAME}
    for flag in FLAGS:
        if flag.fate == "used" and flag.name not in OURS_ALONE and flag.name in told:
            assert flag.default == told[flag.name], flag.name
