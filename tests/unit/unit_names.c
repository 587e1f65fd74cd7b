/* Tests the hook's kernel_names.c and texts.c, with reused handles, with names that a module lists or that
 * the driver returns to the program, and with unloads that end all dependent objects. The memory in use must
 * not grow, however many modules are loaded and unloaded. Also tests a lock that is already held by the same
 * thread, and a child that is forked in the middle of a write. */
#include "../ensure.h"
#include "current.h"
#include "kernel_names.h"
#include "ring.h"
#include "table.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the parts of the hook that these files need ---- */

bool ct_clock_is_counter;

uint64_t ct_now_ns(void)
{
    return ct_monotonic_ns();
}

static struct {
    uint32_t number;
    char text[CT_STRING_MAX + 1];
} last_definition;
static uint64_t definitions;

bool ct_record_room(struct ct_producer *producer, uint32_t slots)
{
    (void)producer;
    (void)slots;
    return true;
}

void ct_record_write(struct ct_producer *producer, const struct ct_record *record, const void *payload,
                     size_t payload_bytes)
{
    (void)producer;
    definitions++;
    last_definition.number = (uint32_t)record->value;
    memcpy(last_definition.text, payload, payload_bytes);
}

/* ---- the test ---- */

static void ensure(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "%s\n", what);
        exit(EXIT_FAILURE);
    }
}

static struct ct_lane lane;
static struct ct_producer producer = { .lane = &lane, .epoch = 1 };

/* Checks that a launch of `handle` is recorded with the name `name`, and that the definition of the name has
 * already arrived. NULL means no name. */
static bool is_named(uint64_t handle, const char *name)
{
    static char texts[1 << 20][24];
    const uint32_t number = ct_names_kernel(handle, &producer, false);
    if (!name || !number)
        return !name && !number;
    ensure(number < 1 << 20, "numbers run away");
    if (number == last_definition.number)
        snprintf(texts[number], sizeof(texts[0]), "%.23s", last_definition.text);
    return strncmp(texts[number], name, sizeof(texts[0]) - 1) == 0;
}

static size_t mapped_pages(void)
{
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    ensure(statm && fscanf(statm, "%lu", &pages) == 1, "/proc/self/statm");
    fclose(statm);
    return pages;
}

static void reuse(void)
{
    ct_names_learn(0x1000, 1, "first", &producer);
    ensure(is_named(0x1000, "first"), "a name");
    ct_names_learn(0x1000, 2, "second", &producer);
    ensure(is_named(0x1000, "second"), "the name of the handle's next owner");
    ct_names_unload(1, UINT64_MAX);
    ensure(is_named(0x1000, "second"), "the unload of a former owner takes nothing");
    ct_names_unload(2, UINT64_MAX);
    ensure(is_named(0x1000, NULL), "nothing after the unload");
    ct_names_learn(0x1000, 2, NULL, &producer);
    ensure(is_named(0x1000, NULL), "a handle without a name");
    ct_names_unload(2, UINT64_MAX);
}

/* Tests a library that has a kernel and the kernel's function, and a module and the module's function. */
static void nested(void)
{
    ct_names_learn(0x20, 0x10, "kernel", &producer);
    ct_names_alias(0x30, 0x20, &producer);
    ct_names_learn(0x40, 0x10, NULL, &producer);
    ct_names_learn(0x50, 0x40, "function", &producer);
    ct_names_learn(0x60, 0x11, "other", &producer);
    ensure(is_named(0x30, "kernel") && is_named(0x50, "function"), "names below");
    ct_names_unload(0x10, UINT64_MAX);
    for (uint64_t handle = 0x20; handle <= 0x50; handle += 0x10)
        ensure(is_named(handle, NULL), "all that goes with a library");
    ensure(is_named(0x60, "other"), "what goes with another one");
    ct_names_unload(0x11, UINT64_MAX);
    /* No driver returns owners that form a cycle, but a cycle must not cause an endless loop. */
    ct_names_learn(0x71, 0x70, "ring", &producer);
    ct_names_learn(0x70, 0x71, "ring", &producer);
    ct_names_learn(0x72, 0x72, "own", &producer);
    ct_names_unload(0x70, UINT64_MAX);
    ct_names_unload(0x72, UINT64_MAX);
}

/* Learns names that are already known. The version of the names must not change, so that lanes can keep the
 * kernels that they remember. */
