"""Tests that `cudatrace probe --list` agrees with the lists that the kernel and the libraries have themselves, and that each of its lines
is valid in a table of hooks."""
import os
import pathlib
import re
import subprocess

from cudatrace_test import CUDATRACE, SIMCUDA, SOURCE, WORKLOADS, Session, can, check, equal, wait_for
from probing import PROBE  # noqa: F401: skips without a probe

CPP = WORKLOADS / "libhookable_cpp.so"
NO_ATTACH = "probe: the kernel has no kprobes (CONFIG_KPROBES): kprobe: lines cannot be attached here\n"
NO_KPROBES = "cudatrace-probe: this kernel has no kprobes (CONFIG_KPROBES): the probe cannot record the functions that are listed\n"
NO_TRACEFS = r"cudatrace-probe: tracepoints cannot be listed: tracefs: .*: run as root\n"
HAS_KPROBES = os.path.exists("/sys/bus/event_source/devices/kprobe")


def run(*arguments, **options):
    return subprocess.run([CUDATRACE, "probe", *map(str, arguments)], capture_output=True, text=True, **options)


def listed(*patterns, options=(), status=0):
    """Returns the lines that `--list` prints for the given patterns."""
    done = run(*options, *(word for pattern in patterns for word in ("--list", pattern)))
    equal(done.returncode, status, f"the status: {done.stderr}")
    return done.stdout.splitlines()


def targets(lines):
    """Returns the target in each line, even if the line is commented out because a table must not contain it."""
    return [line.removeprefix("# ").split()[0] for line in lines]


def is_table(s, lines):
    """Checks that the lines are a valid table of hooks, and that the probe finds each target."""
    table = s.dir / "hooks"
    good = [line for line in lines if not line.startswith("#")]
    for i in range(0, len(good), 256):
        table.write_text("".join(line + "\n" for line in good[i:i + 256]))
        done = run("--hooks", table, "--dry-run")
        cannot = "" if HAS_KPROBES or "kprobe:" not in table.read_text() else NO_ATTACH
        equal((done.returncode, done.stderr, len(done.stdout.splitlines())), (0, cannot, len(good[i:i + 256])), "the check of the list as a table")


def exported(library):
    """Returns the names of the functions that the library exports."""
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[2].partition("@")[0] for line in lines if line.split()[1] in "TtWwi"}


def kernel(s):
    """Checks that the list contains the functions in the kernel's symbol table, without the suffixes that the compiler adds to their
    names."""
    words = [line.split() for line in pathlib.Path("/proc/kallsyms").read_text().splitlines()]
    names = {re.sub(r"\.(isra|constprop)\..*", "", word[2]) for word in words if word[1] in "tTwW" and ".cold" not in word[2]}
    for pattern, prefix in ("vfs_*", "vfs_"), ("do_*", "do_"), ("pipe_read", "pipe_read"), ("*anon_pipe_read", "anon_pipe_read"):
        wanted = {f"kprobe:{name}" for name in names if name.startswith(prefix) and ("*" in pattern or name == pattern)}
        if wanted:
            lines = listed(f"kprobe:{pattern}")
            equal(targets(lines), sorted(wanted), f"functions of the kernel by {pattern}")
            check(not any(line.startswith("#") for line in lines) or HAS_KPROBES, "a function is refused by a kernel without kprobes", lines)
    done = run("--list", "kprobe:vfs_read")
    equal(done.stderr.count(NO_KPROBES), 0 if HAS_KPROBES else 1, f"the message about a kernel without kprobes: {done.stderr}")
    lines = listed("kprobe:vfs_r*", "kprobe:filp_*", options=["-v"])
    is_table(s, lines)
    line, = (line for line in lines if line.startswith("kprobe:vfs_read "))
    equal(line, "kprobe:vfs_read vfs_read file=arg0 buf=arg1 count=arg2 pos=arg3 status=ret:s64  "
                "# ssize_t vfs_read(struct file *file, char *buf, size_t count, loff_t *pos)", "a function with its arguments")
    line, = (line for line in lines if line.startswith("kprobe:filp_open "))
    check(line.startswith("kprobe:filp_open filp_open filename=arg0:str flags=arg1:s32 mode=arg2:u16 result=ret:u64  # struct file *filp_open("), line)


