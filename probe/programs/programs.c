#include "programs.h"

#include "channels.h"
#include "interrupted.h"
#include "kernel_needs.h"
#include "measured_call.h"
#include "options.h"
#include "programs_state.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Attach types from the kernel's include/uapi/linux/bpf.h, added in Linux 6.6 and 6.13. The header in Debian
 * 12 is older. */
#define TRACE_UPROBE_MULTI   ((enum bpf_attach_type)48)
#define TRACE_UPROBE_SESSION ((enum bpf_attach_type)57)
enum { UPROBE_MULTI_RETURN = 1 };
enum { CHILDREN_MAX = 1 << 16 }; /* alive at the same time */

const char *const ct_method_names[CT_METHOD_COUNT] = { "sessions", "links to many functions", "perf events" };

struct ct_links {
    int *fd; /* descriptors of links, for sessions and multi */
    struct bpf_link **link;
    size_t fds, links;
};

void ct_programs_set_shape(struct ct_programs *programs, uint32_t number, const struct ct_probe_shape *shape)
{
    programs->calls->bss->shapes[number] = *shape;
}

/* ---- attaching ---- */

/* The part of union bpf_attr (include/uapi/linux/bpf.h) that BPF_LINK_CREATE uses for uprobe_multi. */
struct multi_attributes {
    uint32_t program, target, type, flags;
    uint64_t path, offsets, counters, cookies;
    uint32_t count, multi_flags, pid;
};

static int attach_multi(const struct bpf_program *program, bool is_return, const char *path,
                        const struct ct_targets *targets, const uint64_t *cookies, pid_t pid)
{
    struct multi_attributes attributes = {
        .program = (uint32_t)bpf_program__fd(program),
        .type = bpf_program__expected_attach_type(program),
        .path = (uintptr_t)path,
        .offsets = (uintptr_t)targets->offset,
        .cookies = (uintptr_t)cookies,
        .count = targets->count,
        .multi_flags = is_return ? UPROBE_MULTI_RETURN : 0,
        .pid = (uint32_t)pid,
    };
    const int link = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes));
    return link < 0 ? -errno : link;
}

static int attach_event(const struct bpf_program *program, bool is_return, const char *path, uint64_t offset,
                        uint64_t cookie, pid_t pid, struct bpf_link **link)
{
    LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = cookie, .retprobe = is_return);
    *link = bpf_program__attach_uprobe_opts(program, pid ? pid : -1, path, offset, &options);
    return *link ? 0 : -errno;
}

/* Attaches to the returns before the entries, since a return whose entry was not seen has no effect. */
static int attach_events(struct ct_programs *programs, const char *path, const struct ct_targets *targets,
                         const uint64_t *cookies, pid_t pid, struct ct_links *links)
{
    const struct bpf_program *const program[2] = { programs->calls->progs.call_leave,
                                                   programs->calls->progs.call_enter };
    links->link = calloc(2 * (size_t)targets->count, sizeof(struct bpf_link *));
    int error = links->link ? 0 : -ENOMEM;
    for (int end = 0; end < 2; end++) {
        for (uint32_t i = 0; !error && i < targets->count; i++) {
            error = ct_is_interrupted() ? -EINTR
                                        : attach_event(program[end], end == 0, path, targets->offset[i],
                                                       cookies[i], pid, &links->link[links->links]);
            links->links += !error;
        }
    }
    return error;
}

static int attach_links(struct ct_programs *programs, const char *path, const struct ct_targets *targets,
                        const uint64_t *cookies, pid_t pid, struct ct_links *links)
{
    links->fd = calloc(2, sizeof(int));
    if (!links->fd)
        return -ENOMEM;
    const bool is_session = programs->method == CT_METHOD_SESSION;
    const struct bpf_program *const program[2] = { is_session ? programs->calls->progs.call_session
                                                              : programs->calls->progs.call_leave,
                                                   programs->calls->progs.call_enter };
    for (int end = 0; end < (is_session ? 1 : 2); end++) {
        const int link = attach_multi(program[end], !is_session && end == 0, path, targets, cookies, pid);
        if (link < 0)
            return link;
        links->fd[links->fds++] = link;
    }
    return 0;
}

