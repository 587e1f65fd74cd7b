/* The ioctl layer, which records the process's requests to the NVIDIA kernel driver. Since libcuda and NVML
 * call the C library's ioctl() through the dynamic linker, the hook can interpose it.
 *
 * A request is for the driver if its descriptor refers to a character device with the device number of
 * /dev/nvidiactl, nvidia-uvm, nvidia-uvm-tools or nvidia-modeset. The request number is checked first,
 * because this is cheap and lets nearly all other ioctls pass immediately, although it is not sufficient.
 *
 * A traced ioctl is recorded as a call in the `ioctl` layer. The request number determines the call's row,
 * and serves as its name until the collector translates it.
 *
 * For tests without a GPU, $CUDATRACE_DEVICES names a directory to use instead of /dev. */
#include "compiler.h"
#include "current.h"
#include "error_guard.h"
#include "ioctl_layout.h"
#include "names.h"
#include "process.h"
#include "real_user.h"
#include "symbol.h"
#include "system.h"
#include "table.h"
#include "trampoline.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

typedef int ioctl_function(int fd, unsigned long request, void *argument);

/* The next definition of ioctl() after the hook's. NULL until the constructors run. */
static ioctl_function *_Atomic next_ioctl;

static struct ct_table rows_by_code;
static _Atomic uint32_t rows_used;
/* For each protocol (`language`), the row shared by all requests that have no row of their own; 0 until that
 * row is created. */
static _Atomic uint32_t other_rows[CT_IOCTL_LANGUAGES];
static _Atomic uint32_t driver_release; /* as returned by ct_ioctl_release() */

/* Device numbers, 0 if unknown. */
static struct file {
    const char *name;
    enum ct_ioctl_language language;
    _Atomic uint64_t device;
} files[] = { { .name = "nvidiactl", .language = CT_IOCTL_ESCAPES },
              { .name = "nvidia-uvm", .language = CT_IOCTL_OF_UVM },
              { .name = "nvidia-uvm-tools", .language = CT_IOCTL_OF_UVM },
              { .name = "nvidia-modeset", .language = CT_IOCTL_OF_MODESET } };

/* ---- identifying the file ---- */

static uint64_t device_number(const char *name)
{
    char path[PATH_MAX];
    const char *directory = getenv("CUDATRACE_DEVICES");
    if (!directory || !*directory)
        directory = "/dev";
    if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
        return 0;
    struct stat status;
    return syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0 && S_ISCHR(status.st_mode)
               ? status.st_rdev
               : 0;
}

/* nvidiactl and nvidiaN have the same major number. */
static bool is_file(uint64_t device, const struct file *file)
{
    const uint64_t known = atomic_load_explicit(&file->device, memory_order_relaxed);
    if (file->language != CT_IOCTL_ESCAPES)
        return known && device == known;
    return known && major(device) == major(known) && minor(device) != CT_IOCTL_MINOR_MODESET;
}

/* If a device does not match, re-reads the files' device numbers, which change if a module is reloaded, or if
 * nvidia-modprobe creates the files after the first check. */
static bool is_driver_file(int fd, enum ct_ioctl_language language)
{
    struct stat status;
    if (ct_real_fstat(fd, &status) != 0 || !S_ISCHR(status.st_mode))
        return false;
    const uint64_t device = status.st_rdev;
    for (size_t i = 0; i < 2 * CT_ARRAY_LENGTH(files); i++) {
        struct file *file = &files[i % CT_ARRAY_LENGTH(files)];
        if (file->language != language)
            continue;
        if (i >= CT_ARRAY_LENGTH(files)) /* second pass */
            atomic_store_explicit(&file->device, device_number(file->name), memory_order_relaxed);
        if (is_file(device, file))
            return true;
    }
    return false;
}

/* The last result for each low-numbered descriptor, for use when system calls are not allowed. Each protocol
 * has a bit (enum ct_ioctl_language). */
enum { KNOWN_FILES = 4096 };
static _Atomic uint8_t known[KNOWN_FILES];

static bool is_driver(int fd, enum ct_ioctl_language language)
{
    const uint8_t bit = (uint8_t)(1U << language);
    _Atomic uint8_t *bits = fd >= 0 && fd < KNOWN_FILES ? &known[fd] : NULL;
    if (!ct_system_begin())
        return bits && atomic_load_explicit(bits, memory_order_relaxed) & bit;
    const bool driver = is_driver_file(fd, language);
    ct_system_end();
    if (bits && driver != !!(atomic_load_explicit(bits, memory_order_relaxed) & bit))
        atomic_store_explicit(bits, driver ? bit : 0, memory_order_relaxed);
    return driver;
}

/* ---- choosing the row ---- */

/* A call in progress. */
struct traced {
    struct ct_frame frame; /* first */
    struct ct_ioctl ioctl;
    uint32_t request;
    int error; /* errno after the call */
};

static void decode_ioctl(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    const struct traced *traced = (const struct traced *)(const void *)frame;
    decoded->kind = CT_KIND_OBJECTS;
    decoded->payload_bytes = sizeof(decoded->payload.objects);
    ct_ioctl_objects(traced->ioctl.space, traced->request, traced->ioctl.code, &decoded->payload.objects);
    decoded->flags = CT_FLAG_BYTES;
    decoded->value = traced->ioctl.bytes;
    decoded->status = (int32_t)frame->result < 0 ? -traced->error : ct_ioctl_status(&traced->ioctl);
}

