"""Tests that filters that are installed before a program starts, for example by Docker or systemd, allow all system calls that the hook
makes. The program is recorded as it would be without a filter. hook/process/system.def, which the hook uses to check filters, lists every
system call that the hook makes.

    wide_filters.py docker | system-service | table
"""
import re
import sys

from trap_test import SOURCE, WORKLOADS, Session, check, compiled, equal, needs

# The system calls that both filters allow, apart from system calls that neither programs nor the hook make. The filters are Docker's
# default profile (moby, profiles/seccomp), and systemd's @system-service (src/shared/seccomp-util.c), which has all of these in its groups
# @default, @file-system, @basic-io, @network-io, @process, @signal, @sync, @timer, @resources, @memlock, @ipc, @io-event, @aio, @setuid,
# @chown.
BOTH = """accept accept4 access alarm arch_prctl bind brk capget capset chdir chmod chown clock_getres clock_gettime
clock_nanosleep clone clone3 close close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1
epoll_ctl epoll_pwait epoll_wait eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fallocate
fchdir fchmod fchmodat fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs
fsync ftruncate futex get_robust_list getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer
getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname
getsockopt gettid gettimeofday getuid getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel
io_destroy io_getevents io_setup io_submit ioctl ioprio_get ioprio_set kill lchown lgetxattr link linkat listen listxattr
llistxattr lremovexattr lseek lsetxattr lstat madvise membarrier memfd_create mkdir mkdirat mknod mknodat mlock mlock2
mlockall mmap mprotect mq_open mremap msgget msync munlock munlockall munmap nanosleep newfstatat open openat openat2 pause
pidfd_open pidfd_send_signal pipe pipe2 poll ppoll prctl pread64 preadv preadv2 prlimit64 pselect6 pwrite64 pwritev pwritev2
read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages removexattr rename renameat renameat2
restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend
rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr
sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler
sched_yield select semctl semget semop semtimedop sendfile sendmmsg sendmsg sendto set_robust_list set_tid_address setfsgid
setfsuid setgid setgroups setitimer setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setsockopt
setuid setxattr shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 socket socketpair splice stat statfs statx
symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun
timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask uname unlink unlinkat
utime utimensat utimes vfork vmsplice wait4 waitid write writev"""
LISTS = {
    "docker": BOTH + " adjtimex clock_adjtime fanotify_mark landlock_create_ruleset landlock_restrict_self mincore "
                     "name_to_handle_at pkey_alloc pkey_free pkey_mprotect ptrace seccomp",
    "system-service": BOTH + " add_key get_mempolicy kcmp keyctl personality request_key seccomp userfaultfd",
}
PROGRAMS = [("calls", "--mix", "launch", "--calls", 3000), ("calls", "--mix", "alloc", "--calls", 500), ("threads",), ("forks",),
            ("graph",), ("nodes",)]
what = sys.argv[1]


def table():
    return set(re.findall(r"^ROW\w*\((\w+),", (SOURCE / "hook/process/system.def").read_text(), re.M))


def made(s, name, *command, **options):
    trace = s.dir / f"{name}.txt"
    s.run("strace", "-f", "-o", trace, *command, **options)
    return set(re.findall(r"^\d+ +(\w+)\(", trace.read_text(), re.M))


with Session() as s:
    if what == "table":
        needs("strace", "ptrace")
        plain = set().union(*(made(s, "plain", WORKLOADS / program, *rest, preload=False) for program, *rest in PROGRAMS))
        dormant = made(s, "dormant", WORKLOADS / "calls", "--calls", 10)
        s.start_daemon()
        traced = set().union(*(made(s, "traced", WORKLOADS / program, *rest) for program, *rest in PROGRAMS))
        own = (traced | dormant) - plain
        check({"linkat", "fallocate", "gettid"} <= own, "of the hook's own only", own)
        equal(own - table(), set(), "calls that system.def lacks")
    else:
        needs("filters of system calls")
        names = LISTS[what].split()
        equal(table() - set(names), set(), "calls of the hook's that the filter forbids")
        known = set(re.findall(r"#define __NR_(\w+)", s.run("sh", "-c", "echo '#include <asm/unistd.h>' | cc -E -dM -",
                                                           preload=False).stdout))
        listed = ",".join(f"SYS_{name}" for name in names if name in known)
        launcher = compiled(s, "wide_filters.c", f"-DLISTED={listed}")
        s.start_daemon()
        for program, *rest in PROGRAMS:
            untraced = s.run(launcher, WORKLOADS / program, *rest, preload=False).stdout
            seen = s.run(launcher, WORKLOADS / program, *rest).stdout
            equal(len(seen.splitlines()), len(untraced.splitlines()), f"lines of {program}")
        s.flush()
        s.check_identity(lost=None)
        # `threads` also makes calls in signal handlers. If a handler interrupts the hook while a record is being written, the handler's
        # call is only counted.
        equal(s.rows("SELECT DISTINCT cause FROM losses WHERE cause <> 'signal'"), [], "causes of losses")
        check(s.value("SELECT sum(calls) FROM totals") > 3000, "calls")
