"""Makes traces with exact times: imports the given calls, and adds the given GPU work."""
import contextlib
import json
import sqlite3

from cudatrace_test import CUDATRACE

BASE_US = 1000000  # `cudatrace import` adds a second to the times of lines
CATEGORIES = {"cuInit": "init", "cuLaunchKernel": "launch", "cuStreamSynchronize": "sync", "cuCtxSynchronize": "sync", "cuMemAlloc_v2": "memory",
              "cuModuleLoadData": "module", "cuStreamQuery": "query", "cuMemcpyHtoD_v2": "copy", "cuMemcpyDtoHAsync_v2": "copy",
              "nvtxRangePush": "range", "nvtxRangeStart": "range"}


def import_calls(s, trace, calls):
    """Imports calls, each given as (pid, tid, name, begin in us, end in us, depth, details). The first thread of a process has the
    process's pid as its tid. The end of a call that has not returned is None."""
    lines = s.dir / "calls.jsonl"
    with lines.open("w") as file:
        for number, (pid, tid, name, begin_us, end_us, depth, details) in enumerate(calls):
            begun = {"category": CATEGORIES[name], "depth": depth, **details}
            for phase, at_us, has in (("B", begin_us, begun), ("E", end_us, {"status": 0}))[:1 if end_us is None else 2]:
                file.write(json.dumps({"ts": at_us / 1e6, "op_id": number, "phase": phase, "name": name, "pid": pid, "tid": tid, "details": has}) + "\n")
    s.run(CUDATRACE, "import", "--db", trace, lines, preload=False)


def name_device(db, process_id, device):
    """Maps a device of the process to the GPU that has the same number."""
    db.execute("INSERT OR IGNORE INTO gpu (uuid, number) VALUES (?, ?)", (f"GPU-{device}", device))
    db.execute("INSERT OR IGNORE INTO gpu_device SELECT ?, number, number, uuid FROM gpu WHERE number = ?", (process_id, device))


def add_work(trace, work):
    """Adds GPU work. Each piece is given as (pid, kind or direction, kernel, device, stream, begin in us, end in us, bytes, end of its call
    in us). The last value is None if the call is unknown."""
    with contextlib.closing(sqlite3.connect(trace)) as db:
        processes = dict(db.execute("SELECT pid, process_id FROM process"))
        for number, (pid, kind, kernel, device, stream, begin_us, end_us, size, call_us) in enumerate(work, 1):
            process_id, name = processes[pid], 0
            if kernel:
                db.execute("INSERT OR IGNORE INTO name (mangled, demangled) VALUES (?1, ?1)", (kernel,))
                name, = db.execute("SELECT 1000 + name_id FROM name WHERE mangled = ?", (kernel,)).fetchone()
                db.execute("INSERT OR IGNORE INTO kernel VALUES (?, ?, ?)", (process_id, name, name - 1000))
            name_device(db, process_id, device)
            db.execute("INSERT INTO gpu_task VALUES (?, ?, ?, ?, ?, 1, ?, 0, 0)", (number, process_id, kind, name, device, stream))
            db.execute("INSERT INTO gpu_run VALUES (?, ?, ?, ?, NULL, ?, NULL)",
                       (number, round((begin_us + BASE_US) * 1000), round((end_us - begin_us) * 1000), number, size))
            if call_us is not None:
                call_id, = db.execute("SELECT end_ns FROM call WHERE end_ns = ?", (round((call_us + BASE_US) * 1000),)).fetchone()
                db.execute("INSERT INTO correlation VALUES (?, ?, ?)", (process_id, number, call_id))
        db.commit()
