/* Tests the hook's lock (hook/base/lock.c): which threads acquire the lock, which threads are refused, and
 * that no thread spins. */
#include "lock.h"

#include "compiler.h"
#include "fork.h"
#include "stack.h"
#include "system.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the parts of the hook that lock.c needs ---- */

enum ct_fork_memory ct_fork_memory(void)
{
    return CT_MEMORY_OWN;
}

static bool is_left;
bool ct_stack_left(uintptr_t holder, uintptr_t frame)
{
    (void)holder, (void)frame;
    return is_left;
}

/* ---- common ---- */

static struct ct_lock plain, masking = { .signals_wait = true };

static void check(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "not so: %s\n", what);
        _exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Runs a test in a child process, because the filter that it installs, and the ban on the hook's own system
 * calls, would affect other tests. */
static void apart(void (*test)(void))
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        ct_thread_number_forget();
        test();
        /* Do not call _exit(), because a sanitizer makes system calls in it, which the filter must not
         * see. */
        syscall(SYS_exit_group, 0);
    }
    check(waitpid(child, &status, 0) == child && status == 0, "a test in a process of its own");
}

static void in_thread(void *(*function)(void *))
{
    pthread_t thread;
    check(pthread_create(&thread, NULL, function, NULL) == 0 && pthread_join(thread, NULL) == 0, "a thread");
}

/* ---- one thread ---- */

static void filter(struct sock_filter *code, unsigned short length)
{
    const struct sock_fprog program = { length, code };
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
              prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
          "a filter");
}

static void takes_without_system_calls(void)
{
    struct sock_filter end_alone[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    ct_thread_number();
    filter(end_alone, 4);
    for (int i = 0; i < 1000; i++) {
        if (!ct_lock_take(&plain) || ct_lock_take(&plain))
            _exit(2);
        ct_lock_give(&plain);
    }
    ct_system_silence();
    ct_thread_number_forget();
    if (!ct_lock_take(&masking)) /* the owner is identified by the C library's thread number */
        _exit(3);
    ct_lock_give(&masking);
}

static bool is_masked(void)
{
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    return sigismember(&set, SIGUSR1);
}

static void refuses_its_holder(void)
{
    errno = 77;
    check(ct_lock_take(&plain) && !is_masked(), "signals come under the one");
    check(!ct_lock_take(&plain), "the own thread is refused");
    is_left = true;
    check(ct_lock_take(&plain), "but where it left the lock by a jump");
    is_left = false;
    check(ct_lock_take(&masking) && is_masked(), "signals wait under the other");
    ct_lock_give(&masking);
    ct_lock_give(&plain);
    check(!is_masked() && ct_lock_take(&plain) && errno == 77, "free again, errno as it was");
    ct_lock_give(&plain);
}

/* ---- several threads ---- */

enum { THREADS = 4, ROUNDS = 20000 };
static volatile long counter;

static void *count(void *lock)
{
    for (int i = 0; i < ROUNDS; i++) {
        while (!ct_lock_take(lock))
            check(false, "ten seconds' wait for a moment's work");
        counter++;
        ct_lock_give(lock);
    }
    return NULL;
}

static void excludes(void)
{
    struct ct_lock *const locks[] = { &plain, &masking };
    for (int i = 0; i < 2; i++) {
        pthread_t threads[THREADS];
        counter = 0;
        for (int j = 0; j < THREADS; j++)
            check(pthread_create(&threads[j], NULL, count, locks[i]) == 0, "a thread");
        for (int j = 0; j < THREADS; j++)
            pthread_join(threads[j], NULL);
        check(counter == (long)THREADS * ROUNDS && atomic_load(&locks[i]->word) == 0, "one at a time");
    }
}

static void excludes_without_inheritance(void)
{
    struct sock_filter no_inheritance[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_UNLOCK_PI | FUTEX_PRIVATE_FLAG, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    filter(no_inheritance, 7);
    excludes();
}

static void *take_and_end(void *unused)
{
    (void)unused;
    check(ct_lock_take(&plain), "a lock that is free");
    return NULL;
}

static void is_taken_from_the_dead(void)
{
    in_thread(take_and_end);
    check(ct_lock_take(&plain), "a lock whose holder is no more");
    ct_lock_give(&plain);
    in_thread(take_and_end);
    ct_lock_forget(&plain); /* as for a forked child */
    check(ct_lock_take(&plain), "a lock that was forgotten");
    ct_lock_give(&plain);
}

static void *take_in_vain(void *unused)
{
    (void)unused;
    const double begun = now();
    check(!ct_lock_take(&plain), "a lock that is not given back");
    const double waited = now() - begun;
    check(waited > 0.3, "patience");
    check(!ct_lock_take(&plain) && !ct_lock_take(&plain) && now() - begun - waited < 0.3,
          "and no second one");
    return NULL;
}

static void *take_in_silence(void *unused)
{
    (void)unused;
    const double begun = now();
    check(!ct_lock_take(&plain) && now() - begun < 0.3, "nobody waits where no system call may be made");
    return NULL;
}

static void has_patience(void)
{
    ct_lock_patience_ms = 400;
    check(ct_lock_take(&plain), "a lock that is free");
    in_thread(take_in_vain);
    ct_lock_give(&plain);
    check(atomic_load(&plain.word) == 0 && ct_lock_take(&plain), "a lock that was given back at last");
    ct_system_silence();
    in_thread(take_in_silence);
    ct_lock_give(&plain);
    check(atomic_load(&plain.word) == 0, "given back in silence");
}

/* ---- priorities: on one processor, the middle thread works while the lowest one holds the lock ---- */

static sem_t ready, waiting;
static _Atomic bool got;

static void become(int priority)
{
    const struct sched_param how = { .sched_priority = priority };
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &how) != 0)
        _exit(77);
}

static void *hold(void *unused)
{
    (void)unused;
    check(ct_lock_take(&plain), "a lock that is free");
    sem_post(&ready);
    sem_wait(&waiting);
    ct_lock_give(&plain);
    return NULL;
}

static void *want(void *unused)
{
    (void)unused;
    become(50);
    sem_wait(&ready);
    sem_wait(&ready);
    const double begun = now();
    sem_post(&waiting); /* Neither of the other threads runs before this thread waits for the lock. */
    sem_post(&waiting);
    check(ct_lock_take(&plain), "a lock that is held by the lowest");
    check(now() - begun < 0.5, "the holder runs with the priority of who waits");
    atomic_store(&got, true);
    ct_lock_give(&plain);
    return NULL;
}

static void *work(void *unused)
{
    (void)unused;
    become(10);
    sem_post(&ready);
    sem_wait(&waiting);
    while (!atomic_load(&got))
        ;
    return NULL;
}

static void lends_priority(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    check(sched_setaffinity(0, sizeof(one), &one) == 0, "one processor");
    check(sem_init(&ready, 0, 0) == 0 && sem_init(&waiting, 0, 0) == 0, "semaphores");
    void *(*const functions[])(void *) = { hold, want, work };
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        check(pthread_create(&threads[i], NULL, functions[i], NULL) == 0, "a thread");
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
}

static bool may_run_in_real_time(void)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        become(10);
        _exit(0);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    refuses_its_holder();
    apart(takes_without_system_calls);
    excludes();
    apart(excludes_without_inheritance);
    is_taken_from_the_dead();
    if (may_run_in_real_time())
        apart(lends_priority);
    else
        puts("not tried: a lock's holder runs with the priority of who waits: no real-time scheduling here");
    apart(has_patience);
    return 0;
}
