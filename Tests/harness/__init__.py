"""Parts that the Python tests and the benchmarks share. Each folder of tests has a link to this package."""
