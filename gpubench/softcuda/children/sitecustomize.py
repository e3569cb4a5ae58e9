"""Imported by Python itself when it starts, in processes that a program on softcuda has started.

``python -m gpubench.softcuda`` puts this folder on their path, so that they run there too.
"""

from gpubench import softcuda

if softcuda.requested():
    softcuda.start()
