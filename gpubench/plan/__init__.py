"""Suites become cases: axes, expansion, identity, rules. Touches no device, imports no kernel."""
