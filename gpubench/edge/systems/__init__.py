"""Other systems than NumPy and Numba: a backend for each, with kernels and suites of the survey.

Targets of suites enter, as in every backend. What leaves is a session that runs and times them.
"""
