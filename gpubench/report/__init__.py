"""The report: pages from what rows and analysis say.

Histories of the table enter. What leaves are view models, and of these static HTML that opens from
disk. ``pages`` lists the pages.
"""
