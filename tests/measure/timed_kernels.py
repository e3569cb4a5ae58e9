"""Functions of scripted duration for the tests of what is measured without asv."""

import multiprocessing
import os
import re
import signal
import sys
import time
import warnings

import numpy as np

from gpubench.backends.scripted import script


def scale(a, out):
    np.multiply(a, 2, out=out)


def scale_wrongly(a, out):
    np.multiply(a, 3, out=out)


def scale_with_a_process(a, out):
    child = multiprocessing.get_context("fork").Process(target=int)
    child.start()
    child.join()
    scale(a, out)


def end_the_process(a, out):
    os._exit(3)


def segmentation_fault(a, out):
    os.kill(os.getpid(), signal.SIGSEGV)


def be_killed(a, out):
    os.kill(os.getpid(), signal.SIGKILL)


def exit_with_7(a, out):
    sys.exit(7)


def raise_interrupt(a, out):
    raise KeyboardInterrupt


_forked = []


def scale_in_two_processes(a, out):
    """Both go on from the first run; the one that was forked should not."""
    if not _forked:
        _forked.append(True)
        os.fork()
    scale(a, out)


def leave_a_process(a, out):
    """One that holds all that this one has open, for longer than the test waits."""
    if os.fork():
        os._exit(3)
    time.sleep(20)
    os._exit(0)


def hang_in_compiled_code(a, out):
    """The regular expression backtracks for years and holds the interpreter's lock."""
    re.match("(a*)*b", "a" * 64)


def scale_with_a_warning(a, out):
    warnings.warn("\x1b[1mslow\nThis is why.\x1b[0m", RuntimeWarning, stacklevel=1)
    scale(a, out)


def scale_and_print(a, out):
    os.write(1, b"done\n")
    scale(a, out)


def sleep_long(*arguments):
    time.sleep(600)


two_ms = script(2e-3)(scale)
one_ms = script(1e-3)(scale)
wrong = script(1e-3)(scale_wrongly)
tiny = script(5e-8)(scale)
waits_at_times = script([1e-3, 1e-3, 50e-3, 1e-3])(scale)
uneven = script([1e-3, 2e-3, 3e-3])(scale)
lost = script(1e-3, fails="illegal address", fails_at=1)(scale)
hangs = script(1e-3, fails="hang", fails_at=1)(scale)
with_a_process = script(1e-3)(scale_with_a_process)
crashes = script(1e-3)(end_the_process)
faults = script(1e-3)(segmentation_fault)
has_no_memory = script(1e-3)(be_killed)
exits = script(1e-3)(exit_with_7)
interrupts = script(1e-3)(raise_interrupt)
forks = script(1e-3)(scale_in_two_processes)
leaves_a_process = script(1e-3)(leave_a_process)
hangs_in_compiled_code = script(1e-3)(hang_in_compiled_code)
warns = script(1e-3)(scale_with_a_warning)
prints = script(1e-3)(scale_and_print)
