#!/usr/bin/env python3
"""Records a program whose GPU work has known times on a real GPU, with `cudatrace run --gpu`.

The program runs kernels that spin for a given time by the GPU's timer, and sleeps between the kernels. It also waits in a driver call while
the GPU is idle, and makes copies while a kernel is running. It prints its own measurements. The times in the trace and in the report may
differ from these measurements by at most 5 %.

    known_job.py --build build        exit status 0: success, 1: failure, 77: no GPU
"""
import argparse
import contextlib
import ctypes
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time

import compare

WITHIN = 0.05
TIMES = 5
KERNELS_MS = (1, 10, 100)
SLEEPS_MS = (20, 50, 100)
CALL_MS = 40       # a host function runs so long, while the program waits for it in a driver call
COPIES = 4
COPY_BYTES = 64 << 20
OVERLAP_MS = 200   # the kernel during the copies
LIMIT_S = 240

# There is a separate kernel for each duration, so that the duration can be recognized by the kernel's name.
BODY = """
.visible .entry spin_%d(.param .u64 ns) {
    .reg .u64 %%t<5>;
    .reg .pred %%p;
    ld.param.u64 %%t1, [ns];
    mov.u64 %%t2, %%globaltimer;
    add.u64 %%t3, %%t2, %%t1;
again:
    mov.u64 %%t4, %%globaltimer;
    setp.lt.u64 %%p, %%t4, %%t3;
    @%%p bra again;
    ret;
}
"""
HEAD = ".version 6.0\n.target sm_50\n.address_size 64\n"


# ---- the program ----


class Driver:
    """Calls functions of the driver by name. Raises an exception if a function fails. Has a kernel for each duration."""

    def __init__(self, durations_ms=(*KERNELS_MS, OVERLAP_MS)):
        self.functions = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context := ctypes.c_void_p()), 0)
        self("cuCtxSetCurrent", context)
        self("cuModuleLoadData", ctypes.byref(module := ctypes.c_void_p()), (HEAD + "".join(BODY % ms for ms in durations_ms)).encode())
        self.kernels = {ms: self.made("cuModuleGetFunction", module, f"spin_{ms}".encode()) for ms in durations_ms}

    def __call__(self, name, *arguments):
        status = getattr(self.functions, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name} returned {status}")

    def made(self, name, *arguments):
        """Calls a function that creates an object, and returns the object's handle."""
        handle = ctypes.c_void_p()
        self(name, ctypes.byref(handle), *arguments)
        return handle

    def launch(self, ms, stream):
        duration = ctypes.c_uint64(ms * 1_000_000)
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(duration))
        self("cuLaunchKernel", self.kernels[ms], 1, 1, 1, 1, 1, 1, 0, stream, parameters, None)


def run_program():
    """Runs the kernels, sleeps, waits and copies. Prints the measured times as a line of JSON."""
    cu = Driver()
    stream, other = cu.made("cuStreamCreate", 1), cu.made("cuStreamCreate", 1)
    gaps = []
    cu.launch(1, stream)  # the first launch loads the kernels
    cu("cuStreamSynchronize", stream)
    for _ in range(TIMES):
        for kernel_ms, sleep_ms in zip(KERNELS_MS, SLEEPS_MS):
            begun = time.monotonic_ns()
            time.sleep(sleep_ms / 1000)
            gaps.append({"begun_ns": begun, "ns": time.monotonic_ns() - begun, "state": "outside"})
            cu.launch(kernel_ms, stream)
            cu("cuStreamSynchronize", stream)

    slept = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def host_function(_):
        begun = time.monotonic_ns()
        time.sleep(CALL_MS / 1000)
        slept.append({"begun_ns": begun, "ns": time.monotonic_ns() - begun, "state": "wait"})

    for _ in range(TIMES):
        cu("cuLaunchHostFunc", stream, host_function, None)
        cu("cuStreamSynchronize", stream)
        cu.launch(1, stream)
        cu("cuStreamSynchronize", stream)

    host, device = cu.made("cuMemAllocHost_v2", ctypes.c_size_t(COPY_BYTES)), ctypes.c_uint64()
    cu("cuMemAlloc_v2", ctypes.byref(device), ctypes.c_size_t(COPY_BYTES))
    before, after = cu.made("cuEventCreate", 0), cu.made("cuEventCreate", 0)
    copies_ms = ctypes.c_float()
    cu.launch(OVERLAP_MS, stream)
    cu("cuEventRecord", before, other)
    for _ in range(COPIES):
        cu("cuMemcpyHtoDAsync_v2", device, host, ctypes.c_size_t(COPY_BYTES), other)
    cu("cuEventRecord", after, other)
    cu("cuCtxSynchronize")
    cu("cuEventElapsedTime", ctypes.byref(copies_ms), before, after)
    cu("cuMemcpyHtoDAsync_v2", device, host, ctypes.c_size_t(COPY_BYTES), other)  # beside no kernel
    cu("cuCtxSynchronize")
    print(json.dumps({"gaps": gaps + slept, "copies_ms": copies_ms.value}))


