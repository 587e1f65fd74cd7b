"""A program for attach_programs.py that uses Triton's autotuning. Each step computes a matrix product of a new size. Triton tries each
configuration for as long as it needs to, compiling and loading a different kernel for each. All numbers are integers, so the product is the
same in every configuration, and the program compares it with the product that PyTorch computes."""
import torch
import triton
import triton.language as tl

INNER, WIDTH = 512, 256


def configurations():
    return [triton.Config({"ROWS": rows, "COLUMNS": columns, "DEPTH": 32}, num_warps=warps, num_stages=2)
            for rows, columns, warps in ((32, 32, 2), (64, 32, 4), (32, 64, 4), (64, 64, 4))]


@triton.autotune(configs=configurations(), key=["height"])
@triton.jit
def multiply(left, right, product, height, width, inner, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for begin in range(0, inner, DEPTH):
        across = begin + depth
        a = tl.load(left + row[:, None] * inner + across[None, :], mask=row[:, None] < height, other=0.0)
        b = tl.load(right + across[:, None] * width + column[None, :], mask=column[None, :] < width, other=0.0)
        total += tl.dot(a, b)
    tl.store(product + row[:, None] * width + column[None, :], total, mask=(row[:, None] < height) & (column[None, :] < width))


@triton.jit
def add(values, count, NUMBER: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(values + at, tl.load(values + at, mask=at < count) + NUMBER, mask=at < count)


class Triton:
    epoch_steps = 1

    def __init__(self, options):
        self.device = torch.device(options.device)
        self.right = self.whole_numbers(INNER, WIDTH)
        self.made = 0
        self.is_right = True

    def whole_numbers(self, height, width):
        """Returns a matrix of integers from -3 to 3. Sums of products of these numbers are exact in every precision that is used here."""
        made = torch.arange(height * width, device=self.device, dtype=torch.int32) * 5 % 7 - 3
        return made.reshape(height, width).to(torch.float16)

    def begin(self):
        self.is_right = True

    def step(self, at):
        self.made += 1
        height = 256 + 16 * self.made
        left = self.whole_numbers(height, INNER)
        product = torch.empty((height, WIDTH), device=self.device, dtype=torch.float32)
        multiply[lambda chosen: (triton.cdiv(height, chosen["ROWS"]), triton.cdiv(WIDTH, chosen["COLUMNS"]))](
            left, self.right, product, height, WIDTH, INNER)
        add[(triton.cdiv(height * WIDTH, 1024),)](product, height * WIDTH, NUMBER=self.made, BLOCK=1024)
        wanted = (left.double() @ self.right.double()).float() + self.made
        self.is_right = torch.equal(product, wanted)

    def result(self):
        return b"right" if self.is_right else b"wrong"

    def finish(self):
        torch.cuda.synchronize()

    def end(self):
        pass
