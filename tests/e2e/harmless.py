"""The traced program behaves as untraced: cancellation, dlerror, errno, jumps, exec, closed descriptors, limits, other
libraries that have the driver's names."""
import os
import subprocess

from cudatrace_test import Session, WORKLOADS, check, equal

TRAPS = WORKLOADS / "traps"

with Session() as s:
    block = s.dir / "blocked"
    os.mkfifo(block)

    def same(what, *command, **options):
        """With a daemon and without, as if the hook were not there."""
        plain = s.run(*command, preload=False, status=None, **options)
        for daemon in ("dormant", "recording"):
            if daemon == "recording":
                s.start_daemon()
            traced = s.run(*command, status=None, **options)
            equal((traced.returncode, traced.stdout, traced.stderr), (plain.returncode, plain.stdout, plain.stderr),
                  f"{what}, {daemon}")
        s.flush()
        s.check_identity()
        s.stop_daemon()
        return plain

    for trap in ("cancel", "dlerror", "descriptors"):
        check(same(trap, TRAPS, trap).stdout, "nothing was said", trap)
    equal(same("exec", TRAPS, "exec").returncode, 41, "the status after exec")
    equal(s.rows("SELECT state, count(*) FROM processes WHERE cmdline LIKE '%exec%' GROUP BY state"), [("exited", 2)],
          "both images")

    same("longjmp", TRAPS, "longjmp", env={"SIMCUDA_BLOCK": "cuCtxSynchronize", "SIMCUDA_BLOCK_NOTIFY": block})
    equal(s.value("SELECT max(depth) FROM calls"), 0, "the depth after jumps out of calls")
    equal(s.value("SELECT count(*) FROM open_calls"), 0, "calls that were jumped out of")

    # A limit on the size of files must not become a signal.
    same("ulimit -f", "sh", "-c", f"ulimit -f 100; exec {WORKLOADS}/calls --calls 5000 --mix getctx")

    # A library of somebody else's with the driver's names, and no driver in sight.
    mock = s.dir / "mock"
    mock.mkdir()
    (mock / "mock.c").write_text("int cuInit(unsigned f) { return f == 7 ? 77 : 1; }\n")
    (mock / "use.c").write_text("#include <stdio.h>\nint cuInit(unsigned);\n"
                                "int main(void) { printf(\"%d\\n\", cuInit(7)); return 0; }\n")
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", mock / "libmock.so", mock / "mock.c"], check=True)
    subprocess.run([compiler, "-o", mock / "use", mock / "use.c", mock / "libmock.so", f"-Wl,-rpath,{mock}"], check=True)
    equal(same("another library's cuInit", mock / "use", env={"LD_LIBRARY_PATH": ""}).stdout, "77\n", "its result")
