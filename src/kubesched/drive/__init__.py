"""The World protocol, the one loop, and the journal it writes and replays."""

from kubesched.drive.journal import Head, Journal
from kubesched.drive.loop import drive
from kubesched.drive.tap import Moment, Tap
from kubesched.drive.world import Actor, World

__all__ = ["Actor", "Head", "Journal", "Moment", "Tap", "World", "drive"]
