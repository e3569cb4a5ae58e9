"""A small project whose kernels are measured over a few commits."""