static void again(void)
{
    ct_names_learn(0x20, 0x10, "kernel", &producer);
    ct_names_alias(0x30, 0x20, &producer);
    const uint32_t version = atomic_load(&ct_names_version);
    ct_names_learn(0x20, 0x10, "kernel", &producer);
    ct_names_alias(0x30, 0x20, &producer);
    ensure(atomic_load(&ct_names_version) == version, "nothing is new");
    ct_names_learn(0x20, 0x11, "kernel", &producer);
    ensure(atomic_load(&ct_names_version) != version, "another owner is new");
    ct_names_alias(0x30, 0x20, &producer);
    const uint32_t later = atomic_load(&ct_names_version);
    ct_names_learn(0x20, 0x11, "another", &producer);
    ensure(atomic_load(&ct_names_version) != later && is_named(0x20, "another"), "another name is new");
    const uint32_t before_doubt = atomic_load(&ct_names_version);
    ct_names_doubt();
    ct_names_alias(0x30, 0x20, &producer);
    ensure(is_named(0x30, "another") && atomic_load(&ct_names_version) != before_doubt,
           "what is learned behind a doubt is believed");
    ct_names_unload(0x11, UINT64_MAX);
    ensure(is_named(0x20, NULL) && is_named(0x30, NULL), "it goes with its owner");
}

/* While one thread's unload has not yet returned, another thread's module receives the same handles. */
static void late_unload(void)
{
    ct_names_learn(0x2000, 0x1, "before", &producer);
    ct_names_learn(0x2001, 0x1, "stays behind", &producer);
    const uint64_t began = ct_now();
    while (ct_now() == began)
        ;
    ct_names_learn(0x2000, 0x1, "after", &producer);
    ct_names_unload(0x1, began);
    ensure(is_named(0x2000, "after") && is_named(0x2001, NULL), "an unload that is told late");
    ct_names_unload(0x1, UINT64_MAX);
}

/* Tests names from a module's list, names that the driver returned to the program, and handles that were
 * obtained without the hook. */
static void told(void)
{
    ct_names_load(0x80, 0, "only", 4, &producer);
    ct_names_listed(0x81, 0x80, &producer);
    ensure(is_named(0x81, "only"), "the only kernel of an image, by its list");
    ct_names_load(0x90, 0, NULL, 0, &producer);
    ct_names_learn(0x91, 0x90, "asked for", &producer);
    ct_names_listed(0x91, 0x90, &producer);
    ct_names_listed(0x92, 0x90, &producer);
    ensure(is_named(0x91, "asked for") && is_named(0x92, NULL),
           "a list takes no name away and makes up none");
    ct_names_told(0x92, "told", &producer);
    ct_names_told(0x91, "another", &producer);
    ensure(is_named(0x92, "told") && is_named(0x91, "asked for"), "a name that the program was told");
    ct_names_told(0x1a0, "hidden", &producer);
    ensure(is_named(0x1a0, "hidden"), "a name of a handle from nowhere");
    ct_names_unload(0x90, UINT64_MAX);
    ensure(is_named(0x92, NULL) && is_named(0x1a0, NULL),
           "nothing after an unload, also of what may have gone with it");
    /* The module's handle has been reused, so the first module's context must have been destroyed. */
    ct_names_load(0x80, UINT64_MAX, NULL, 0, &producer);
    ensure(is_named(0x81, NULL), "nothing of a module whose handle is another's");
    ct_names_listed(0x81, 0x80, &producer);
    ensure(is_named(0x81, NULL), "no name of an image that has gone");
    ct_names_unload(0x80, UINT64_MAX);
}

/* Tests for which handles the hook queries the driver. */
static void queried(void)
{
    ensure(ct_names_query(0xc1), "a handle from nowhere is queried");
    const uint32_t version = atomic_load(&ct_names_version);
    ct_names_told(0xc1, NULL, &producer);
    ensure(!ct_names_query(0xc1) && is_named(0xc1, NULL), "a handle without a name is queried once");
    ensure(atomic_load(&ct_names_version) == version, "lanes keep what they remember");
    ct_names_learn(0xc2, 0xc0, NULL, &producer);
    ct_names_learn(0xc3, 0xc0, NULL, &producer);
    ensure(ct_names_query(0xc2), "a handle whose name the program did not pass is queried");
    ct_names_told(0xc2, "reported", &producer);
    ct_names_told(0xc3, NULL, &producer);
    ensure(!ct_names_query(0xc2) && is_named(0xc2, "reported"), "a name that the driver reported");
    ct_names_learn(0xc3, 0xc0, NULL, &producer);
    ensure(ct_names_query(0xc3), "a handle that the program has obtained again is queried again");
    ct_names_unload(0xc0, UINT64_MAX);
    ensure(ct_names_query(0xc1) && ct_names_query(0xc2) && is_named(0xc2, NULL),
           "handles are queried again after an unload");
}

/* A program that obtains functions without the hook may receive a destroyed context's handles. This must be
 * the last test, because from then on, the hook discards all names whenever a context is destroyed. */
