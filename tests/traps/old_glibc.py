"""Tests the hook with a real old C library, in a container root whose glibc has separate libdl and libpthread libraries. LD_BIND_NOW is
set, so that every symbol must exist.

    CUDATRACE_OLD_ROOT=ROOT old_glibc.py
    old_glibc.py --make-root ROOT [SUITE]     makes a root with debootstrap (Debian 11: glibc 2.31), as root

The root needs gcc and libc6-dev, because the simulated driver and the workloads are built in it. Without a root, the test is skipped.
"""
import glob
import os
import pathlib
import shutil
import subprocess
import sys

from trap_test import BUILD, HOOK, SOURCE, Session, check, equal, mount_namespace, needs, skip


def make_root(root, suite="bullseye"):
    sys.exit(subprocess.run(["debootstrap", "--variant=minbase", "--include=gcc,libc6-dev", suite, root]).returncode)


if "--make-root" in sys.argv:
    make_root(*sys.argv[sys.argv.index("--make-root") + 1:])
root = os.environ.get("CUDATRACE_OLD_ROOT")
if not root:
    skip("CUDATRACE_OLD_ROOT names no container root with an old glibc; --make-root makes one")
needs("mount namespaces")
root = pathlib.Path(root)

# Builds the driver and the workloads inside the root, from the same sources, with the root's C library headers and symbol versions.
BUILD_INSIDE = """set -e
cd /cudatrace
gcc -std=gnu11 -O1 -shared -fPIC -D_GNU_SOURCE -fvisibility=hidden -Itests/simcuda -Ihook/function -o libcuda.so.1 \\
    -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic $(cat simcuda.sources) entries.c -lpthread -lm
for name in calls:mix forks threads graph; do
    gcc -std=gnu11 -O1 -D_GNU_SOURCE -Itests/simcuda -Itests/workloads -o ${name%%:*} tests/workloads/${name%%:*}.c \\
        $([ $name = ${name#*:} ] || echo tests/workloads/${name#*:}.c) tests/workloads/driver.c tests/workloads/workload.c \\
        ./libcuda.so.1 -lpthread -ldl
done
gcc -O1 -D_GNU_SOURCE -Itests/simcuda -o processes tests/traps/around_calls.c ./libcuda.so.1 -lpthread -ldl
"""

with Session() as s:
    inside = s.dir / "root"
    inside.mkdir()
    place = root / "cudatrace"
    shutil.rmtree(place, ignore_errors=True)
    for folder in ("tests/simcuda", "tests/workloads", "tests/traps", "hook"):
        shutil.copytree(SOURCE / folder, place / folder)
    shutil.copy(HOOK, place)
    shutil.copy(BUILD / "tests/simcuda/entries.c", place)
    names = ["compiled.c", *(path.name for path in (SOURCE / "tests/simcuda").glob("sim_*.c"))]
    (place / "simcuda.sources").write_text(" ".join(f"tests/simcuda/{name}" for name in names))
    (place / "counts").mkdir()

    def enter(script, *arguments, **options):
        """Runs a script in the root, with the machine's /proc and with its /dev/shm, which contains the daemon's session."""
        mounts = (f"mount --bind /dev/shm {root}/dev/shm && mount -t proc proc {root}/proc && "
                  f'exec chroot {root} sh -c "$0" "$@"')
        return s.run(*mount_namespace(), "sh", "-c", mounts, script, "sh", *arguments, preload=False, **options)

    os.makedirs(root / "dev/shm", exist_ok=True)
    print(enter("ldd --version | head -1; ldd /cudatrace/libcudatrace.so").stdout)
    enter(BUILD_INSIDE)
    s.start_daemon()
    s.counts = place / "counts"
    runs = 'export LD_LIBRARY_PATH=/cudatrace LD_BIND_NOW=1 SIMCUDA_COUNTS=/cudatrace/counts; cd /cudatrace; "$@"'
    hook = 'export LD_PRELOAD=/cudatrace/libcudatrace.so; ' + runs
    for command in (["./calls", "--via", "linked", "--threads", "3", "--calls", "3000", "--seed", "3"],
                    ["./calls", "--via", "dlsym", "--threads", "3", "--calls", "3000", "--seed", "3"],
                    ["./calls", "--via", "procaddress", "--threads", "3", "--calls", "3000", "--seed", "3"],
                    ["./threads", "--count", "100"], ["./forks"], ["./graph"], ["./processes", "vfork"],
                    ["./processes", "exits"], ["./processes", "host"], ["./processes", "capture"]):
        before = set(glob.glob(str(s.counts / "*")))
        plain = enter(runs, *command)
        for path in set(glob.glob(str(s.counts / "*"))) - before:
            os.unlink(path)
        seen = enter(hook, *command)
        equal((seen.stdout, seen.stderr), (plain.stdout, plain.stderr), command)
    s.flush()
    s.check_identity(lost=None)
    s.check_truth()
    check(s.value("SELECT count(*) FROM calls") > 9000, "calls")
    equal(s.value("SELECT count(*) FROM processes WHERE state <> 'exited'"), 0, "processes that did not exit")
    print(s.value("SELECT count(*) FROM calls"), "calls of", s.value("SELECT count(*) FROM processes"), "processes")
    shutil.rmtree(place)
