#!/usr/bin/env python3
"""Rewrites hook/driver_api.def from an installed CUDA toolkit and a list of libcuda's exports.

Names come from the export list, categories from CATEGORIES below, stack words from the prototypes in
the CUDA headers. The decoder column belongs to people: it is carried over, row by row. A C compiler does
the parsing that matters: it preprocesses the headers, measures every parameter type, and checks each
prototype as this script understood it against the one that the header declares.

No part of the build runs this; run it when a new driver exports new functions (see docs/hacking.md).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

DEFAULT_INCLUDE = "/usr/local/cuda/include"
HEADERS = ["cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cudaProfiler.h"]

# The first expression that matches from the start of the name decides.
CATEGORIES = [
    ("init", r"cu(Init|DriverGetVersion|GetProcAddress)(_|$)"),
    ("debug", r"cu(Profiler|Coredump|Checkpoint|Logs|GetExportTable)|cudbg"),
    ("sync", r"cu(Ctx|Stream|Event)Synchronize|cuFlushGPUDirectRDMAWrites"),
    ("launch", r"cuLaunch|cuGraphLaunch"),
    ("interop", r"cu(GL|EGL|VDPAU|Graphics|Ipc|External|ImportExternal|DestroyExternal)"),
    ("interop", r"cu(Signal|Wait)ExternalSemaphores|cuDeviceGetNvSciSync"),
    ("graph", r"cuGraph|cuUserObject|cuThreadExchangeStreamCaptureMode"),
    ("graph", r"cuStream(Begin|End|Is)Captur|cuStream(GetCaptureInfo|UpdateCaptureDependencies)"),
    ("copy", r"cuMemcpy"),
    ("set", r"cuMemset"),
    ("memory", r"cuMem|cuMulticast|cuStreamAttachMem"),
    ("memory", r"cuDevice(Get|Set)(Default)?MemPool|cuDevice(Get|Set)?GraphMem"),
    ("event", r"cuEvent|cuStreamWaitEvent|cu(Green)?Ctx(Record|Wait)Event"),
    ("stream", r"cuStream|cuGreenCtxStreamCreate"),
    ("context", r"cuCtx|cuGreenCtx|cuDevicePrimaryCtx"),
    ("device", r"cuDevice|cuDev(Sm)?Resource"),
    ("image", r"cu(Array|MipmappedArray|Tex(Ref|Object)|Surf(Ref|Object)|TensorMap)"),
    ("query", r"cu(Occupancy|Pointer|GetError)"),
    ("query", r"cu(Func|Kernel)([GS]etAttribute|GetParamInfo|SetCacheConfig|SetSharedMemConfig)"),
    ("module", r"cu(Module|Library|Link|Func|Kernel|Param)"),
]

# The debugger's entry points are declared in cudadebugger.h, which most toolkit installations leave out.
# They return void or a 32-bit result; the letters are those of the signatures file.
DEBUGGER_SIGNATURES = {
    "cudbgApiAttach": "",
    "cudbgApiDetach": "",
    "cudbgApiInit": "i",
    "cudbgGetAPI": "iiip",
    "cudbgGetAPIVersion": "ppp",
    "cudbgMain": "iiiiiiiii",
    "cudbgReportDriverApiError": "",
    "cudbgReportDriverInternalError": "",
}
RETURNS_VOID = [
    "cudbgApiAttach",
    "cudbgApiDetach",
    "cudbgApiInit",
    "cudbgReportDriverApiError",
    "cudbgReportDriverInternalError",
]

# Structs of at most 16 bytes travel in registers, as what they are made of says; the value is the letter.
SMALL_STRUCTS = {"CUmemLocation": "L"}

# Copied for a function whose prototype nobody knows: the most arguments that any driver function has.
UNKNOWN_STACK_WORDS = 16

# cudaGL.h and cudaEGL.h include headers that a machine need not have; of those only these types matter.
STAND_INS = {
    "GL/gl.h": "typedef unsigned int GLenum;\ntypedef unsigned int GLuint;\n",
    "EGL/egl.h": "typedef int EGLint;\n",
    "EGL/eglext.h": "typedef void *EGLImageKHR;\ntypedef void *EGLStreamKHR;\ntypedef void *EGLSyncKHR;\n",
}
VDPAU_TYPES = (
    "typedef unsigned int VdpDevice;\n"
    "typedef unsigned int VdpVideoSurface;\n"
    "typedef unsigned int VdpOutputSurface;\n"
    "typedef int VdpGetProcAddress(unsigned int, unsigned int, void **);\n"
)

TABLE_HEADER = """\
/*
 * driver_api.def: the whole surface of the CUDA driver, one row for each function that libcuda exports.
 *
 * All else that knows driver functions by name is derived from this file: the hook's stubs and its table of
 * rows, the simulated driver and the tests include it, each with a ROW() of its own. The rows are in ASCII
 * order of their names; a function's place is its row number within one build and nothing more.
 *
 *   name      as exported, version and _ptds or _ptsz included
 *   category  init, device, context, module, memory, copy, set, launch, stream, event, sync (the host
 *             waits for the GPU), graph, image, interop, query, debug
 *   stack     what a call has beyond six integer arguments, in 8-byte words, and BY_VALUE(bytes) for each
 *             struct by value larger than 16 bytes: hook/hook.h makes of it what lies on the stack of an
 *             architecture. 16 where no header declares the function.
 *   decoder   what the hook reads from the arguments beyond time and status; none for nothing
 *
 * tools/import_driver_api.py rewrites the first three columns from an installed CUDA toolkit and the exports
 * of a driver. It keeps this comment and the decoders, which are maintained by hand.
 */
