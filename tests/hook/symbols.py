"""Checks the imports and exports of the built hook. The hook must not require a glibc newer than 2.17, or any library
that is not part of glibc. The hook's only exports may be the runtime's functions, a few other functions that it interposes, and its entry
points. The hot path must not use vector registers or locked instructions."""
import argparse
import pathlib
import re
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("hook", type=pathlib.Path)
parser.add_argument("driver_table", type=pathlib.Path)
parser.add_argument("runtime_table", type=pathlib.Path)
parser.add_argument("gpu_library", type=pathlib.Path)
parser.add_argument("--objdump", required=True, help="one that knows the hook's architecture")
arguments = parser.parse_args()
hook, objdump = arguments.hook, arguments.objdump

# {ELF machine: (pattern of a vector register, pattern of an atomic instruction)}, for the disassembly. On aarch64, the atomic
# instructions are exclusive accesses (including the acquire and release forms), LSE instructions, and libgcc's functions that choose
# between them.
MACHINES = {
    "X86-64": (r"%[xyz]mm\d", r"\block\b|\bxchg\b.*\("),
    "AArch64": (r"\b[bhsdqv]\d+\b",
                r"\b(ld|st)a?l?xp?r?[bh]?\b|\b(cas|casp|swp|ld(add|clr|eor|set|[su]max|[su]min)|"
                r"st(add|clr|eor|set|[su]max|[su]min))a?l?[bh]?\b|__aarch64_"),
}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(str(w) for w in what))


