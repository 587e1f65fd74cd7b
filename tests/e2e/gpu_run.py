"""Tests `cudatrace run --gpu`, from the simulated CUPTI to the views. Each record delivered by CUPTI is a row in `gpu_work`, with the call
that caused the work."""
import shutil

from cudatrace_test import BUILD, CUDATRACE, SIMCUDA, WORKLOADS, Session, check, equal

PROGRAM = WORKLOADS / "gpu_work"
ROUNDS = 25
# (kind, function, rows of a round)
WORK = [("copy", "cuMemcpyDtoD_v2", 1), ("copy", "cuMemcpyDtoH_v2", 1), ("copy", "cuMemcpyHtoDAsync_v2", 1), ("kernel", "cuLaunchKernel", 3),
        ("set", "cuMemsetD8Async", 1)]


def run(s, *options, **more):
    """Runs the program with `cudatrace run`. Returns standard output and standard error."""
    env = {"LD_LIBRARY_PATH": f"{SIMCUDA}:{BUILD / 'tests/simcupti/13'}", "SIMCUPTI_LOG": s.dir / "cupti.log", "SIMCUDA_LAUNCH_NS": 5000,
           "SIMCUDA_COPY_GBPS": 2, **more}
    done = s.run(CUDATRACE, "run", "--session", s.name, "--db", s.db, *options, "--", PROGRAM, "--rounds", ROUNDS, preload=False, env=env)
    equal(done.stdout, f"gpu_work: rounds={ROUNDS} ok\n", "the program's output")
    return done.stderr


with Session() as s:
    equal(run(s, "--gpu"), "", "messages")
    equal(s.rows("SELECT kind, calls.name, count(*) FROM gpu_work JOIN calls USING (call_id) GROUP BY kind, calls.name"),
          [(kind, function, n * ROUNDS) for kind, function, n in WORK], "work by its calls")
    delivered = [line.split() for line in (s.dir / "cupti.log").read_text().splitlines() if line.split()[0] in ("kernel", "copy", "set")]
    equal(s.value("SELECT count(*) FROM gpu_work"), len(delivered), "work")
    equal(s.rows("SELECT DISTINCT mangled FROM gpu_work WHERE kind = 'kernel' ORDER BY 1"),
          [(name,) for name in sorted({line[10] for line in delivered if line[0] == "kernel"})], "the names")
    equal(s.value("SELECT sum(bytes) FROM gpu_work"), sum(int(line[4]) for line in delivered), "bytes")
    equal(s.rows("SELECT sum(kernels), sum(copies), sum(sets) FROM streams"), [(3 * ROUNDS, 3 * ROUNDS, ROUNDS)], "work by stream")
    s.check_identity()
    s.check_truth()

with Session() as s:
    run(s, "--gpu", SIMCUPTI_DROP=5)
    equal(s.rows("SELECT sum(calls) FROM losses WHERE cause = 'cupti'"), [(ROUNDS * 7 // 5,)], "dropped work")
    equal(s.value("SELECT count(*) FROM gpu_work"), ROUNDS * 7 - ROUNDS * 7 // 5, "work that was not dropped")
    s.check_identity()

with Session() as s:
    check("run: no GPU work was recorded" in run(s, "--gpu", SIMCUPTI_TAKEN="another tool"), "the message")
    equal(s.value("SELECT count(*) FROM gpu_work"), 0, "work")
    s.check_truth()

# Tools that would fail during a recording, although they have not subscribed to CUPTI.
for tool in ("CUDA_INJECTION64_PATH", "LD_PRELOAD"):
    with Session() as s:
        library = shutil.copy(BUILD / "tests/simnvml/libsimnvml.so", s.dir / "libsanitizer-collection.so")
        check("run: no GPU work was recorded" in run(s, "--gpu", **{tool: library}), "the message with", tool)
        equal(s.value("SELECT count(*) FROM gpu_work"), 0, f"work with {tool}")
        check(not (s.dir / "cupti.log").exists(), "CUPTI is used with", tool)
        s.check_truth()

with Session() as s:
    equal(run(s), "", "messages without --gpu")
    equal(s.value("SELECT count(*) FROM gpu_work"), 0, "work without --gpu")
