"""Suite files: what a person may write, and what is wrong with what they wrote.

YAML texts enter. What leaves is a checked ``Suite``, or all faults of all files with file, line and
column. Nothing here knows asv, a device or a result.
"""
