/* simcupti.c: subscribers and callbacks of the simulated CUPTI, and its environment variables (README.md). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "simcupti_work.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A function's callback number is its row number plus 1. The real numbers are different. */
static const char *const functions[] = {
#define ROW(name, ...) #name,
#include "driver_api.def"
#undef ROW
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };
enum { FINALIZE_NS = 2000000 }; /* 3 ms on an H100 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char subscriber_name[64];
static int subscriber; /* its address is the only subscriber's handle */
static void *callback_data;
static simcupti_callback *_Atomic callback;
static _Atomic bool enabled[FUNCTIONS];
static _Atomic uint32_t correlations;

_Noreturn void simcupti_invalid(const char *variable, const char *value)
{
    fprintf(stderr, "simcupti: %s=%s is invalid\n", variable, value);
    _exit(2);
}

/* SIMCUPTI_REFUSE=FUNCTION=RESULT[,FUNCTION=RESULT]... */
bool simcupti_refuses(const char *function, int32_t *result)
{
    const char *value = getenv("SIMCUPTI_REFUSE");
    const char *hanging = getenv("SIMCUPTI_HANG");
    const size_t length = strlen(function);
    while (hanging && strcmp(hanging, function) == 0)
        pause();
    for (const char *item = value; item && *item; item = strchr(item, ',') ? strchr(item, ',') + 1 : "") {
        const char *equals = strchr(item, '=');
        char *end;
        if (!equals)
            simcupti_invalid("SIMCUPTI_REFUSE", value);
        const long number = strtol(equals + 1, &end, 10);
        if (end == equals + 1 || (*end && *end != ','))
            simcupti_invalid("SIMCUPTI_REFUSE", value);
        *result = (int32_t)number;
        if ((size_t)(equals - item) == length && strncmp(item, function, length) == 0)
            return true;
    }
    return false;
}

void simcupti_log(const char *format, ...)
{
    const char *path = getenv("SIMCUPTI_LOG");
    char line[9000];
    if (!path || !*path)
        return;
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || length >= (int)sizeof line || write(fd, line, (size_t)length) != length)
        simcupti_invalid("SIMCUPTI_LOG", path);
    close(fd);
}

/* ---- the driver's calls ---- */

static _Atomic int32_t in_progress; /* calls that change something, and do not only wait */
static _Atomic uint32_t begun;      /* such calls */
static _Atomic bool has_stale_graph, has_whole_graph;

