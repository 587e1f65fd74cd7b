"""What the built hook needs and exports: glibc 2.17 at most, no library but the C library's own, the driver's functions and
the few that are interposed; and no vector register on the hot path."""
import os
import pathlib
import re
import subprocess
import sys

hook, driver_table, runtime_table = map(pathlib.Path, sys.argv[1:4])


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


def rows(table):
    return set(re.findall(r"^ROW\((\w+),", table.read_text(), re.M))


exported = {line.split()[-1]: line.split()[-2] for line in output("nm", "-D", "--defined-only", hook).splitlines()}
functions, runtime_functions = rows(driver_table), rows(runtime_table)
check(len(functions) == 682 and len(runtime_functions) == 449, "rows in the tables:", len(functions), len(runtime_functions))
# One `@`: a reference without a version is bound to none of them.
runtime_versions = ["libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"]
versioned = {f"{name}@{version}" for name in runtime_functions for version in runtime_versions}
wanted = functions | versioned | {"dlsym", "_exit", "_Exit"}
versions = {name for name, kind in exported.items() if kind == "A"}
check(set(exported) - versions == wanted, "exports that differ:", (set(exported) - versions) ^ wanted)
check({name.partition("@")[0] for name in versions} == {"CUDATRACE", *runtime_versions}, "versions:", versions)
check({exported[name] for name in wanted} == {"T"}, "exports that are no functions:",
      {name for name in wanted if exported[name] != "T"})
definitions = re.findall(r"Index: (\d+) .*Name: (\S+)", output("readelf", "-VW", hook).partition("Version needs")[0])
check(dict(definitions).get("2") == "CUDATRACE", "the first version is the one without symbols:", definitions)

for function in ("ct_enter", "ct_leave"):
    code = output("objdump", "-d", f"--disassemble={function}", hook)
    check(f"<{function}>:" in code, function, "is not in the file")
    check(not re.search(r"%[xyz]mm", code), function, "touches a vector register")
    check(not re.search(r"\block\b", code), function, "has a locked instruction")
