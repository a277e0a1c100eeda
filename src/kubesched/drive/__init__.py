"""The World protocol, the one loop, and the journal it writes and replays."""

from kubesched.drive.journal import Journal
from kubesched.drive.loop import Actor, World, drive

__all__ = ["Actor", "Journal", "World", "drive"]
