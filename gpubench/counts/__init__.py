"""Exact counts of what Numba's compiled code does on the CPU, block by block and line by line.

``hooks`` puts counters into what Numba compiles. ``ir`` and ``counters`` read and change LLVM's
optimized code, ``instructions`` says what one instruction counts, and ``cpu`` adds up what a call
did. ``remarks`` has LLVM's reasons in plain words. ``machine`` counts machine instructions,
``caches`` lines and misses of ``cache_model``, and ``numpy_calls`` what NumPy does beside.
"""
