"""A fleet: the same suites on many machines, through Dask.

Dask finds the machines, carries calls and what they return, notices who vanishes, and encrypts.
What is ours: which machine measures what (``shares``), ``asv run`` in a checkout (``checkout``),
whether machines are equal (``equality``) and putting the results together (``parcels``).
"""
