"""Tests programs that use the CUDA runtime. Runtime calls have depth 0, and the driver calls inside them have depth 1. Each call must reach
the library that it would reach without the hook, and no call may be counted twice."""
import itertools

from cudatrace_test import BUILD, Session, WORKLOADS, check, equal

LIBRARY = BUILD / "tests/simcudart/13/libcudart.so.13"
ROUNDS = 20
BYTES = 4 * 4096
CLIENTS = {"12": 12000, "13": 13000, "renamed": 12999}


def calls_of(s, pid, layer):
    return dict(s.rows("SELECT totals.name, sum(calls) FROM totals JOIN processes USING (process_id) "
                       "WHERE pid = ? AND layer = ? GROUP BY 1", pid, layer))


with Session() as s:
    # Without a daemon, programs must print the same output with and without the hook. The first program is linked to the runtime, the
    # second uses dlsym(), and the third does not use the runtime.
    ways = {"linked": ["runtime_calls", "linked"], "dlsym": ["runtime_unlinked", "dlsym", LIBRARY],
            "none": ["runtime_unlinked", "none"]}
    untraced = {way: s.run(WORKLOADS / program, *arguments, preload=False).stdout
                for way, (program, *arguments) in ways.items()}
    check("weak: 0" in untraced["none"], untraced["none"])
    for way, (program, *arguments) in ways.items():
        equal(s.run(WORKLOADS / program, *arguments).stdout, untraced[way], f"output while dormant, {way}")
    for path in s.counts.iterdir():
        path.unlink()

    s.start_daemon()
    seen = {}
    for way, (program, *arguments) in ways.items():
        child = s.start(WORKLOADS / program, *arguments, stdout=-1, text=True)
        equal(child.communicate()[0], untraced[way], f"output, {way}")
        equal(child.returncode, 0, way)
        s.flush()
        seen[way] = {layer: calls_of(s, child.pid, layer) for layer in ("runtime", "driver")}
    s.check_identity()
    s.check_truth()
    equal(seen["dlsym"], seen["linked"], "calls by dlsym and linked")
    equal(seen["none"], {"runtime": {}, "driver": {}}, "calls where there is no runtime")
    runtime, driver = seen["linked"]["runtime"], seen["linked"]["driver"]
    equal({name: runtime[name] for name in ("cudaMalloc", "cudaFree", "cudaMemcpy", "cudaLaunchKernel", "cudaGetErrorName")},
          {"cudaMalloc": ROUNDS + 1, "cudaFree": ROUNDS, "cudaMemcpy": ROUNDS, "cudaLaunchKernel": ROUNDS,
           "cudaGetErrorName": 2}, "runtime calls")

    # From here on, the checks are about the calls of both programs. The programs call cuCtxGetDevice directly, through a pointer from
    # cudaGetDriverEntryPointByVersion.
    equal(s.rows("SELECT DISTINCT depth FROM calls WHERE layer = 'runtime'"), [(0,)], "depths of runtime calls")
    equal(s.rows("SELECT DISTINCT name FROM calls WHERE layer = 'driver' AND depth <> 1"), [("cuCtxGetDevice",)],
          "driver calls that no runtime call encloses")
    equal(s.value("SELECT count(*) FROM calls AS inner WHERE depth = 1 AND NOT EXISTS (SELECT 1 FROM calls AS outer "
                  "WHERE outer.depth = 0 AND outer.tid = inner.tid AND outer.process_id = inner.process_id AND "
                  "outer.start_ns <= inner.start_ns AND outer.end_ns >= inner.end_ns)"), 0, "calls at depth 1 outside one")

    # Only driver calls have rows with details.
    for view, count in {"launches": 2 * ROUNDS, "allocations": 2 * (ROUNDS + 1), "copies": 4 * ROUNDS,
                        "memsets": 2 * ROUNDS}.items():
        equal(s.rows(f"SELECT DISTINCT layer FROM {view} JOIN calls USING (call_id)"), [("driver",)], view)
        equal(s.value(f"SELECT count(*) FROM {view} JOIN calls USING (call_id) WHERE status = 0 OR name <> 'cuMemAlloc_v2'"),
              count if view != "allocations" else 2 * ROUNDS, view)
    equal(s.rows("SELECT DISTINCT layer FROM waits JOIN calls USING (call_id)"), [("driver",)], "waits")
    for name in ("cudaMemcpy", "cudaMemcpyAsync", "cudaMemset"):
        equal(s.rows("SELECT DISTINCT bytes FROM calls WHERE name = ?", name), [(BYTES,)], f"bytes of {name}")
    equal(s.value("SELECT sum(bytes) FROM totals WHERE name = 'cudaMalloc'"), 2 * ROUNDS * BYTES, "bytes allocated")

    # The statuses of runtime calls have the runtime's names. If a function does not return a status, its call counts as successful.
    equal(s.rows("SELECT DISTINCT name, status, status_name FROM calls WHERE status <> 0 AND layer = 'runtime' ORDER BY 1"),
          [("cudaGetLastError", 2, "cudaErrorMemoryAllocation"), ("cudaMalloc", 2, "cudaErrorMemoryAllocation")],
          "runtime calls that failed")
    equal(s.rows("SELECT DISTINCT status_name FROM calls WHERE name = 'cudaGetErrorName'"), [("cudaSuccess",)], "a text")

    # A wait is a call in both layers, and both calls must refer to the same objects.
    for outer, inner in {"cudaStreamSynchronize": "cuStreamSynchronize", "cudaEventSynchronize": "cuEventSynchronize"}.items():
        handles = [s.rows("SELECT DISTINCT role, handle FROM objects JOIN calls USING (call_id) WHERE name = ?", name)
                   for name in (outer, inner)]
        equal(handles[0], handles[1], f"objects of {outer}")
    roles = s.rows("SELECT DISTINCT role FROM objects JOIN calls USING (call_id) WHERE name = 'cudaStreamWaitEvent'")
    equal(sorted(roles), [("event",), ("stream",)], "objects of cudaStreamWaitEvent")

# Load several libraries into a process, in every order. Each call must reach its own library.
with Session() as s:
    s.start_daemon()
    calls = 0
    for order in itertools.permutations(CLIENTS):
        clients = [WORKLOADS / f"libclient_{name}.so" for name in order]
        wanted = [[CLIENTS[name] for name in order[:loaded]] * 5 for loaded in (1, 2, 3)]
        printed = s.run(WORKLOADS / "runtime_versions", *clients).stdout
        equal([[int(word) for word in line.split()] for line in printed.splitlines()], wanted, f"libraries reached, {order}")
        calls += sum(map(len, wanted))
    s.flush()
    s.check_identity()
    equal(s.rows("SELECT layer, name, sum(calls) FROM totals GROUP BY 1, 2"), [("runtime", "cudaRuntimeGetVersion", calls)],
          "calls recorded")
