"""Which plans can show a bug at all: the others need not be played when a seed is looked for."""

from kubesched.fuzz.plan import Crash, Gap, Place, Plan, Remove


def anything(plan: Plan) -> bool:
    return True


def wired(plan: Plan) -> bool:
    return bool(plan.custom.wire)


def elected(plan: Plan) -> bool:
    return plan.custom.wire == "elected"


def alone(plan: Plan) -> bool:
    return plan.custom.wire == "alone"


def held(plan: Plan) -> bool:
    return "Patience" in str(plan.scheduler)


def preempting(plan: Plan) -> bool:
    return "'priority': 1000" in str(plan.happenings)


def preempting_held(plan: Plan) -> bool:
    return held(plan) and preempting(plan)


def promised_nodes_go(plan: Plan) -> bool:
    return preempting(plan) and nodes_go(plan)


def promised_pods_go(plan: Plan) -> bool:
    return preempting(plan) and any(isinstance(one, Remove) and one.kind == "Pod" for one in plan.happenings)


def nodes_go(plan: Plan) -> bool:
    return any(isinstance(one, Remove) and one.kind == "Node" for one in plan.happenings)


def nodes_go_unheard(plan: Plan) -> bool:
    return nodes_go(plan) and any(isinstance(one, Gap) and one.kind == "Node" for one in plan.happenings)


def nodes_go_unheard_by_wire(plan: Plan) -> bool:
    return wired(plan) and nodes_go_unheard(plan)


def gaps_on_the_wire(plan: Plan) -> bool:
    return wired(plan) and any(isinstance(one, Gap) for one in plan.happenings)


def lease_out_of_reach(plan: Plan) -> bool:
    """For so long that somebody else takes it, while there is still work."""
    gaps = [one for one in plan.happenings if isinstance(one, Gap) and one.kind == "Lease"]
    return elected(plan) and any(one.lasting > 15_000 and one.at + 15_000 < plan.weather.until for one in gaps)


def held_and_placed(plan: Plan) -> bool:
    return held(plan) and any(isinstance(one, Place) for one in plan.happenings)


def lingering(plan: Plan) -> bool:
    return "example.com/agree" in str(plan.happenings) and any(isinstance(one, Remove) for one in plan.happenings)


def binds_fail(plan: Plan) -> bool:
    return not {"failed", "refused"}.isdisjoint(plan.weather.chances.get("Bind", {}))


def begins_slowly(plan: Plan) -> bool:
    return plan.weather.burst < 10 and any(isinstance(one, Crash) for one in plan.happenings)


def bound_by_extender(plan: Plan) -> bool:
    return plan.custom.extender == "binding"
