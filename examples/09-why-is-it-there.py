"""Every attempt leaves a Decision: where the pod went, what each plugin thought, and what every other node lacked."""

from kubesched.testing import node, pod, scheduler, tick

core = scheduler(
    node("large", cpu=16),
    node("medium", cpu=8),
    node("small", cpu=2),
    node("gpu", cpu=16, taints=["gpu=yes:NoSchedule"]),
    node("closed", cpu=16, unschedulable=True),
    pod("web", cpu=4),
)
tick(core)

decision = core.why("default/web")
print("web goes to", decision.node)
for name in ("small", "gpu", "closed"):
    status = decision.status(name)
    print(f"not to {name}: {status.plugin} says {', '.join(status.reasons)}")
for name in decision.feasible_nodes:
    print(name, dict(decision.scores_of(name)))
