"""Analysis: pure functions from rows to verdicts.

Rows and histories of the table enter. What leaves are changes over commits with their causes,
comparisons of two commits, and crossovers.
"""
