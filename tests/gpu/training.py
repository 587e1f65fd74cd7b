#!/usr/bin/env python3
"""A PyTorch training loop that does bit-identical work each time it runs on the same machine.

The script prints the last loss and a hash of the trained parameters, so that run.py can compare a traced run with an untraced one. Forked
DataLoader workers create the batches, and a separate thread pins their memory. Therefore, a tracer must handle children that have inherited
its state, and a second thread that makes CUDA calls. With --graph, the script captures a CUDA graph and replays it. With --compile, the
script compiles the model with torch.compile, so that Triton loads its own modules. With --ranges, each step and each of its phases is an
NVTX range. Under `cudatrace run`, the `ranges` and `calls` views must then contain 4 ranges for each step. The forward range must be inside
the step's range, and launches must be inside the forward range.
"""

import argparse
import contextlib
import hashlib
import os

# cuBLAS reads this variable when it is first used. Without the variable, two runs may differ.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch import nn

BATCH = 64
CLASSES = 10
REPLAYS = 50


class Batches(torch.utils.data.Dataset):
    """A data set whose batch number i depends only on i, and not on the worker that creates the batch."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        images = torch.randn(BATCH, 3, 32, 32, generator=generator)
        labels = torch.randint(CLASSES, (BATCH,), generator=generator)
        return images, labels


class Net(nn.Module):
    """A network without max pooling or interpolation, because these layers have no deterministic kernels for the backward pass."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=2, padding=1), nn.ReLU(),
        )
        self.head = nn.Linear(64, CLASSES)

    def forward(self, images):
        return self.head(self.layers(images).mean(dim=(2, 3)))


def digest(tensors):
    total = hashlib.sha256()
    for tensor in tensors:
        # Convert the tensor to a list rather than to an array, because PyTorch may be installed without NumPy.
        total.update(bytes(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).tolist()))
    return total.hexdigest()


@contextlib.contextmanager
def phase(name, ranges):
    if not ranges:
        yield
        return
    torch.cuda.nvtx.range_push(name)
    try:
        yield
    finally:
        torch.cuda.nvtx.range_pop()


def train(device, steps, workers, compiled, ranges):
    net = Net().to(device)
    model = torch.compile(net) if compiled else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    loader = torch.utils.data.DataLoader(
        Batches(steps), batch_size=None, num_workers=workers, pin_memory=device.type == "cuda",
        multiprocessing_context="fork" if workers else None)
    loss = None
    for number, (images, labels) in enumerate(loader):
        with phase(f"step {number}", ranges):
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            with phase("forward", ranges):
                loss = nn.functional.cross_entropy(model(images), labels)
            with phase("backward", ranges):
                loss.backward()
            with phase("optimizer", ranges):
                optimizer.step()
    print(f"training: steps={steps} loss={loss.item().hex()} parameters={digest(net.state_dict().values())}")


def replay_graph(device):
    weight = torch.randn(256, 256, device=device) / 16
    values = torch.randn(256, 256, device=device)

    def step():
        inner = values
        for _ in range(5):
            inner = torch.tanh(inner @ weight) + 0.25
        # Use mul(), because it runs a kernel, whereas copy_() would make a copy. The graph must contain only kernels.
        torch.mul(inner, 0.5, out=values)

    # Run some steps before the capture, so that cuBLAS creates its handle and workspace outside the capture.
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for _ in range(REPLAYS):
        graph.replay()
    torch.cuda.synchronize()
    print(f"graph: replays={REPLAYS} values={digest([values])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2, help="DataLoader processes")
    parser.add_argument("--graph", action="store_true", help="capture a CUDA graph too and replay it")
    parser.add_argument("--compile", action="store_true", help="train through torch.compile")
    parser.add_argument("--ranges", action="store_true", help="name each step and its phases through NVTX")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()

    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True, warn_only=True)

    device = torch.device(arguments.device)
    train(device, arguments.steps, arguments.workers, arguments.compile, arguments.ranges)
    if arguments.graph:
        replay_graph(device)


if __name__ == "__main__":
    main()