"""

ROW = re.compile(r"ROW\(\s*(\w+)\s*,\s*(\w+)\s*,\s*([\w() +]+?)\s*,\s*([^()]*?)\s*\)$")
PROTOTYPE = re.compile(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(([^;{}]*)\)\s*;")
STATUS_ENUM = re.compile(r"typedef\s+enum\s+cudaError_enum\s*\{([^}]*)\}\s*CUresult\s*;")


class Failure(Exception):
    """Ends the run with one line on stderr and exit code 1."""


def run(command, what):
    """Returns what the command printed; `what` says what for, should it fail."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Failure(f"{what}: cannot run {command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        first = next((line for line in lines if "error" in line), lines[0])
        raise Failure(f"{what}: {first}")
    return done.stdout


def read_text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def write_text(path, text):
    """Replaces the file in one step, so that an interrupted run leaves the old one."""
    temporary = path + ".new"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error


# --- Names ---------------------------------------------------------------------------------------------


def read_exports(path):
    """Returns the function exports of a libcuda.so.1, or of a file of `name<TAB>kind` lines."""
    try:
        with open(path, "rb") as file:
            is_library = file.read(4) == b"\x7fELF"
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from error
    names = set()
    if is_library:
        for line in run(["nm", "-D", "--defined-only", path], path).splitlines():
            fields = line.split()
            if len(fields) >= 2 and fields[-2] in ("T", "W", "i"):
                names.add(fields[-1].split("@")[0])
    else:
        for line in read_text(path).splitlines():
            fields = line.split("\t")
            if not line.startswith("#") and len(fields) >= 2 and fields[1].strip() == "function":
                names.add(fields[0].strip())
    names = sorted(name for name in names if re.match(r"cu([A-Z]|dbg)\w*$", name))
    if not names:
        raise Failure(f"{path}: exports no driver function; give a libcuda.so.1 or name<TAB>function lines")
    return names


def category_of(name):
    for category, pattern in CATEGORIES:
        if re.match(pattern, name):
            return category
    raise Failure(f"{name}: no category; add an expression to CATEGORIES in {os.path.basename(__file__)}")


# --- Prototypes ----------------------------------------------------------------------------------------


def find_compiler():
    for candidate in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if candidate and shutil.which(candidate):
            return candidate
    raise Failure("no C compiler found; install gcc or clang, or set CC")


def parameter_type(parameter):
    """Strips the name off one parameter of a prototype: `const char *name` becomes `const char *`."""
    parameter = " ".join(parameter.split())
    array = re.match(r"(.*?)\w+ ?\[[^\]]*\]$", parameter)
    if array:
        return array.group(1).strip() + " *"
    named = re.match(r"(.*[\s*])([A-Za-z_]\w*)$", parameter)
    words = ("int", "char", "short", "long", "float", "double", "unsigned", "signed", "const", "void")
    if named and named.group(2) not in words and named.group(1).strip() not in ("const", "struct", "enum"):
        return named.group(1).strip()
    return parameter


def parse_prototypes(source):
    """Returns {name: [parameter type, …]} for every CUresult function of preprocessed source."""
    prototypes = {}
    for name, parameters in PROTOTYPE.findall(source):
        parts = [part for part in parameters.split(",") if part.split() not in ([], ["void"])]
        prototypes[name] = [parameter_type(part) for part in parts]
    return prototypes


def letter_of(type_name, size, kind):
    """Returns the signature letter of a type, whose kind is what __builtin_classify_type() said."""
    if kind == 5:
        return "p"
    if kind in (1, 2, 3, 4):
        return {8: "l", 4: "i", 2: "h", 1: "c"}[size]
    if kind == 8:
        return {4: "f", 8: "d"}[size]
    if kind in (12, 13) and size == 64:
        return "S"
    bare = type_name.replace("const ", "").strip()
    if bare in SMALL_STRUCTS:
        return SMALL_STRUCTS[bare]
    raise Failure(f"{type_name}: {size} bytes by value; add a letter for it to {os.path.basename(__file__)}")


class Headers:
    """What the CUDA headers of one installation declare: signatures, status codes, version."""

    def __init__(self, include):
        if not os.path.isfile(os.path.join(include, "cuda.h")):
            raise Failure(f"{include}: holds no cuda.h; name the toolkit's include directory with --include")
        self.compiler = find_compiler()
        with tempfile.TemporaryDirectory() as directory:
            self.directory = directory
            for path, text in STAND_INS.items():
                os.makedirs(os.path.dirname(os.path.join(directory, path)), exist_ok=True)
                write_text(os.path.join(directory, path), text)
            # The old versions of functions are declared only under this macro, the _ptds and _ptsz variants too.
            present = [name for name in HEADERS if os.path.isfile(os.path.join(include, name))]
            prelude = "#define __CUDA_API_VERSION_INTERNAL 1\n" + VDPAU_TYPES
            prelude += "".join(f"#include <{name}>\n" for name in present)
            source_path = os.path.join(directory, "headers.c")
            write_text(source_path, prelude)
            self.flags = ["-w", "-std=gnu11", "-I", directory, "-I", include]
            source = run([self.compiler, "-E", "-P", *self.flags, source_path], "preprocessing the headers")
            prototypes = parse_prototypes(source)
            codes = STATUS_ENUM.search(source)
            if not prototypes or not codes:
                raise Failure(f"{include}/cuda.h: found no functions or no CUresult in it")
            names = [part.split("=")[0].strip() for part in codes.group(1).split(",") if part.strip()]
            self.measure(prelude, prototypes, names)

    def measure(self, prelude, prototypes, status_names):
        """Compiles and runs a program that checks the prototypes and prints sizes, kinds and codes."""
        types = sorted({each for parameters in prototypes.values() for each in parameters})
        lines = [prelude, "#include <stdio.h>"]
        for name, parameters in sorted(prototypes.items()):
            prototype = f"CUresult({', '.join(parameters) or 'void'})"
            lines.append(
                f"_Static_assert(__builtin_types_compatible_p(__typeof__({name}), {prototype}), "
                f'"{name} is not {prototype}");'
            )
        lines.append("int main(void)\n{")
        lines.append('    printf("version %d\\n", CUDA_VERSION);')
        for index, each in enumerate(types):
            lines.append(
                f'    printf("type {index} %zu %d\\n", sizeof({each}), '
                f"__builtin_classify_type(*({each} *)0));"
            )
        for name in status_names:
            lines.append(f'    printf("status {name} %d\\n", (int){name});')
        lines.append("    return 0;\n}\n")
        path = os.path.join(self.directory, "measure.c")
        program = os.path.join(self.directory, "measure")
        write_text(path, "\n".join(lines))
        run([self.compiler, *self.flags, "-o", program, path], "checking the prototypes")

        letters = {}
        self.status = []
        for line in run([program], "measuring the types").splitlines():
            fields = line.split()
            if fields[0] == "version":
                self.version = f"{int(fields[1]) // 1000}.{int(fields[1]) % 1000 // 10}"
            elif fields[0] == "type":
                name = types[int(fields[1])]
                letters[name] = letter_of(name, int(fields[2]), int(fields[3]))
            else:
                self.status.append((int(fields[2]), fields[1]))
        self.status.sort()
        self.signatures = {
            name: "".join(letters[each] for each in parameters) for name, parameters in prototypes.items()
        }

    def signature(self, name):
        """Returns the letters for an exported name, or None when no header declares it."""
        variants = [name, re.sub(r"_pt[ds][sz]$", "", name)]
        variants.append(re.sub(r"_v\d+$", "", variants[1]))
        for variant in variants:
            if variant in self.signatures:
                return self.signatures[variant]
        return DEBUGGER_SIGNATURES.get(name)


def stack_column(name, signature):
    """Returns the stack column: what hook/hook.h turns into the stack words of an architecture."""
    integers = sum(letter in "plihcL" for letter in signature)
    if sum(letter in "fd" for letter in signature) > 8:
        raise Failure(f"{name}: more floats than there are registers, for which the stack column has no form")
    words = max(integers - 6, 0)
    structs = ["BY_VALUE(64)"] * signature.count("S")
    return " + ".join(([str(words)] if words or not structs else []) + structs)


# --- Files ---------------------------------------------------------------------------------------------


def read_table(path):
    """Returns (text before the rows, {name: (category, stack, decoder)}, text after the rows)."""
    if not os.path.exists(path):
        return TABLE_HEADER + "\n", {}, ""
    lines = read_text(path).splitlines(keepends=True)
    at = [index for index, line in enumerate(lines) if line.startswith("ROW(")]
    if not at:
        raise Failure(f"{path}: holds no ROW(…) line, so it is not the table; remove it to start a new one")
    rows = {}
    for index in range(at[0], at[-1] + 1):
        match = ROW.match(lines[index].strip())
        if not match:
            raise Failure(f"{path}:{index + 1}: not a row; comments stand before the first or after the last")
        rows[match.group(1)] = (match.group(2), match.group(3), match.group(4))
    return "".join(lines[: at[0]]), rows, "".join(lines[at[-1] + 1 :])


def format_table(before, rows, after):
    width = max(55, max(len(name) for name in rows) + 2)
    body = "".join(
        f"ROW({name + ',':<{width}}{category + ',':<8} {words:>2}, {decoder})\n"
        for name, (category, words, decoder) in sorted(rows.items())
    )
    return before + body + after


def format_signatures(signatures, unknown, version):
    lines = [
        "/*",
        " * signatures.def: the parameters of every driver function that a CUDA header declares, a letter each.",
        " *",
        f" * Written by tools/import_driver_api.py from the headers of CUDA {version}. Tests include it to call every",
        " * row of hook/driver_api.def with arguments that can be recognised on the other side.",
        " *",
        " *   p  pointer or handle           f  float, in a vector register",
        " *   l  64-bit integer              d  double, in a vector register",
        " *   i  32-bit integer or enum      L  struct of 8 bytes by value, in one integer register",
        " *   h  16-bit integer              S  struct of 64 bytes by value",
        " *   c  8-bit integer",
        " *",
        " * The result is a CUresult, or as wide, but for these, which return nothing:",
        *(f" *   {name}" for name in RETURNS_VOID if name in signatures),
    ]
    if unknown:
        lines += [" * Exported, declared by no header, and so without a row here:"]
        lines += [f" *   {name}" for name in unknown]
    lines += [" */", ""]
    lines += [f"SIG({name + ',':<55}\"{letters}\")" for name, letters in sorted(signatures.items())]
    return "\n".join(lines) + "\n"


def format_status(status, version):
    rows = ",\n".join(f"    ('driver', {code:>3}, '{name}')" for code, name in status)
    return (
        "-- The names of the driver's status codes: every CUresult of cuda.h, CUDA "
        f"{version}.\n-- Written by tools/import_driver_api.py --status; loaded when a database is created.\n\n"
        f"INSERT INTO status(layer, status, name) VALUES\n{rows};\n"
    )


def report(old, new):
    """Prints what differs between two tables, a line for each row."""
    for name in sorted(new.keys() - old.keys()):
        print(f"added    {name}: {new[name][0]}, {new[name][1]}")
    for name in sorted(old.keys() - new.keys()):
        print(f"removed  {name}" + ("" if old[name][2] == "none" else f", and its decoder {old[name][2]}"))
    changed = [name for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    for name in changed:
        print(f"changed  {name}: {old[name][0]}, {old[name][1]} -> {new[name][0]}, {new[name][1]}")
    print(
        f"{len(new)} rows: {len(new.keys() - old.keys())} added, {len(old.keys() - new.keys())} removed, "
        f"{len(changed)} changed; {sum(row[1] != '0' for row in new.values())} go beyond six registers"
    )


def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Rewrites name, category and stack words of the driver table from an installed CUDA "
        "toolkit and a driver's exports. The decoder column and the opening comment are kept.",
        epilog="Exit codes: 0, 1 for a failure, 2 for wrong usage. The C compiler is $CC, else cc, gcc or clang.",
    )
    parser.add_argument("table", metavar="driver_api.def", help="the table, hook/driver_api.def; created if absent")
    parser.add_argument(
        "--include", metavar="DIR", default=DEFAULT_INCLUDE, help="directory of cuda.h (default: %(default)s)"
    )
    parser.add_argument(
        "--exports",
        metavar="FILE",
        help="a libcuda.so.1, or lines of name<TAB>function (default: the names that the table has)",
    )
    parser.add_argument("--signatures", metavar="FILE", help="write the signatures for tests, tests/signatures.def")
    parser.add_argument("--status", metavar="FILE", help="write the names of the status codes, schema/status.sql")
    arguments = parser.parse_args()
    if not arguments.exports and not os.path.exists(arguments.table):
        parser.error(f"{arguments.table} does not exist yet; name the driver's exports with --exports")
    return arguments


def import_api(arguments):
    before, old, after = read_table(arguments.table)
    names = read_exports(arguments.exports) if arguments.exports else sorted(old)
    headers = Headers(arguments.include)

    rows, signatures, unknown = {}, {}, []
    for name in names:
        signature = headers.signature(name)
        if signature is None:
            unknown.append(name)
        else:
            signatures[name] = signature
        words = str(UNKNOWN_STACK_WORDS) if signature is None else stack_column(name, signature)
        rows[name] = (category_of(name), words, old[name][2] if name in old else "none")

    write_text(arguments.table, format_table(before, rows, after))
    report(old, rows)
    for name in unknown:
        print(f"unknown  {name}: no header declares it, {UNKNOWN_STACK_WORDS} words assumed")
    if arguments.signatures:
        write_text(arguments.signatures, format_signatures(signatures, unknown, headers.version))
    if arguments.status:
        write_text(arguments.status, format_status(headers.status, headers.version))


def main():
    arguments = parse_arguments()
    try:
        import_api(arguments)
    except Failure as failure:
        print(f"{os.path.basename(__file__)}: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
