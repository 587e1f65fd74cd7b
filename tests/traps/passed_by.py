"""Tests programs that obtain the driver in ways that bypass preloaded libraries: RTLD_DEEPBIND, dlmopen, and a dlsym obtained with dlvsym.
The programs' results must be unchanged, and their calls must be in the trace, whether or not the driver has slots.

    passed_by.py deepbind | dlmopen | dlvsym
"""
import sys

from trap_test import LINKED, Session, compiled, equal, library, recorded, same

(way,) = sys.argv[1:]

PLUGIN = """#include "cuda_min.h"
int plugin_run(void)
{
    int version = 0;
    return cuInit(0) == CUDA_SUCCESS && cuDriverGetVersion(&version) == CUDA_SUCCESS ? version : -1;
}
"""

with Session() as s:
    library(s, PLUGIN, "plugin.so", *LINKED)
    print(same(s, way, compiled(s, "passed_by.c"), way, *([s.dir] if way == "deepbind" else [])).stdout, end="")
    equal(recorded(s), {"cuInit": 1, "cuDriverGetVersion": 1}, "what the trace has of it")
