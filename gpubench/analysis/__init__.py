"""Pure functions from results to findings: changes over commits, their causes, crossovers."""
