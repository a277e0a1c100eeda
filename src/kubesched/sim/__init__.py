"""Virtual time: the same core, in a cluster that lives in this process and on a clock that jumps."""

from kubesched.sim.client import Client
from kubesched.sim.cluster import Cluster
from kubesched.sim.seat import Latency
from kubesched.sim.simulation import Simulation
from kubesched.sim.world import SimWorld

__all__ = ["Client", "Cluster", "Latency", "SimWorld", "Simulation"]
