/* Queries the driver for names of kernels.
 *
 * A launch accepts a CUfunction or a CUkernel, and a handle does not reveal which of them it is.
 * cuFuncGetName() accepts only the one, and cuKernelGetName() only the other. If the handle is of the other
 * kind, the function returns CUDA_ERROR_INVALID_HANDLE, and reads nothing that it may not read (H200, driver
 * 580.159.04, also in a thread without a context and during a stream capture). The driver then also writes
 * two lines to its log of errors, and allocates memory the first time. The kind that the last kernel had is
 * therefore tried first. */
#include "error_guard.h"
#include "rows.h"
#include "setting.h"
#include "stack.h"
#include "symbol.h"
#include "system.h"
#include "target_access.h"

typedef int32_t name_function(const char **name, uint64_t kernel);

/* The functions, which drivers have from CUDA 12.3 on. */
static const uint32_t rows[] = { CT_ROW_cuFuncGetName, CT_ROW_cuKernelGetName };
enum { FUNCTION, KERNEL, KINDS };

/* The kind of the last kernel, plus 1; 0: none yet */
static _Atomic uint32_t last;

/* If the hook has seen the program load its code, the unknown handles come from tables returned by
 * cuGetExportTable, as in cuFFT. After an attach, most kernels are libcudart's. */
static uint32_t likely_kind(void)
{
    const uint32_t before = atomic_load_explicit(&last, memory_order_relaxed);
    return before ? before - 1 : ct_symbol_is_visitor() ? KERNEL : FUNCTION;
}

/* Calls the driver's own function, so the query is neither recorded nor counted. */
static const char *query(uint32_t kind, uint64_t kernel)
{
    name_function *function = (name_function *)(uintptr_t)ct_rows[rows[kind]].real;
    const char *name = NULL;
    if (function(&name, kernel) != 0 || !name)
        return NULL;
    atomic_store_explicit(&last, kind + 1, memory_order_relaxed);
    return name;
}

/* The check of the stack may also fail because of old data, so it is repeated at the kernel's next launch.
 * Since each check makes the launch slower, there are not many in a process. In a coroutine, all fail. */
static enum ct_name_query await_plain_stack(void)
{
    enum { CHECKS = 10000 };
    static _Atomic uint32_t checks;
    if (atomic_load_explicit(&checks, memory_order_relaxed) >= CHECKS)
        return CT_NAME_NONE;
    atomic_fetch_add_explicit(&checks, 1, memory_order_relaxed);
    return CT_NAME_LATER;
}

/* The launch is still open, so that CUPTI does not leave the process in the meantime (gpu_gate.h). If
 * $CUDA_LOG_FILE is set, the driver would also write its log of errors to a file or to the program's
 * output. */
enum ct_name_query ct_target_kernel_name(uint64_t kernel, const char **name)
{
    CT_ERROR_GUARD;
    if (!ct_rows[CT_ROW_cuFuncGetName].real || !ct_rows[CT_ROW_cuKernelGetName].real)
        return CT_NAME_NONE;
    if (!ct_stack_is_plain())
        return await_plain_stack();
    if (ct_setting("CUDA_LOG_FILE") || !ct_system_begin())
        return CT_NAME_NONE;
    const uint32_t first = likely_kind();
    *name = query(first, kernel);
    if (!*name)
        *name = query(KINDS - 1 - first, kernel);
    ct_system_end();
    return CT_NAME_QUERIED;
}
