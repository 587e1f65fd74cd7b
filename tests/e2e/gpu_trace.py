"""Tests that GPU work gets from CUPTI to the views, with a program that uses the simulated driver and the simulated CUPTI. The views must
contain each record that the simulated CUPTI has delivered, together with the call that CUPTI's callback named for it. The daemon is killed
while the program runs."""
import collections
import subprocess

from cudatrace_test import BUILD, SIMCUDA, Session, WORKLOADS, check, equal

ROUNDS = 200


def delivered(path):
    """Reads the log of the simulated CUPTI. Returns the number of records for each combination of kind, name, bytes, stream and function,
    and the number of dropped records."""
    functions, records, dropped = {}, [], 0
    for line in path.read_text().splitlines():
        word, *rest = line.split()
        if word == "call":
            functions[int(rest[1])] = rest[0]
        elif word == "dropped":
            dropped += int(rest[0])
        elif word in ("kernel", "copy", "set"):
            records.append((word, int(rest[0]), int(rest[3]), int(rest[6]), rest[9]))
    return collections.Counter((word, name if name != "-" else None, size if word != "kernel" else None, stream, functions[correlation])
                               for word, correlation, size, stream, name in records), dropped


with Session() as s:
    s.start_daemon()
    log = s.dir / "cupti.log"
    env = {"CUDATRACE_GPU": "kernels", "SIMCUPTI_LOG": log, "SIMCUDA_LAUNCH_NS": 20000, "SIMCUDA_COPY_GBPS": 0.5, "SIMCUPTI_DROP": 50,
           "LD_LIBRARY_PATH": f"{SIMCUDA}:{BUILD / 'tests/simcupti/13'}"}
    program = s.start(WORKLOADS / "gpu_work", "--rounds", ROUNDS, "--end", "wait", env=env, stdin=subprocess.PIPE)
    s.flush_until("work", lambda: s.value("SELECT count(*) FROM gpu_work"))
    s.daemon.kill()
    s.daemon.wait()
    s.start_daemon()
    program.stdin.close()
    equal(program.wait(), 0, "the program's status")
    wanted, dropped = delivered(log)
    check(dropped > 0 and sum(wanted.values()) + dropped == 7 * ROUNDS, "delivered", sum(wanted.values()), "dropped", dropped)
    s.flush_until("the end of the program", lambda: s.value("SELECT count(*) FROM processes WHERE state = 'exited'"))
    seen = collections.Counter({row[:-1]: row[-1] for row in s.rows(
        "SELECT gpu_work.kind, mangled, gpu_work.bytes, stream, calls.name, count(*) FROM gpu_work LEFT JOIN calls USING (call_id) "
        "GROUP BY 1, 2, 3, 4, 5")})
    equal(seen, wanted, "the work in the trace")
    equal(s.value("SELECT ifnull(sum(calls), 0) FROM losses WHERE cause = 'cupti'"), dropped, "dropped records")
    equal(s.value("SELECT count(*) FROM gpu_work JOIN calls USING (call_id) WHERE gpu_start_ns < start_ns"), 0, "work that began before its call")
    # Ends are converted from ticks and rounded.
    equal(s.value("SELECT count(*) FROM (SELECT gpu_start_ns + 1 < lag(gpu_end_ns) OVER (PARTITION BY stream ORDER BY gpu_start_ns) AS early FROM gpu_work) "
                  "WHERE early"), 0, "work that overlaps in its stream")
    s.check_identity()
