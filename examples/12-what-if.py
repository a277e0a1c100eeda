"""Where would this pod go now?  Asking changes nothing: the run goes on as if nobody had asked."""

from kubesched.testing import node, pod, run, scheduler

core = scheduler(node("n1", cpu=4), node("n2", cpu=8), *(pod(f"p{i}", cpu=1) for i in range(6)))
run(core)
print({each.key: core.why(each.key).node for each in core.mirror.pods.values()})

for cpu in (1, 3, 6):
    decision = core.what_if(pod("guest", cpu=cpu))
    print(f"a pod of {cpu} cpu:", decision.node or decision.message)
print("left:", {name: core.free(name)["cpu"] for name in ("n1", "n2")})
