#!/usr/bin/env python3
"""The training script of docs/guide.md. It is slower than it should be, for a reason hidden in its code; --fixed avoids the mistake."""
import argparse
import time

import torch
from torch import nn

BATCH, SIZE, CLASSES = 128, 64, 100


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU(),
                                    nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels))

    def forward(self, images):
        return torch.relu(images + self.layers(images))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--fixed", action="store_true")
    arguments = parser.parse_args()
    device = torch.device("cuda")
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 64, 3, stride=2, padding=1), *(Block(64) for _ in range(6)), nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(64, CLASSES)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    images = torch.randn(BATCH, 3, SIZE, SIZE).pin_memory()
    labels = torch.randint(CLASSES, (BATCH,)).pin_memory()
    begun = None
    for step in range(arguments.steps):
        if step == 10:  # after the first steps, which load and select kernels
            torch.cuda.synchronize()
            begun = time.monotonic()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images.to(device, non_blocking=True)), labels.to(device, non_blocking=True))
        loss.backward()
        optimizer.step()
        if not arguments.fixed:
            torch.cuda.empty_cache()  # "saves memory"
    torch.cuda.synchronize()
    print(f"{(arguments.steps - 10) / (time.monotonic() - begun):.1f} steps a second, loss {loss.item():.4f}")


main()
