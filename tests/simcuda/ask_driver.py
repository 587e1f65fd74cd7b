#!/usr/bin/env python3
"""Query a CUDA driver, and print its answers as one of this folder's tables.

    ask_driver.py procaddress|errors|attributes [--libcuda FILE] [--check]

This script printed the three tables on one H200 under driver 580.159.04. With --check, the script prints nothing, and fails unless the
driver's answers match the table. The tests use this option to check the simulated driver.
"""

import argparse
import ctypes
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
DRIVER_API = HERE.parent.parent / "proto/driver_api.def"

# All versions of CUDA from 2.0 to 13.0 that added or changed a function.
VERSIONS = [2000, 2010, 2020, 2030, 3000, 3010, 3020, 4000, 4010, 4020, 5000, 5050, 6000, 6050, 7000, 7050,
            8000, 9000, 9010, 9020, 10000, 10010, 10020, 11000, 11010, 11020, 11030, 11040, 11050, 11060,
            11070, 11080, 12000, 12010, 12020, 12030, 12040, 12050, 12060, 12070, 12080, 12090, 13000]
LEGACY_STREAM, PER_THREAD_STREAM = 1, 2

COMMENTS = {
    "procaddress": """\
 * procaddress.def: what cuGetProcAddress_v2 answers for each base name, a row for each export it can choose;
 * no row where it has no choice.
 *
 *   base     the name asked for
 *   since    the requested version from which this export is chosen, until the next row's
 *   export   the function whose address is returned
 *   stream   any: whatever the flags; legacy: without CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
 *            thread: with it""",
    "errors": """\
 * errors.def: every CUresult, its name and its text.""",
    "attributes": """\
 * attributes.def: CUdevice_attribute numbers and their values on the simulated device, which are an H200's.""",
}


def exported_names():
    return re.findall(r"^ROW\((\w+),", DRIVER_API.read_text(), re.M)


def ask_procaddress(cuda):
    names = exported_names()
    export_at = {ctypes.cast(getattr(cuda, name), ctypes.c_void_p).value: name for name in names}

    def answers(base, flags):
        rows = []
        for version in VERSIONS:
            address, status = ctypes.c_void_p(), ctypes.c_int(-1)
            result = cuda.cuGetProcAddress_v2(base.encode(), ctypes.byref(address), version,
                                              ctypes.c_uint64(flags), ctypes.byref(status))
            export = export_at[address.value] if result == 0 and address.value else None
            if export != (rows[-1][1] if rows else None):
                rows.append((version, export))
        return rows

    for base in sorted({re.sub(r"(_v\d+)?(_pt[sd][sz])?$", "", name) for name in names}):
        legacy, thread = answers(base, LEGACY_STREAM), answers(base, PER_THREAD_STREAM)
        if legacy == thread and len(legacy) < 2:
            continue
        for kind, rows in (("any", legacy),) if legacy == thread else (("legacy", legacy), ("thread", thread)):
            for since, export in rows:
                yield f"PROC({base + ',':<40} {since:>5}, {export + ',':<46} {kind})"


def ask_errors(cuda):
    for code in range(1000):
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        if cuda.cuGetErrorName(code, ctypes.byref(name)) == 0:
            cuda.cuGetErrorString(code, ctypes.byref(text))
            yield f'ERROR({name.value.decode()}, {code}, "{text.value.decode()}")'


def ask_attributes(cuda):
    names = dict((int(number), name) for name, number in
                 re.findall(r"^ATTRIBUTE\((\w+), (\d+),", (HERE / "attributes.def").read_text(), re.M))
    cuda.cuInit(0)
    for number in range(1, 1000):
        value = ctypes.c_int()
        if cuda.cuDeviceGetAttribute(ctypes.byref(value), number, 0) == 0:
            yield f"ATTRIBUTE({names.get(number, f'UNNAMED_{number}')}, {number}, {value.value})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table", choices=sorted(COMMENTS))
    parser.add_argument("--libcuda", default="libcuda.so.1", help="the driver's library")
    parser.add_argument("--check", action="store_true", help="compare with the table instead of printing one")
    options = parser.parse_args()

    rows = list(globals()["ask_" + options.table](ctypes.CDLL(options.libcuda)))
    if not options.check:
        origin = " * Printed by ask_driver.py under driver 580.159.04, one H200."
        print("/*", COMMENTS[options.table], " *", origin, " */", "", *rows, sep="\n")
        return 0
    table = HERE / f"{options.table}.def"
    expected = [line for line in table.read_text().splitlines() if re.match(r"[A-Z]+\(", line)]
    differing = sorted(set(rows) ^ set(expected))
    for row in differing:
        print("driver answers:" if row in rows else f"{table.name} says:", row, file=sys.stderr)
    return 1 if differing or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
