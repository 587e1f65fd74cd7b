#!/usr/bin/env python3
"""The programs that attach.py attaches to. Each program repeats the same work in every epoch, and compares each result bit by bit with an
untraced epoch's result. A program prints `ready EPOCH` (steps of an epoch). Then it executes the commands on standard input, and answers
each with a line that begins with `done`:

    steps N         makes N steps, and waits for the GPU
    run             makes steps until the next line, prints `at N` now and then, and answers that line
    snapshot FILE   writes the counts of CUPTI, or of the simulated driver, up to now
    slots FILE      writes {function: {"slot": the value in the driver's table of entry points, null if it has no slot,
                    "code": the function's first bytes}}
    block           makes GPU work that waits until the end of the next `run`
    result FILE     writes the number of epochs, the epochs that differed, and when each step of `run` began and ended
    profile FILE    makes an epoch's steps under torch.profiler, and writes how many kernels the profiler saw
    quit            ends

The output of libraries is redirected to standard error.
"""
import argparse
import array
import ctypes
import gc
import hashlib
import json
import os
import pathlib
import re
import select
import struct
import sys
import time
from concurrent import futures

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
SAY_EACH_STEPS = 10
# The reference for other epochs. The reference epoch is not the first, because libraries choose their kernels during the first epoch.
REFERENCE_EPOCH = 1


# ---- the programs ----


class Torch:
    """Trains the net of training.py. Each epoch starts from the same parameters and uses the same batches."""

    epoch_steps = 40
    batches = 8
    flag = None

    def __init__(self, options):
        import training
        self.torch = torch = training.torch
        torch.manual_seed(1)
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        torch.use_deterministic_algorithms(True, warn_only=True)
        self.device = torch.device(options.device)
        self.net = training.Net().to(self.device)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        self.loss = training.nn.functional.cross_entropy
        made = training.Batches(self.batches)
        pin = (lambda tensor: tensor.pin_memory()) if self.device.type == "cuda" else (lambda tensor: tensor)
        self.data = [tuple(pin(tensor) for tensor in made[i]) for i in range(self.batches)]
        self.initial = [tensor.detach().clone() for tensor in self.net.state_dict().values()]

    def begin(self):
        with self.torch.no_grad():
            for tensor, initial in zip(self.net.state_dict().values(), self.initial):
                tensor.copy_(initial)
            for state in self.optimizer.state.values():
                state["momentum_buffer"].zero_()

    def step(self, at):
        images, labels = (tensor.to(self.device, non_blocking=True) for tensor in self.data[at % self.batches])
        self.optimizer.zero_grad()
        self.loss(self.net(images), labels).backward()
        self.optimizer.step()

    def result(self):
        parts = [tensor.detach().reshape(-1).view(self.torch.uint8) for tensor in self.net.state_dict().values() if tensor.dim()]
        return self.torch.cat(parts).cpu().numpy().tobytes()

    def finish(self):
        if self.flag is not None:
            self.stream_value("cuStreamWriteValue32_v2")
            self.flag = None
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def block(self):
        """Makes GPU work that waits until finish() makes other work."""
        self.flag = self.torch.zeros(16, dtype=self.torch.int32, device=self.device)
        self.torch.cuda.synchronize()
        self.stream_value("cuStreamWaitValue32_v2")

    def stream_value(self, function):
        """Calls a function that makes a new stream write 1 to the flag, or wait for it."""
        stream = ctypes.c_void_p(self.torch.cuda.Stream().cuda_stream)
        result = getattr(ctypes.CDLL("libcuda.so.1"), function)(stream, ctypes.c_uint64(self.flag.data_ptr()), ctypes.c_uint32(1), 0)
        if result:
            raise RuntimeError(f"{function} returned {result}")

    def end(self):
        pass


