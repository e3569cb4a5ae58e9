// Kernels in CUDA C++, the same text for CuPy and PyCUDA; the suite says what `real` is. CuPy asks for
// them by their names here, so they are extern "C".

extern "C" __global__ void vector_add(const real *a, real *b, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] += a[i];
}

// As surveys of Python's GPU libraries show PyCUDA: one block, an element for each of its threads.
extern "C" __global__ void multiply_them(real *dest, real *a, real *b) {
  const int i = threadIdx.x;
  dest[i] = a[i] * b[i];
}
