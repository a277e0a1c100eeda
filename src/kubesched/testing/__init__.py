"""For whoever tests a plugin or the scheduler itself: builders, a core driven by hand, the conformance kit.

`fixtures` needs pytest and `strategies` needs Hypothesis; the rest needs neither.
"""

from kubesched.testing.builders import bound, changed, make, namespace, node, pod
from kubesched.testing.harness import answer, fail, observe, run, scheduler, tick, vanish, verify
from kubesched.testing.kit.examination import HardlyExamined, NotConformant, Report, conformance, examine
from kubesched.testing.pages import play_page

__all__ = [
    "HardlyExamined",
    "NotConformant",
    "Report",
    "answer",
    "bound",
    "changed",
    "conformance",
    "examine",
    "fail",
    "make",
    "namespace",
    "node",
    "observe",
    "play_page",
    "pod",
    "run",
    "scheduler",
    "tick",
    "vanish",
    "verify",
]