def tracepoints(s):
    """Checks that tracepoints are listed with the fields of their records, and that a pattern that does not begin with `kprobe:`, `uprobe:`
    or `tracepoint:` also matches tracepoints."""
    if not can("tracefs", "the list of tracepoints"):
        return
    lines = listed("tracepoint:sched:*", options=["--verbose"])
    is_table(s, lines)
    line, = (line for line in lines if line.startswith("tracepoint:sched:sched_switch "))
    fields = "prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"
    equal(line.partition("  # ")[0], "tracepoint:sched:sched_switch sched_switch " + " ".join(f"{name}={name}" for name in fields), "its fields")
    check("char prev_comm[16], pid_t prev_pid, int prev_prio" in line, "the declaration in", line)
    for pattern in "sched_switch", "sched:sched_switch", "tracepoint:sched:sched_switch":
        equal([line for line in listed(pattern) if line.startswith("tracepoint:")], ["tracepoint:sched:sched_switch"], pattern)
    is_table(s, listed("tracepoint:*", options=["-v"]))


def libraries(s):
    """Checks that the functions that a library exports are listed, and that lines that --hooks would refuse are commented out and give the
    reason."""
    libc, = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if line.endswith("/libc.so.6")}
    lines = listed(f"uprobe:{libc}:*")
    equal(set(targets(lines)), {f"uprobe:{libc}:{name}" for name in exported(libc)}, "the functions of the C library")
    equal(len(set(targets(lines))), len(lines), "a function is listed twice, of")
    check(f"# uprobe:{libc}:strlen  # an indirect function, which has no code of its own" in lines, "strlen is not refused")
    lines = listed(f"uprobe:{libc}:_*", options=["-v"])
    is_table(s, lines)
    check(f"# uprobe:{libc}:_exit  # has the same code as _Exit" in lines, "another name of a function is not refused")
    equal(listed(f"uprobe:{libc}:_exit", options=["-v"]), [f"uprobe:{libc}:_exit _exit"], "a function whose other name is not listed")
    check(f"uprobe:{libc}:_setjmp _setjmp at entry  # only 'at entry': it saves its return address" in lines, "the line of _setjmp")
    equal(listed(f"uprobe:{libc}:dlsym", options=["-v"]),
          [f"uprobe:{libc}:dlsym dlsym at entry  # only 'at entry': it examines the address of its caller"], "the line of dlsym")
    driver = SIMCUDA / "libcuda.so.1"
    equal(listed(f"uprobe:{driver}:cuInit"), [f"# uprobe:{driver}:cuInit  # the probe records it itself, unless --calls excludes it"], "the driver")
    lines = listed(f"uprobe:{CPP.parent}/libhookable_c*.so:hookable_put", options=["-v"])
    equal(lines, [f"uprobe:{CPP}:hookable_put hookable_put at entry  # only 'at entry', or with 'nothrow' if no C++ exception leaves it"],
          "a function of a C++ library")
    is_table(s, lines)
    folder = s.dir / "a b"
    folder.mkdir()
    (folder / "lib.so").symlink_to(libc)
    done = run("--list", f"uprobe:{s.dir}/*/lib.so:*")
    equal((done.returncode, done.stdout), (1, ""), "a path that a table cannot name")
    check("cudatrace-probe: a library is left out: its path has blanks or control characters\n" in done.stderr, done.stderr)


def processes(s):
    """Checks that with --pid, patterns match libraries that the process has loaded. If a library is in another mount namespace, its path in
    the list must be valid in the probe's own namespace."""
    holder = subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={"LD_PRELOAD": str(CPP)})
    try:
        wait_for("the program to load the library", lambda: str(CPP) in pathlib.Path(f"/proc/{holder.pid}/maps").read_text())
        with_pid = ["--pid", holder.pid]
        lines = listed("uprobe:libhookable_cpp*:hookable_*", options=with_pid)
        names = {name for name in exported(CPP) if name.startswith("hookable_")}
        equal(targets(lines), [f"uprobe:{CPP}:{name}" for name in sorted(names)], "functions of a library that is loaded")
        check(set(lines) <= set(listed("hookable_*", options=with_pid)), "a pattern without a kind does not match them")
        equal(run(*with_pid, "--list", "uprobe:libhookable.so:*").returncode, 1, "the status for a library that is not loaded")
    finally:
        holder.communicate()
    if not can("mount namespaces", "a process with other files at its paths"):
        return
    hidden = s.dir / "libhidden.so"
    hidden.touch()
    inside = 'mount --bind "$1" "$2" && LD_PRELOAD="$2" exec cat'
    holder = subprocess.Popen(["unshare", "-m", "sh", "-c", inside, "sh", CPP, hidden], stdin=subprocess.PIPE)
    try:
        wait_for("the program to load the library", lambda: pathlib.Path(f"/proc/{holder.pid}/comm").read_text() == "cat\n"
                 and str(hidden) in pathlib.Path(f"/proc/{holder.pid}/maps").read_text())
        lines = listed("uprobe:libhidden.so:hookable_put", options=["--pid", holder.pid, "-v"])
        equal(targets(lines), [f"uprobe:/proc/{holder.pid}/root{hidden}:hookable_put"], "the path of a library in another mount namespace")
        is_table(s, lines)
    finally:
        holder.communicate()


