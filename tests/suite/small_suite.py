"""A suite that is right; the tests change one thing in it."""

SUITE = """\
version: 1
suite: small
kernels:
  add:
    sizes: {n: [4, 8]}
    parameters: {dtype: [float32, float64], tile: [2, 4]}
    arrays:
      a: {shape: [n], dtype: dtype}
      b: {shape: [n], dtype: dtype, intent: inout}
    call: [a, b]
    implementations:
      numpy: {function: some.module:add}
      cuda:
        factory: some.module:make
        with: {tile: tile}
        launch: {block: [64]}
"""
"""A suite without a fault; tests replace or add a line."""
