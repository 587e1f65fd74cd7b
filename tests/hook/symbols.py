"""What the built hook needs and exports: glibc 2.17 at most, no library but the C library's own, the driver's functions and
the few that are interposed; and no vector register on the hot path."""
import os
import pathlib
import re
import subprocess
import sys

hook, table = map(pathlib.Path, sys.argv[1:3])


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(str(w) for w in what))


dynamic = output("objdump", "-T", hook)
newest = (2, 17)
for line in dynamic.splitlines():
    version = re.search(r"\bGLIBC_(\d+)\.(\d+)", line)
    check(not version or tuple(map(int, version.groups())) <= newest, "newer than glibc 2.17:", line)
check("GLIBC_2." in dynamic, "objdump shows no versions at all")

needed = set(re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", hook)))
allowed = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}
check(needed <= allowed and "libc.so.6" in needed, "libraries:", needed)

exported = {line.split()[-1]: line.split()[-2] for line in output("nm", "-D", "--defined-only", hook).splitlines()}
functions = set(re.findall(r"^ROW\((\w+),", table.read_text(), re.M))
check(len(functions) == 682, "rows in the table:", len(functions))
interposed = {"dlsym", "_exit", "_Exit", "ioctl"}
check(set(exported) == functions | interposed, "exports that differ:", set(exported) ^ (functions | interposed))
check(set(exported.values()) == {"T"}, "exports that are no functions:",
      {n for n, kind in exported.items() if kind != "T"})

for function in ("ct_enter", "ct_leave"):
    code = output("objdump", "-d", f"--disassemble={function}", hook)
    check(f"<{function}>:" in code, function, "is not in the file")
    check(not re.search(r"%[xyz]mm", code), function, "touches a vector register")
    check(not re.search(r"\block\b", code), function, "has a locked instruction")