def names(s):
    """Checks that each line of a list has a different name for its hook, and that names that are too long are shortened."""
    copy = s.dir / "libcopy.so"
    copy.write_bytes(pathlib.Path(CPP).read_bytes())
    lines = listed(f"uprobe:{CPP}:hookable_put", f"uprobe:{copy}:hookable_put", options=["-v"])
    equal([line.split()[1] for line in lines], ["hookable_put", "hookable_put_2"], "names of functions with the same name")
    is_table(s, lines)
    long = "f" * 100
    source = s.dir / "long.c"
    source.write_text(f"int {long}1(void) {{ return 1; }}\nint {long}2(void) {{ return 2; }}\n")
    if can("cc", "long names"):
        subprocess.run(["cc", "-shared", "-fPIC", "-o", s.dir / "liblong.so", source], check=True)
        lines = listed(f"uprobe:{s.dir}/liblong.so:fff*", options=["-v"])
        equal([line.split()[1] for line in lines], ["f" * 71, "f" * 69 + "_2"], "long names")
        is_table(s, lines)


def wrong(s):
    """Checks that a pattern that matches nothing is reported as an error, and that the matches of the other patterns are still listed.
    --list must be refused together with options for recording."""
    done = run("--list", "kprobe:vfs_read", "--list", "no_such_*", "--list", "kprobe:nor_this")
    equal(done.returncode, 1, "the status if patterns match nothing")
    equal(targets(done.stdout.splitlines()), ["kprobe:vfs_read"], "the other pattern")
    for pattern in "no_such_*", "kprobe:nor_this":
        check(f"cudatrace: probe: --list '{pattern}': nothing on this machine matches\n" in done.stderr, pattern, "is not in", done.stderr)
    for arguments, message in (
            (["--list", "uprobe:libc.so.6:*"], "--list 'uprobe:libc.so.6:*': expected a path that begins with '/'; with --pid PID, the name of a "
             "library that the process has loaded"),
            (["--list", "uprobe:/lib/libc.so.6"], "--list 'uprobe:/lib/libc.so.6': expected uprobe:LIBRARY:FUNCTION"),
            (["--list", ""], "invalid value '' for --list: expected a pattern; at most 64 are possible"),
            (65 * ["--list", "x"], "invalid value 'x' for --list: expected a pattern; at most 64 are possible"),
            (["--list", "x", "--all"], "--list records nothing: omit --all"),
            (["--list", "x", "--hooks", SOURCE / "dist/hooks/driver.hooks"], "--list records nothing: omit --hooks")):
        done = run(*arguments)
        equal((done.returncode, done.stdout, done.stderr), (2, "", f"cudatrace: probe: {message}\n"), f"{arguments}")


def users(s):
    """Checks that a user without privileges gets a list of the kernel's functions, and a message about everything that the user may not
    read."""
    if not can("several users", "a list without root"):
        return
    nobody = dict(user=65534, group=65534, extra_groups=[], cwd="/")
    s.dir.chmod(0o711)
    done = run("--list", "vfs_read", **nobody)
    equal((done.returncode, targets(done.stdout.splitlines())), (0, ["kprobe:vfs_read"]), "the list without root")
    check(re.search(NO_TRACEFS, done.stderr), "no message about tracepoints:", done.stderr)
    done = run("--list", "uprobe:libc*:*", "--pid", os.getpid(), **nobody)
    equal(done.returncode, 1, "the status for a process that cannot be read")
    check(f"cudatrace-probe: the libraries of process {os.getpid()} cannot be listed: Permission denied: run as root\n" in done.stderr, done.stderr)


for case in kernel, tracepoints, libraries, processes, names, wrong, users:
    print(case.__name__, flush=True)
    with Session() as s:
        case(s)
