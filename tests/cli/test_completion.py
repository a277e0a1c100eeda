"""Words that a shell completes: commands without importing them, and options of each."""

import subprocess
import sys
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from kubesched.cli.main import COMMANDS, kubesched


def completed(*words: str) -> list[str]:
    *before, begun = words
    complete = ShellComplete(kubesched, {}, "kubesched", "_KUBESCHED_COMPLETE")
    return [item.value for item in complete.get_completions(list(before), begun)]


def test_commands_are_completed() -> None:
    assert completed("") == list(COMMANDS)
    assert completed("re") == ["replay"]
    assert completed("--ver") == ["--version"]


def test_options_and_commands_of_commands_are_completed() -> None:
    assert completed("run", "--leader-elect-res") == [
        *("--leader-elect-resource-lock", "--leader-elect-resource-name", "--leader-elect-resource-namespace")
    ]
    assert completed("config", "c") == ["check"]
    assert completed("run", "--tie", "s") == ["seeded"]


def test_no_command_is_imported_for_its_name() -> None:
    program = (
        "import sys; from click.shell_completion import ShellComplete; from kubesched.cli.main import kubesched;"
        "ShellComplete(kubesched, {}, 'kubesched', '').get_completions([], '');"
        "print([name for name in sys.modules if name.startswith('kubesched.cli.') and name != 'kubesched.cli.main'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_for_the_shell(shell: str, kubesched: Any) -> None:
    told = kubesched("completion", shell)
    assert told.status == 0
    assert f"_KUBESCHED_COMPLETE={shell}_complete" in told.out


def test_the_program_answers_the_script(monkeypatch: pytest.MonkeyPatch, kubesched: Any) -> None:
    monkeypatch.setenv("_KUBESCHED_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "kubesched tut")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit) as ended:
        kubesched()
    assert ended.value.code == 0
