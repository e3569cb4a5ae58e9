/* b[i] += a[i] for vectors of `real`, a constant of the build. */
__kernel void vector_add(__global const real *a, __global real *b, int n) {
    size_t i = get_global_id(0);
    if (i < n) {
        b[i] += a[i];
    }
}

/* Wrong on purpose: the last element stays as it was. */
__kernel void vector_add_without_the_last(__global const real *a, __global real *b, int n) {
    size_t i = get_global_id(0);
    if (i < n - 1) {
        b[i] += a[i];
    }
}