class Graph(Torch):
    """The same training, with each step as a captured CUDA graph."""

    def __init__(self, options):
        super().__init__(options)
        self.inputs = tuple(tensor.to(self.device) for tensor in self.data[0])
        side = self.torch.cuda.Stream()
        side.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(side):  # libraries make their handles and workspaces outside of the capture
            for _ in range(3):
                self.train()
        self.torch.cuda.current_stream().wait_stream(side)
        self.graph = self.torch.cuda.CUDAGraph()
        self.optimizer.zero_grad()
        with self.torch.cuda.graph(self.graph):
            self.train()

    def train(self):
        images, labels = self.inputs
        self.optimizer.zero_grad()
        self.loss(self.net(images), labels).backward()
        self.optimizer.step()

    def step(self, at):
        for mine, given in zip(self.inputs, self.data[at % self.batches]):
            mine.copy_(given, non_blocking=True)
        self.graph.replay()


class Jax:
    """Gradient descent on a two-layer network, compiled by XLA. The network has only matrix products and elementwise operations."""

    epoch_steps = 20

    def __init__(self, options):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax
        self.jax = jax
        key = jax.random.split(jax.random.PRNGKey(1), 4)
        self.initial = tuple(jax.random.normal(key[i], (512, 512), dtype="float32") / 32 for i in range(2))
        self.data = tuple(jax.random.normal(key[i], (256, 512), dtype="float32") for i in (2, 3))

        @jax.jit
        def descend(first, second, inputs, wanted):
            inner = jax.numpy.tanh(inputs @ first)
            error = inner @ second - wanted
            before = (error @ second.T) * (1 - inner * inner)
            return first - 1e-4 * (inputs.T @ before), second - 1e-4 * (inner.T @ error)

        self.descend = descend
        self.state = self.initial

    def begin(self):
        self.state = self.initial

    def step(self, at):
        self.state = self.descend(*self.state, *self.data)

    def result(self):
        import numpy
        return b"".join(numpy.asarray(part).tobytes() for part in self.state)

    def finish(self):
        self.jax.block_until_ready(self.state)

    def end(self):
        pass


class Nccl:
    """Sums the data of several processes, which each use a separate GPU. All numbers are integers, so the sums are exact."""

    epoch_steps = 20

    def __init__(self, options):
        # Multicast over NVLink can make all of the host's GPUs unusable.
        os.environ.update(NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1", NVSHMEM_DISABLE_NVLS="1")
        import torch
        import torch.distributed as distributed
        self.torch, self.distributed, self.rank, self.ranks = torch, distributed, options.rank, options.ranks
        self.device = torch.device(options.device, options.rank) if options.device == "cuda" else torch.device(options.device)
        if options.device == "cuda":
            torch.cuda.set_device(self.device)
        distributed.init_process_group("nccl" if options.device == "cuda" else "gloo", init_method=f"file://{options.meet}",
                                       rank=self.rank, world_size=self.ranks)
        self.own = torch.arange(1 << 18, device=self.device, dtype=torch.float32) % 97 * (self.rank + 1)
        self.sum = torch.zeros_like(self.own)
        self.all = [torch.zeros_like(self.own) for _ in range(self.ranks)]

    def begin(self):
        self.sum.zero_()

    def step(self, at):
        mine = self.own + at
        self.distributed.all_gather(self.all, mine)
        self.distributed.all_reduce(mine)
        self.sum.add_(mine).sub_(self.all[at % self.ranks])

    def result(self):
        return self.sum.cpu().numpy().tobytes()

    def finish(self):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def end(self):
        self.distributed.destroy_process_group()


class Simulated:
    """Replaces any of the other programs on a machine without a GPU. This program calls the simulated driver, and makes half of its calls
    in a second thread."""

    epoch_steps = 20
    numbers = 256

    def __init__(self, options):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.context, self.module, self.fill, self.stream = (ctypes.c_void_p() for _ in range(4))
        self.buffer, self.host, self.total = ctypes.c_uint64(), (ctypes.c_uint32 * self.numbers)(), hashlib.sha256()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuModuleLoadData", ctypes.byref(self.module), b"image")
        self.call("cuModuleGetFunction", ctypes.byref(self.fill), self.module, b"fill_u32")
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.call("cuMemAlloc_v2", ctypes.byref(self.buffer), ctypes.c_size_t(4 * self.numbers))
        self.other = futures.ThreadPoolExecutor(1)
        self.other.submit(self.call, "cuCtxSetCurrent", self.context).result()

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} returned {status}")

    def begin(self):
        self.total = hashlib.sha256()

    def launch(self, function, value):
        parameters = (self.buffer, ctypes.c_uint32(value), ctypes.c_uint32(self.numbers))
        pointers = (ctypes.c_void_p * 3)(*(ctypes.addressof(part) for part in parameters))
        self.call("cuLaunchKernel", function, 1, 1, 1, self.numbers, 1, 1, 0, self.stream, pointers, None)

    def step(self, at):
        device = ctypes.c_int()
        self.call("cuCtxGetDevice", ctypes.byref(device))
        self.launch(self.fill, at)
        self.other.submit(self.copy).result()
        # This kernel is loaded while the hook is attached, so the hook learns its name.
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), b"image")
        self.call("cuModuleGetFunction", ctypes.byref(function), module, f"kernel_{at}".encode())
        self.launch(function, at)
        self.call("cuStreamSynchronize", self.stream)
        self.call("cuModuleUnload", module)

    def copy(self):
        self.call("cuMemcpyDtoHAsync_v2", self.host, self.buffer, ctypes.c_size_t(4 * self.numbers), self.stream)
        self.call("cuStreamSynchronize", self.stream)
        self.total.update(bytes(self.host))

    def result(self):
        return self.total.digest()

    def finish(self):
        self.call("cuCtxSynchronize")

    def end(self):
        self.other.shutdown()


