"""Measuring: from a case to its times, its counts and its record.

A case and its backend enter. Outputs are compared before and after anything is timed. What leaves
are samples for asv or for ``gpubench time``, and a line of the record.
"""
