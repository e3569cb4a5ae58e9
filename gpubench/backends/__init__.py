"""One file for each way to run a kernel, found through the entry points ``gpubench.backends``."""
