"""Work: what a kernel does and needs, apart from how long it takes.

Counts of a launch, registers and the architecture of a GPU enter. What leaves are costs, occupancy
and the least time that the GPU allows.
"""
