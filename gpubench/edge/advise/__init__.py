"""Advice: which implementation is fastest at a size that nobody measured.

Rows of the table enter. What leaves is a ranking with intervals, on the terminal
(``gpubench advise``) and on a page of the report.
"""
