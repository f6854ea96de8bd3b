"""The mutants: for each sentence a service that breaks it."""

from . import mutants_of_openings, mutants_of_resuming, mutants_of_streams
from .mutation import Mutant

# The sentences that no mutant breaks, each with its reason.
EXCEPTIONS = {}

# The proxy without a change. All cases must pass through it.
UNCHANGED = Mutant("unchanged", "", "nothing is broken")

MUTANTS = {
    mutant.name: mutant
    for group in ([UNCHANGED], mutants_of_openings.MUTANTS, mutants_of_streams.MUTANTS, mutants_of_resuming.MUTANTS)
    for mutant in group
}
