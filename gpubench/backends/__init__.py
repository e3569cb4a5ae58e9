"""Backends: one file for each way to run a kernel, found by entry points (``gpubench.backends``).

A function or a source, a launch and arrays enter. What leaves is a bound call, and a sampler that
takes its seconds as that backend has to.
"""
