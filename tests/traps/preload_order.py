"""Runs programs with tcmalloc, jemalloc and AddressSanitizer, in either order in LD_PRELOAD. The output is unchanged, and every call is
in the trace.

    preload_order.py tcmalloc | jemalloc | asan
"""
import glob
import subprocess
import sys

from trap_test import LINKED, WORKLOADS, Session, compiled, equal, preloads, skip

FILES = {"tcmalloc": "libtcmalloc_minimal.so.4", "jemalloc": "libjemalloc.so.2", "asan": "libasan.so"}
(name,) = sys.argv[1:]


def find():
    if name == "asan":
        found = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
        return found if "/" in found else None
    return next(iter(glob.glob("/usr/lib/*-linux-gnu/" + FILES[name])), None)


other = find()
if not other:
    skip(f"{FILES[name]} is not installed")
ASAN = {"ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"} if name == "asan" else {}

with Session() as s:
    s.start_daemon()
    programs = [[WORKLOADS / "calls", "--via", via, "--threads", 3, "--calls", 2000, "--mix", "training", "--seed", 5]
                for via in ("linked", "dlsym", "procaddress")] + [[WORKLOADS / "threads", "--count", 50],
                                                                  [WORKLOADS / "forks"]]
    if name == "asan":
        # A program that is built with the sanitizer. In such a program, the sanitizer has its own rules about being loaded before or after
        # the hook.
        programs.append([compiled(s, "around_calls.c", *LINKED, "-lpthread", "-fsanitize=address"), "exits"])
    for program in programs:
        plain = s.run(*program, preload=False, env=dict(preloads(other), **ASAN))
        for order in ((other, "HOOK"), ("HOOK", other)):
            done = s.run(*program, preload=False, env=dict(preloads(*order), **ASAN))
            equal((done.stdout, done.stderr), (plain.stdout, plain.stderr), (order, program))
    s.flush()
    s.check_identity(lost=None)
    # The driver also counts the calls of programs that were run without the hook, which are omitted here.
    traced = {pid for (pid,) in s.rows("SELECT pid FROM processes")}
    truth = {key: n for key, n in s.truth().items() if key[0] in traced}
    seen = s.totals()
    wrong = {key: (seen.get(key), n) for key, n in truth.items()
             if seen.get(key) != n}
    equal(wrong, {}, "calls in the trace and in the driver that differ")
    equal(s.value("SELECT count(*) FROM processes WHERE state <> 'exited'"), 0, "processes that did not exit")
