"""What ``gpubench init`` writes: a first suite with its kernel, and asv's configuration for it."""

from gpubench.scaffold.project import ProjectError, Written, next_steps, write_project

__all__ = ["ProjectError", "Written", "next_steps", "write_project"]
