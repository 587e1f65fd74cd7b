"""Tests that a session uses bounded resources. If there are too few descriptors for all processes, each process must get its turn. Neither
a thousand processes at once, nor many days of a session simulated in a minute, may leak memory, descriptors or shared memory."""
import contextlib
import os
import re
import resource
import subprocess

from fault_test import SANITIZED, Session, WORKLOADS, by_tier, check, equal, fifo, promise, wait_for


def daemon_takes(s):
    """Returns (the daemon's memory in bytes, the number of its descriptors, the bytes of the session's shared memory). Does not count
    sockets, because the descriptor of a connection that has just been closed may still be open."""
    with open(f"/proc/{s.daemon.pid}/status") as status:
        memory = int(re.search(r"VmRSS:\s+(\d+) kB", status.read()).group(1)) << 10
    shared = sum(os.stat(f"/dev/shm/{name}").st_blocks * 512 for name in os.listdir("/dev/shm") if f".{s.name}" in name)
    links = []
    for fd in os.listdir(f"/proc/{s.daemon.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/{s.daemon.pid}/fd/{fd}"))
    return memory, sum(not link.startswith("socket:") for link in links), shared


def at_once(s, processes, hold, calls=200):
    """Starts processes that make their calls and then keep running until they read a line from the FIFO."""
    return [s.start(WORKLOADS / "calls", "--calls", calls, "--hold", hold, stdout=subprocess.DEVNULL)
            for _ in range(processes)]


def end(programs, hold):
    """Writes a line for each program, and keeps the FIFO open until all of the programs have exited."""
    with open(hold, "w") as go:
        go.write("\n" * len(programs))
        go.flush()
        for program in programs:
            equal(program.wait(), 0, "a program's status")


# Give the daemon enough descriptors for only eight of the forty processes.
with Session() as s, promise("descriptors"):
    s.start_daemon(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    with fifo(s.dir, "hold") as hold:
        programs = at_once(s, 40, hold)
        check("processes and 0 threads wait, because" in s.cudatrace("flush", status=1).stderr, "what a flush said")
        check(len(os.listdir(f"/proc/{s.daemon.pid}/fd")) < 64, "descriptors")
        end(programs, hold)
    # As processes exit, the daemon must turn to the processes that are waiting.
    wait_for("the end of all", lambda: s.cudatrace("flush", status=None).returncode == 0 and
             s.value("SELECT count(*) FROM processes WHERE state = 'exited'") == 40)
    s.check_identity()
    s.check_truth()
    log = (s.dir / "daemon.log").read_text()
    equal(log.count("processes wait: there are descriptors and mappings for only"), 1, log)
    equal(log.count("no processes wait for descriptors or mappings any more"), 1, log)

# Run many processes at once, in several rounds. The later rounds must reuse the resources of the first round.
with Session() as s:
    s.start_daemon()
    processes = by_tier(60, 150, 1000)
    for turn in range(by_tier(2, 3)):
        with fifo(s.dir, f"hold{turn}") as hold, promise("processes", processes):
            programs = at_once(s, processes, hold)
            s.flush()
            during = daemon_takes(s)
            end(programs, hold)
        s.flush()
        after = daemon_takes(s)
        equal(s.value("SELECT count(*) FROM processes WHERE state <> 'exited'"), 0, "processes that are not at their end")
        s.check_identity()
        s.check_truth()
        if turn == 0:
            first, first_during = after, during
        print(f"{processes} at once: memory, descriptors, shared memory {during}; behind them {after}")
    with promise("processes"):
        equal(after[1:], first[1:], "descriptors and shared memory")
        # The daemon keeps threads and functions in tables, and each table has its own size limit (docs/performance.md).
        check(after[0] < 64 << 20 or SANITIZED, "the daemon has", after[0], "bytes of memory")

# Simulate many days. If the stored data is limited, all other resources must be bounded as well.
with Session() as s:
    rounds = by_tier(4, 6, 60)
    s.start_daemon("--max-db", "16M", "--keep", "2s", "--ring", "64K")
    lines = s.dir / "lines"
    lines.write_text("\n" * 100)  # a line for each step of churn
    taken = []
    for turn in range(rounds):
        with promise("days"):
            programs = [s.start(WORKLOADS / name, *arguments, stdout=subprocess.DEVNULL, stdin=lines.open(),
                                env={"SIMCUDA_FORK": "works", "NVTX_INJECTION64_PATH": s.hook}) for name, arguments in (
                ("churn", []), ("forks", []), ("graph", []), ("nodes", []),
                ("calls", ["--processes", 10, "--threads", 4, "--calls", by_tier(5000, 20000)]),
                ("threads", []), ("ranges", []))]
            for program in programs:
                equal(program.wait(), 0, f"the status of {program.args}")
            s.flush()
            broken = s.cudatrace("sql", "--format", "csv", "SELECT count(*) FROM totals WHERE calls <> stored + lost + skipped")
            equal(broken.stdout.split()[-1], "0", "broken identities")
            taken.append((*daemon_takes(s), sum(path.stat().st_blocks * 512 for path in s.dir.glob("trace*"))))
    print("memory, descriptors, shared memory, disk:", *taken, sep="\n  ")
    early, late = taken[rounds // 3], taken[-1]
    with promise("days"):
        # Wait, because the daemon creates new files of the trace and removes old files in the background.
        wait_for("as few descriptors, and as little shared memory", lambda: daemon_takes(s)[1:] == early[1:3])
        check(late[0] < 1.15 * early[0] + (4 << 20) or SANITIZED, "memory went from", early[0], "to", late[0])
        check(late[3] <= 16 << 20, "the trace takes", late[3], "bytes")