int ct_programs_attach(struct ct_programs *programs, const char *path, const struct ct_targets *targets,
                       pid_t pid, struct ct_links **links)
{
    *links = calloc(1, sizeof(**links));
    uint64_t *cookies = calloc(targets->count, sizeof(*cookies));
    int error = *links && cookies ? 0 : -ENOMEM;
    for (uint32_t i = 0; !error && i < targets->count; i++)
        cookies[i] = (uint64_t)programs->links << 32 | targets->number[i];
    programs->links++;
    if (!error)
        error = programs->method == CT_METHOD_EVENTS
                    ? attach_events(programs, path, targets, cookies, pid, *links)
                    : attach_links(programs, path, targets, cookies, pid, *links);
    free(cookies);
    if (!error)
        return 0;
    ct_links_close(*links);
    *links = NULL;
    return error;
}

void ct_links_close(struct ct_links *links)
{
    if (!links)
        return;
    for (size_t i = 0; i < links->fds; i++)
        close(links->fd[i]);
    for (size_t i = 0; i < links->links; i++)
        bpf_link__destroy(links->link[i]);
    free(links->fd);
    free(links->link);
    free(links);
}

struct closing {
    struct ct_links **links;
    size_t count;
    _Atomic size_t next;
};

static void *close_some(void *data)
{
    struct closing *closing = data;
    for (size_t i; (i = closing->next++) < closing->count;)
        ct_links_close(closing->links[i]);
    return NULL;
}

void ct_links_close_all(struct ct_links **links, size_t count)
{
    enum { THREADS = 32 };
    struct closing closing = { .links = links, .count = count };
    pthread_t thread[THREADS];
    size_t threads = 0;
    while (threads < THREADS && threads + 1 < count &&
           pthread_create(&thread[threads], NULL, close_some, &closing) == 0)
        threads++;
    close_some(&closing);
    while (threads > 0)
        pthread_join(thread[--threads], NULL);
}

/* ---- hooks ---- */

const struct bpf_program *ct_programs_hook(const struct ct_programs *programs, enum ct_hook_end end)
{
    const struct ct_calls *calls = programs->calls;
    const struct bpf_program *const program[CT_HOOK_ENDS] = {
        [CT_HOOK_ENTRY] = calls->progs.hook_enter,
        [CT_HOOK_RETURN] = calls->progs.hook_leave,
        [CT_HOOK_AT_ENTRY] = calls->progs.hook_at_entry,
        [CT_HOOK_POINT] = calls->progs.hook_point,
        [CT_HOOK_POINT_IN_MACHINE] = calls->progs.hook_in_machine,
        [CT_HOOK_ENTRY_IN_MACHINE] = calls->progs.hook_entry_in_machine,
    };
    return program[end];
}

struct ct_hook_rule *ct_programs_rule(const struct ct_programs *programs, uint32_t number)
{
    return &programs->calls->bss->rules[number];
}

void ct_programs_set_trampoline(struct ct_programs *programs, uint64_t address)
{
    programs->calls->bss->trampoline = address;
}

/* ---- requests to the kernel driver ---- */

const struct bpf_program *ct_programs_system_call(const struct ct_programs *programs,
                                                  enum ct_system_call_point point)
{
    const struct ct_calls *calls = programs->calls;
    const struct bpf_program *const program[CT_SYSTEM_CALL_POINTS] = {
        [CT_IOCTL_LEAVE] = calls->progs.ioctl_leave,   [CT_IOCTL_ENTER] = calls->progs.ioctl_enter,
        [CT_OPENAT_LEAVE] = calls->progs.openat_leave, [CT_OPENAT_ENTER] = calls->progs.openat_enter,
        [CT_MMAP_LEAVE] = calls->progs.mmap_leave,     [CT_MMAP_ENTER] = calls->progs.mmap_enter,
        [CT_CLOSE_LEAVE] = calls->progs.close_leave,   [CT_CLOSE_ENTER] = calls->progs.close_enter,
    };
    return program[point];
}

