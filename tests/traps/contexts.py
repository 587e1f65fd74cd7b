"""Tests calls made by signal handlers that interrupt the allocator, the loader and fork(), and by fork handlers. On none of the hook's slow
paths may such a call allocate memory or create a thread. The program is stopped at instructions of the C library (contexts.c).

    contexts.py first | set | gone | exit
"""
import platform
import sys

from trap_test import BUILD, CUDATRACE, DRIVER_PATH, LINKED, Session, by_tier, check, compiled, equal, needs, skip

(path,) = sys.argv[1:]
if platform.machine() != "x86_64":
    skip("steps through x86-64 instructions")
needs("ptrace")
ROUNDS = by_tier(12, 60, 1000) if path in ("first", "exit") else by_tier(2, 10, 100)

with Session() as s:
    program = compiled(s, "contexts.c", *LINKED)
    tell = {"set": f"{CUDATRACE} set --session {s.name} --gpu on --pid", "gone": f"f() {{ {CUDATRACE} stop --session {s.name}; }}; f"}
    env = {"LD_LIBRARY_PATH": f"{DRIVER_PATH}:{BUILD / 'tests/simcupti/13'}", "TEST_TELL": tell.get(path, "")}
    s.start_daemon()
    if path == "first":
        s.cudatrace("set", "--gpu", "on")
    for work in "allocator", "loader", "fork":
        ran = s.run(program, work, "told" if path in tell else path, ROUNDS if path != "gone" else 1, env=env, status=None)
        equal((ran.returncode, ran.stdout), (0, f"{work} {'told' if path in tell else path}: played\n"), "its status and output")
        if path == "gone":
            s.daemon.wait()
            s.start_daemon()
    s.flush()
    if path in ("first", "set"):  # each request was followed by a later call, except that of a counted process
        recorded = s.value("SELECT count(*) FROM processes WHERE gpu_recording = 'recorded'")
        check(recorded >= 3 * ROUNDS, "processes that recorded GPU work", recorded)
    s.check_identity(lost=s.value("SELECT sum(lost) FROM totals"))
