"""Tests that cuGetProcAddress() returns functions with the same names whether or not the hook is loaded. Makes every query that libcudart
makes (tests/simcuda/cudart-13.0.procaddress.tsv), with each of the flags 0, 1 and 2.

    procaddress.py HOOK [LIBCUDA-DIRECTORY]     (CUDATRACE_WAY=slots: the hook must use slots)

Without a directory, the test queries the machine's own driver. The test compares the symbol names of the returned addresses. Without the
hook, the names come from libcuda's symbols. With the hook, the address of a stub has the name of the stub's symbol. If the driver itself
calls the stubs through its slots, the addresses and names are still libcuda's. No daemon is running, so the test also shows that the names
are the same while no calls are recorded.
"""
import ctypes
import functools
import os
import pathlib
import re
import subprocess
import sys

QUERIES = pathlib.Path(__file__).resolve().parents[1] / "simcuda/cudart-13.0.procaddress.tsv"
FLAGS = (0, 1, 2)


class DlInfo(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("address", ctypes.c_void_p)]


def queries():
    for line in QUERIES.read_text().splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("\t")[:2]
            yield name, int(version)


@functools.cache
def stubs(path):
    """Returns {offset in the file: name} for the hook's stubs."""
    lines = subprocess.run(["nm", path], check=True, capture_output=True, text=True, env={**os.environ, "LD_PRELOAD": ""}).stdout
    return {int(at, 16): name for at, name in re.findall(r"^(\w+) t ct_stub_(\w+)$", lines, re.M)}


def name_of(libc, pointer):
    info = DlInfo()
    if not pointer:
        return "NULL", ""
    found = libc.dladdr(ctypes.c_void_p(pointer), ctypes.byref(info))
    file = os.path.basename(info.file or b"").decode()
    if file.startswith("libcudatrace"):
        return stubs(info.file.decode()).get(pointer - info.base, "(no stub)"), file
    if not found or info.address != pointer:
        return "(no symbol)", file
    return info.name.decode(), file


def ask():
    """Prints one line for each query: name, version, flags, the results of the two query functions, and the symbol."""
    libcuda, libc = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL("libc.so.6")  # its dladdr() reports stubs
    libc.dlsym.restype = ctypes.c_void_p
    libc.dlsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    libcuda.cuInit(0)
    for name, version in queries():
        for flags in FLAGS:
            pointer, status = ctypes.c_void_p(), ctypes.c_int(-1)
            result = libcuda.cuGetProcAddress_v2(name.encode(), ctypes.byref(pointer), version,
                                                 ctypes.c_uint64(flags), ctypes.byref(status))
            symbol, file = name_of(libc, pointer.value if result == 0 else None)
            old = ctypes.c_void_p()
            old_result = libcuda.cuGetProcAddress(name.encode(), ctypes.byref(old), version, ctypes.c_uint64(flags))
            old_symbol, _ = name_of(libc, old.value if old_result == 0 else None)
            print(name, version, flags, result, status.value, symbol, old_result, old_symbol, sep="\t")
            print(file, file=sys.stderr)


def run(hook, directory):
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    env["CUDATRACE_SESSION"] = f"nobody{os.getpid()}"
    if directory:
        env["LD_LIBRARY_PATH"] = directory
    if hook:
        env["LD_PRELOAD"] = hook
    done = subprocess.run([sys.executable, __file__, "ask"], env=env, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"asking failed {'with' if hook else 'without'} the hook: {done.stderr[-2000:]}")
    return done.stdout.splitlines(), done.stderr.splitlines()


def main():
    hook, directory = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    real, _ = run(None, directory)
    traced, files = run(hook, directory)
    wanted = len(list(queries())) * len(FLAGS)
    if len(real) != wanted or wanted < 3 * 400:
        sys.exit(f"{len(real)} answers to {wanted} questions")
    wrong = [(a, b) for a, b in zip(real, traced) if a != b]
    for a, b in wrong[:10]:
        print(f"without: {a}\nwith:    {b}")
    named = [line for line in real if line.split("\t")[5].startswith("cu")]
    if len(named) < wanted // 2:
        sys.exit(f"only {len(named)} of {wanted} answers have a symbol: the comparison says little")
    from_hook = sum(file.startswith("libcudatrace") for file in files)
    # If the hook uses slots, the driver returns its own addresses. With the machine's own driver, the hook may use either slots or names.
    by_slots, by_names = 0, len(named)
    expected = {"slots": [by_slots], "names": [by_names]}.get(os.environ.get("CUDATRACE_WAY"), [by_names] if directory else [by_slots, by_names])
    if from_hook not in expected:
        sys.exit(f"{len(named)} pointers were handed out, of which {from_hook} are the hook's")
    if wrong or len(traced) != wanted:
        sys.exit(f"{len(wrong)} of {wanted} answers differ")
    print(f"{wanted} questions: {len(named)} pointers, {from_hook} of them the hook's, each named as without it")


if __name__ == "__main__":
    ask() if sys.argv[1:] == ["ask"] else main()