def make_triton(options):
    import attach_triton
    return attach_triton.Triton(options)


PROGRAMS = {"torch": Torch, "load": Torch, "handover": Torch, "recordings": Torch, "graphs": Graph, "whole-graphs": Graph, "waiting": Torch,
            "triton": make_triton, "jax": Jax, "nccl": Nccl}


# ---- the driver's slots and CUPTI's counts ----


class Slots:
    """Finds the slots of the driver's exported functions by examining their code, as described in proto/slot_shape.h."""

    BEGIN = re.compile(rb"(\x55\x48\x89\xe5\x41\x54\x48\x83\xec\x08)?\x81\x3d....\x00\xba\x1c\x32(?:\x74.|\x0f\x84....)", re.DOTALL)
    CODE_BYTES, JUMP_BYTES = 96, 5

    def __init__(self):
        driver = ctypes.CDLL("libcuda.so.1")
        names = re.findall(r"^ROW\((\w+),", (SOURCE / "proto/driver_api.def").read_text(), re.MULTILINE)
        self.exports = {name: ctypes.cast(getattr(driver, name), ctypes.c_void_p).value for name in names if hasattr(driver, name)}
        # Names such as cudbgMain belong to the debugger interface, and the hook does not treat them as driver functions.
        self.slots = {name: self.find(at) if re.match("cu[A-Z]", name) else None for name, at in self.exports.items()}

    def find(self, at):
        code = ctypes.string_at(at, self.CODE_BYTES)
        begin = self.BEGIN.match(code)
        through = code.find(b"\xff\x15" if begin[1] else b"\xff\x25", begin.end()) if begin else -1
        return None if through < 0 else at + through + 6 + struct.unpack_from("<i", code, through + 2)[0]

    def read(self):
        return {name: {"slot": self.slots[name] and ctypes.c_uint64.from_address(self.slots[name]).value,
                       "code": ctypes.string_at(at, self.JUMP_BYTES).hex()} for name, at in self.exports.items()}


