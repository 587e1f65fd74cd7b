#!/usr/bin/env python3
"""Checks the driver's functions for names of kernels. The function that fits the handle returns the name, and the other one returns
CUDA_ERROR_INVALID_HANDLE: before and after a launch, in a thread without a context, and while a stream is captured. The capture stays valid.
Runs on the real driver, or on the simulated one.

    name_queries.py [LIBCUDA]         0 for success, 1 for a failure, 77 without a driver or a GPU
"""
import ctypes
import sys
import threading

import compare

INVALID_HANDLE, GLOBAL_CAPTURE = 400, 0
PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry a_kernel() { ret; }
"""


def main():
    try:
        driver = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libcuda.so.1")
    except OSError as error:
        print(error)
        return 77
    if driver.cuInit(0) != 0:
        print("there is no GPU")
        return 77
    report = compare.Report()

    def made(function, *arguments):
        """Calls a function that returns a handle through its first argument."""
        handle = ctypes.c_void_p()
        result = getattr(driver, function)(ctypes.byref(handle), *arguments)
        report.check(result == 0, f"{function} returns {result}")
        return handle

    def query(function, handle):
        name = ctypes.c_char_p()
        return getattr(driver, function)(ctypes.byref(name), handle), name.value

    def launch(handle, stream):
        report.check(driver.cuLaunchKernel(handle, 1, 1, 1, 1, 1, 1, 0, stream, None, None) == 0, "a launch")

    context = made("cuDevicePrimaryCtxRetain", 0)
    driver.cuCtxSetCurrent(context)
    stream = made("cuStreamCreate", 1)
    module, library = made("cuModuleLoadData", PTX), made("cuLibraryLoadData", PTX, None, None, 0, None, None, 0)
    kernel = made("cuLibraryGetKernel", library, b"a_kernel")
    handles = (("a CUfunction", "cuFuncGetName", made("cuModuleGetFunction", module, b"a_kernel")), ("a CUkernel", "cuKernelGetName", kernel))

    def check(when):
        for what, fitting, handle in handles:
            for function in "cuFuncGetName", "cuKernelGetName":
                wanted = (0, b"a_kernel") if function == fitting else (INVALID_HANDLE, None)
                seen = query(function, handle)
                report.check(seen == wanted, f"{function} of {what}, {when}: {seen}")

    report.begin("names of kernels")
    check("before a launch")
    for _, _, handle in handles:
        launch(handle, stream)
    check("after a launch")
    thread = threading.Thread(target=check, args=["without a context"])
    thread.start()
    thread.join()
    report.check(driver.cuStreamBeginCapture_v2(stream, GLOBAL_CAPTURE) == 0, "a capture begins")
    for _, _, handle in handles:
        launch(handle, stream)
    check("during a capture")
    graph = ctypes.c_void_p()
    report.check(driver.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0 and graph, "the capture is still valid")
    of_kernel = made("cuKernelGetFunction", kernel)
    report.check(query("cuFuncGetName", of_kernel) == (0, b"a_kernel"), "cuFuncGetName of a CUkernel's CUfunction")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
