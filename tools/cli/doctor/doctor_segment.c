/* Reads the segment of a process, which may have written anything to it. The segment is copied with pread()
 * and never mapped, and every number is bounds-checked before use. */
#include "doctor_segment.h"

#include "gpu_recording.h"
#include "losses.h"
#include "printable.h"
#include "real_user.h"
#include "session_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sums over a segment. */
struct sums {
    uint32_t functions, lanes;
    uint64_t lost_calls, skipped_calls;
    uint64_t lost_by[CT_LOSS_COUNT];
    uint64_t lost_of[CT_FUNCTIONS_MAX];
    const char *way_in;
};

static bool read_header(int fd, struct ct_segment *segment)
{
    return pread(fd, segment, sizeof(*segment), 0) == (ssize_t)sizeof(*segment) &&
           segment->magic == CT_SEGMENT_MAGIC;
}

static int open_file(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

/* A companion's segment contains nothing that the hook has recorded. */
static bool is_companions(const char *path)
{
    static struct ct_segment segment;
    const int fd = open_file(path);
    const bool is_its = fd >= 0 && read_header(fd, &segment) && segment.version == CT_PROTO_VERSION &&
                        segment.maker == CT_MAKER_COMPANION;
    if (fd >= 0)
        close(fd);
    return is_its;
}

/* Opens the newest segment of the process, except those of companions, and stores the segment's name in
 * `path`. Returns -1 if the process has no segment. */
static int open_segment(const struct ct_doctor *doctor, const struct ct_traced *traced, char path[PATH_MAX])
{
    uint64_t newest = 0;
    struct ct_session_file file;
    char found[PATH_MAX];
    for (DIR *files = opendir(doctor->shm_folder); ct_session_files_next(files, &file);) {
        if (file.kind != CT_FILE_SEGMENT || file.uid != traced->uid ||
            strcmp(file.session, traced->session) != 0 || file.system != doctor->daemon_system ||
            file.pid != traced->pid || file.created_ns < newest)
            continue;
        snprintf(found, sizeof(found), "%s/%s", doctor->shm_folder, file.name);
        if (is_companions(found))
            continue;
        newest = file.created_ns;
        strcpy(path, found);
    }
    struct stat status;
    const int fd = newest ? open_file(path) : -1;
    if (fd >= 0 && ct_real_fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        ct_session_uid_of(status.st_uid) == traced->uid)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void add_functions(int fd, const struct ct_segment *segment, struct sums *sums)
{
    struct ct_function function;
    sums->functions =
        segment->functions < segment->function_slots ? segment->functions : segment->function_slots;
    for (uint32_t i = 0; i < sums->functions; i++) {
        const off_t offset = (off_t)(CT_DIRECTORY_OFFSET + (uint64_t)i * sizeof(function));
        if (pread(fd, &function, sizeof(function), offset) != (ssize_t)sizeof(function))
            break;
        function.name[CT_FUNCTION_NAME_MAX] = '\0';
        sums->lost_of[i] += function.lost_calls;
        sums->lost_calls += function.lost_calls;
        sums->skipped_calls += function.skipped_calls;
        if (strcmp(function.name, "cuGetProcAddress") == 0)
            sums->way_in = "cuGetProcAddress";
        else if (strcmp(function.name, "cuGetProcAddress_v2") == 0)
            sums->way_in = "cuGetProcAddress_v2";
    }
    /* Entry 0 is not a function, but counts calls to functions for which the table had no room. */
    sums->functions -= sums->functions > 0;
}

static void add_drops(const struct ct_lane *lane, struct sums *sums)
{
    for (uint32_t i = 0; i < CT_LANE_DROPS; i++) {
        const struct ct_drop_count *drop = &lane->drops[i];
        const uint32_t function = drop->key >> 2;
        if (drop->key == ct_drop_key(function, CT_DROP_SKIPPED)) {
            sums->skipped_calls += drop->calls;
        } else if (drop->key == ct_drop_key(function, CT_DROP_LOST) && function < CT_FUNCTIONS_MAX) {
            sums->lost_of[function] += drop->calls;
            sums->lost_calls += drop->calls;
        }
    }
}

static void add_lanes(int fd, const struct ct_segment *segment, struct sums *sums)
{
    struct ct_lane lane;
    for (uint32_t i = 0; ct_session_file_lane(fd, segment, i, &lane); i++) {
        sums->lanes += lane.owner == CT_LANE_OWNED;
        for (int cause = 0; cause < CT_LANE_LOSS_COUNT; cause++)
            sums->lost_by[cause] += lane.loss[cause].calls;
        add_drops(&lane, sums);
    }
    sums->lost_by[segment->maker == CT_MAKER_PROBE ? CT_LOSS_PROBE : CT_LOSS_MEMORY] +=
        segment->unlaned[CT_UNLANED_MEMORY].calls;
    sums->lost_by[CT_LOSS_CLOCK] += segment->unlaned[CT_UNLANED_CLOCK].calls;
}

/* Returns the most frequent cause of lost calls. Calls dropped under pressure do not count, because they are
 * skipped, not lost. */
static int cause_of_most(const struct sums *sums)
{
    int most = CT_LOSS_FULL;
    for (int cause = 0; cause < CT_LOSS_COUNT; cause++)
        most = cause != CT_LOSS_PRESSURE && sums->lost_by[cause] > sums->lost_by[most] ? cause : most;
    return most;
}

static void say_losses(struct ct_doctor *doctor, int fd, const struct sums *sums)
{
    if (sums->lost_calls == 0)
        return;
    uint32_t most = 0;
    for (uint32_t i = 0; i < CT_FUNCTIONS_MAX; i++)
        most = sums->lost_of[i] > sums->lost_of[most] ? i : most;
    struct ct_function function;
    if (pread(fd, &function, sizeof(function),
              (off_t)(CT_DIRECTORY_OFFSET + (uint64_t)most * sizeof(function))) != (ssize_t)sizeof(function))
        return;
    function.name[CT_FUNCTION_NAME_MAX] = '\0';
    MISS("lost", "%llu calls were counted but not recorded, %llu of them of %s: %s",
         (unsigned long long)sums->lost_calls, (unsigned long long)sums->lost_of[most], function.name,
         ct_losses[cause_of_most(sums)].explanation);
}

static void say_recording(struct ct_doctor *doctor, const struct ct_segment *segment, const struct sums *sums)
{
    char ring[32];
    ct_size_text(ring, segment->ring_bytes);
    const char *clock = segment->clock == CT_CLOCK_COUNTER ? "the counter" : "clock_gettime";
    if (segment->flags & CT_SEGMENT_DETACHED)
        NOTE("recording", "its daemon has ended; the process looks for another one at its next call");
    else if (segment->flags & CT_SEGMENT_EXITING)
        NOTE("recording", "it is about to exit");
    else if (segment->flags & CT_SEGMENT_COPIED)
        MISS("recording", "calls are missing: %s", ct_losses[CT_LOSS_CODE].explanation);
    else if (!doctor->daemon_pid)
        MISS("recording",
             "into shared memory that no daemon reads: calls are lost when the rings of %s are full; a "
             "cudatraced for this session stores the calls in them",
             ring);
    else
        FINE("recording", "functions so far: %u; threads with rings of up to %s: %u; times by %s",
             sums->functions, ring, sums->lanes, clock);
}

/* Reports how the hook intercepts the driver's functions. */
static void say_ways(struct ct_doctor *doctor, const struct ct_segment *segment)
{
    const unsigned names = segment->intercepts[CT_INTERCEPT_NAMES],
                   slots = segment->intercepts[CT_INTERCEPT_SLOTS];
    if (slots > 0)
        FINE("ways", "%u functions of the driver by its table of entry points, %u by their names", slots,
             names);
    else if (names > 0)
        FINE("ways", "%u functions of the driver by their names", names);
}

/* Reports how graphs are represented in a recording. */
static void say_graphs(struct ct_doctor *doctor, unsigned result)
{
    if (result == CT_GPU_FORM_NODES)
        FINE("gpu work", "CUPTI reports kernels, copies and sets, also those in graphs");
    else if (result == CT_GPU_FORM_WHOLE)
        FINE("gpu work", "CUPTI reports kernels, copies, sets and whole graphs");
    else if (result == CT_GPU_FORM_LATE)
        MISS("gpu work",
             "CUPTI reports the nodes of graphs: for whole graphs, the recording must begin at the "
             "process's first call of the driver");
    else
        MISS("gpu work",
             "CUPTI reports the nodes of graphs, because it refused whole graphs with %u: they need the "
             "CUPTI of CUDA 11.7 and driver 515, or later versions",
             result);
}

/* Reports the recording of GPU work, if the process requested it. */
static void say_gpu(struct ct_doctor *doctor, struct ct_segment *segment)
{
    enum { NOT_PERMITTED = 35 }; /* CUPTI_ERROR_INSUFFICIENT_PRIVILEGES */
    const unsigned result = segment->gpu >> 8;
    char *holder = segment->gpu_holder;
    holder[sizeof(segment->gpu_holder) - 1] = '\0';
    if (segment->gpu_until_ns > ct_monotonic_ns() && segment->gpu_until_ns != segment->gpu_followed_ns &&
        segment->maker == CT_MAKER_HOOK) {
        NOTE("gpu work", "requested: the recording begins at the process's next call of the driver");
        return;
    }
    switch (segment->gpu & 255) {
    case CT_GPU_STARTING:
        NOTE("gpu work", "CUPTI is starting");
        break;
    case CT_GPU_ON:
        say_graphs(doctor, result);
        break;
    case CT_GPU_ENDED:
        NOTE("gpu work",
             "the recording has ended: its time is over, or it ended with the process or the session");
        break;
    case CT_GPU_NO_LIBRARY:
        MISS("gpu work",
             "not recorded: " CT_GPU_LIBRARY " cannot be loaded from the folder of the hook; install "
             "it there");
        break;
    case CT_GPU_NO_CUPTI:
        MISS("gpu work",
             "not recorded: there is no libcupti.so of CUDA 11, 12 or 13; install it with the program's "
             "libcudart, or add its folder to LD_LIBRARY_PATH");
        break;
    case CT_GPU_TAKEN:
        MISS("gpu work",
             "not recorded: %s uses CUPTI, which serves one tool in a process; run the program "
             "without that tool",
             *holder ? holder : "another tool");
        break;
    case CT_GPU_REFUSED:
        MISS("gpu work", "not recorded: CUPTI failed with %u%s", result,
             result == NOT_PERMITTED ? "; let users profile (NVreg_RestrictProfilingToAdminUsers=0)"
                                     : ", a value of CUptiResult in CUDA's documentation");
        break;
    case CT_GPU_FORKED:
        NOTE("gpu work", "not recorded: the process was forked after its parent had begun to use CUPTI");
        break;
    case CT_GPU_FILTERED:
        MISS("gpu work",
             "not recorded: the program's system call filter does not permit the hook to create a thread; "
             "request the recording before the program installs its filter");
        break;
    case CT_GPU_NO_THREAD:
        MISS("gpu work", "not recorded: no thread could be created for the recording: %s",
             strerror((int)result));
        break;
    }
}

/* Reports calls dropped under pressure. Such calls are counted as skipped, like calls that the selection
 * leaves out. */
static void say_pressure(struct ct_doctor *doctor, const struct sums *sums)
{
    const uint64_t pressed = sums->lost_by[CT_LOSS_PRESSURE];
    if (pressed > 0)
        MISS("pressure", "%llu calls were counted but not recorded: %s", (unsigned long long)pressed,
             ct_losses[CT_LOSS_PRESSURE].explanation);
}

static void say_selection(struct ct_doctor *doctor, const struct ct_segment *segment, const struct sums *sums)
{
    const uint64_t pressed = sums->lost_by[CT_LOSS_PRESSURE];
    const uint64_t left_out = sums->skipped_calls > pressed ? sums->skipped_calls - pressed : 0;
    if (left_out > 0)
        MISS("left out", "%llu calls were counted but not recorded, as selected by %s; see skipped in totals",
             (unsigned long long)left_out,
             segment->selections ? "cudatrace set" : "--layers, --calls or --sample");
    if (doctor->daemon_pid && segment->selections != (doctor->selections & ~1U))
        NOTE("selection", "it uses an earlier selection than the session, until its next call");
}

/* Reports that nothing has been recorded, and whether recording may start at the next call. */
static void say_dormant(struct ct_doctor *doctor, const struct ct_traced *traced)
{
    if (!doctor->daemon_pid)
        MISS("recording", "nothing: no daemon serves session %s", traced->session);
    else if (*traced->hindrance)
        MISS("recording", "nothing: %s", traced->hindrance);
    else if (traced->driver_loaded)
        NOTE("recording", "nothing yet: it has made no CUDA calls since the daemon started, or none that the "
                          "hook can intercept");
    else
        FINE("recording", "nothing yet: it has not loaded the driver");
}

/* Returns whether the segment belongs to the process. The segment may be left over from an earlier process
 * with the same pid. */
static bool is_of(const struct ct_segment *segment, const struct ct_traced *traced)
{
    return segment->version != CT_PROTO_VERSION || segment->process_start == traced->start_ticks;
}

bool ct_doctor_is_probed(const struct ct_doctor *doctor, const struct ct_traced *traced)
{
    static struct ct_segment segment;
    char path[PATH_MAX];
    const int fd = open_segment(doctor, traced, path);
    const bool is_probed = fd >= 0 && read_header(fd, &segment) && is_of(&segment, traced) &&
                           segment.version == CT_PROTO_VERSION && segment.maker == CT_MAKER_PROBE &&
                           !(segment.flags & CT_SEGMENT_LEFT);
    if (fd >= 0)
        close(fd);
    return is_probed;
}

void ct_doctor_segment(struct ct_doctor *doctor, const struct ct_traced *traced, struct ct_recorded *recorded)
{
    static struct ct_segment segment;
    struct sums sums = { .lanes = 0 };
    char path[PATH_MAX];
    const int fd = open_segment(doctor, traced, path);
    const bool read = fd >= 0 && read_header(fd, &segment);
    const bool is_its = read && is_of(&segment, traced);
    const bool is_probed = is_its && segment.version == CT_PROTO_VERSION && segment.maker == CT_MAKER_PROBE;
    if (!is_its || (!traced->hooked && !is_probed)) {
        if (traced->hooked)
            say_dormant(doctor, traced);
    } else if (segment.version != CT_PROTO_VERSION || !ct_segment_valid(&segment)) {
        MISS("recording",
             "%s is not of this build (shared memory of version %u, not %d), or damaged: restart the process "
             "with the hook of this build",
             path, segment.version, CT_PROTO_VERSION);
    } else {
        add_functions(fd, &segment, &sums);
        add_lanes(fd, &segment, &sums);
        if (sums.lanes == 0 && *traced->hindrance)
            MISS("recording", "no thread can record: %s", traced->hindrance);
        else
            say_recording(doctor, &segment, &sums);
        say_ways(doctor, &segment);
        say_gpu(doctor, &segment);
        recorded->drivers = segment.drivers;
        say_losses(doctor, fd, &sums);
        say_pressure(doctor, &sums);
        say_selection(doctor, &segment, &sums);
    }
    recorded->way_in = sums.way_in;
    if (fd >= 0)
        close(fd);
}
