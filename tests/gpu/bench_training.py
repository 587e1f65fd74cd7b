#!/usr/bin/env python3
"""A PyTorch training loop that is bound by launches: tiny layers, and an optimizer that steps each parameter by
itself. Prints one line of JSON: the time of a step, as percentiles over blocks of steps.

The GPU is waited for at the end of each block alone, so a block's time is what the processor needs to submit it.
"""
import argparse
import gc
import json
import os
import time

LAYERS = 6
WIDTH = 64
BATCH = 32
CLASSES = 10


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--warm-up", type=int, default=200)
    parser.add_argument("--block", type=int, default=10, help="steps between two waits for the GPU")
    parser.add_argument("--cpus", default="", help="processors to run on, as 12,13")
    parser.add_argument("--device", default="cuda")
    return parser.parse_args()


def percentile(ordered, part):
    return ordered[round((len(ordered) - 1) * part)]


def main():
    arguments = parse_arguments()
    if arguments.cpus:
        # Before PyTorch starts a thread.
        os.sched_setaffinity(0, {int(cpu) for cpu in arguments.cpus.split(",")})
    import torch
    from torch import nn

    torch.manual_seed(1)
    torch.set_num_threads(1)
    device = torch.device(arguments.device)
    wait = torch.cuda.synchronize if device.type == "cuda" else (lambda: None)
    layers = [part for _ in range(LAYERS) for part in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(WIDTH, CLASSES)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=False)
    values = torch.randn(BATCH, WIDTH, device=device)
    labels = torch.randint(CLASSES, (BATCH,), device=device)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(values), labels)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(arguments.warm_up):
        step()
    wait()
    # A collection of garbage would fall into some blocks and not into others.
    gc.collect()
    gc.disable()
    blocks_ms = []
    for _ in range(arguments.steps // arguments.block):
        start_ns = time.perf_counter_ns()
        for _ in range(arguments.block):
            loss = step()
        wait()
        blocks_ms.append((time.perf_counter_ns() - start_ns) / 1e6 / arguments.block)
    blocks_ms.sort()
    print(json.dumps({
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "none, PyTorch on the processor",
        "torch": torch.__version__, "steps": len(blocks_ms) * arguments.block, "all_steps": arguments.warm_up + arguments.steps,
        "p10_ms": percentile(blocks_ms, 0.1), "p50_ms": percentile(blocks_ms, 0.5), "p90_ms": percentile(blocks_ms, 0.9),
        "loss": float(loss)}))


if __name__ == "__main__":
    main()
