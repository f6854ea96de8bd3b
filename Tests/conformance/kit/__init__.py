"""The parts of the conformance kit: a client of streams, the service under test, the specification, and mutants."""
