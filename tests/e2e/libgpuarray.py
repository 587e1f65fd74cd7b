"""Traces a third-party library, Debian's python3-pygpu (libgpuarray), which finds the driver by dlopen and dlsym, and compiles its
kernels at run time. The results on the (simulated) device must equal numpy's results on the host. Tracing must not change the output."""
from cudatrace_test import SOURCE, Session, check, equal, needs
from needs import DEBIAN_PYTHON

needs("python3-pygpu", "c++")
ROUNDS, SIZE = 20, 10000
PROGRAM = DEBIAN_PYTHON, SOURCE / "tests/workloads/arrays.py", ROUNDS

with Session() as s:
    untraced = s.run(*PROGRAM, preload=False).stdout
    s.counts = s.dir / "counts-traced"
    s.counts.mkdir()
    dormant = s.run(*PROGRAM, env={"SIMCUDA_COUNTS": ""}).stdout
    s.start_daemon()
    traced = s.run(*PROGRAM).stdout
    equal(untraced.count("\n"), 12 * ROUNDS + 3, "lines")
    check("refused: True\n" in untraced, untraced[-300:])
    equal(dormant, untraced, "what it says with the hook, and no daemon")
    equal(traced, untraced, "what it says traced")
    s.flush()
    s.check_identity(lost=0)
    s.check_truth()
    process = s.value("SELECT process_id FROM processes WHERE cmdline LIKE '%arrays.py%'")
    up, down = map(int, traced.splitlines()[-1].split()[1:])
    for kind, moved in (("HtoD", up), ("DtoH", down)):
        equal(s.value("SELECT sum(bytes) FROM copies WHERE kind = ? AND process_id = ?", kind, process), moved, f"bytes {kind}")
    check(s.value("SELECT sum(bytes) FROM copies WHERE kind = 'DtoD'") >= ROUNDS * SIZE * 4, "bytes DtoD")
    equal(s.value("SELECT count(*) FROM memsets WHERE bytes = ?", 8 * 16 * 2), ROUNDS, "arrays of zeros")
    # All of libgpuarray's kernels have the same name, but each is a different function in a different module.
    kernels = dict(s.rows("SELECT kernel, count(*) FROM launches GROUP BY kernel"))
    check(kernels.get("elem", 0) >= 6 * ROUNDS, "launches", kernels)
    equal(sum(kernels.values()), s.value("SELECT count(*) FROM calls WHERE name = 'cuLaunchKernel'"), "launches and their calls")
    made, freed = (sum(calls for (_, name), calls in s.truth().items() if name == call) for call in ("cuMemAlloc_v2", "cuMemFree_v2"))
    equal(s.rows("SELECT count(*), count(freed_ns) FROM allocations WHERE kind = 'device'"), [(made, freed)], "device memory")
    print(*s.rows("SELECT name, sum(calls) FROM totals GROUP BY name ORDER BY 2 DESC LIMIT 8"), kernels, sep="\n")
