#include "stack.h"

#include "compiler.h"
#include "machine.h"
#include "symbol.h"
#include "system.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_alternate(void)
{
    stack_t stack;
    return sigaltstack(NULL, &stack) != 0 || stack.ss_flags & SS_ONSTACK;
}

enum { STACK_MAX = 64 << 20, PAGE = 4096 };

/* The first thread's stack ends with the program's arguments. Its thread pointer is elsewhere, and 0 if a
 * visit has loaded the hook in another thread. */
static uintptr_t first_end, first_pointer;
static struct ct_code fork_code;

/* The code of an allocator that may call the driver while it holds its lock. */
static struct ct_code allocator_code[8];

extern const char *gnu_get_libc_version(void) __attribute__((weak));

/* Returns whether the object is the C library, or an allocator that is known never to call the driver. */
static bool is_known_allocator(const struct ct_object *object)
{
    static const char *const symbols[] = { "__libc_start_main", "__asan_init", "__tsan_init",
                                           "tc_malloc",         "mallctl",     "mi_malloc" };
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        if (ct_symbol_in(object, symbols[i], NULL))
            return true;
    }
    return false;
}

/* Only allocators that are loaded with the program serve the C library. */
static void note_allocator(void)
{
    static const char *const names[] = { "malloc",        "calloc", "realloc", "free",
                                         "aligned_alloc", "_Znwm",  "_ZdlPvm", "_ZdlPv" };
    struct ct_object object;
    if (!ct_symbol_definer("malloc", &object) || is_known_allocator(&object))
        return;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        allocator_code[i] = ct_symbol_code_in(&object, names[i]);
}

__attribute__((constructor)) static void note_first(int argc, char **argv)
{
    (void)argc;
    if (!gnu_get_libc_version) /* other C libraries pass no arguments */
        return;
    first_end = (uintptr_t)argv;
    fork_code = ct_symbol_code_in_libc("fork");
    note_allocator();
    if (syscall(SYS_gettid) == syscall(SYS_getpid))
        first_pointer = (uintptr_t)ct_thread_pointer();
}

/* The C library puts the memory that the thread pointer points to at the end of the thread's stack. */
static uintptr_t find_end(uintptr_t from)
{
    const uintptr_t pointer = (uintptr_t)ct_thread_pointer();
    return pointer != first_pointer && from < pointer ? pointer : first_end;
}

/* Begins at the end, so that another stack, such as a coroutine's, is not mistaken for the thread's. Below
 * the thread's stack, the memory is not readable. The result is kept, because a stack stays mapped. */
static bool is_readable(uintptr_t from, uintptr_t end)
{
    static __thread uintptr_t readable, readable_end; /* the lowest page known to be readable below an end */
    const uintptr_t last = (end - 1) & -(uintptr_t)PAGE;
    for (uintptr_t page = readable_end == end ? readable : last; page > from; page -= PAGE) {
        if (ct_system_readable(page - PAGE) != CT_READABLE_YES)
            return false;
        readable = page - PAGE;
        readable_end = end;
    }
    return true;
}

/* Returns whether the stack from the address up to its end is the thread's, and not an alternate stack or a
 * coroutine's. Requires permission for system calls. */
static bool is_own(uintptr_t from, uintptr_t end)
{
    return from < end && end - from <= STACK_MAX && !is_alternate() && is_readable(from, end);
}

/* Reads other functions' frames, which a sanitizer forbids. An old signal frame in a variable that has not
 * been written also counts. */
__attribute__((no_sanitize("address", "thread"))) static bool is_clean(uintptr_t from, uintptr_t end)
{
    for (uintptr_t at = from; at + sizeof(uint64_t) <= end; at += sizeof(uint64_t)) {
        const uint64_t *words = (const uint64_t *)at;
        if (words[0] - fork_code.from < fork_code.bytes) /* fork() calls the handlers */
            return false;
        if (end - at >= CT_SIGNAL_FRAME_BYTES && ct_is_signal_frame(words))
            return false;
    }
    return true;
}

/* A signal handler's calls are below the interrupted call on the stack, unless the handler runs on an
 * alternate stack, or has switched to a coroutine. What is known about the holder may be wrong, because a
 * handler may have interrupted the hook before. A call under a signal frame therefore proves nothing. */
bool ct_stack_left(uintptr_t holder, uintptr_t frame)
{
    const uintptr_t from = holder ? holder : frame, end = find_end(from);
    if (frame < from || frame >= end || !ct_system_begin())
        return false;
    const bool is_known = is_own(from, end);
    ct_system_end();
    return is_known && is_clean(frame & -(uintptr_t)sizeof(uint64_t), end);
}

/* Like is_clean(), an old return address also counts. */
__attribute__((no_sanitize("address", "thread"))) static bool is_in_allocator(uintptr_t from, uintptr_t end)
{
    for (uintptr_t at = from; allocator_code[0].bytes && at + sizeof(uint64_t) <= end;
         at += sizeof(uint64_t)) {
        for (size_t i = 0; i < sizeof(allocator_code) / sizeof(allocator_code[0]); i++) {
            if (*(const uint64_t *)at - allocator_code[i].from < allocator_code[i].bytes)
                return true;
        }
    }
    return false;
}

bool ct_stack_is_plain(void)
{
    const uintptr_t from = (uintptr_t)__builtin_frame_address(0) & -(uintptr_t)sizeof(uint64_t);
    const uintptr_t end = find_end(from);
    if (fork_code.bytes == 0 || !ct_system_begin())
        return false;
    const bool is_known = is_own(from, end);
    ct_system_end();
    return is_known && is_clean(from, end) && !is_in_allocator(from, end);
}