static void doubted(void)
{
    ct_names_learn(0xb1, 0xb0, "before", &producer);
    ct_names_doubt();
    ensure(is_named(0xb1, "before"), "the end of some context, where all handles were seen");
    ensure(ct_names_kernel(0xb2, &producer, true) == 0, "a handle from nowhere");
    ensure(is_named(0xb1, NULL) && ct_names_query(0xb1),
           "a name from before, once there are handles from nowhere");
    ct_names_told(0xb1, "told again", &producer);
    ct_names_learn(0xb3, 0xb0, "after", &producer);
    ensure(is_named(0xb1, "told again") && is_named(0xb3, "after"), "names from after the end");
    ct_names_unload(0xb0, UINT64_MAX);
}

static void churn(void)
{
    enum { KERNELS = 3, NAME_BYTES = 4096 };
    const uint32_t modules = tier_is_short() ? 10000 : 40000;
    static char name[NAME_BYTES + 1];
    size_t early = 0;
    memset(name, 'x', NAME_BYTES);
    for (uint32_t module = 1; module <= modules; module++) {
        for (uint32_t kernel = 0; kernel < KERNELS; kernel++) {
            const int written = snprintf(name, sizeof(name), "_%u_%u", module, kernel);
            name[written] = kernel ? 'x' : '\0'; /* short and long names */
            const uint64_t handle = 0x100000 + module % 512 * 4096 + kernel;
            ct_names_learn(handle, module, name, &producer);
            ensure(is_named(handle, name), "a name among many");
            /* The name below occurs in all modules. */
            ct_names_learn(handle + 100, module, "common", &producer);
            ensure(ct_names_kernel(handle + 100, NULL, false) != 0, "a common name");
        }
        ct_names_unload(module, UINT64_MAX);
        if (module == modules / 10)
            early = mapped_pages();
    }
    ensure(mapped_pages() <= early + 64, "memory grows with what was unloaded");
    /* A name that was dropped only a moment ago keeps its number, so that it is not defined again. */
    ct_names_learn(0x3000, 1, "common", &producer);
    is_named(0x3000, "common");
    const uint64_t before = definitions;
    ct_names_unload(1, UINT64_MAX);
    ct_names_learn(0x3000, 1, "common", &producer);
    ct_names_kernel(0x3000, &producer, false);
    ensure(definitions == before, "a module that is loaded again has its names defined again");
    ct_names_unload(1, UINT64_MAX);
}

/* If a definition cannot be written because the thread itself holds the lock, it is written at the next
 * launch. */
static void reentered(void)
{
    ct_names_learn(0x4000, 1, "interrupted", &producer);
    ct_table_lock();
    const uint64_t before = definitions;
    ensure(ct_names_kernel(0x4000, &producer, false) != 0 && definitions == before,
           "no definition under the lock");
    ct_names_learn(0x4000, 1, "never", &producer);
    ct_table_unlock();
    ensure(is_named(0x4000, "interrupted") && definitions == before + 1, "the definition later");
}

/* A forked child inherits the lists in whatever state they are in, which may be the middle of another
 * thread's write. */
static _Atomic bool stopped;
static void *write_on(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; !atomic_load(&stopped); i++) {
        const uint64_t owner = 0x500 + i % 7;
        for (uint64_t handle = 0; handle < 50; handle++)
            ct_names_learn(0x5000 + handle * 7 + i % 7, owner, handle % 2 ? "odd" : "even", NULL);
        ct_names_unload(owner, UINT64_MAX);
    }
    return NULL;
}

static void child(void)
{
    alarm(60);
    ct_table_lock_forget(); /* the hook's atfork handler does the same */
    for (uint64_t round = 0; round < 20; round++) {
        for (uint64_t handle = 0; handle < 350; handle++)
            ct_names_learn(0x5000 + handle, 0x500 + handle % 7, handle % 3 ? "child" : "born", &producer);
        for (uint64_t handle = 0; handle < 350; handle++)
            ensure(is_named(0x5000 + handle, handle % 3 ? "child" : "born"), "a name in a child");
        for (uint64_t owner = 0x500; owner < 0x507; owner++)
            ct_names_unload(owner, UINT64_MAX);
        for (uint64_t handle = 0; handle < 350; handle++)
            ensure(is_named(0x5000 + handle, NULL), "no name after an unload in a child");
    }
    _exit(EXIT_SUCCESS);
}

static void forked(void)
{
    pthread_t writer;
    ensure(pthread_create(&writer, NULL, write_on, NULL) == 0, "a thread");
    for (int i = 0; i < 200; i++) {
        const pid_t pid = fork();
        int status = 0;
        if (pid == 0)
            child();
        ensure(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "a child");
    }
    atomic_store(&stopped, true);
    pthread_join(writer, NULL);
}

int main(void)
{
    reuse();
    nested();
    again();
    late_unload();
    told();
    queried();
    churn();
    reentered();
    forked();
    doubted();
    return EXIT_SUCCESS;
}
