"""All mutants: bugs that schedulers have had, brought back one at a time."""

from tests.fuzz import core_mutants, wire_mutants
from tests.fuzz.mutant import MUTANTS, Mutant

PLACES = (core_mutants, wire_mutants)

__all__ = ["MUTANTS", "PLACES", "Mutant"]