# ---- the comparison ----


def near(value, wanted):
    return value is not None and abs(value - wanted) <= WITHIN * wanted


def check_kernels(report, database):
    report.begin("kernels")
    for ms in (*KERNELS_MS, OVERLAP_MS):
        rows = [ns / 1e6 for ns, in database.execute(
            "SELECT gpu_end_ns - gpu_start_ns FROM gpu_work WHERE kernel = ? ORDER BY gpu_start_ns", (f"spin_{ms}",))]
        wanted = {1: TIMES * 2 + 1, OVERLAP_MS: 1}.get(ms, TIMES)
        report.check(len(rows) == wanted and all(near(row, ms) for row in rows),
                     f"{wanted} kernels of {ms} ms: {min(rows, default=0):.3f} to {max(rows, default=0):.3f} ms", [repr(rows)])
    orphans = database.execute("SELECT count(*) FROM gpu_work LEFT JOIN calls USING (call_id) WHERE calls.call_id IS NULL").fetchone()[0]
    report.check(orphans == 0, f"{orphans} pieces of work without a call")


def check_gaps(report, database, gaps):
    """Compares each gap in the trace with the sleep that caused it. Identifies the gap by the midpoint of the sleep, which is possible
    because the program and the trace both use CLOCK_MONOTONIC."""
    report.begin("gaps")
    for state, call in ("outside", None), ("wait", "cuStreamSynchronize"):
        mine = [gap for gap in gaps if gap["state"] == state]
        found = [database.execute("SELECT duration_ns, host_state, host_call FROM gpu_idle WHERE ? BETWEEN from_ns AND to_ns",
                                  (gap["begun_ns"] + gap["ns"] // 2,)).fetchone() or (None, None, None) for gap in mine]
        ratios = [row[0] / gap["ns"] for row, gap in zip(found, mine) if row[0]]
        wrong = [f"{gap} is {row}" for row, gap in zip(found, mine) if not near(row[0], gap["ns"]) or row[2] != call]
        if state == "outside":
            wrong += [f"{gap} is {row}" for row, gap in zip(found, mine) if row[1] != "outside"]
        report.check(mine and not wrong, f"{len(mine)} gaps with the host {'in ' + call if call else 'outside of the driver'}: "
                     f"{min(ratios, default=0):.4f} to {max(ratios, default=0):.4f} of the program's time", wrong)


def check_report(report, build, path, printed):
    report.begin("report")
    done = subprocess.run([f"{build}/tools/cudatrace", "report", "--db", path, "--format", "json", "gpu", "work", "idle"],
                          stdout=subprocess.PIPE, text=True, check=False)
    if not report.check(done.returncode == 0, "the report's exit status is 0"):
        return
    sections = json.loads(done.stdout)
    gpu, work, idle = sections["gpu"], sections["work"], sections["idle"]
    overlap, copies_ms = gpu[0]["overlap_ms"], printed["copies_ms"]
    report.check(near(overlap, copies_ms), f"overlap of {overlap:.3f} ms, and {copies_ms:.3f} ms by the program's events")
    for ms in KERNELS_MS[1:]:
        total = sum(row["gpu_ms"] for row in work if row["work"] == f"spin_{ms}")
        report.check(near(total, TIMES * ms), f"{total:.3f} ms in spin_{ms}, of {TIMES * ms}")
    for during, state in ("(outside of the driver)", "outside"), ("cuStreamSynchronize", "wait"):
        total, wanted = sum(row["idle_ms"] for row in idle if row["during"] == during), \
            sum(gap["ns"] for gap in printed["gaps"] if gap["state"] == state) / 1e6
        report.check(near(total, wanted), f"idle for {total:.3f} ms during {during}, of {wanted:.3f}", idle)


def main():
    parser = argparse.ArgumentParser(description="Record a program whose GPU work has known times.")
    parser.add_argument("--build", default="build")
    parser.add_argument("--keep", metavar="FILE", help="also write the trace to FILE")
    parser.add_argument("--program", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        run_program()
        return 0
    if not os.path.exists("/dev/nvidiactl"):
        print("skipped: no NVIDIA GPU: /dev/nvidiactl does not exist")
        return 77
    report, build = compare.Report(), os.path.abspath(options.build)
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or f"{folder}/trace.db"
        report.begin("known job")
        done = subprocess.run([f"{build}/tools/cudatrace", "run", "--gpu", "--db", path, "--session", f"known{os.getpid()}", "--",
                               sys.executable, __file__, "--program"], stdout=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)
        if report.check(done.returncode == 0, "it runs", [done.stdout]):
            printed = json.loads(done.stdout.splitlines()[-1])
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
                check_kernels(report, database)
                check_gaps(report, database, printed["gaps"])
            check_report(report, build, path, printed)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
