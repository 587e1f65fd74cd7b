#!/usr/bin/env python3
"""Compares the arguments that a probe records with the arguments that the hook records for the same program, on a real GPU. Must run as
root.

Each program is run once under `cudatrace run` and once under `cudatrace probe --all`. The program does the same work both times, so its
launches, copies, allocations and module loads must be the same. Launches are compared by kernel and dimensions, copies by direction and
bytes, and allocations by kind and bytes. Addresses, times, and the number of polling calls differ between runs, so they are not compared.
If a program freed a module before the probe could read it, the probe may not know the module's length. The script prints the number of such
modules.

    probe_arguments.py --build build        exit status 0: success, 1: failure, 77: no GPU
"""
import argparse
import collections
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = {
    "training": [sys.executable, HERE / "training.py"],
    "training --graph": [sys.executable, HERE / "training.py", "--graph"],
    "training --compile": [sys.executable, HERE / "training.py", "--compile"],
}
COMPARED = {
    "launches": "SELECT kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, captured FROM launches",
    "copies": "SELECT kind, bytes, async, captured FROM copies",
    "sets": "SELECT bytes, async, captured FROM memsets",
    "allocations": "SELECT kind, bytes, freed_ns IS NULL FROM allocations",
    "loads": "SELECT calls.name FROM module_loads JOIN calls USING (call_id)",
    "graph launches": "SELECT kernel_nodes FROM graph_launches",
}


def rows_of(db, sql):
    connection = sqlite3.connect(f"file:{db}?mode=ro", uri=True)
    return collections.Counter(connection.execute(sql).fetchall())


def with_hook(tools, session, db, program):
    subprocess.run([tools / "cudatrace", "run", "--db", db, "--", *program], check=True, stdout=subprocess.DEVNULL)


def with_probe(tools, session, db, program, daemon_program, probe_program):
    daemon = subprocess.Popen([daemon_program, "--foreground", "--db", db, "--session", session], stderr=subprocess.DEVNULL)
    probe = subprocess.Popen([probe_program, "--all", "--verbose", "--session", session], stderr=subprocess.PIPE, text=True)
    for line in probe.stderr:
        if line.endswith("functions are probed\n"):
            break
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
    probe.send_signal(signal.SIGINT)
    said = probe.stderr.read()
    probe.wait()
    subprocess.run([tools / "cudatrace", "flush", "--session", session], check=True)
    daemon.send_signal(signal.SIGTERM)
    daemon.wait()
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("programs", nargs="*", help=f"of {', '.join(PROGRAMS)} (default: all)")
    options = parser.parse_args()
    if not os.path.exists("/dev/nvidiactl"):
        print("no NVIDIA GPU: /dev/nvidiactl does not exist")
        return 77
    build, failed = options.build.resolve(), 0
    for name in options.programs or PROGRAMS:
        subprocess.run(PROGRAMS[name], check=True, capture_output=True)  # fills caches of compiled kernels
        with tempfile.TemporaryDirectory() as folder:
            dbs = [pathlib.Path(folder) / f"{way}.db" for way in ("hook", "probe")]
            with_hook(build / "tools", "arguments", dbs[0], PROGRAMS[name])
            said = with_probe(build / "tools", "arguments", dbs[1], PROGRAMS[name], build / "collector/cudatraced", build / "probe/cudatrace-probe")
            [(unknown,)] = rows_of(dbs[1], "SELECT count(*) FROM module_loads JOIN calls USING (call_id) WHERE status = 0 AND calls.bytes IS NULL")
            print(f"{name}: {unknown} modules of unknown length; {re.sub(chr(10), ' ', said)}")
            for what, sql in COMPARED.items():
                hook, probe = (rows_of(db, sql) for db in dbs)
                differ = (hook - probe) + (probe - hook)
                failed += bool(differ)
                print(f"  {'FAILED' if differ else 'ok'}: {what}: {sum(hook.values())} rows, {len(hook)} different ones; {sum(differ.values())} differ")
                for row in list(differ)[:8]:
                    print(f"    {hook[row]} with the hook, {probe[row]} with the probe: {row}")
    print(f"{failed} comparisons failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
