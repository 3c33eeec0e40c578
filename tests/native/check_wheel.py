"""Whether an installed wheel carries its kernels; run by cibuildwheel."""

from crisptree import native

assert native.router is not None, "the kernel that routes rows was not built"
assert native.training is not None, "the kernels of training were not built"
print("the kernels are there")
