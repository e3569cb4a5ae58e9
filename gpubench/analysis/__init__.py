"""Pure functions from results to findings: speedups, changes over commits, crossovers."""
