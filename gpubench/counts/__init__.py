"""Exact counts of what Numba's compiled code does on the CPU, block by block and line by line.

``hooks`` puts counters into what Numba compiles. ``ir`` and ``counters`` read and change LLVM's
optimized code, ``instructions`` says what one instruction counts, and ``cpu`` adds up what a call
did. ``remarks`` has LLVM's reasons in plain words, and ``tables`` shows all of it.
"""
