"""Kernels over structured arrays, which the tests put into suites."""

import numpy as np
from numba import njit

INNER = np.dtype([("k", np.int8), ("v", np.float32, 3)], align=True)
PARTICLE = np.dtype(
    [("a", np.int64), ("w", np.float32), ("in", INNER), ("d", np.uint8)], align=True
)


def particles(values, generator):
    """Return records between whose fields other bytes lie each time."""
    memory = np.random.default_rng().integers(0, 256, (values["n"], PARTICLE.itemsize), np.uint8)
    array = memory.view(PARTICLE)[..., 0]
    array["a"], array["d"] = np.arange(values["n"]), 3
    array["w"] = generator.random(values["n"])
    array["w"][::5] = np.nan
    array["in"]["k"], array["in"]["v"] = 1, generator.random((values["n"], 3))
    return (array,)


def push(particles):
    particles["w"] *= 2
    particles["in"]["v"][:, 1] += particles["a"]


@njit
def push_by_njit(particles):
    for i in range(particles.size):
        particles[i].w *= 2
        particles[i]["in"].v[1] += particles[i].a


def push_and_spill(particles):
    """Push whole new elements, in whose gaps other bytes lie."""
    new = np.full((particles.size, PARTICLE.itemsize), 170, np.uint8).view(PARTICLE)[..., 0]
    for name in ("a", "w", "d"):
        new[name] = particles[name]
    new["in"]["k"], new["in"]["v"] = particles["in"]["k"], particles["in"]["v"]
    push(new)
    particles.view(np.uint8)[:] = new.view(np.uint8)


def push_the_wrong_one(particles):
    particles["w"] *= 2
    particles["in"]["v"][:, 2] += particles["a"]


def push_too_much(particles):
    push(particles)
    particles["d"] += 1


def read_only_particles(values, generator):
    (array,) = particles(values, generator)
    array.flags.writeable = False
    return (array,)


def total(particles):
    return particles["a"].sum(dtype=np.float64)


def total_and_push(particles):
    push(particles)
    return total(particles)
