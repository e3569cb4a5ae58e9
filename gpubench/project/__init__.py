"""A project: its suites, settings and results, opened together for commands and notebooks.

A folder with suites and asv's results enters. What leaves is the table, with the project's old
names, branches, machines and acknowledged changes applied, and the faults of its files.
"""
