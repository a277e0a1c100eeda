"""`kubesched`: one table of commands, imported only when called, and the last word on errors.

To add a command, write `cli/some_name.py` with a click command called `some_name`, and a line in COMMANDS.  A
command raises a KubeschedError for whatever its user can mend; here that becomes sentences on stderr and an exit
status.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import click
from click.shell_completion import CompletionItem

from kubesched import __version__
from kubesched.framework.errors import InternalError, KubeschedError

COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "bench": "Measure how many pods a second are placed here.",
        "completion": "Print what your shell needs to complete commands and options.",
        "config": "Check scheduler configurations, and show what they mean.",
        "conformance": "Replay recorded decisions of kube-scheduler.",
        "crd": "Make the CustomResourceDefinition of a class.",
        "explain": "Say where a pod goes and why, or why nowhere.",
        "fuzz": "Look for trouble: drawn clusters, drawn faults, and a judge.",
        "manifests": "Print what it takes to run in a cluster.",
        "new": "Begin something of your own: a plugin.",
        "plugins": "List plugins, and print the manual page of one.",
        "queue": "Show who waits to be scheduled, and for what.",
        "rbac": "Print the rights a configuration needs.",
        "replay": "Fold a journal into a fresh scheduler, and see that it decides the same.",
        "run": "Schedule a real cluster.",
        "sim": "Play a scenario in virtual time.",
        "tutorial": "Play the seven schedulers of the tutorial.",
        "up": "Start a whole cluster in this process, for kubectl.",
    }
)
"""Every command with its line of help; what is called `some-name` is in cli/some_name.py."""

FAILED, MISUSED, INTERRUPTED, OUR_BUG = 1, 2, 130, 70  # exit statuses; 70 is sysexits' EX_SOFTWARE


class Commands(click.Group):
    """A group whose commands are modules nobody imports before they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"kubesched.cli.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            close = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f'did you mean "{close[0]}"?' if close else f"there are: {', '.join(COMMANDS)}"
            raise click.UsageError(f'there is no command "{name}"; {hint}', ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=said) for name, said in COMMANDS.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)  # of a group it would import every module

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"kubesched {__version__}")
        ctx.exit()


_STATUSES = """\
Exit status: 0 well; 1 it did not go well, and why is said; 2 it was not understood; 130 interrupted; 70 a mistake of
kubesched's own.  `kubesched COMMAND --help` tells more of each."""


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 110}


@click.group(cls=Commands, epilog=_STATUSES, context_settings=_SETTINGS)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show the version."
)
def kubesched() -> None:
    """A Kubernetes scheduler that runs live, embedded and in virtual time."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit with its status."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit status.  Whatever a user can mend is said on stderr, without a traceback."""
    try:
        given = sys.argv[1:] if arguments is None else arguments
        status = kubesched.main(args=[_like_klog(one) for one in given], prog_name="kubesched", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except InternalError as error:
        _complain([str(error)])
        return OUR_BUG
    except KubeschedError as error:
        _complain(error.lines() if hasattr(error, "lines") else [str(error)])
        return getattr(error, "exit_status", FAILED)
    except BrokenPipeError:  # whoever reads has seen enough
        sys.stderr.close()
        return 0
    except OSError as error:  # a full disk, a folder that may not be written to
        where = f"{error.filename}: " if error.filename else ""
        _complain([f"{where}{(error.strerror or str(error)).lower()}"])
        return FAILED
    return status if isinstance(status, int) else 0


def _like_klog(argument: str) -> str:
    """`-v=6`, as Kubernetes' own programs take it, is `--v=6` to click."""
    return f"-{argument}" if argument.startswith("-v=") else argument


def _complain(lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(f"{click.style('error:', fg='red', bold=True)} {printable(line)}", err=True)


def printable(text: str) -> str:
    """Text that leaves a terminal alone, whatever a file made us quote: control characters are escaped."""
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)
