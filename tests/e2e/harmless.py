"""Tests that a traced program behaves like an untraced one, even under a limit on file sizes, or if another library exports functions with
the driver's names."""
import os
import subprocess

from cudatrace_test import Session, WORKLOADS, equal

with Session() as s:

    def same(what, *command, lost=0, **options):
        """Checks that loading the hook, with and without a daemon, does not change the program's results. Returns the program's standard
        output."""
        plain = s.run(*command, preload=False, status=None, **options)
        for daemon in ("dormant", "recording"):
            if daemon == "recording":
                s.start_daemon()
            traced = s.run(*command, status=None, **options)
            equal((traced.returncode, traced.stdout, traced.stderr), (plain.returncode, plain.stdout, plain.stderr),
                  f"{what}, {daemon}")
        s.flush()
        s.check_identity(lost)
        s.stop_daemon()
        return plain.stdout

    # Run a program that does not load the driver, but loads a library that exports a function with the name of a driver function.
    mock = s.dir / "mock"
    mock.mkdir()
    (mock / "mock.c").write_text("int cuInit(unsigned f) { return f == 7 ? 77 : 1; }\n")
    (mock / "use.c").write_text("#include <stdio.h>\nint cuInit(unsigned);\n"
                                "int main(void) { printf(\"%d\\n\", cuInit(7)); return 0; }\n")
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", mock / "libmock.so", mock / "mock.c"], check=True)
    subprocess.run([compiler, "-o", mock / "use", mock / "use.c", mock / "libmock.so", f"-Wl,-rpath,{mock}"], check=True)
    equal(same("another library's cuInit", mock / "use", env={"LD_LIBRARY_PATH": ""}), "77\n", "its result")

    # The hook must not exceed the limit on file sizes, because a signal would then kill the program. This test is the last one, because it
    # loses calls.
    same("ulimit -f", "sh", "-c", f"ulimit -f 100; exec {WORKLOADS}/calls --calls 5000 --mix getctx", lost=None)
