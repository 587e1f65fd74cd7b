"""Tests that the loader ignores the hook when it starts a set-user-ID program. The program's results are unchanged, no calls are counted,
and `cudatrace run` reports this."""
import os
import shutil

from trap_test import LINKED, SIMCUDA, Session, check, compiled, equal, needs, recorded

needs("set-user-ID programs")

with Session() as s:
    program = compiled(s, "around_calls.c", *LINKED, "-lpthread")
    os.chmod(s.dir, 0o755)
    driver = s.dir / "libcuda.so.1"
    shutil.copy(SIMCUDA / "libcuda.so.1", driver)
    # The loader ignores LD_LIBRARY_PATH when it starts a set-user-ID program.
    program = compiled(s, "around_calls.c", *LINKED, "-lpthread", f"-Wl,-rpath,{s.dir}")
    plain = s.run(program, "plain", driver, preload=False).stdout
    equal(plain, "plain: 0 as 0\n", "as an ordinary program")
    os.chown(program, 65534, 65534)
    os.chmod(program, 0o4755)
    said = s.run(program, "plain", driver, preload=False, env={"SIMCUDA_COUNTS": ""}).stdout
    check(not said.endswith("as 0\n"), "it ran with the caller's rights", said)
    done = s.trace(program, "plain", driver, env={"SIMCUDA_COUNTS": ""})
    equal(done.stdout, said, "its output")
    lines = [line for line in done.stderr.splitlines() if line.startswith("cudatrace:")]
    check("is set-user-ID" in lines[0] and "no CUDA driver calls were traced" in lines[1], done.stderr)
    equal(recorded(s), {}, "the trace")
