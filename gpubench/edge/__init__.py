"""The edge: what is reached by entry points alone, and can be deleted without the core noticing.

A folder has its code, suites, tests and page together. It imports the core; nothing of the core
imports it. An extra of the distribution installs what it needs.
"""
