/* calls.c: runs many processes with many threads. Each thread makes a known number of driver calls, and
 * checks every result.
 *
 * If there is more than one process, the program executes itself for each process. Each process reports
 * through a pipe when it has made its calls, and the summary is printed after all processes have reported. */
#include "mix.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long threads = 1, calls = 1000, processes = 1, seed = 1, rate, burst = 1, via = VIA_LINKED,
                 mix = MIX_TRAINING;
static long long first_ends;
static long long process = -1, report_fd = -1; /* set in the processes that this program starts */
static const char *hold;

static const struct option_row options[] = {
    NUMBER_OPTION("threads", "threads of each process", &threads, 1, 4096),
    NUMBER_OPTION("calls", "calls of each thread after its setup", &calls, 0, 1ll << 40),
    NUMBER_OPTION("processes", "processes", &processes, 1, 4096),
    VIA_OPTION(&via),
    WORD_OPTION("mix", "MIX", "getctx, training, alloc, copy or launch", &mix, mix_words),
    NUMBER_OPTION("seed", "of the choice of calls", &seed, 0, 1ll << 40),
    NUMBER_OPTION("rate", "calls a second of each thread, 0: as fast as they go", &rate, 0, 1000000000),
    NUMBER_OPTION("burst", "calls at a time under --rate: going to sleep takes longer than many calls do",
                  &burst, 1, 1000000000),
    TEXT_OPTION("hold", "FIFO", "when the calls are done, stay until FIFO is written or closed", &hold),
    NUMBER_OPTION("first-ends", "1: the first thread ends, and another one does all this", &first_ends, 0, 1),
    NUMBER_OPTION("process", "internal: which of the processes this is", &process, 0, 4096),
    NUMBER_OPTION("report", "internal: where it reports", &report_fd, 0, 1 << 20),
    { .name = NULL },
};

struct report {
    uint64_t calls, failed;
};

static struct shared shared;
static pthread_barrier_t calls_done, may_end;

static void sleep_until(int64_t ns)
{
    const struct timespec until = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        ;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct timespec now;
    const uint64_t number = (uint64_t)(worker->calls + (uint64_t)(process < 0 ? 0 : process) * 4096);
    worker->calls = 0;
    mix_start_thread(worker, &shared, (uint64_t)seed * 1000003 + number);
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t start_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    for (long long i = 0; i < calls; i++) {
        if (rate > 0 && i % burst == 0)
            sleep_until(start_ns + i * 1000000000 / rate);
        mix_step(worker, (enum mix)mix);
    }
    pthread_barrier_wait(&calls_done);
    pthread_barrier_wait(&may_end);
    return NULL;
}

static void wait_for_release(void)
{
    char byte;
    const int fd = open(hold, O_RDONLY);
    ENSURE(fd >= 0 && read(fd, &byte, 1) >= 0);
    close(fd);
}

static void summarise(const struct report *sum)
{
    printf("calls: processes=%lld threads=%lld calls=%llu failed=%llu ok\n", processes, threads,
           (unsigned long long)sum->calls, (unsigned long long)sum->failed);
    fflush(stdout);
}

static int run_process(void)
{
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    pthread_t *ids = calloc((size_t)threads, sizeof *ids);
    struct report report = { 0 };
    ENSURE(workers && ids);
    driver_open((enum via)via);
    mix_start_process(&shared);
    pthread_barrier_init(&calls_done, NULL, (unsigned)threads + 1);
    pthread_barrier_init(&may_end, NULL, (unsigned)threads + 1);
    for (long long i = 0; i < threads; i++) {
        workers[i].calls = (uint64_t)i; /* the thread's number until the thread starts, then its count */
        ENSURE(pthread_create(&ids[i], NULL, work, &workers[i]) == 0);
    }
    pthread_barrier_wait(&calls_done);
    for (long long i = 0; i < threads; i++) {
        report.calls += workers[i].calls;
        report.failed += workers[i].failed;
    }
    if (report_fd >= 0)
        ENSURE(write((int)report_fd, &report, sizeof report) == sizeof report);
    else
        summarise(&report);
    if (hold)
        wait_for_release();
    pthread_barrier_wait(&may_end);
    for (long long i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    free(ids);
    free(workers);
    return 0;
}

static void *run_and_exit(void *unused)
{
    (void)unused;
    exit(run_process());
}

static pid_t start_process(int argc, char **argv, int number, int fd)
{
    char process_text[16], fd_text[16];
    char **arguments = calloc((size_t)argc + 5, sizeof *arguments);
    ENSURE(arguments);
    memcpy(arguments, argv, (size_t)argc * sizeof *arguments);
    snprintf(process_text, sizeof process_text, "%d", number);
    snprintf(fd_text, sizeof fd_text, "%d", fd);
    arguments[argc] = "--process";
    arguments[argc + 1] = process_text;
    arguments[argc + 2] = "--report";
    arguments[argc + 3] = fd_text;
    const pid_t child = fork();
    if (child == 0) {
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    ENSURE(child > 0);
    free(arguments);
    return child;
}

int main(int argc, char **argv)
{
    options_read(argc, argv, "Make driver calls from many processes and threads, and check every result.",
                 options);
    const bool is_one = processes == 1 || process >= 0;
    if (is_one && first_ends) {
        pthread_t other;
        ENSURE(pthread_create(&other, NULL, run_and_exit, NULL) == 0);
        pthread_exit(NULL);
    }
    if (is_one)
        return run_process();

    int pipe_fds[2];
    struct report sum = { 0 }, report;
    long long reports = 0, failures = 0;
    ENSURE(pipe(pipe_fds) == 0);
    fcntl(pipe_fds[0], F_SETFD, FD_CLOEXEC);
    for (int i = 0; i < (int)processes; i++)
        start_process(argc, argv, i, pipe_fds[1]);
    close(pipe_fds[1]);
    while (reports < processes && read(pipe_fds[0], &report, sizeof report) == sizeof report) {
        sum.calls += report.calls;
        sum.failed += report.failed;
        reports++;
    }
    if (reports == processes)
        summarise(&sum);
    for (int status; wait(&status) > 0;)
        failures += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    if (failures > 0)
        fprintf(stderr, "calls: %lld of %lld processes failed\n", failures, processes);
    return failures > 0 || reports != processes;
}
