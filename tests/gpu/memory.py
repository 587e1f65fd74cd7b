#!/usr/bin/env python3
"""Tests allocations and objects in the real driver that the simulated driver does not model: virtual memory, other processes' memory,
arrays, and loaded code. The test's program prints the rows that the views `allocations` and `module_loads` must contain, and the test
compares the trace with these rows.

    memory.py --build build        exit status 0: success, 1: failure, 77: no GPU
"""
import argparse
import contextlib
import ctypes
import os
import sqlite3
import subprocess
import sys
import tempfile

NOT_SUPPORTED = 801
PTX = b".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing()\n{\n    ret;\n}\n"
word, number, size = ctypes.c_uint64, ctypes.c_int, ctypes.c_size_t


class Failed(Exception):
    pass


def driver():
    library = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        status = getattr(library, name)(*arguments)
        if status != 0:
            raise Failed(name, status)
    return call


def out(kind=word):
    value = kind()
    return value, ctypes.byref(value)


def held(kind, address, size_bytes, pool=0, freed=False):
    print("allocation", kind, address, size_bytes, pool, "freed" if freed else "held", flush=True)


def virtual_memory(cu):
    # A CUmemAllocationProp for pinned memory on device 0 that can be exported as a file descriptor.
    prop = (ctypes.c_uint32 * 8)(1, 1, 1, 0)
    granularity, at = out(size)
    cu("cuMemGetAllocationGranularity", at, prop, 0)
    piece = granularity.value
    memory, at_memory = out()
    cu("cuMemCreate", at_memory, size(2 * piece), prop, word(0))
    address, at_address = out()
    cu("cuMemAddressReserve", at_address, size(4 * piece), size(0), word(0), word(0))
    first, second = address.value, address.value + 2 * piece
    cu("cuMemMap", word(first), size(2 * piece), size(0), memory, word(0))
    cu("cuMemMap", word(second), size(2 * piece), size(0), memory, word(0))
    again, at_again = out()
    cu("cuMemRetainAllocationHandle", at_again, ctypes.c_void_p(first))
    if again.value != memory.value:
        raise Failed("cuMemRetainAllocationHandle gave another handle than cuMemCreate", 0)
    cu("cuMemRelease", memory)
    held("physical", memory.value, 2 * piece)  # one reference is left
    held("reserved", first, 4 * piece, freed=True)
    held("mapped", first, 2 * piece, memory.value, freed=True)
    held("mapped", second, 2 * piece, memory.value, freed=True)
    cu("cuMemUnmap", word(first), size(4 * piece))
    cu("cuMemAddressFree", word(first), size(4 * piece))


def arrays(cu):
    class Descriptor(ctypes.Structure):
        _fields_ = [("width", size), ("height", size), ("format", ctypes.c_uint), ("channels", ctypes.c_uint)]

    array, at = out()
    cu("cuArrayCreate_v2", at, ctypes.byref(Descriptor(64, 32, 0x20, 4)))
    held("array", array.value, 64 * 32 * 16, freed=True)
    cu("cuArrayDestroy", array)
    cu("cuArrayCreate_v2", at, ctypes.byref(Descriptor(16, 0, 0x01, 1)))
    held("array", array.value, 16)


def code(cu):
    module, at = out()
    cu("cuModuleLoadData", at, PTX)
    print("load module", module.value, len(PTX), flush=True)


def other_memory(cu):
    address, at = out()
    cu("cuMemAlloc_v2", at, size(8 << 20))
    held("device", address.value, 8 << 20)
    handle = ctypes.create_string_buffer(64)
    cu("cuIpcGetMemHandle", handle, address)
    sys.stdout.flush()
    subprocess.run([sys.executable, __file__, "--open", handle.raw.hex()], check=True)


class IpcHandle(ctypes.Structure):
    _fields_ = [("words", word * 8)]


def open_memory(cu, text):
    handle = IpcHandle.from_buffer_copy(bytes.fromhex(text))
    opened = []
    for _ in range(2):
        address, at = out()
        cu("cuIpcOpenMemHandle_v2", at, handle, 1)
        opened.append(address.value)
    cu("cuIpcCloseMemHandle", word(opened[0]))
    if opened[0] != opened[1]:
        raise Failed("a handle that is open already was opened elsewhere", 0)
    held("ipc", opened[0], "unknown")  # the driver reports no size; opened once more than closed


def run_program(handle):
    cu = driver()
    context, at = out()
    cu("cuInit", 0)
    cu("cuDevicePrimaryCtxRetain", at, 0)
    cu("cuCtxSetCurrent", context)
    if handle:
        open_memory(cu, handle)
        return
    for part in virtual_memory, arrays, code, other_memory:
        try:
            part(cu)
        except Failed as failed:
            if failed.args[1] != NOT_SUPPORTED:
                raise
            print("left out", part.__name__, *failed.args, flush=True)


def check(build, folder):
    database, session = f"{folder}/trace.db", f"memory{os.getpid()}"
    done = subprocess.run([f"{build}/tools/cudatrace", "run", "--db", database, "--session", session, "--",
                           sys.executable, __file__, "--program"], stdout=subprocess.PIPE, text=True, timeout=240)
    if done.returncode != 0:
        return [f"exit status {done.returncode}", done.stdout]
    printed = done.stdout.splitlines()
    print(done.stdout, end="")
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        rows = [" ".join(map(str, row)) for row in connection.execute(
            "SELECT 'allocation', kind, address, ifnull(bytes, 'unknown'), ifnull(pool, 0), iif(freed_ns IS NULL, 'held', 'freed') "
            "FROM allocations UNION ALL SELECT 'load', what, handle, bytes, '', '' FROM module_loads")]
    rows = {row.strip() for row in rows}
    wanted = {line for line in printed if line.startswith(("allocation", "load"))}
    wrong = [f"not in the trace: {line}" for line in sorted(wanted - rows)]
    wrong += [f"only in the trace: {row}" for row in sorted(rows - wanted)]
    return wrong + [line for line in printed if line.startswith("left out")]


def main():
    parser = argparse.ArgumentParser(description="Hold allocations of the real driver against what a program did.")
    parser.add_argument("--build", default="build")
    parser.add_argument("--program", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--open", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program or options.open:
        run_program(options.open)
        return 0
    if not os.path.exists("/dev/nvidiactl") and "CUDATRACE_SIMULATED" not in os.environ:
        print("skipped: no NVIDIA GPU: /dev/nvidiactl does not exist")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        wrong = check(os.path.abspath(options.build), folder)
    for line in wrong:
        print("wrong:", line)
    print("failed" if wrong else "passed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
