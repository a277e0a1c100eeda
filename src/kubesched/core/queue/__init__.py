"""Who is tried next."""

from kubesched.core.queue.protocol import Queue

__all__ = ["Queue"]
