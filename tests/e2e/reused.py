"""Tests an address that is allocated again while the call that freed it has not returned yet. In the trace, each allocation must end with
the call that freed this allocation, and the address must be in device memory."""
import sys

from cudatrace_test import Session, check, equal, fifo

PROGRAM = """
import ctypes, os, sys, threading
blocked, go = (os.open(path, os.O_RDWR) for path in sys.argv[1:])
cuda = ctypes.CDLL("libcuda.so.1")
context, ends = ctypes.c_void_p(), []
def ok(result):
    assert result == 0, result
def get():
    address = ctypes.c_uint64()
    ok(cuda.cuMemAlloc_v2(ctypes.byref(address), 1 << 16))
    return address.value
def give_back(address):
    def call():
        ok(cuda.cuCtxSetCurrent(context))
        ok(cuda.cuMemFree_v2(ctypes.c_uint64(address)))
    ends.append(threading.Thread(target=call))
    ends[-1].start()
    assert os.read(blocked, 1) == b"b"  # it has done its work, and is about to return
ok(cuda.cuInit(0))
ok(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0))
address = get()
for _ in range(2):
    give_back(address)
    assert get() == address
for end in ends:
    os.write(go, b"g")
for end in ends:
    end.join()
host = ctypes.create_string_buffer(64)
ok(cuda.cuMemcpy(ctypes.c_uint64(address), ctypes.c_uint64(ctypes.addressof(host)), 64))
"""

with Session() as s, fifo(s.dir, "blocked") as blocked, fifo(s.dir, "release") as release:
    s.start_daemon()
    s.run(sys.executable, "-c", PROGRAM, blocked, release, env={
        "SIMCUDA_REUSE": "1", "SIMCUDA_BLOCK": "cuMemFree_v2", "SIMCUDA_BLOCK_AT": "return", "SIMCUDA_BLOCK_NOTIFY": blocked,
        "SIMCUDA_BLOCK_RELEASE": release})
    s.flush()
    frees = [row[0] for row in s.rows("SELECT call_id FROM calls WHERE name = 'cuMemFree_v2' ORDER BY start_ns")]
    rows = s.rows("SELECT address, allocated_ns, freed_ns FROM allocations ORDER BY call_id")
    check(len(frees) == 2 and len(rows) == 3, "calls:", frees, rows)
    equal(len({address for address, _, _ in rows}), 1, "addresses")
    check(all(free > rows[2][1] for free in frees), "no call returned late:", frees, rows)
    equal([freed for _, _, freed in rows], [*frees, None], "when each was given back")
    # The hook must know the current allocation at the address, because it derives the direction of a copy from it.
    equal(s.rows("SELECT kind FROM copies"), [("HtoD",)], "the direction of a copy to it")
    s.check_identity()
