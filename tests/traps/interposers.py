"""Tests the hook together with five kinds of memory-limiting libraries, which are loaded before the hook, after it, or both before and
after it. The programs obtain the driver in three ways. The program and the limiters must see the same results as without the hook, and the
trace must contain the calls to the driver."""
from trap_test import LINKED, Session, check, compiled, equal, library, preloads

KINDS = ["NEXT", "DLSYM", "DLVSYM", "PROC", "HANDLE"]
LIMITED = [("DLSYM", "dlsym"), ("PROC", "linked, cuGetProcAddress")]  # in addition to all linked programs
ORDERS = [["small", "HOOK"], ["HOOK", "small"], ["small", "HOOK", "large"]]

with Session() as s:
    programs = {"linked": [compiled(s, "interposers.c", "-DLINKED", *LINKED, output="linked")]}
    programs["linked, cuGetProcAddress"] = [*programs["linked"], "proc"]
    programs["dlsym"] = [compiled(s, "interposers.c", output="looks_up")]
    programs["dlsym, cuGetProcAddress"] = [*programs["dlsym"], "proc"]
    limiters = {}
    for kind in KINDS:
        for name, kib in ("small", 256), ("large", 1024):
            limiters[kind, name] = library(s, "interposers.c", f"{kind}_{name}.so", "-Wl,-Bsymbolic", f"-DLIMITER={kind}",
                                           f"-DLIMIT_KIB={kib}")
    s.start_daemon()
    # Print a matrix that contains the number of calls in the trace, which must equal the driver's count, and whether the limiter refused
    # memory.
    print(f"{'kind':7} {'preloaded':17}", *(f"{way:>24}" for way in programs))
    for kind in KINDS:
        for order in ORDERS:
            cells = []
            loaded = [one if one == "HOOK" else limiters[kind, one] for one in order]
            for way, command in programs.items():
                without = s.run(*command, preload=False, env=preloads(*(one for one in loaded if one != "HOOK"), ""))
                untraced = {pid for pid, _ in s.truth()}
                seen = s.run(*command, preload=False, env=preloads(*loaded))
                equal((seen.stdout, seen.stderr), (without.stdout, without.stderr), f"{kind}, {order}, {way}")
                if way == "linked" or (kind, way) in LIMITED:
                    check("512 KiB: 2\n" in without.stdout, kind, order, way, "has no limit:", without.stdout)
                s.flush()
                truth = {key: calls for key, calls in s.truth().items() if key[0] not in untraced}
                totals = {key: calls for key, calls in s.totals().items() if key[0] not in untraced}
                equal(totals, truth, f"{kind}, {order}, {way}: calls in the trace and in the driver")
                cells.append(f"{sum(totals.values())}, {'limited' if '512 KiB: 2' in seen.stdout else 'not limited'}")
            print(f"{kind:7} {' '.join(order):17}", *(f"{cell:>24}" for cell in cells))
    s.check_identity()

    # Without a driver, looking up the next function must fail, and no call may recurse forever.
    weak = compiled(s, "interposers.c", "-DWEAK", output="weak")
    init = library(s, "interposers.c", "cuinit.so", "-DCUINIT")
    for order in [["HOOK"], [init, "HOOK"], ["HOOK", init]]:
        without = s.run(weak, preload=False, env={**preloads(*(one for one in order if one != "HOOK"), ""), "LD_LIBRARY_PATH": ""})
        seen = s.run(weak, preload=False, env={**preloads(*order), "LD_LIBRARY_PATH": ""})
        equal((seen.stdout, seen.stderr), (without.stdout, without.stderr), f"no driver, {order}")
