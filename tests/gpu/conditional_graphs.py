#!/usr/bin/env python3
"""Records graphs with conditional nodes on a real GPU, with `cudatrace run --gpu`, and looks for the launch of each kernel.

A graph runs a kernel, a conditional node whose body has two kernels, and another kernel. A second graph consists of the conditional node
alone. Every kernel must be in the trace, and its call must be the launch that ran it. Only in the second graph, it may be unknown. The script
prints the numbers that CUPTI gave to the kernels of bodies and to the work around them.

    conditional_graphs.py --build build    exit status 0: success, 1: failure, 77: no GPU, or a driver without conditional nodes
"""
import argparse
import collections
import contextlib
import ctypes
import os
import sqlite3
import subprocess
import sys
import tempfile

import compare
import known_job

BEFORE_MS, BODY_MS, AFTER_MS = 1, 2, 3
IN_BODY = 2
LAUNCHES = 6  # of each graph; the program waits only after the first half of them
LIMIT_S = 120
CONDITIONAL, ASSIGN_DEFAULT = 13, 1  # CU_GRAPH_NODE_TYPE_CONDITIONAL, CU_GRAPH_COND_ASSIGN_DEFAULT
NOT_SUPPORTED, SKIPPED = 801, 77


class KernelParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2"""
    _fields_ = [("func", ctypes.c_void_p), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared_bytes", ctypes.c_uint),
                ("parameters", ctypes.c_void_p), ("extra", ctypes.c_void_p), ("kernel", ctypes.c_void_p), ("context", ctypes.c_void_p)]


class NodeParams(ctypes.Structure):
    """CUgraphNodeParams with a CUDA_CONDITIONAL_NODE_PARAMS, whose type 0 is an if."""
    _fields_ = [("type", ctypes.c_int), ("reserved0", ctypes.c_int * 3), ("handle", ctypes.c_uint64), ("kind", ctypes.c_int), ("size", ctypes.c_uint),
                ("graphs", ctypes.POINTER(ctypes.c_void_p)), ("context", ctypes.c_void_p), ("reserved1", ctypes.c_uint64 * 26)]


assert ctypes.sizeof(KernelParams) == 72 and ctypes.sizeof(NodeParams) == 256


# ---- the program ----


def run_program():
    cu = known_job.Driver((BEFORE_MS, BODY_MS, AFTER_MS))
    context, probe = cu.made("cuCtxGetCurrent"), cu.made("cuGraphCreate", 0)
    create = getattr(cu.functions, "cuGraphConditionalHandleCreate", None)
    if not create or create(ctypes.byref(ctypes.c_uint64()), probe, context, 1, ASSIGN_DEFAULT) == NOT_SUPPORTED:
        return SKIPPED

    def add_kernel(graph, ms, after=None):
        duration = ctypes.c_uint64(ms * 1_000_000)
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(duration))
        node = KernelParams(func=cu.kernels[ms].value, grid=(1, 1, 1), block=(1, 1, 1), parameters=ctypes.addressof(parameters))
        return cu.made("cuGraphAddKernelNode_v2", graph, ctypes.byref(after) if after else None, ctypes.c_size_t(1 if after else 0), ctypes.byref(node))

    def add_condition(graph, after=None):
        handle = ctypes.c_uint64()
        cu("cuGraphConditionalHandleCreate", ctypes.byref(handle), graph, context, 1, ASSIGN_DEFAULT)
        node = NodeParams(type=CONDITIONAL, handle=handle.value, size=1, context=context.value)
        made = cu.made("cuGraphAddNode", graph, ctypes.byref(after) if after else None, ctypes.c_size_t(1 if after else 0), ctypes.byref(node))
        inside = None
        for _ in range(IN_BODY):
            inside = add_kernel(ctypes.c_void_p(node.graphs[0]), BODY_MS, inside)
        return made

    whole, alone = cu.made("cuGraphCreate", 0), cu.made("cuGraphCreate", 0)
    add_kernel(whole, AFTER_MS, add_condition(whole, add_kernel(whole, BEFORE_MS)))
    add_condition(alone)
    stream = cu.made("cuStreamCreate", 1)
    for graph in whole, alone:
        executable = cu.made("cuGraphInstantiateWithFlags", graph, ctypes.c_uint64(0))
        for number in range(LAUNCHES):
            cu("cuGraphLaunch", executable, stream)
            if number < LAUNCHES // 2:
                cu("cuStreamSynchronize", stream)
        cu("cuStreamSynchronize", stream)
    return 0


# ---- the comparison ----


def check_kernels(report, database):
    report.begin("kernels of conditional nodes")
    launches = [call_id for call_id, in database.execute("SELECT call_id FROM graph_launches ORDER BY call_id")]
    report.check(len(launches) == 2 * LAUNCHES, f"{len(launches)} launches of graphs, of {2 * LAUNCHES}")
    rows = database.execute("SELECT kernel, call_id, correlation & 4294967295, graph, node, context, stream, gpu_start_ns FROM gpu_work "
                            "WHERE kind = 'kernel' ORDER BY gpu_start_ns").fetchall()
    counts = collections.Counter(kernel for kernel, *_ in rows)
    wanted = {f"spin_{BEFORE_MS}": LAUNCHES, f"spin_{BODY_MS}": 2 * LAUNCHES * IN_BODY, f"spin_{AFTER_MS}": LAUNCHES}
    report.check(counts == wanted, f"kernels: {dict(counts)}, of {wanted}")

    # The stream runs one launch after the other, so the order of the kernels shows which launch ran each of them.
    places = [place for place in range(LAUNCHES) for _ in range(IN_BODY + 2)] + [LAUNCHES + place for place in range(LAUNCHES) for _ in range(IN_BODY)]
    wrong = [f"{row}, whose launch is {launches[place]}" for row, place in zip(rows, places) if row[1] not in (None, launches[place])]
    report.check(not wrong, f"{len(wrong)} kernels with the call of another launch", wrong)
    body = [row for row in rows if row[0] == f"spin_{BODY_MS}"]
    others = sum(row[1] is None for row in rows if row not in body)
    report.check(others == 0, f"{others} kernels outside of bodies without a call")
    with_others, alone = body[:LAUNCHES * IN_BODY], body[LAUNCHES * IN_BODY:]
    report.check(all(row[1] is not None for row in with_others), f"{len(with_others)} kernels of bodies between other kernels have a call")
    print(f"{sum(row[1] is None for row in alone)} of {len(alone)} kernels of a graph's only node have no call")
    for row in rows[:IN_BODY + 2] + rows[-IN_BODY:]:
        print("  kernel {}, call {}, CUPTI's correlation {}, graph {}, node {}, context {}, stream {}, start {}".format(*row))


def main():
    parser = argparse.ArgumentParser(description="Record graphs with conditional nodes.")
    parser.add_argument("--build", default="build")
    parser.add_argument("--program", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program:
        return run_program()
    if not os.path.exists("/dev/nvidiactl"):
        print("skipped: no NVIDIA GPU: /dev/nvidiactl does not exist")
        return SKIPPED
    report, build = compare.Report(), os.path.abspath(options.build)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/trace.db"
        report.begin("conditional graphs")
        done = subprocess.run([f"{build}/tools/cudatrace", "run", "--gpu", "--db", path, "--session", f"conditional{os.getpid()}", "--",
                               sys.executable, __file__, "--program"], timeout=LIMIT_S, check=False)
        if done.returncode == SKIPPED:
            print("skipped: the driver has no conditional nodes (CUDA 12.3)")
            return SKIPPED
        if report.check(done.returncode == 0, "the program runs"):
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
                check_kernels(report, database)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
