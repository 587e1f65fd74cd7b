"""Tests that cancellation unwinds through the trampoline, on each of the hook's paths to the driver."""
from hook_test import recorder, run
from cudatrace_test import Session, equal, fifo

WANTED = ["cleanup: 0", "cancelled: 1", "cleanup: 1", "cancelled: 1"]

with Session() as s, fifo(s.dir, "blocked") as blocked:
    block = {"SIMCUDA_BLOCK": "cuCtxSynchronize", "SIMCUDA_BLOCK_NOTIFY": blocked}
    equal(run(s, "cancelled", preload=False, env=block), WANTED, "without the hook")
    equal(run(s, "cancelled", env=block), WANTED, "with a dormant hook")
    with recorder(s) as recorded:
        equal(run(s, "cancelled", env=block), WANTED, "with a hook that records")
    equal(recorded, ["cuCtxGetCurrent 3"] * 2, "calls that returned")
