"""Tests programs that the preloaded hook does not trace: static programs, and programs that use musl. The programs' results are
unchanged, no process counts as traced, and `cudatrace run` reports this in one line.

    missed.py static | musl
"""
import sys

from trap_test import LINKED, Session, check, compiled, equal, needs, recorded

(way,) = sys.argv[1:]

PLUGIN = """#include "cuda_min.h"
int plugin_run(void)
{
    int version = 0;
    return cuInit(0) == CUDA_SUCCESS && cuDriverGetVersion(&version) == CUDA_SUCCESS ? version : -1;
}
"""

ALONE = """#include <stdio.h>
int main(void)
{
    puts("alone");
    return 7;
}
"""


def says_nothing_was_traced(s, *command, status=0, before=""):
    s.stop_daemon() if s.daemon else None
    said = s.trace(*command, status=status)
    lines = said.stderr.splitlines()
    check(lines and lines[-1].startswith("cudatrace: run: no CUDA driver calls were traced"), "run said", said.stderr)
    if before:
        equal(len(lines), 2, f"lines in {lines}")
        check(before in lines[0], "run warned", lines)
    return said


with Session() as s:
    compiler, flags, kind = ("cc", ["-static"], "statically linked") if way == "static" else (
        "musl-gcc", [], "musl")
    needs(compiler)
    program = compiled(s, ALONE, *flags, output="alone", compiler=compiler)
    said = says_nothing_was_traced(s, program, status=7, before=f"is {kind}" if way == "static" else "uses musl")
    equal(said.stdout, "alone\n", "its output")
    if way == "musl":
        # A traceable program starts a musl program, in which all functions that the hook interposes must work.
        interposed = compiled(s, "missed_musl.c", output="interposed", compiler=compiler)
        untraced = s.run("sh", "-c", f"{interposed}; exit $?", preload=False, status=7)
        s.start_daemon()
        for run in (s.run, s.trace):
            child = run("sh", "-c", f"{interposed}; exit $?", status=7)
            equal(child.stdout, untraced.stdout, "a child's output")
            check("Error relocating" not in child.stderr, child.stderr)
        s.flush()
        equal(s.value("SELECT count(*) FROM processes"), 0, "processes")
        # Programs that an untraced program starts can still be traced.
        starts = compiled(s, "#include <stdlib.h>\nint main(int n, char **v) { return n == 2 ? system(v[1]) : 1; }\n",
                          output="starts", compiler=compiler)
        traced = compiled(s, PLUGIN + "int main(void) { return plugin_run() < 0; }\n", *LINKED, output="started")
        s.trace(starts, traced)
        equal(recorded(s), {"cuInit": 1, "cuDriverGetVersion": 1}, "what a musl program started")
        s.stop_daemon()
    # The command is looked up in PATH, as a shell does.
    env = {"PATH": f"{s.dir}:/usr/bin:/bin"}
    said = s.cudatrace("run", "--db", s.db, "--", "alone", env=env, status=7)
    check(kind in said.stderr.splitlines()[0], "by PATH", said.stderr)
    # `cudatrace run` prints no such line for a program that can be traced.
    said = s.trace(compiled(s, PLUGIN + "int main(void) { return plugin_run() < 0; }\n", *LINKED, output="seen"))
    equal(said.stderr, "", "about one that was traced")
