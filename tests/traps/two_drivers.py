"""Tests two images of the driver in one process, which are loaded by path or into separate namespaces. Calls to both images must be
recorded, by slots or by names, whether the program uses dlsym or cuGetProcAddress."""
import shutil

from trap_test import SIMCUDA, Session, compiled, equal, recorded

with Session() as s:
    images = []
    for name in ("one", "two"):
        (s.dir / name).mkdir()
        images.append(shutil.copy(SIMCUDA / "libcuda.so.1", s.dir / name))
    program = compiled(s, "two_drivers.c", "-ldl")
    s.start_daemon()
    for way in ("dlsym", "procaddress", "namespace"):
        plain = s.run(program, way, *images, preload=False).stdout
        equal(s.run(program, way, *images).stdout, plain, way)
        s.flush()
        s.check_identity(lost=0)
        wanted = {"cuInit": 2, "cuCtxGetCurrent": 30, "cuDriverGetVersion": 1}
        if way == "procaddress":
            wanted["cuGetProcAddress_v2"] = 1
        equal(recorded(s, f"% {way} %"), wanted, way)