for library in (hook, arguments.gpu_library):
    dynamic = output(objdump, "-T", library)
    newest = (2, 17)
    for line in dynamic.splitlines():
        version = re.search(r"\bGLIBC_(\d+)\.(\d+)", line)
        check(not version or tuple(map(int, version.groups())) <= newest, "newer than glibc 2.17:", library, line)
    check("GLIBC_2." in dynamic, "objdump shows no versions at all in", library)
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", library)))
    allowed = {"libc.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}
    check(needed <= allowed and "libc.so.6" in needed, "libraries of", library, needed)
exports = {line.split()[-1] for line in output("nm", "-D", "--defined-only", arguments.gpu_library).splitlines()}
check(exports == {"cudatrace_gpu_record"}, "exports of the library for GPU work:", exports)


# The C library reserves little thread-local storage for libraries that are loaded late, and the hook must use only a small part of it
# (SECURITY.md, "What the hook takes of the program").
tls = re.search(r"^ *TLS +\S+ +\S+ +\S+ +\S+ +(0x[0-9a-f]+)", output("readelf", "-lW", hook), re.M)
check(tls and int(tls.group(1), 16) <= 128, "thread-local storage:", tls)


def rows(table):
    return set(re.findall(r"^ROW\((\w+),", table.read_text(), re.M))


exported = {line.split()[-1]: line.split()[-2] for line in output("nm", "-D", "--defined-only", hook).splitlines()
            if not line.split()[-2].islower()}  # local
functions, runtime_functions = rows(arguments.driver_table), rows(arguments.runtime_table)
check(len(functions) == 682 and len(runtime_functions) == 451, "rows in the tables:", len(functions), len(runtime_functions))
machine = re.search(r"Machine: .*?(X86-64|AArch64)", output("readelf", "-h", hook)).group(1)
# The runtime's functions are exported with a single `@`, as opposed to `@@`, so that references without a version do not bind to them.
runtime_versions = ["libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"]
versioned = {f"{name}@{version}" for name in runtime_functions for version in runtime_versions}
if machine == "AArch64":  # without the runtime's layer
    versioned = set()
wanted = versioned | {"dladdr", "dladdr1", "dlsym", "dlvsym", "_Fork", "_exit", "_Exit", "InitializeInjectionNvtx2", "cudatrace_visit", "ioctl", "prctl", "syscall", "vfork"}
versions = {name for name, kind in exported.items() if kind == "A"}
check(set(exported) - versions == wanted, "exports that differ:", (set(exported) - versions) ^ wanted)
check({name.partition("@")[0] for name in versions} == {"CUDATRACE", *runtime_versions}, "versions:", versions)
check({exported[name] for name in wanted} == {"T"}, "exports that are no functions:",
      {name for name in wanted if exported[name] != "T"})
definitions = re.findall(r"Index: (\d+) .*Name: (\S+)", output("readelf", "-VW", hook).partition("Version needs")[0])
check(dict(definitions).get("2") == "CUDATRACE", "the first version is the one without symbols:", definitions)

vector, atomic = MACHINES[machine]
wrappers = [f"ct_wrap{clock}_{name}" for clock in ("", "_clock") for name in ("plain", "plain_2", "launch", "launch_ex")] if machine == "X86-64" else []


def check_inputs(function, instructions):
    """Checks that the function reads each register that the trampoline has set, and does not overwrite that register first."""
    for register, names in {"r11": r"%r11[dwb]?", "r10": r"%r10[dwb]?", "rax": r"%[re]?ax|%al"}.items():
        first = next((i for i in instructions if re.search(rf"({names})\b", i)), "")
        destination = re.split(r",(?![^(]*\))", first)[-1]
        check(first and (not re.fullmatch(names, destination.strip()) or first.startswith("cmp")), function, "loses", register,
              "by:", first)


for function in ["ct_enter", "ct_leave", *wrappers]:
    code = output(objdump, "-d", "--no-show-raw-insn", f"--disassemble={function}", hook)
    check(f"<{function}>:" in code, function, "is not in the file")
    instructions = re.findall(r"^ +[0-9a-f]+:\s+(.*)$", code, re.M)
    check(len(instructions) > 20, function, "has", len(instructions), "instructions")
    for what, pattern in (("touches a vector register:", vector), ("has an atomic instruction:", atomic)):
        check(not any(re.search(pattern, i) for i in instructions), function, what,
              [i for i in instructions if re.search(pattern, i)])
    if function in wrappers:
        check_inputs(function, instructions)

undefined = {line.split()[-1].partition("@")[0]: line.split()[-2] for line in output("nm", "-D", "--undefined-only", hook).splitlines()}

# If the hook calls a function by its symbol, another library may interpose that function, which would then run before its library is
# initialised. The functions below are interposed only by sanitizers, which expect early calls. All other functions belong in
# hook/base/libc.h.
DATA = {"environ", "__environ", "program_invocation_name", "__progname_full", "_r_debug"}
STRINGS = {"memcmp", "memcpy", "memset", "memmove", "strchr", "strcmp", "strcspn", "strlen", "strncmp", "strncpy", "strnlen", "strrchr", "strspn",
           "strstr", "strtoul", "strtoull"} | {"bcmp", "strcpy"}  # clang's choice for some memcmp() and snprintf()
OF_THE_LIBRARY = {"__errno_location", "__cxa_at_quick_exit", "__cxa_finalize", "__gmon_start__", "__register_atfork", "gnu_get_libc_version", "__getauxval",
                  "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"}
BY_SYMBOL_IN_MUSL = {"dl_iterate_phdr"}
others = set(undefined) - DATA - STRINGS - OF_THE_LIBRARY - BY_SYMBOL_IN_MUSL
check(not others, "not in hook/base/libc.h, and another library may interpose it:", sorted(others))

# musl's loader refuses to load a library that needs a missing symbol, and the program would then not start. Symbols that musl lacks must
# therefore be weak. The list is for musl 1.2, which treats libc.so.6, libdl.so.2 and the other libraries above as names for itself.
LACKED_BY_MUSL = {"__cxa_at_quick_exit", "__register_atfork", "gnu_get_libc_version", "_r_debug"}
strong = {name for name, kind in undefined.items() if kind not in "wv"}
check(not strong & LACKED_BY_MUSL and LACKED_BY_MUSL <= set(undefined), "not weak:", strong & LACKED_BY_MUSL,
      "or not needed any more:", LACKED_BY_MUSL - set(undefined))
musl = pathlib.Path("/usr/lib/x86_64-linux-musl/libc.so")
if machine == "X86-64" and musl.exists():
    has = {line.split()[-1] for line in output("nm", "-D", "--defined-only", musl).splitlines()}
    check(strong <= has, "musl has not:", strong - has)
