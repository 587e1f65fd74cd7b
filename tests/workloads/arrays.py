"""Computes on the device with Debian's python3-pygpu (libgpuarray), and on the host with numpy. The script compares each result with
numpy's, and prints the result's sum. At the end, the script prints the number of bytes copied in each direction. tests/e2e/libgpuarray.py
runs it.

    arrays.py ROUNDS
"""
import sys

import numpy as np
import pygpu
from pygpu import gpuarray

SIZE = 10000
context, moved = pygpu.init("cuda0"), {"up": 0, "down": 0}


def up(values):
    moved["up"] += values.nbytes
    return gpuarray.array(values, context=context, cls=pygpu._array.ndgpuarray)


def same(what, on_device, wanted):
    got = np.asarray(on_device)
    moved["down"] += got.nbytes
    if got.dtype != wanted.dtype or not np.array_equal(got, wanted):
        sys.exit(f"{what}: {got} and not {wanted}")
    print(what, got.dtype, got.shape, float(got.astype("float64").sum()))


random = np.random.default_rng(1)
for _ in range(int(sys.argv[1])):
    a, b = (random.integers(-1000, 1000, SIZE).astype("float32") for _ in range(2))
    table = random.integers(0, 1 << 30, (30, 40), dtype="int32")
    x, y, rows = up(a), up(b), up(table)
    # Only copies and sets.
    same("round trip", x, a)
    same("slice", x[100:200], a[100:200])
    same("zeros", gpuarray.zeros((8, 16), dtype="int16", context=context), np.zeros((8, 16), "int16"))
    same("copy", x.copy(), a)
    # For the operations below, the library compiles kernels that depend on the expression, and on the strides of the arrays.
    same("sum", x + y, a + b)
    same("product", x * y, a * b)
    same("scaled", x * np.float32(3), a * np.float32(3))
    same("transposed", rows.T.copy(), table.T)
    same("columns", rows[:, ::2] + rows[:, 1::2], table[:, ::2] + table[:, 1::2])
    same("rows", rows.take1(up(np.array([3, 0, 29]))), table[[3, 0, 29]])
    same("as doubles", rows.astype("float64"), table.astype("float64"))
    x[:] = y
    same("written over", x, b)
# An operation that the device cannot perform must raise an error and leave the array unchanged.
try:
    y.sum()
    sys.exit("a reduction compiled, which wants what the simulated device has not")
except gpuarray.GpuArrayException as refused:
    print("refused:", "compile failure" in str(refused))
same("afterwards", y, b)
print("moved", moved["up"], moved["down"])
