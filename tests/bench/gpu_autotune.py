#!/usr/bin/env python3
"""Runs Triton's autotuner in its typical use: the autotuner chooses among several configurations of a kernel, for problem sizes that it has
not seen yet. It times each configuration at full speed, with launches between pairs of events, and zeroes a buffer before each launch.
Prints one line of JSON with the duration of one tuning. Most of the calls are events, memsets and launches."""
import argparse
import json
import statistics
import time

import torch
import triton
import triton.language as tl

WIDTHS = (128, 256, 512, 1024)
WARPS = (2, 4)


@triton.autotune([triton.Config({"WIDTH": width}, num_warps=warps) for width in WIDTHS for warps in WARPS], key=["count"])
@triton.jit
def add(left, right, out, count, WIDTH: tl.constexpr):
    at = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    inside = at < count
    tl.store(out + at, tl.load(left + at, mask=inside) + tl.load(right + at, mask=inside), mask=inside)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10, help="sizes to tune for")
    parser.add_argument("--warm-up", type=int, default=1)
    arguments = parser.parse_args()
    steps_ms = []
    for step in range(arguments.warm_up + arguments.steps):
        count = (1 << 14) + step
        left, right = (torch.rand(count, device="cuda") for _ in range(2))
        out = torch.empty_like(left)
        start_ns = time.perf_counter_ns()
        add[lambda meta, count=count: (triton.cdiv(count, meta["WIDTH"]),)](left, right, out, count)
        torch.cuda.synchronize()
        steps_ms.append((time.perf_counter_ns() - start_ns) / 1e6)
        if not torch.equal(out, left + right):
            raise SystemExit("autotune: a wrong sum")
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__,
                      "steps": arguments.steps, "all_steps": arguments.warm_up + arguments.steps,
                      "p50_ms": statistics.median(steps_ms[arguments.warm_up:])}))


if __name__ == "__main__":
    main()
