"""Scaffolds: the files that ``gpubench init`` and ``gpubench add`` write into a project.

The project's own files and answers enter. What leaves is a first suite, asv's configuration, and a
workflow for continuous integration.
"""
