"""Tests that `cudatrace diff` reports exactly the known differences between two traces."""
import json

from cudatrace_test import CUDATRACE, Session, WORKLOADS, check, equal
from exact_trace import add_work, import_calls


def row_of(rows, **wanted):
    found = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    equal(len(found), 1, f"rows with {wanted} of {rows}")
    return found[0]


with Session() as s, Session() as other:
    for session, launches, latency, leaks, failures in ((s, 500, 0, 1, 2), (other, 800, 20000000, 4, 0)):
        session.start_daemon()
        session.run(WORKLOADS / "scripted", "--launches", launches, "--idle-ms", 0, "--leaks", leaks, "--failures", failures,
                    env={"SIMCUDA_LATENCY": f"cuMemcpyDtoH_v2={latency}"})
        session.flush()
        session.stop_daemon()

    def diff(*options, format="json", status=0):
        done = s.run(CUDATRACE, "diff", "--format", format, s.db, other.db, *options, preload=False, status=status)
        return json.loads(done.stdout) if format == "json" and status == 0 else done

    found = diff()
    equal(list(found), ["summary", "functions", "kernels", "gpu", "memory", "errors"], "sections")
    calls = row_of(found["summary"], what="calls")
    equal((calls["a"], calls["b"]), tuple(x.value("SELECT sum(calls) FROM totals") for x in (s, other)), "calls")
    equal(calls["change"], calls["b"] - calls["a"], "the change of calls")
    launches = row_of(found["summary"], what="launches")
    equal((launches["a"], launches["b"], launches["change"], launches["change_%"]), (500, 800, 300, 60), "launches")
    equal(row_of(found["kernels"], kernel="fill_u32")["change"], 300, "launches of a kernel")

    changes = [abs(row["change_ms"]) for row in found["functions"]]
    equal(changes, sorted(changes, reverse=True), "the order of functions, by what changed most")
    copy = row_of(found["functions"], function="cuMemcpyDtoH_v2")
    equal((copy["calls_a"], copy["calls_b"]), (8, 8), "copies")
    check(copy["ms_b"] >= 160 and copy["mean_us_b"] >= 20000, "its time", copy)
    check(abs(copy["ms_b"] - copy["ms_a"] - copy["change_ms"]) < 0.002, "its change", copy)
    memory = row_of(found["memory"], kind="device")
    equal((memory["allocations_a"], memory["allocations_b"]), (9, 12), "allocations")
    equal((memory["not_freed_mb_a"], memory["not_freed_mb_b"]), (round((1 << 20) / 1e6, 3), round((4 << 20) / 1e6, 3)), "leaks")
    equal([(row["error"], row["calls_a"], row["calls_b"], row["change"]) for row in found["errors"]],
          [("CUDA_ERROR_OUT_OF_MEMORY", 2, 0, -2)], "errors")
    equal(list(diff("errors")), ["errors"], "one section")

    # Compare a trace with itself, which shows no change. Also compare two traces that have different functions.
    same = json.loads(s.run(CUDATRACE, "diff", "--format", "json", s.db, s.db, preload=False).stdout)
    equal({row["change"] for row in same["summary"]}, {0}, "changes to itself")
    with Session() as third:
        third.start_daemon()
        third.run(WORKLOADS / "hang", "--calls", 5)
        third.flush()
        third.stop_daemon()
        rows = json.loads(s.run(CUDATRACE, "diff", "--format", "json", s.db, third.db, "functions", preload=False).stdout)["functions"]
        equal(row_of(rows, function="cuCtxSynchronize")["calls_a"], 0, "calls of a function that a does not have")
        equal(row_of(rows, function="cuMemcpyDtoH_v2")["calls_b"], 0, "calls of a function that b does not have")

    for arguments, status, says in (((), 2, "specify two traces"), ((s.db,), 2, "specify two traces"),
                                    ((s.db, s.dir / "none.db"), 1, "no trace at"), ((s.db, other.db, "nosuch"), 2, "no section 'nosuch'"),
                                    (("--db", s.db, other.db, s.db), 2, "unknown option --db"), ((s.db, __file__), 1, "cannot read")):
        done = s.run(CUDATRACE, "diff", *arguments, preload=False, status=status)
        check(says in done.stderr, arguments, done.stderr)

# Compare traces a and b, which have GPU work at exact times. Kernel c runs only in trace b, and kernel d only in trace a.
with Session() as s:
    call = (7, 7, "cuLaunchKernel", 0, 100, 0, {"kernel": "a", "grid_x": 1})
    work = {"a": [("kernel", "a", 1000), ("kernel", "a", 3000), ("kernel", "b", 500), ("HtoD", None, 800), ("kernel", "d", 100)],
            "b": [("kernel", "a", 1000), ("kernel", "b", 500), ("kernel", "b", 700), ("HtoD", None, 400), ("kernel", "c", 2500)],
            "none": []}
    for name, pieces in work.items():
        import_calls(s, s.dir / f"{name}.db", [call])
        add_work(s.dir / f"{name}.db", [(7, kind, kernel, 0, 7, 10000 * n, 10000 * n + us, None, 100) for n, (kind, kernel, us) in enumerate(pieces, 1)])

    def gpu(a, b):
        out = s.run(CUDATRACE, "diff", "--format", "json", s.dir / f"{a}.db", s.dir / f"{b}.db", "gpu", preload=False).stdout
        return [tuple(row.values()) for row in json.loads(out)["gpu"]]

    equal(gpu("a", "b"),  # work, runs, ms on the GPU, change, mean in us, its change
          [("a", 2, 1, 4.0, 1.0, -3.0, -75.0, 2000.0, 1000.0, -50.0), ("c", 0, 1, 0.0, 2.5, 2.5, None, None, 2500.0, None),
           ("b", 1, 2, 0.5, 1.2, 0.7, 140.0, 500.0, 600.0, 20.0), ("HtoD", 1, 1, 0.8, 0.4, -0.4, -50.0, 800.0, 400.0, -50.0),
           ("d", 1, 0, 0.1, 0.0, -0.1, -100.0, 100.0, None, None)], "work by time on the GPU")
    equal([gpu("a", "none"), gpu("none", "b")], [[], []], "one trace without records of work")
