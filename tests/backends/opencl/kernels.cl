/* Kernels of the tests: each does one thing that is easy to see from outside. */

__kernel void increment(__global int *a) {
    a[get_global_id(0)] += 1;
}

/* Two operations for each of `steps`, one after the other. */
__kernel void iterate(__global float *a, int steps) {
    size_t i = get_global_id(0);
    float x = a[i];
    for (int step = 0; step < steps; ++step) {
        x = 0.5f * x + 0.5f;
    }
    a[i] = x;
}

__kernel void reverse_groups(__global int *a, __local int *shared) {
    size_t i = get_global_id(0), local_i = get_local_id(0), last = get_local_size(0) - 1;
    shared[local_i] = a[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    a[i] = shared[last - local_i];
}

__kernel void store(__global double *a, uchar flag, int whole, float fraction) {
    a[0] = flag;
    a[1] = whole;
    a[2] = fraction;
}

__kernel void positions(__global int *a) {
    size_t x = get_global_id(0), y = get_global_id(1);
    a[y * get_global_size(0) + x] = 100 * get_group_id(1) + get_group_id(0);
}
