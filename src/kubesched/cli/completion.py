"""`kubesched completion`: what a shell needs to finish words of ours."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_PROGRAM = "kubesched"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands and options, for your shell to read when it starts.

    \b
        kubesched completion bash >> ~/.bashrc
        kubesched completion zsh >> ~/.zshrc
        kubesched completion fish > ~/.config/fish/completions/kubesched.fish
    """
    made = get_completion_class(shell)
    assert made is not None, "click knows these shells"
    root = context.find_root().command
    click.echo(made(root, {}, _PROGRAM, f"_{_PROGRAM.upper()}_COMPLETE").source())
