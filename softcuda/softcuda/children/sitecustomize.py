"""Imported by Python itself when it starts, in processes that a program on softcuda has started.

``python -m softcuda`` puts this folder on their path, so that they run there too.
"""

import softcuda

if softcuda.requested():
    softcuda.start()
