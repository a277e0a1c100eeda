"""`kubesched config`: is this configuration right, and what does it mean?"""

from __future__ import annotations

import click


@click.group()
def config() -> None:
    """Check scheduler configurations, and show what they mean."""