static uint32_t row_for_others(enum ct_ioctl_language language)
{
    _Atomic uint32_t *other = &other_rows[language];
    uint32_t row = atomic_load_explicit(other, memory_order_relaxed);
    if (!row) {
        row = ct_row_extra(CT_LAYER_IOCTL, CT_CATEGORY_control, ct_ioctl_other_names[language]);
        if (row != CT_ROWS_ALL)
            atomic_store_explicit(other, row, memory_order_relaxed);
    }
    return row;
}

/* Returns a request's row, or CT_ROWS_ALL if not even the common row for other requests can be created. */
static uint32_t row_of(const struct ct_ioctl *ioctl, enum ct_ioctl_language language)
{
    const uint64_t key = (uint64_t)ioctl->space << 32 | ioctl->code;
    uint32_t row = ct_table_get(&rows_by_code, key);
    if (CT_LIKELY(row))
        return row;
    if (atomic_load_explicit(&rows_used, memory_order_relaxed) >= CT_IOCTL_NAMES_MAX)
        return row_for_others(language);
    char name[CT_IOCTL_NAME_BYTES];
    ct_ioctl_name(ioctl, name);
    row = ct_row_extra(CT_LAYER_IOCTL, CT_CATEGORY_control, name);
    if (row == CT_ROWS_ALL)
        return row_for_others(language);
    if (ct_table_lock()) {
        if (!ct_table_get(&rows_by_code, key) && ct_table_set(&rows_by_code, key, row))
            atomic_fetch_add_explicit(&rows_used, 1, memory_order_relaxed);
        ct_table_unlock();
    }
    return row;
}

/* ---- the call ---- */

/* Calls the next ioctl(). Only the constructor looks it up, since a lookup here could clear the application's
 * pending dlerror(). Until the constructor has run, makes the system call directly, which is all that the C
 * library's ioctl() does. */
static int call_next(int fd, unsigned long request, void *argument)
{
    ioctl_function *next = atomic_load_explicit(&next_ioctl, memory_order_relaxed);
    return next ? next(fd, request, argument) : (int)syscall(SYS_ioctl, fd, request, argument);
}

__attribute__((constructor)) static void find_next(void)
{
    atomic_store_explicit(&next_ioctl, (ioctl_function *)(uintptr_t)ct_symbol_of_library("ioctl"),
                          memory_order_relaxed);
    for (int language = 0; language < CT_IOCTL_LANGUAGES; language++)
        row_for_others((enum ct_ioctl_language)language);
}

/* Reads the driver's version from libcuda's first request, which checks that the kernel module has the same
 * version. The version is stored even while nothing is recorded, since libcuda sends it only once. In
 * nv_ioctl_rm_api_version_t, the version string follows two words. */
static void learn_release(uint64_t argument)
{
    CT_ERROR_GUARD;
    char version[8];
    if (ct_ioctl_peek(argument + 8, version, sizeof(version))) {
        const uint32_t release = ct_ioctl_release(version, sizeof(version));
        if (release)
            atomic_store_explicit(&driver_release, release, memory_order_relaxed);
    }
}

/* Not inlined, so that ioctls for other drivers use less stack. */
__attribute__((noinline)) static int call_candidate(int fd, unsigned long request, void *argument,
                                                    enum ct_ioctl_language language)
{
    static struct ct_ioctl (*const parse[CT_IOCTL_LANGUAGES])(
        uint32_t, uint64_t, uint32_t) = { ct_ioctl_parse_escape, ct_ioctl_parse_uvm, ct_ioctl_parse_modeset };
    const struct error_guard guard = error_guard_begin();
    const bool driver = is_driver(fd, language);
    struct traced traced = { .frame.row = CT_ROWS_ALL, .request = (uint32_t)request };
    if (driver && ct_process_attach(0) != CT_ATTACHED_NOT) {
        const uint32_t release = atomic_load_explicit(&driver_release, memory_order_relaxed);
        traced.ioctl = parse[language]((uint32_t)request, (uintptr_t)argument, release);
        traced.frame.row = row_of(&traced.ioctl, language);
    }
    error_guard_end(&guard);

    const bool recorded = traced.frame.row != CT_ROWS_ALL;
    if (recorded)
        ct_call_begin(&traced.frame);
    const int result = call_next(fd, request, argument);
    if (recorded) {
        traced.frame.result = (uint64_t)(int64_t)result;
        traced.error = errno;
        ct_call_end(&traced.frame, decode_ioctl);
    }
    if (driver && language == CT_IOCTL_ESCAPES && result >= 0 && (request & 0xff) == CT_ESCAPE_CHECK_VERSION)
        learn_release((uintptr_t)argument);
    return result;
}

/* Replaces int ioctl(int fd, unsigned long request, ...). The variable argument is declared as a named
 * argument, so that no registers need to be saved before the jump to the real function. Both x86-64 and
 * aarch64 pass named and variable arguments in the same way. */
__attribute__((visibility("default"))) int ct_ioctl_entry(int fd, unsigned long request,
                                                          void *argument) __asm__("ioctl");

int ct_ioctl_entry(int fd, unsigned long request, void *argument)
{
    if (CT_UNLIKELY(ct_ioctl_is_uvm((uint32_t)request)))
        return call_candidate(fd, request, argument, CT_IOCTL_OF_UVM);
    if (CT_UNLIKELY(ct_ioctl_is_escape((uint32_t)request)))
        return call_candidate(fd, request, argument, CT_IOCTL_ESCAPES);
    if (CT_UNLIKELY(ct_ioctl_is_modeset((uint32_t)request)))
        return call_candidate(fd, request, argument, CT_IOCTL_OF_MODESET);
    return call_next(fd, request, argument);
}
