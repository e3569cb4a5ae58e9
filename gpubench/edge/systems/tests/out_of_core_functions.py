"""A one, by way of an array that no worker of Dask with 200 MiB can hold."""

import numpy as np


def one(out):
    out[0] = 1.0


def one_of_many():
    from dask import array

    return array.zeros(1, chunks=1).map_blocks(_of_many, dtype=np.float64, meta=np.empty(0))


def _of_many(block):
    """Held for longer than the time between two looks of Dask at its workers, a tenth of a
    second."""
    import time

    held = np.ones(2**27)
    time.sleep(5)
    return held[:1].copy()
