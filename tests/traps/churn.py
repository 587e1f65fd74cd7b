"""Creates and destroys threads, modules and child processes. The memory that the process, the daemon and /dev/shm use must stay bounded.
Every launch must have its kernel's name, even though the driver reuses handles for kernels with other names.

    churn.py          a twentieth of the long form; `meson test` runs this one
    churn.py --long   100,000 threads, 10,000 modules and as many libraries, 1,000 forks
"""
import glob
import os
import subprocess
import sys

from trap_test import Session, WORKLOADS, check, equal

SCALE = 1 if "--long" in sys.argv[1:] else 20
THREADS, MODULES, FORKS = 100_000 // SCALE, 10_000 // SCALE, 1_000 // SCALE
# Limits on how much memory use may grow between the first tenth of a phase and the end of the phase. The process keeps up to 256 KiB of
# strings that are no longer referenced. The C library's heap accounts for the rest of PROCESS_KB. /dev/shm may grow by a lane or two if the
# daemon is late. The daemon grows until it knows all combinations of thread, function and status, whose number is limited, and until
# SQLite's cache of 8 MiB is full. The daemon must never exceed DAEMON_MOST_KB.
PROCESS_KB, SHM_KB, DAEMON_KB, DAEMON_MOST_KB = 640, 2200, 32 * 1024, 64 * 1024


def rss_kb(pid):
    """Returns the size of the resident memory that is not shared. Shared memory is excluded, because a ring's pages become resident again
    after the ring has grown, and they are also counted as part of /dev/shm."""
    with open(f"/proc/{pid}/status") as status:
        kb = {line.split(":")[0]: int(line.split()[1]) for line in status if line.startswith(("VmRSS", "RssShmem"))}
    return kb["VmRSS"] - kb["RssShmem"]


def shm_kb(s):
    return sum(os.stat(path).st_blocks for path in glob.glob(f"/dev/shm/cudatrace.*.{s.name}*")) // 2


def expected():
    names = {"common": THREADS + MODULES + FORKS}
    for i in range(1, MODULES + 1):
        name = f"module_{i}"
        names[name if i % 50 else (name + "_").ljust(4096, "x")] = 2
        library = f"library_{i % 100}"
        names[library] = names.get(library, 0) + 2
    names.update({f"child_{i}": 1 for i in range(1, FORKS + 1)})
    return names


with Session() as s:
    s.start_daemon()
    program = s.start(WORKLOADS / "churn", "--threads", THREADS, "--modules", MODULES, "--forks", FORKS,
                      env={"SIMCUDA_FORK": "works"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    samples = {}
    for line in program.stdout:
        if line == "churn: ok\n":
            break
        phase, percent = line.split()
        s.flush()
        if phase in ("threads", "modules", "forks"):
            seen = samples[phase, int(percent)] = rss_kb(program.pid), rss_kb(s.daemon.pid), shm_kb(s)
            print(line.strip(), "process %d KiB, daemon %d KiB, /dev/shm %d KiB" % seen)
        program.stdin.write("\n")
        program.stdin.flush()
    equal(program.wait(), 0, "the program's status")
    s.flush()
    for phase in ("threads", "modules", "forks"):
        for what, bound, early, late in zip(("process", "daemon", "/dev/shm"), (PROCESS_KB, DAEMON_KB, SHM_KB),
                                            samples[phase, 10], samples[phase, 100]):
            check(late <= early + bound, f"{what} grew by {late - early} KiB in the phase of {phase}, more than {bound}")
    check(max(daemon for _, daemon, _ in samples.values()) <= DAEMON_MOST_KB, "the daemon's memory", samples)
    s.check_identity(lost=0)
    s.check_truth()
    equal(sorted(s.rows("SELECT kernel, count(*) FROM launches GROUP BY kernel")), sorted(expected().items()),
          "launches by kernel")
    equal(s.value("SELECT count(*) FROM processes"), 1 + FORKS, "processes")
    equal(s.value("SELECT count(*) FROM processes WHERE state <> 'exited'"), 0, "processes that did not exit")
    threads = dict(s.rows("SELECT name, count(*) FROM threads WHERE name LIKE 'churn-%' GROUP BY name"))
    equal(sum(threads.values()), THREADS, "threads")
    equal(threads, {f"churn-{i}": THREADS // 1000 for i in range(1000)}, "threads by name")
