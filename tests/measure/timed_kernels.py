"""Functions of scripted duration for the tests of what is measured without asv."""

import os

import numpy as np

from gpubench.backends.scripted import script


def scale(a, out):
    np.multiply(a, 2, out=out)


def scale_wrongly(a, out):
    np.multiply(a, 3, out=out)


def end_the_process(a, out):
    os._exit(3)


two_ms = script(2e-3)(scale)
one_ms = script(1e-3)(scale)
wrong = script(1e-3)(scale_wrongly)
tiny = script(5e-8)(scale)
uneven = script([1e-3, 2e-3, 3e-3])(scale)
lost = script(1e-3, fails="illegal address", fails_at=1)(scale)
hangs = script(1e-3, fails="hang", fails_at=1)(scale)
crashes = script(1e-3)(end_the_process)