def write_simulated_counts(path):
    """Writes the simulated driver's counts in the format of cupti_truth.c."""
    sys.path.insert(0, str(SOURCE / "tests/simcuda"))
    import counts
    with open(path, "w", encoding="ascii") as file:
        for pid, _, functions in counts.read_counts(os.environ["SIMCUDA_COUNTS"]):
            for name, (entered, _) in functions.items() if pid == os.getpid() else ():
                print("call", name, entered, sep="\t", file=file)
        print("end", file=file)


def write_snapshot(path):
    if "SIMCUDA_COUNTS" in os.environ:
        write_simulated_counts(path)
        return
    # The driver has already loaded this library, so CDLL() returns the loaded copy.
    truth = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
    if truth.cupti_truth_snapshot(os.fsencode(path)):
        raise RuntimeError(f"CUPTI's counts could not be written to {path}")


# ---- commands ----


class Runner:
    def __init__(self, program, answers):
        self.program, self.answers, self.slots = program, answers, Slots()
        self.made, self.reference, self.differing = 0, None, []
        self.began_ns, self.ended_ns, self.first_of_run = array.array("q"), array.array("q"), 0

    def say(self, *words):
        print(*words, file=self.answers, flush=True)

    def step(self):
        epoch, at = divmod(self.made, self.program.epoch_steps)
        if at == 0:
            self.program.begin()
        self.program.step(at)
        self.made += 1
        if self.made % self.program.epoch_steps == 0:
            self.compare(epoch, hashlib.sha256(self.program.result()).hexdigest())

    def compare(self, epoch, result):
        if epoch == REFERENCE_EPOCH:
            self.reference = result
        elif epoch > REFERENCE_EPOCH and result != self.reference:
            self.differing.append(epoch)

    def steps(self, count):
        for _ in range(int(count)):
            self.step()
        self.program.finish()
        self.say("done", self.made)

    def run(self):
        self.first_of_run = self.made
        while not select.select([sys.stdin], [], [], 0)[0]:
            begun = time.monotonic_ns()
            self.step()
            self.ended_ns.append(time.monotonic_ns())
            self.began_ns.append(begun)
            if self.made % SAY_EACH_STEPS == 0:
                self.say("at", self.made)
        sys.stdin.readline()
        self.program.finish()
        self.say("done", self.made)

    def block(self):
        self.program.block()
        self.say("done")

    def write(self, path, what):
        pathlib.Path(path).write_text(json.dumps(what))
        self.say("done")

    def snapshot(self, path):
        write_snapshot(path)
        self.say("done")

    def result(self, path):
        self.write(path, {"steps": self.made, "epochs": self.made // self.program.epoch_steps, "differing": self.differing,
                          "epoch_steps": self.program.epoch_steps, "first_of_run": self.first_of_run,
                          "began_ns": list(self.began_ns), "ended_ns": list(self.ended_ns)})

    def profile(self, path):
        from torch import autograd, profiler
        with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as profile:
            for _ in range(self.program.epoch_steps):
                self.step()
            self.program.finish()
        self.write(path, {"kernels": sum(event.device_type == autograd.DeviceType.CUDA for event in profile.events())})

    def serve(self):
        # Garbage collection would cause pauses during steps.
        gc.collect()
        gc.freeze()
        gc.disable()
        self.say("ready", self.program.epoch_steps)
        for line in iter(sys.stdin.readline, ""):
            command, *arguments = line.split()
            if command == "quit":
                break
            if command == "slots":
                self.write(arguments[0], self.slots.read())
            else:
                {"steps": self.steps, "run": self.run, "snapshot": self.snapshot, "result": self.result, "profile": self.profile,
                 "block": self.block}[command](*arguments)
        self.program.end()
        self.say("done")


def main():
    parser = argparse.ArgumentParser(description="A program that attach.py attaches to.")
    parser.add_argument("name", choices=PROGRAMS)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--meet", help="the file by which ranks find one another")
    parser.add_argument("--simulated", action="store_true", help="calls of the simulated driver in place of what it does")
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    make = Simulated if options.simulated else PROGRAMS[options.name]
    Runner(make(options), answers).serve()


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
