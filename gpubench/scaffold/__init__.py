"""What ``gpubench init`` writes: a first suite with its kernel, and asv's configuration for it."""
