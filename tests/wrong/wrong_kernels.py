"""Kernels that go wrong in every way that we could think of, beside the right ones that they are
measured against. ``expectations.py`` says what has to become of each."""

import ctypes
import os
import signal
import sys
import tempfile
import threading
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

BLOCK = 64

_calls = Counter()
_kept = {}
_never = threading.Event()


def _call(name):
    """Which call of a kernel it is in this process: 1, 2 ..."""
    _calls[name] += 1
    return _calls[name]


# double: out = 2 a


def double(a, out):
    np.multiply(a, 2, out=out)


def double_beside(a, out, b):
    double(a, out)


def off_by_one(a, out):
    out[0] = 2 * a[0]
    np.multiply(a[:-1], 2, out=out[1:])


def last_block_left_out(a, out):
    whole = a.size // BLOCK * BLOCK
    np.multiply(a[:whole], 2, out=out[:whole])


def last_element_left_out(a, out):
    np.multiply(a[:-1], 2, out=out[:-1])


def writes_nothing(a, out):
    pass


def writes_half(a, out):
    np.multiply(a[::2], 2, out=out[::2])


def writes_zeros(a, out):
    out[:] = 0


def writes_nan(a, out):
    out[:] = np.nan


def writes_infinity(a, out):
    out[:] = np.inf


def rounds_to_half(a, out):
    out[:] = (2 * a).astype(np.float16)


def adds_to_what_is_there(a, out):
    """Takes it for granted that memory begins as zeros."""
    out += 2 * a


def writes_elsewhere(a, out):
    """A name bound anew where an array should have been written."""
    out = 2 * a  # noqa: F841


def doubles_its_input(a, out):
    a *= 2
    out[:] = a


def clears_its_input(a, out):
    np.multiply(a, 2, out=out)
    a[-1] = 0


def deletes_its_input(a, out):
    np.multiply(a, 2, out=out)
    a.resize(0, refcheck=False)


