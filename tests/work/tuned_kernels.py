"""CUDA C of the kernels in ``published_times.yaml``, retyped. Counted in a process on softcuda.

Their times are those of loops that the compiler has unrolled, which Numba's compiler does not do
with all of them: the same kernels in Numba count other instructions.
"""

# mypy: ignore-errors

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

HERE = Path(__file__).parent
CONVOLUTION = """
constexpr int FILTER = 15, WIDTH = 4096;
constexpr int ROWS = BY * TY + FILTER - 1, COLUMNS = BX * TX + FILTER - 1;
constexpr int PAD = USE_PADDING && BX % 32 && (COLUMNS - BX) % 32 ? (BX - COLUMNS) & 31 : 0;
__constant__ float weights[FILTER * FILTER];

extern "C" __global__ void kernel(float *out, const float *image) {
  __shared__ float tile[ROWS][COLUMNS + PAD];
  const int x = threadIdx.x, y = threadIdx.y;
  const int left = blockIdx.x * BX * TX, top = blockIdx.y * BY * TY;
  #pragma unroll
  for (int i = y; i < ROWS; i += BY)
    #pragma unroll
    for (int j = x; j < COLUMNS; j += BX)
      tile[i][j] = __ldg(image + (top + i) * (WIDTH + FILTER - 1) + left + j);
  __syncthreads();
  float sums[TY][TX] = {};
  #pragma unroll
  for (int i = 0; i < FILTER; i++)
    #pragma unroll
    for (int j = 0; j < FILTER; j++)
      #pragma unroll
      for (int v = 0; v < TY; v++)
        #pragma unroll
        for (int u = 0; u < TX; u++)
          sums[v][u] += tile[y + v * BY + i][x + u * BX + j] * weights[i * FILTER + j];
  #pragma unroll
  for (int v = 0; v < TY; v++)
    #pragma unroll
    for (int u = 0; u < TX; u++)
      out[(top + y + v * BY) * WIDTH + left + x + u * BX] = sums[v][u];
}
"""
DEDISPERSION = """
constexpr int SAMPLES = 25000, SHIFTS = 650;

extern "C" __global__ void kernel(float *out, const unsigned char *samples, const float *delays) {
  const int x = blockIdx.x * BX * TX + threadIdx.x * (STRIDE_X ? 1 : TX);
  const int y = blockIdx.y * BY * TY + threadIdx.y * (STRIDE_Y ? 1 : TY);
  for (int u = 0; u < TX; u++) {
    const int sample = x + u * (STRIDE_X ? BX : 1);
    if (sample >= SAMPLES) continue;
    for (int v = 0; v < TY; v++) {
      const int measure = y + v * (STRIDE_Y ? BY : 1);
      if (measure >= 2048) continue;
      float sum = 0;
      for (int channel = 0; channel < CHANNELS; channel++) {
        const unsigned int delay = (measure * 0.02f) * delays[channel];
        sum += samples[channel * (SAMPLES + SHIFTS) + sample + delay];
      }
      out[measure * SAMPLES + sample] = sum;
    }
  }
}
"""
CHANNELS = 48
"""Of 1,536: all launches have as many, and each channel costs the same."""
GRID = (2, 2)
"""Blocks that are counted; all blocks do the same."""


@dataclass(frozen=True)
class Tuned:
    source: str
    problem: tuple[int, int]
    """Results in x and in y."""


TUNED = {
    "convolution": Tuned(CONVOLUTION, (4096, 4096)),
    "dedispersion": Tuned(DEDISPERSION, (25_000, 2048)),
}


def count_tuned_kernels() -> Any:
    """Return, by name of the kernel, of each shape: its blocks and threads, shared bytes, registers
    and what ``GRID`` blocks count."""
    import softcuda

    device = softcuda.start()
    device.set("count", "1")
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
    from numba import cuda

    gpu = Device()
    gpu.set_current()
    stream = gpu.create_stream()
    image, out = (gpu.allocate(size, stream=stream) for size in (68 << 20, 205 << 20))
    delays = cuda.to_device(delay_of_channels())
    address = np.uint64(delays.device_ctypes_pointer.value)
    found = {}
    for name, shapes in yaml.safe_load((HERE / "published_times.yaml").read_text()).items():
        found[name] = []
        for shape in shapes:
            values = {key: value for key, value in shape.items() if key.isupper()}
            text = "".join(f"#define {key} {value}\n" for key, value in values.items())
            text += f"#define CHANNELS {CHANNELS}\n" + TUNED[name].source
            options = ProgramOptions(arch="sm_80")
            kernel = Program(text, "c++", options).compile("ptx").get_kernel("kernel")
            block = shape["BX"], shape["BY"]
            more = (address,) if name == "dedispersion" else ()
            launch(stream, LaunchConfig(grid=GRID, block=block), kernel, out, image, *more)
            stream.sync()
            counted = device.counts()[-1]
            assert counted.missing is None, counted.missing
            found[name].append(
                [block, counted.shared_bytes, counted.resources.registers, dict(counted.counts)]
            )
    return found


def delay_of_channels() -> Any:
    """Return the delays of some of 1,536 channels from 1,425 MHz on, for a dispersion measure of 1
    and samples of 40.96 microseconds."""
    frequencies = 1425.0 + 0.1953125 * np.arange(0, 1536, 1536 // CHANNELS)
    highest = 1425.0 + 0.1953125 * 1535
    return (4148.808 * (frequencies**-2 - highest**-2) / 0.00004096).astype(np.float32)
