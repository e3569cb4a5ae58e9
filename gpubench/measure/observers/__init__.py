"""Observers: what watches a run of a case, one file each; none knows of another.

Events of the run enter. What leaves are fields of the record.
"""
