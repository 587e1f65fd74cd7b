#!/usr/bin/env python3
"""Small programs that use Triton, CuPy or JAX, and do identical work each time they run on the same machine.

    frameworks.py triton|cupy|jax

Each program prints one line with a hash or sum of its results, so that run.py can compare a traced run with an untraced one. No choice
depends on measured times: Triton does not try several configurations, and JAX's autotuning is turned off. Otherwise, two runs might use
different kernels.
"""
import hashlib
import os
import sys

STEPS = 100


def run_triton():
    import torch
    import attach_triton

    program = attach_triton.Triton(type("Options", (), {"device": "cuda"}))
    values = program.whole_numbers(512, 1024).float()
    for step in range(STEPS):
        attach_triton.add[(values.numel() // 1024,)](values, values.numel(), NUMBER=step % 5, BLOCK=1024)
        attach_triton.add[(values.numel() // 256,)](values, values.numel(), NUMBER=-step % 3, BLOCK=256)
    product = torch.empty((512, attach_triton.WIDTH), device="cuda", dtype=torch.float32)
    multiply = attach_triton.multiply.fn  # without its autotuning
    for rows in (32, 64):
        for _ in range(STEPS):
            multiply[(512 // rows, attach_triton.WIDTH // 32)](
                program.whole_numbers(512, attach_triton.INNER), program.right, product, 512, attach_triton.WIDTH, attach_triton.INNER,
                ROWS=rows, COLUMNS=32, DEPTH=32, num_warps=4, num_stages=2)
    return repr((values.double().sum().item(), product.double().sum().item()))


def run_cupy():
    import cupy

    scale = cupy.RawKernel("""extern "C" __global__ void scale(float *values, float factor, int count)
                              { int i = blockDim.x * blockIdx.x + threadIdx.x; if (i < count) values[i] *= factor; }""", "scale")
    smooth = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = 0.5f * x + 0.25f * y", "smooth")
    values = cupy.arange(1 << 16, dtype=cupy.float32) % 97
    square = values.reshape(256, 256)
    for _ in range(STEPS):
        scale((256,), (256,), (values, cupy.float32(0.5), values.size))
        square[:] = smooth(square, square.T)
        values += cupy.sqrt(cupy.abs(values)).max()
        cupy.asnumpy(values[:16])
    return hashlib.sha256(cupy.asnumpy(values).tobytes()).hexdigest()


def run_jax():
    os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0 --xla_gpu_deterministic_ops=true"
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(weights, values, labels):
        loss, slope = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(values @ w) - labels) ** 2))(weights)
        return weights - 0.1 * slope, loss

    values = (jnp.arange(256 * 64) % 13 - 6).reshape(256, 64) / 8
    labels = (jnp.arange(256 * 32) % 7 - 3).reshape(256, 32) / 4
    weights = jnp.zeros((64, 32))
    for _ in range(STEPS):
        weights, loss = step(weights, values, labels)
    return f"{float(loss).hex()} {hashlib.sha256(memoryview(jax.device_get(weights)).tobytes()).hexdigest()}"


PROGRAMS = {"triton": run_triton, "cupy": run_cupy, "jax": run_jax}


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in PROGRAMS:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(PROGRAMS)}")
    print(f"{sys.argv[1]}: {PROGRAMS[sys.argv[1]]()}")


if __name__ == "__main__":
    main()