const struct bpf_program *ct_programs_fence(const struct ct_programs *programs, enum ct_fence_point point)
{
    const struct ct_calls *calls = programs->calls;
    const struct bpf_program *const program[CT_FENCE_POINTS] = {
        [CT_FENCE_SIGNALED] = calls->progs.fence_signaled,
        [CT_FENCE_DESTROY] = calls->progs.fence_destroy,
        [CT_FENCE_WAIT_LEAVE] = calls->progs.fence_wait_leave,
        [CT_FENCE_WAIT_ENTER] = calls->progs.fence_wait_enter,
        [CT_FENCE_INIT] = calls->progs.fence_init,
        [CT_FENCE_EMIT] = calls->progs.fence_emit,
    };
    return program[point];
}

void ct_programs_set_driver(struct ct_programs *programs, const struct ct_probe_devices *devices,
                            uint32_t release)
{
    programs->calls->bss->devices = *devices;
    programs->calls->bss->is_release_known = release != 0;
    if (release)
        programs->calls->bss->release = release;
}

/* ---- processes ---- */

int ct_programs_set_visit(struct ct_programs *programs, pid_t pid, uint64_t area)
{
    const uint32_t tgid = (uint32_t)pid;
    return bpf_map__update_elem(programs->calls->maps.visits, &tgid, sizeof(tgid), &area, sizeof(area),
                                BPF_ANY);
}

uint64_t ct_programs_executed_ns(const struct ct_programs *programs, pid_t pid)
{
    const uint32_t tgid = (uint32_t)pid;
    uint64_t ns;
    return bpf_map__lookup_elem(programs->calls->maps.executed, &tgid, sizeof(tgid), &ns, sizeof(ns), 0) == 0
               ? ns
               : 0;
}

int ct_programs_notices(const struct ct_programs *programs)
{
    return bpf_map__fd(programs->calls->maps.notices);
}

enum ct_method ct_programs_method(const struct ct_programs *programs)
{
    return (enum ct_method)programs->method;
}

const struct bpf_object *ct_programs_object(const struct ct_programs *programs)
{
    return programs->calls->obj;
}

uint64_t ct_programs_recorded(const struct ct_programs *programs, uint32_t event)
{
    return __atomic_load_n(&programs->calls->bss->recorded[event], __ATOMIC_RELAXED);
}

struct ct_probe_cost ct_programs_cost(const struct ct_programs *programs)
{
    return (struct ct_probe_cost){ .seen_ns = programs->seen_ns, .whole_ns = programs->whole_ns };
}

/* ---- measuring ---- */

static int measure_at(struct ct_programs *programs, const struct ct_channel *channel,
                      const struct ct_targets *targets)
{
    static uint64_t seen[CT_MEASURED_CALLS];
    struct ct_links *links;
    const uint64_t alone_ns = ct_measured_calls_ns();
    int error = ct_channel_give(programs, getpid(), channel);
    if (!error)
        error = ct_programs_attach(programs, "/proc/self/exe", targets, getpid(), &links);
    if (error)
        return error;
    const uint64_t whole_ns = ct_measured_calls_ns();
    ct_links_close(links);
    error = ct_measured_calls_read(channel->ring, seen);
    programs->seen_ns = ct_measured_median(seen);
    programs->whole_ns = whole_ns > alone_ns ? whole_ns - alone_ns : 0;
    return error;
}

/* Checks that the method works by attaching to a function of this program, and measures the method's cost. */
static int measure(struct ct_programs *programs)
{
    uint64_t number = CT_PROBE_FUNCTIONS - 1;
    uint64_t offset;
    struct ct_targets targets = { .offset = &offset, .number = &number, .count = 1 };
    struct ct_channel channel;
    if (!ct_measured_call_find(&offset))
        return -ENOENT;
    int error = ct_channels_make(programs, &channel, 1);
    if (error)
        return error;
    error = measure_at(programs, &channel, &targets);
    ct_channel_take_back(programs, getpid(), &channel);
    ct_channel_free(programs, &channel);
    return error;
}

