"""Tables: what commands print.

Rows, plans and verdicts enter. What leaves are lines for a terminal and rows for JSON, Markdown or
the formats of other programs. Nothing here prints.
"""
