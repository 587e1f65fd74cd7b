#!/usr/bin/env python3
"""A PyTorch training loop of many small kernels. Prints one line of JSON: the time of a step, as percentiles over blocks
of steps. The loop waits for the GPU only at the end of each block.

  layers       tiny layers, and an optimizer that steps each parameter separately. The GPU waits for the CPU, and a
               block's time is the time that the CPU takes to submit it, which is the worst case for a call tracer.
  transformer  twelve layers, as in real training. Whether the CPU or the GPU is faster depends on the machine.
  gpu_bound    the transformer with a four times larger batch. A block's time is the time that the GPU takes to execute it.
"""
import argparse
import contextlib
import gc
import json
import os
import sys
import time

MODELS = ("layers", "transformer", "gpu_bound")
LAYERS, WIDTH, BATCH, CLASSES = 6, 64, 32, 10


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="layers")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--warm-up", type=int, default=200)
    parser.add_argument("--block", type=int, default=10, help="steps between two waits for the GPU")
    parser.add_argument("--turns", action="store_true", help="make a block for each line of standard input, and print its time")
    parser.add_argument("--profiler", action="store_true", help="record the GPU's times with torch.profiler during the measured steps")
    parser.add_argument("--cpus", default="", help="processors to run on, as 12,13")
    parser.add_argument("--device", default="cuda")
    return parser.parse_args()


def percentile(ordered, part):
    return ordered[round((len(ordered) - 1) * part)]


def layers(torch, device):
    """Returns a function that performs one step and returns the loss."""
    nn = torch.nn
    parts = [part for _ in range(LAYERS) for part in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.Sequential(*parts, nn.Linear(WIDTH, CLASSES)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False)
    values = torch.randn(BATCH, WIDTH, device=device)
    labels = torch.randint(CLASSES, (BATCH,), device=device)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(values), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def transformer(torch, device, batch=16):
    """Returns a function that performs one step of a GPT-2-sized model, with PyTorch's defaults, in bfloat16 where PyTorch considers that
    safe."""
    nn, words, width, length = torch.nn, 50304, 768, 512
    layer = nn.TransformerEncoderLayer(width, 12, 4 * width, batch_first=True, norm_first=True)
    model = nn.Sequential(nn.Embedding(words, width), nn.TransformerEncoder(layer, 12, enable_nested_tensor=False),
                          nn.Linear(width, words)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    values = torch.randint(words, (batch, length), device=device)
    labels = torch.randint(words, (batch * length,), device=device)

    def step():
        optimizer.zero_grad()
        with torch.autocast(device.type, torch.bfloat16):
            loss = nn.functional.cross_entropy(model(values).flatten(0, 1), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def gpu_bound(torch, device):
    return transformer(torch, device, batch=64)


def kernel_times(torch, profiler):
    """Returns how many kernels the profiler recorded, and the sum of their times."""
    work = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    kernels = [event for event in work if not event.name.startswith(("Memcpy", "Memset"))]
    return {"kernels": len(kernels), "kernel_ms": sum(event.time_range.elapsed_us() for event in kernels) / 1000}


def main():
    arguments = parse_arguments()
    if arguments.cpus:
        # Set the allowed processors before PyTorch starts any thread.
        os.sched_setaffinity(0, {int(cpu) for cpu in arguments.cpus.split(",")})
    import torch

    torch.manual_seed(1)
    torch.set_num_threads(1)
    device = torch.device(arguments.device)
    wait = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
    step = {"layers": layers, "transformer": transformer, "gpu_bound": gpu_bound}[arguments.model](torch, device)
    for _ in range(arguments.warm_up):
        step()
    wait()
    # Disable garbage collection, because a collection would prolong only some of the blocks.
    gc.collect()
    gc.disable()

    def make_block():
        """Returns (milliseconds per step, loss of the last step)."""
        start_ns = time.perf_counter_ns()
        for _ in range(arguments.block):
            loss = step()
        wait()
        return (time.perf_counter_ns() - start_ns) / 1e6 / arguments.block, loss

    if arguments.turns:
        print("ready", flush=True)
        for _ in sys.stdin:
            print(make_block()[0], flush=True)
        return
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) if arguments.profiler else contextlib.nullcontext()
    with profiler:
        blocks = [make_block() for _ in range(arguments.steps // arguments.block)]
    kernels = kernel_times(torch, profiler) if arguments.profiler else {}
    blocks_ms, loss = sorted(ms for ms, _ in blocks), blocks[-1][1]
    print(json.dumps({
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "none, PyTorch on the processor",
        "torch": torch.__version__, "steps": len(blocks_ms) * arguments.block, "all_steps": arguments.warm_up + arguments.steps,
        "p10_ms": percentile(blocks_ms, 0.1), "p50_ms": percentile(blocks_ms, 0.5), "p90_ms": percentile(blocks_ms, 0.9),
        "loss": float(loss.detach()), **kernels}))


if __name__ == "__main__":
    main()