/* ---- loading ---- */

static char first_warning[CT_WHY_BYTES];

/* Returns the last line before the statistics in the verifier's log. This line gives the reason why the
 * verifier rejected the program. */
static const char *refusal_in(char *log)
{
    static const char *const after[] = { "\nprocessed ", "\n-- END PROG LOAD LOG" };
    for (int i = 0; i < 2; i++) {
        char *end = strstr(log, after[i]);
        if (end)
            *end = '\0';
    }
    const char *line = strrchr(log, '\n');
    return line ? line + 1 : log;
}

/* Keeps libbpf's first warning, and the verifier's reason, which follows it. Later warnings only repeat that
 * the programs have not been loaded. */
__attribute__((format(printf, 2, 0))) static int keep_warning(enum libbpf_print_level level,
                                                              const char *format, va_list arguments)
{
    char *text;
    if (level != LIBBPF_WARN || vasprintf(&text, format, arguments) < 0)
        return 0;
    const size_t length = strlen(first_warning);
    if (strstr(format, "BEGIN PROG LOAD LOG"))
        snprintf(first_warning + length, sizeof(first_warning) - length, ": %s", refusal_in(text));
    else if (length == 0)
        snprintf(first_warning, sizeof(first_warning), "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
    return 0;
}

static void choose(struct ct_calls *calls, enum ct_method method)
{
    const bool is_session = method == CT_METHOD_SESSION;
    bpf_program__set_autoload(calls->progs.call_session, is_session);
    bpf_program__set_autoload(calls->progs.call_enter, !is_session);
    bpf_program__set_autoload(calls->progs.call_leave, !is_session);
    if (is_session)
        bpf_program__set_expected_attach_type(calls->progs.call_session, TRACE_UPROBE_SESSION);
    if (method == CT_METHOD_MULTI) {
        bpf_program__set_expected_attach_type(calls->progs.call_enter, TRACE_UPROBE_MULTI);
        bpf_program__set_expected_attach_type(calls->progs.call_leave, TRACE_UPROBE_MULTI);
    }
}

static void choose_optional(struct ct_calls *calls, struct ct_program_set optional)
{
    const struct {
        struct bpf_program *program;
        bool is_wanted;
    } programs[] = {
        { calls->progs.thread_switch, optional.kernel_events },
        { calls->progs.page_fault, optional.kernel_events },
        { calls->progs.process_fork, optional.children > 0 },
        { calls->progs.hook_enter, optional.hooks },
        { calls->progs.hook_leave, optional.hooks },
        { calls->progs.hook_at_entry, optional.hooks },
        { calls->progs.hook_point, optional.hooks },
        { calls->progs.hook_in_machine, optional.machine },
        { calls->progs.hook_entry_in_machine, optional.hooks },
        { calls->progs.ioctl_enter, optional.ioctls },
        { calls->progs.ioctl_leave, optional.ioctls },
        { calls->progs.openat_enter, optional.ioctls },
        { calls->progs.openat_leave, optional.ioctls },
        { calls->progs.mmap_enter, optional.ioctls },
        { calls->progs.mmap_leave, optional.ioctls },
        { calls->progs.close_enter, optional.ioctls },
        { calls->progs.close_leave, optional.ioctls },
        { calls->progs.fence_init, optional.fences },
        { calls->progs.fence_emit, optional.fences },
        { calls->progs.fence_signaled, optional.fences },
        { calls->progs.fence_destroy, optional.fences },
        { calls->progs.fence_wait_enter, optional.fences },
        { calls->progs.fence_wait_leave, optional.fences },
    };
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
        bpf_program__set_autoload(programs[i].program, programs[i].is_wanted);
    if (!optional.kernel_events)
        bpf_map__set_max_entries(calls->maps.pauses, 1); /* stays empty */
    bpf_map__set_autocreate(calls->maps.fences, optional.fences);
    for (size_t i = 0; i < optional.pids && optional.pids <= CT_PROBE_WATCHED; i++)
        calls->rodata->watched[calls->rodata->watched_count++] = (uint32_t)optional.pid[i];
    calls->rodata->has_named = optional.pids > 0 || optional.children > 0;
    if (optional.children > 0)
        bpf_map__set_max_entries(calls->maps.named, CHILDREN_MAX);
}

static int name_process(struct ct_programs *programs, pid_t pid)
{
    return bpf_map__update_elem(programs->calls->maps.named, &pid, sizeof(uint32_t), &(uint8_t){ 1 },
                                sizeof(uint8_t), BPF_ANY);
}

bool ct_programs_follow(const struct ct_programs *programs, pid_t pid)
{
    uint8_t is_named;
    return bpf_map__lookup_elem(programs->calls->maps.named, &pid, sizeof(uint32_t), &is_named,
                                sizeof(is_named), 0) == 0;
}

static int load(struct ct_programs *programs, enum ct_method method, struct ct_program_set optional)
{
    programs->method = (int)method;
    programs->calls = ct_calls__open();
    if (!programs->calls)
        return -errno;
    choose(programs->calls, method);
    choose_optional(programs->calls, optional);
    int error = ct_calls__load(programs->calls);
    for (size_t i = 0; i < optional.pids && !error; i++)
        error = name_process(programs, optional.pid[i]);
    if (optional.children > 0 && !error)
        error = name_process(programs, optional.children);
    if (error)
        return error;
    const struct bpf_program *const program[CT_TRACEPOINTS] = {
        programs->calls->progs.thread_exit,
        programs->calls->progs.program_exec,
        optional.children > 0 ? programs->calls->progs.process_fork : NULL,
        optional.kernel_events ? programs->calls->progs.thread_switch : NULL,
        optional.kernel_events ? programs->calls->progs.page_fault : NULL,
    };
    for (int i = 0; i < CT_TRACEPOINTS; i++) {
        if (program[i] && !(programs->tracepoint[i] = bpf_program__attach(program[i])))
            return -errno;
    }
    return measure(programs);
}

static void close_all(struct ct_programs *programs)
{
    for (int i = 0; i < CT_TRACEPOINTS; i++) {
        bpf_link__destroy(programs->tracepoint[i]);
        programs->tracepoint[i] = NULL;
    }
    for (int i = 0; i < 3; i++) {
        if (programs->blank[i] > 0)
            close(programs->blank[i]);
        programs->blank[i] = 0;
    }
    ct_calls__destroy(programs->calls);
    programs->calls = NULL;
}

int ct_programs_load(enum ct_method best, struct ct_program_set optional, struct ct_programs **result,
                     char why[CT_WHY_BYTES])
{
    struct ct_programs *programs = calloc(1, sizeof(*programs));
    int error = programs ? -EINVAL : -ENOMEM;
    libbpf_set_print(keep_warning);
    for (enum ct_method method = best; programs && method < CT_METHOD_COUNT; method++) {
        first_warning[0] = '\0';
        error = load(programs, method, optional);
        if (!error) {
            *result = programs;
            return 0;
        }
        close_all(programs);
    }
    snprintf(why, CT_WHY_BYTES, "%s", first_warning[0] ? first_warning : strerror(-error));
    free(programs);
    return error;
}

int ct_programs_refused(int error, const char *why)
{
    char lack[CT_LACK_BYTES];
    if (ct_kernel_lacks(lack))
        return ct_fail(EXIT_FAILURE, "probe: %s", lack);
    /* Even for root, -EACCES is possible, because the verifier returns it for a program that it rejects. */
    if (error == -EPERM || (error == -EACCES && geteuid() != 0))
        return ct_fail(
            EXIT_FAILURE,
            "probe: the kernel refuses the BPF programs: run as root, or with CAP_BPF and CAP_PERFMON (%s)",
            why);
    return ct_fail(EXIT_FAILURE, "probe: the kernel does not load the BPF programs: %s", why);
}

void ct_programs_unload(struct ct_programs *programs)
{
    if (!programs)
        return;
    close_all(programs);
    free(programs);
}
