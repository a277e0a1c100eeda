"""Who is tried next."""

from kubesched.core.queue.priority import PriorityQueue
from kubesched.core.queue.protocol import Queue
from kubesched.core.queue.simple import SimpleQueue

__all__ = ["PriorityQueue", "Queue", "SimpleQueue"]
