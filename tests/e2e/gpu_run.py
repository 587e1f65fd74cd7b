"""Tests `cudatrace run --gpu`, from the simulated CUPTI to the views. Each record delivered by CUPTI is a row in `gpu_work`, with the call
that caused the work."""
import json
import shutil
import subprocess
import sys

from cudatrace_test import BUILD, CUDATRACE, SIMCUDA, WORKLOADS, Session, check, equal

PROGRAM = WORKLOADS / "gpu_work"
ROUNDS = 25
# (kind, function, rows of a round)
WORK = [("copy", "cuMemcpyDtoD_v2", 1), ("copy", "cuMemcpyDtoH_v2", 1), ("copy", "cuMemcpyHtoDAsync_v2", 1), ("kernel", "cuLaunchKernel", 3),
        ("set", "cuMemsetD8Async", 1)]


def run(s, *options, command=(PROGRAM, "--rounds", ROUNDS), output=f"gpu_work: rounds={ROUNDS} ok\n", **more):
    """Runs the program with `cudatrace run`, and checks its output. Returns standard error."""
    env = {"LD_LIBRARY_PATH": f"{SIMCUDA}:{BUILD / 'tests/simcupti/13'}", "SIMCUPTI_LOG": s.dir / "cupti.log", "SIMCUDA_LAUNCH_NS": 5000,
           "SIMCUDA_COPY_GBPS": 2, **more}
    done = s.run(CUDATRACE, "run", "--session", s.name, "--db", s.db, *options, "--", *command, preload=False, env=env)
    equal(done.stdout, output, "the program's output")
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
    equal(s.rows("SELECT gpu_recording FROM processes"), [("recorded",)], "the result")
    s.check_identity()
    s.check_truth(of_hook=("cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetPCIBusId", "cuDeviceGetUuid", "cuDeviceGetUuid_v2"))

# A program that launches nothing.
with Session() as s:
    idle = sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1').cuInit(0)"
    equal(run(s, "--gpu", command=idle, output=""),
          "cudatrace: run: no GPU work was recorded: the program launched no work, and made no copies or sets\n", "the message")

# If all recorded work has been removed from the trace, `run` does not report that none was recorded.
with Session() as s:
    env = {"LD_LIBRARY_PATH": f"{SIMCUDA}:{BUILD / 'tests/simcupti/13'}", "SIMCUDA_LAUNCH_NS": 5000}
    job = s.start(CUDATRACE, "run", "--session", s.name, "--db", s.db, "--keep", "1s", "--gpu", "--", PROGRAM, "--rounds", 1, "--end", "commands",
                  preload=False, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    equal(job.stdout.readline(), "gpu_work: rounds=1 ok\n", "the program's output")
    s.flush_until("the work", lambda: s.value("SELECT count(*) FROM gpu_work"))
    s.flush_until("the removal of the work", lambda: s.value("SELECT count(*) FROM gpu_work") == 0)
    equal((job.communicate()[1], job.returncode), ("", 0), "messages and status")

with Session() as s:
    run(s, "--gpu", SIMCUPTI_DROP=5)
    equal(s.rows("SELECT sum(calls) FROM losses WHERE cause = 'cupti'"), [(ROUNDS * 7 // 5,)], "dropped work")
    equal(s.value("SELECT count(*) FROM gpu_work"), ROUNDS * 7 - ROUNDS * 7 // 5, "work that was not dropped")
    s.check_identity()

with Session() as s:
    for n, (holder, tool) in enumerate([("CUPTI for Nsight Systems", "Nsight Systems"), ("CUPTI for ", "another tool"), ("a\x1b[1m\x7f", "a?[1m?")]):
        message = run(s, "--gpu", SIMCUPTI_TAKEN=holder)
        pid, result = s.rows("SELECT pid, gpu_recording FROM processes ORDER BY process_id")[n]
        equal(result, f"{tool} uses CUPTI", "the result")
        equal(message, f"cudatrace: run: GPU work was not recorded in process {pid}: {result} (gpu_recording in the view processes)\n", "the message")
    equal(s.value("SELECT count(*) FROM gpu_work"), 0, "work")
    s.check_truth()

# If a program runs under a tool that would fail during a recording, nothing is recorded, even if the tool has not subscribed to CUPTI yet.
for tool in ("CUDA_INJECTION64_PATH", "LD_PRELOAD"):
    with Session() as s:
        library = shutil.copy(BUILD / "tests/simnvml/libsimnvml.so", s.dir / "libsanitizer-collection.so")
        check(": compute-sanitizer uses CUPTI (" in run(s, "--gpu", **{tool: library}), "the message with", tool)
        equal(s.value("SELECT count(*) FROM gpu_work"), 0, f"work with {tool}")
        check(not (s.dir / "cupti.log").exists(), "CUPTI is used with", tool)
        s.check_truth()

with Session() as s:
    equal(run(s), "", "messages without --gpu")
    equal(s.rows("SELECT (SELECT count(*) FROM gpu_work), gpu_recording FROM processes"), [(0, None)], "work and result without --gpu")

# On request, graphs are recorded as a whole. If CUPTI is too old for that, their nodes are recorded, and the command prints a message. The
# recording begins at the first call, even if the first call itself is not recorded.
GRAPHS = {"command": (WORKLOADS / "graph", "--launches", 6, "--replays", 4), "output": "graph: captured=6 replays=4 ok\n"}
NODES = "cudatrace: run: the nodes of graphs were recorded: whole graphs need the CUPTI of CUDA 11.7, driver 515, and a recording from the first " \
    "driver call on\n"
for options, env, message, work in (((), {}, "", [("graph", "cuGraphLaunch", 4)]),
                                    ((), {"SIMCUPTI_LAST_KIND": 50}, NODES, [("kernel", "cuGraphLaunch", 24)]),
                                    (("--calls", "cuGraphLaunch"), {}, "", [("graph", "cuGraphLaunch", 4)])):
    with Session() as s:
        equal(run(s, "--gpu", "--gpu-graphs", "whole", *options, **GRAPHS, **env), message, "messages")
        equal(s.rows("SELECT kind, calls.name, count(*) FROM gpu_work JOIN calls USING (call_id) WHERE gpu_work.graph IS NOT NULL GROUP BY 1, 2"),
              work, "the work of graphs")
        s.check_identity()
        rows = json.loads(s.run(CUDATRACE, "report", "--db", s.db, "--format", "json", "gpu", "work", preload=False).stdout)
        equal([row["runs"] for row in rows["work"] if row["work"].startswith("graph ")], [n for kind, _, n in work if kind == "graph"], "graphs in work")
        equal([row["graphs"] for row in rows["gpu"]], [sum(n for kind, _, n in work if kind == "graph")], "graphs in the section gpu")
with Session() as s:
    done = s.run(CUDATRACE, "run", "--gpu-graphs", "whole", "--", "true", preload=False, status=2)
    check("run: --gpu-graphs needs --gpu" in done.stderr, "the message", done.stderr)
