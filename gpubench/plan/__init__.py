"""Plans: the cases that suites expand to, and which of them cannot run.

Suites and the names of devices enter. What leaves is a ``Case`` for each thing to measure, with an
identity and a version. Nothing here touches a device or imports a kernel.
"""