def changes_dtype_of_output(a, out):
    np.multiply(a, 2, out=out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out.dtype = np.int64


def changes_shape_of_output(a, out):
    np.multiply(a, 2, out=out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out.shape = (2, -1)


def reads_outside(a, out):
    """The last element is made of the eight bytes behind the input."""
    double(a, out)
    beyond = np.lib.stride_tricks.as_strided(a, (a.size + 1,))
    out[-1] = a[-1] + beyond[-1]


def uses_random_state(a, out):
    double(a, out)
    out += np.random.standard_normal(a.size)


def arrives_at_the_next_call(a, out):
    """Asynchronous: the work of a call is done while the next one begins."""
    if work := _kept.pop("work", None):
        work()
    _kept["work"] = lambda: double(a, out)


def arrives_on_a_thread(a, out):
    """Asynchronous: nobody waits for the work."""

    def work():
        _never.wait()
        double(a, out)

    threading.Thread(target=work, daemon=True).start()


def shares_scratch(a, scratch, out):
    """Takes it for granted that scratch memory begins as zeros."""
    scratch += a
    np.multiply(scratch, 2, out=out)


def double_by_scratch(a, scratch, out):
    scratch[:] = a
    np.multiply(scratch, 2, out=out)


# Right at first.


def wrong_from_the_second_call(a, out):
    if _call("second") < 2:
        double(a, out)


def wrong_from_the_third_call(a, out):
    if _call("third") < 3:
        double(a, out)


def wrong_from_the_tenth_call(a, out):
    if _call("tenth") < 10:
        double(a, out)


def wrong_from_the_hundredth_call(a, out):
    if _call("hundredth") < 100:
        double(a, out)


def stale_from_the_fifth_call(a, out):
    """A buffer that is not filled again."""
    if _call("stale") < 5:
        _kept["stale"] = 2 * a
        _kept["stale"][-1] += 1 if _calls["stale"] == 4 else 0
    out[:] = _kept["stale"]


def loses_updates(a, out):
    """A race: two threads read, add and write the same element. They do it one after the other
    until the fifth call, as threads that are just starting do, and side by side from then on."""
    double(a, out)
    out[0] = 0
    meet = threading.Barrier(2 if _call("race") >= 5 else 1)

    def add():
        before = out[0]
        meet.wait()
        out[0] = before + a[0]

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
        if meet.parties == 1:
            thread.join()
    for thread in threads:
        thread.join()


def keeps_its_first_arguments(a, out):
    """Right as long as nobody moves the arrays."""
    double(*_kept.setdefault("arguments", (a, out)))


def keeps_its_first_input(a, out):
    """The input of the first call is copied to the device, so to say, and never again."""
    if "input" not in _kept:
        _kept["input"] = a
    double(_kept["input"], out)


def adds_to_numbers(a, out):
    """Right where the output holds NaN, wrong on what the run before left."""
    out[:] = np.where(np.isnan(out), 0, out) + 2 * a


def raises_at_the_third_call(a, out):
    if _call("raises") == 3:
        raise ValueError("three is too much")
    double(a, out)


def raises_at_the_fiftieth_call(a, out):
    """In the middle of a batch."""
    if _call("late") == 50:
        raise OSError("fifty is too much")
    double(a, out)


# sines: out = sin(a), enough of them that doing nothing is much faster


def sines(a, out):
    np.sin(a, out=out)


def skips_what_is_done(a, out):
    if out[0] == np.sin(a[0]) and out[-1] == np.sin(a[-1]):
        return
    np.sin(a, out=out)


# order: sorts in place


def sort(numbers):
    numbers.sort(kind="heapsort")


def sort_what_may_be_sorted(numbers):
    """Timsort: linear where the numbers are in order already."""
    numbers.sort(kind="stable")


def sort_unless_sorted(numbers):
    if np.any(numbers[1:] < numbers[:-1]):
        numbers.sort(kind="heapsort")


def sort_nothing(numbers):
    pass


def reverse(numbers):
    numbers[:] = numbers[::-1].copy()


def sort_copy(numbers):
    np.sort(numbers)


# grow: b *= 2, which overflows after a thousand runs


def grow(b):
    with np.errstate(over="ignore"):
        np.multiply(b, 2, out=b)


def grow_by_adding(b):
    with np.errstate(over="ignore"):
        np.add(b, b, out=b)


# doubled: returns 2 a


def doubled(a):
    return 2 * a


def returns_nothing(a):
    np.multiply(a, 2)


def returns_its_input(a):
    return a


def returns_a_view(a):
    return a[::-1]


def returns_a_list(a):
    return (2 * a).tolist()


def returns_a_tuple(a):
    return tuple(2 * a)


def returns_text(a):
    return str(2 * a)


def returns_a_generator(a):
    return (2 * x for x in a)


def returns_two(a):
    return 2 * a, 2 * a


def returns_float32(a):
    return (2 * a).astype(np.float32)


def returns_objects(a):
    return (2 * a).astype(object)


def returns_a_column(a):
    return (2 * a)[:, np.newaxis]


def returns_too_few(a):
    return (2 * a)[:-1]


def returns_a_number(a):
    return float(2 * a[0])


def returns_masked(a):
    return np.ma.masked_array(2 * a, mask=np.arange(a.size) % 2 == 0)


def returns_a_future(a):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(doubled, a)


# parts: low and high of two outputs


def parts(a, low, high):
    np.minimum(a, 0, out=low)
    np.maximum(a, 0, out=high)


def parts_swapped(a, low, high):
    parts(a, high, low)


def only_low(a, low, high):
    np.minimum(a, 0, out=low)


# Checks that prove nothing.


def softmax(a, out):
    np.exp(a - a.max(), out=out)
    out /= out.sum()


def softmax_of_zeros(a, out):
    out[:] = 0


def slope(values, generator):
    """A fixed point of averages: nothing is left to smooth, up to rounding (as in NPBench)."""
    n = values["n"]
    i, j = np.indices((n, n))
    return (i * (j + 2) + 2) / n


def seidel(A):
    for i in range(1, len(A) - 1):
        for j in range(1, len(A) - 1):
            A[i, j] = A[i - 1 : i + 2, j - 1 : j + 2].sum() / 9


def seidel_of_nothing(A):
    pass


def not_a_number(a, out):
    out[:] = np.nan


def infinite(a, out):
    out[:] = np.inf


def unlike_itself(a):
    return np.random.standard_normal(a.size)


def accept_all(outputs, expected):
    return None


def accept_any_size(outputs, expected):
    """Within a factor of two in size: zeros and poison are not, much else is."""
    error = np.abs(outputs["out"] - expected["out"]).max()
    return None if error <= np.abs(expected["out"]).max() else "too large"


def raise_in_check(outputs, expected):
    return outputs["result"]


# Ends of a process.


def exits_with_0(a, out):
    os._exit(0)


def exits_with_7(a, out):
    os._exit(7)


def exits_while_sampled(a, out):
    if _call("exit") == 50:
        os._exit(7)
    double(a, out)


def leaves(a, out):
    sys.exit(3)


def leaves_while_sampled(a, out):
    if _call("leaves") == 50:
        sys.exit(3)
    double(a, out)


def interrupts(a, out):
    raise KeyboardInterrupt


def stops_the_generator(a, out):
    raise GeneratorExit


def crashes(a, out):
    ctypes.string_at(0)


def aborts(a, out):
    os.abort()


def is_killed(a, out):
    """As by a system that runs out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def is_terminated(a, out):
    os.kill(os.getpid(), signal.SIGTERM)


def takes_all_memory(a, out):
    np.empty(2**55)


def recurses(a, out):
    recurses(a, out)


def hangs(a, out):
    _never.wait()


def hangs_in_compiled_code(a, out):
    """Never returns to Python, and keeps its lock, so that no handler of a signal runs."""
    ctypes.PyDLL(None).sleep(3600)


def hangs_at_the_fiftieth_call(a, out):
    if _call("hangs") == 50:
        _never.wait()
    double(a, out)


# Right, with bad manners: what comes after them must not suffer.


def changes_folder(a, out):
    os.chdir(tempfile.gettempdir())
    double(a, out)


def prints_floods(a, out):
    print("{" * 10_000)
    print("{" * 1_000, file=sys.stderr)
    double(a, out)


def closes_stdout(a, out):
    if _call("closes") == 1:
        sys.stdout.flush()
        os.close(1)
    double(a, out)


def sets_threads(a, out):
    if _call("threads") == 1:
        _kept["threads"] = threadpool_limits(1)
    double(a, out)


def raises_floating_point_errors(a, out):
    np.seterr(all="raise")
    double(a, out)


def warns(a, out):
    warnings.warn(f"call {_call('warns')}", stacklevel=1)
    double(a, out)


def leaves_a_thread(a, out):
    if _call("thread") == 1:
        threading.Thread(target=_never.wait, daemon=True).start()
    double(a, out)


def ignores_signals(a, out):
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    double(a, out)


def forks(a, out):
    """The child goes on in its parent's place, once."""
    if _call("forks") == 1:
        os.fork()
    double(a, out)


def seeds_random_numbers(a, out):
    np.random.seed(0)
    double(a, out)


def empty_the_values(values, generator):
    n = values["n"]
    values.clear()
    return generator.standard_normal(n)


def overflow(a, out):
    np.multiply(a, 1e308, out=out)
    np.multiply(out, 1e308, out=out)
    np.multiply(a, 2, out=out)


# What no comparison of outputs can see.


def remembers_its_results(a, out):
    """Computes once for each input, by its identity."""
    if id(a) not in _kept:
        _kept[id(a)] = (a, np.sin(a))
    out[:] = _kept[id(a)][1]


def copies(a, out):
    out[:] = a


def sorted_copy(a, out):
    out[:] = np.sort(a)


def transposed(A, out):
    out[:] = A.T


def glitches(a, out):
    """Wrong once in a process, in the middle of a batch."""
    double(a, out)
    if _call("glitches") == 50:
        out[0] = 0


def half_as_much(a, out):
    np.multiply(a, 1, out=out)
