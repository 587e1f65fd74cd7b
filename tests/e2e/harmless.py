"""Tests that a traced program behaves like an untraced one, even under a limit on file sizes, or if another library exports the driver's
names."""
import os
import subprocess

from cudatrace_test import Session, WORKLOADS, equal

with Session() as s:

    def same(what, *command, lost=0, **options):
        """Checks that the program's results do not change if the hook is loaded, with and without a daemon. Returns the program's
        standard output."""
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

    # This program does not load a driver.
    mock = s.dir / "mock"
    mock.mkdir()
    (mock / "mock.c").write_text("int cuInit(unsigned f) { return f == 7 ? 77 : 1; }\n")
    (mock / "use.c").write_text("#include <stdio.h>\nint cuInit(unsigned);\n"
                                "int main(void) { printf(\"%d\\n\", cuInit(7)); return 0; }\n")
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", mock / "libmock.so", mock / "mock.c"], check=True)
    subprocess.run([compiler, "-o", mock / "use", mock / "use.c", mock / "libmock.so", f"-Wl,-rpath,{mock}"], check=True)
    equal(same("another library's cuInit", mock / "use", env={"LD_LIBRARY_PATH": ""}), "77\n", "its result")

    # The limit must not cause a signal. This test comes last because it loses calls.
    same("ulimit -f", "sh", "-c", f"ulimit -f 100; exec {WORKLOADS}/calls --calls 5000 --mix getctx", lost=None)