static uint32_t id_of(const char *function)
{
    uint32_t low = 0, high = FUNCTIONS; /* the table is sorted */
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (strcmp(functions[middle], function) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low + 1;
}

static void report(const char *function, uint64_t correlation, int32_t site)
{
    const uint32_t id = id_of(function);
    simcupti_callback *call = atomic_load(&callback);
    if (!call || !atomic_load(&enabled[id - 1]))
        return;
    uint64_t shared = 0;
    if (site == 0)
        simcupti_log("call %s %u %d\n", function, (unsigned)correlation, gettid());
    call(callback_data, SIMCUPTI_DRIVER_API, id,
         &(struct simcupti_call){
             .site = site,
             .function = function,
             .shared = &shared,
             .correlation = (uint32_t)correlation,
         });
}

static bool changes_something(const char *function)
{
    return !strstr(function, "Get") && !strstr(function, "Query") && !strstr(function, "Is") &&
           !strstr(function, "Synchronize");
}

static uint64_t enter(const char *function)
{
    const uint64_t correlation = atomic_fetch_add(&correlations, 1) + 1;
    atomic_fetch_add(&in_progress, changes_something(function));
    atomic_fetch_add(&begun, changes_something(function));
    if (strcmp(function, "cuGraphLaunch") == 0 && simcupti_has_ended())
        atomic_store(&has_stale_graph, true);
    if (strcmp(function, "cuGraphLaunch") == 0 && simcupti_has_whole_graphs())
        atomic_store(&has_whole_graph, true);
    report(function, correlation, 0);
    return correlation;
}

static void leave(const char *function, uint64_t correlation)
{
    report(function, correlation, 1);
    atomic_fetch_sub(&in_progress, changes_something(function));
}

bool simcupti_watch(bool on)
{
    static const struct sim_observer observer = { enter, leave, simcupti_add_work };
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    simcuda_observe_function *observe =
        driver ? (simcuda_observe_function *)dlsym(driver, "simcuda_observe") : NULL;
    if (observe)
        observe(on ? &observer : NULL);
    return observe != NULL;
}

/* ---- subscribers ---- */

static int32_t subscribe(void **handle, simcupti_callback *function, void *data, const char *name,
                         char *old_name, size_t old_name_bytes)
{
    const char *other = getenv("SIMCUPTI_TAKEN"); /* by a tool that attached without a subscriber */
    pthread_mutex_lock(&lock);
    const bool taken = atomic_load(&callback) != NULL || other;
    if (taken && old_name)
        snprintf(old_name, old_name_bytes, "%s", other ? other : subscriber_name);
    int32_t result = taken ? SIMCUPTI_MULTIPLE_SUBSCRIBERS : SIMCUPTI_SUCCESS;
    if (!taken && !simcupti_watch(true))
        result = SIMCUPTI_NOT_INITIALIZED;
    if (result == SIMCUPTI_SUCCESS) {
        snprintf(subscriber_name, sizeof subscriber_name, "CUPTI for %s", name ? name : "");
        callback_data = data;
        atomic_store(&callback, function);
        *handle = &subscriber;
    }
    pthread_mutex_unlock(&lock);
    simcupti_log("subscribe %d\n", (int)result);
    return result;
}

EXPORTED int32_t cuptiSubscribe(void **handle, simcupti_callback *function, void *data)
{
    REFUSABLE;
    return subscribe(handle, function, data, NULL, NULL, 0);
}

/* The versions are those of CUDA 12.8 and 13.0. */
EXPORTED int32_t cuptiGetVersion(uint32_t *version)
{
    REFUSABLE;
    const long other = simcupti_number("SIMCUPTI_API_VERSION");
    *version = other ? (uint32_t)other : SIMCUPTI_VERSION >= 13 ? 130000 : 26;
    return SIMCUPTI_SUCCESS;
}

#if SIMCUPTI_VERSION >= 13
EXPORTED int32_t cuptiSubscribe_v2(void **handle, simcupti_callback *function, void *data,
                                   struct simcupti_subscriber_parameters *parameters)
{
    REFUSABLE;
    if (!parameters)
        return subscribe(handle, function, data, NULL, NULL, 0);
    if (parameters->bytes != sizeof *parameters)
        return SIMCUPTI_INVALID_PARAMETER;
    return subscribe(handle, function, data, parameters->name, parameters->old_name,
                     parameters->old_name_bytes);
}
#endif

static void forget_subscriber(void)
{
    atomic_store(&callback, NULL);
    for (uint32_t i = 0; i < FUNCTIONS; i++)
        atomic_store(&enabled[i], false);
}

EXPORTED int32_t cuptiUnsubscribe(void *handle)
{
    REFUSABLE;
    if (handle != &subscriber || !atomic_load(&callback))
        return SIMCUPTI_INVALID_PARAMETER;
    simcupti_log("unsubscribe\n"); /* before another subscriber can log that it has subscribed */
    pthread_mutex_lock(&lock);
    forget_subscriber();
    pthread_mutex_unlock(&lock);
    return SIMCUPTI_SUCCESS;
}

EXPORTED int32_t cuptiEnableCallback(uint32_t enable, void *handle, int32_t domain, uint32_t id)
{
    REFUSABLE;
    if (handle != &subscriber || !atomic_load(&callback) || domain != SIMCUPTI_DRIVER_API || id < 1 ||
        id > FUNCTIONS)
        return SIMCUPTI_INVALID_PARAMETER;
    atomic_store(&enabled[id - 1], enable != 0);
    return SIMCUPTI_SUCCESS;
}

EXPORTED int32_t cuptiGetCallbackName(int32_t domain, uint32_t id, const char **name)
{
    REFUSABLE;
    if (domain != SIMCUPTI_DRIVER_API || id < 1 || id > FUNCTIONS)
        return SIMCUPTI_INVALID_PARAMETER;
    *name = functions[id - 1];
    return SIMCUPTI_SUCCESS;
}

static void forbid(bool is_wrong, const char *what)
{
    if (!is_wrong)
        return;
    fprintf(stderr, "simcupti: cuptiFinalize() %s\n", what);
    abort();
}

/* In the real driver, graphs fail after cuptiFinalize() if they were recorded as a whole, or launched after
 * the last kind of activity was disabled. Calls made during cuptiFinalize() may fail, and block until the GPU
 * has finished its work. */
EXPORTED int32_t cuptiFinalize(void)
{
    REFUSABLE;
    forbid(atomic_load(&has_stale_graph), "after the launch of a graph without activity");
    forbid(atomic_load(&has_whole_graph), "after the launch of a graph that was recorded as a whole");
    const uint32_t before = atomic_load(&begun);
    forbid(atomic_load(&in_progress) != 0, "during a call");
    forbid(simcupti_has_unfinished_work(), "before the GPU has finished its work");
    if (simcupti_number("SIMCUPTI_STOP"))
        kill(getpid(), SIGSTOP);
    nanosleep(&(struct timespec){ .tv_nsec = FINALIZE_NS }, NULL);
    forbid(atomic_load(&begun) != before, "while another thread called the driver");
    pthread_mutex_lock(&lock);
    simcupti_watch(false);
    forget_subscriber();
    pthread_mutex_unlock(&lock);
    simcupti_forget_work();
    simcupti_log("finalize\n");
    return SIMCUPTI_SUCCESS;
}
