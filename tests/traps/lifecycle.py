"""Tests that a program behaves in the same way as without the hook, however its processes, threads and calls begin, change and end. Every
call that the driver counted is in the trace, or is counted in the trace as lost.

    lifecycle.py WAY…      rows of WAYS; all of them if none is named
"""
import collections
import os
import pathlib
import platform
import re
import sys

from trap_test import CUDATRACE, LIFECYCLE, LINKED, TIMES, Session, causes, check, compiled, equal, needs

BLOCKS = {"SIMCUDA_BLOCK": "cuCtxSynchronize"}
FORKS = {"SIMCUDA_FORK": "works"}


def way(states, loses=(), unrecorded=0, needs=(), env=None, open_calls=None):
    """`states`: the number of processes that end in each state. `loses`: the allowed causes of lost calls. `unrecorded`: the number of
    calls that may have returned in the driver without being recorded, because threads ended while making them."""
    return {"states": states, "loses": set(loses), "unrecorded": unrecorded, "needs": needs, "env": env or {},
            "open_calls": open_calls or {}}


# Before Linux 6.15, the kernel reports how a process ended only to its parent. A process that ends with a bare exit_group, or after an
# exec, may then be mistaken for a process that was killed.
KERNEL_TELLS = tuple(map(int, re.match(r"(\d+)\.(\d+)", platform.release()).groups())) >= (6, 15)
UNTOLD = {"exec_plain", "ends"}

WAYS = {
    "fork_busy": way({"exited": TIMES + 1}, loses=["full"], env=FORKS),
    "fork_exec": way({"exited": 11}, env=FORKS),
    # A child of vfork() makes its calls in its parent's memory, so its calls are counted as the parent's. The child's calls are lost if the
    # thread that called vfork() has no lane.
    "vfork_calls": way({"exited": 1}, loses=["full", "memory"]),
    "vfork_first": way({"exited": 1}, unrecorded=1),
    "spawn": way({"exited": 4}),
    "exec_thread": way({"exited": 2}, loses=["full"], unrecorded=1),
    "exec_plain": way({"exited": 1}),
    "exec_killed": way({"killed": 1}),
    "daemon": way({"exited": 2}),
    "close_range": way({"exited": 1}),
    "seteuid": way({"exited": 1}, loses=["memory"], needs=["several users"]),
    "setuid": way({"exited": 1}, loses=["memory"], needs=["several users"]),
    "cancel": way({"exited": 1}, env=BLOCKS),
    "cancel_pending": way({"exited": 1}),
    "cancel_async": way({"exited": 1}, loses=["full"], unrecorded=TIMES),
    "main_ends": way({"exited": 1}),
    "main_ends_first": way({"exited": 1}),
    "ends": way({"exited": 6, "killed": 2}, loses=["full"], env=BLOCKS, unrecorded=3 * 8, open_calls={"cuCtxSynchronize": 8}),
    "parent_death": way({"killed": 1}, env=BLOCKS, open_calls={"cuCtxSynchronize": 1}),
    "traced": way({"exited": 1}, loses=["full"], needs=["ptrace"]),
    "stopped": way({"exited": 1}, loses=["full"]),
    "timers": way({"exited": 1}, loses=["full", "signal"]),
}


def run(s, program, name, facts, how):
    """Runs the program with its own folder, which has the driver's counts, scratch files, and a FIFO that reports blocked calls."""
    place = s.dir / f"{name}.{how}"
    (place / "counts").mkdir(parents=True)
    env = dict(facts["env"], SIMCUDA_COUNTS=place / "counts", SIMCUDA_BLOCK_NOTIFY=place / "blocked",
               FLUSH=f"{CUDATRACE} flush --session {s.name} >/dev/null 2>&1")
    os.mkfifo(place / "blocked")
    if how == "dormant":
        env["CUDATRACE_SESSION"] = s.name + "-none"
    s.counts = place / "counts"
    done = s.run(program, name, place, preload=how != "plain", status=None, env=env)
    return done.returncode, done.stdout.replace(str(place), ""), done.stderr


def examine(s, name, facts, program, before):
    s.flush()
    s.check_identity(lost=None, killed=facts["unrecorded"])
    check("stopped tracing" not in (s.dir / "daemon.log").read_text(), "the daemon let a process go")
    lost = s.rows("SELECT cause, sum(calls) FROM losses WHERE process_id > ? GROUP BY cause", before)
    # When a ring fills up, low-priority calls are dropped before others.
    gives_way = {"pressure"} if facts["loses"] & {"full", "memory"} else set()
    check({cause for cause, _ in lost} <= causes(*facts["loses"]) | gives_way, "calls lost", lost)
    rows = s.rows("SELECT state, exe, cmdline FROM processes WHERE process_id > ?", before)
    states = dict(collections.Counter(state for state, _, _ in rows))
    if not KERNEL_TELLS and name in UNTOLD:
        states, facts = {"processes": sum(states.values())}, dict(facts, states={"processes": sum(facts["states"].values())})
    equal(states, facts["states"], rows)
    equal({exe for _, exe, _ in rows}, {str(program)}, "programs")
    check(all(cmdline.startswith(str(program) + " ") for _, _, cmdline in rows), "command lines", rows)
    open_calls = collections.Counter(row[0] for row in s.rows(
        "SELECT name FROM open_calls WHERE process_id > ? AND name = 'cuCtxSynchronize'", before))
    equal(dict(open_calls), facts["open_calls"], "open calls")
    # The driver counts each process's calls in a separate file. If a child shares its parent's memory, calls are counted in the file of
    # whichever process made the first call.
    borrowed = name.startswith("vfork")
    seen, truth = collections.Counter(), collections.Counter()
    for (pid, function), calls in s.truth().items():
        truth[0 if borrowed else pid, function] += calls
    for pid, function, calls in s.rows("SELECT pid, totals.name, calls FROM totals JOIN processes USING (process_id) "
                                       "WHERE layer = 'driver' AND process_id > ?", before):
        seen[0 if borrowed else pid, function] += calls
    check(sum(seen.values()) > 0, "nothing was traced")
    missing = {key: truth[key] - seen[key] for key in truth.keys() | seen.keys() if truth[key] != seen[key]}
    check(all(calls > 0 for calls in missing.values()) and sum(missing.values()) <= facts["unrecorded"],
          "calls that the driver counted and the trace does not have", missing)
    left = [path.name for path in pathlib.Path("/dev/shm").glob(f"cudatrace.*.{s.name}.*") if path.suffix != ".sock"]
    equal(left, [], "segments")


with Session() as s:
    program = compiled(s, "lifecycle.c", *LIFECYCLE, *LINKED, "-lpthread")
    s.start_daemon()
    for name in sys.argv[1:] or WAYS:
        facts = WAYS[name]
        needs(*facts["needs"])
        plain = run(s, program, name, facts, "plain")
        for how in ("dormant", "recording"):
            before = s.value("SELECT ifnull(max(process_id), 0) FROM processes")
            equal(run(s, program, name, facts, how), plain, f"{name}, {how}")
        examine(s, name, facts, program, before)
        print(name, "as it was:", plain[0], *plain[1].splitlines()[:3])
