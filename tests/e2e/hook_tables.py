"""Tests tables of hooks (`cudatrace probe --hooks`) with valid lines of each kind, with invalid lines, and with files that are not
tables."""
import os
import re
import subprocess

from cudatrace_test import CUDATRACE, SIMCUDA, SOURCE, WORKLOADS, Session, can, check, equal
from probing import PROBE  # noqa: F401: skips without a probe

HAS_KPROBES = os.path.exists("/sys/bus/event_source/devices/kprobe")
LIBRARY = SIMCUDA / "libcuda.so.1"
CPP = WORKLOADS / "libhookable_cpp.so"

GOOD = f"""
# A comment, an empty line, and hooks of each kind.

uprobe:{LIBRARY}:cuMemAlloc_v2 allocate address=arg0+0:u64 bytes=arg1 result=ret:s32 if arg1 > 4096 and duration >= 1ms limit 100/s  # why
uprobe:{LIBRARY}:cuModuleGetFunction	find_function	name=arg2:str
uprobe:{LIBRARY}:cuCtxSetFlags entered flags=arg0:u32 seventh=arg6 at entry
uprobe:{CPP}:hookable_put put at entry
uprobe:{CPP}:hookable_name name nothrow
uprobe:{LIBRARY}:cuLaunchKernel launch grid_x=arg1:u32 stream=arg8 if arg10 != 0x10 in calls
tracepoint:sched:sched_switch switch from=prev_comm to=next_pid if next_pid != 0 and prev_state & 3 in processes
uprobe:{LIBRARY}:cuStreamQuery queries count
uprobe:{LIBRARY}:cuEventQuery entered_queries at entry count if arg0 != 0
uprobe:{LIBRARY}:cuEventRecord events sample 100
tracepoint:signal:signal_generate signal number=sig if sig == 9 in machine limit 10/s
"""

BAD = [
    ("cuInit init", "unknown target 'cuInit': expected kprobe:FUNCTION, uprobe:LIBRARY:FUNCTION or tracepoint:GROUP:EVENT"),
    ("kprobe: init", "kprobe:: expected the name of a function in the kernel"),
    ("uprobe:/lib/libfoo.so init", "uprobe:/lib/libfoo.so: expected uprobe:LIBRARY:FUNCTION"),
    ("uprobe:libfoo.so:foo init", "uprobe:libfoo.so:foo: expected the library's path, beginning with '/'"),
    ("tracepoint:sched: switch", "tracepoint:sched:: expected tracepoint:GROUP:EVENT"),
    ("kprobe:f|g", "the hook has no name: expected a name after the target"),
    ("kprobe:f 7up", "invalid name '7up': use at most 71 letters, digits or '_'"),
    (f"kprobe:f {'n' * 72}", f"invalid name '{'n' * 72}': use at most 71 letters, digits or '_'"),
    ("kprobe:f f arg1", "unknown word 'arg1': expected FIELD=SOURCE, if, limit, count, sample, in, at or nothrow"),
    ("kprobe:f f a-b=arg1", "invalid name of a field 'a-b': use at most 23 letters, digits or '_'"),
    ("kprobe:f f a=arg1 a=arg2", "two fields have the name 'a'"),
    ("kprobe:f f a=arg12", "arg12: expected arg0 to arg11"),
    ("kprobe:f f a=arg1*4", "arg1*4: expected an offset from 0 to 1048576, such as arg1+16"),
    ("kprobe:f f a=rax", "unknown source 'rax': expected an argument (arg0), the result (ret) or duration"),
    ("kprobe:f f a=arg1:int", "unknown type 'int': expected u8, u16, u32, u64, s8, s16, s32, s64 or str"),
    ("kprobe:f f " + " ".join(f"f{i}=arg{i}" for i in range(9)), "more than 8 fields"),
    ("kprobe:f f a=arg0:str b=arg1:str c=arg2:str", "more than 2 fields are texts"),
    ("kprobe:f f if arg1 >", "incomplete condition: expected three words, such as 'arg1 > 4096'"),
    ("kprobe:f f if arg1 => 1", "unknown comparison '=>': expected ==, !=, <, <=, >, >= or &"),
    ("kprobe:f f if arg1 > many", "invalid number 'many': expected decimal or 0x, and not negative (or use a type such as :s32)"),
    ("kprobe:f f if arg0:str == 1", "a condition compares numbers, not texts"),
    ("kprobe:f f if arg0 == 1 and arg0 == 1 and arg0 == 1 and arg0 == 1 and arg0 == 1", "more than 4 conditions"),
    ("kprobe:f f and arg1 > 1", "'and' has no condition before it"),
    ("kprobe:f f if duration:u32 > 1", "duration has no type"),
    ("kprobe:f f limit 100", "invalid limit: expected 1/s to 1000000/s"),
    ("kprobe:f f sample 0", "invalid sample: expected a number from 1 to 1000000, of which one call is recorded"),
    ("kprobe:f f sample", "invalid sample: expected a number from 1 to 1000000, of which one call is recorded"),
    ("kprobe:f f a=arg0 count", "'count' records no calls, so the hook can have no fields"),
    ("kprobe:f f in threads", "expected 'in calls', 'in processes' or 'in machine'"),
    (f"uprobe:{LIBRARY}:f f in machine at entry", "'in machine' is only for tracepoints and functions of the kernel"),
    ("kprobe:f f in machine", "'in machine' records a function of the kernel only 'at entry': add that"),
    ("tracepoint:a:b f in machine " + " ".join(f"f{i}=x{i}" for i in range(6)), "more than 5 fields: 'in machine' adds task_pid, task_tid and task_name"),
    ("tracepoint:a:b f task_name=x in machine", "'in machine' adds the field 'task_name': use another name"),
    ("kprobe:f f at return", "expected 'at entry'"),
    ("kprobe:f f x=ret at entry", "'at entry' excludes the result (ret) and the duration"),
    ("kprobe:f f at entry if duration > 1s", "'at entry' excludes the result (ret) and the duration"),
    ("tracepoint:a:b f at entry", "a tracepoint has no entry"),
    ("tracepoint:a:b xid", "the probe's own hook has the name 'xid': use another name"),
    ("tracepoint:a:b f x=arg0:u32", "invalid field 'arg0:u32': expected the name of a field of the tracepoint"),
]

# Well-formed lines whose target does not exist or cannot be probed.
ABSENT = [
    ("kprobe:no_such_function|nor_this f", "the kernel has no function no_such_function|nor_this: its module is not loaded, or the compiler "
     "has inlined it"),
    (f"uprobe:{LIBRARY}:cuNoSuch f", f"{LIBRARY} does not export a function cuNoSuch"),
    ("uprobe:/no/such/lib.so:f f", "/no/such/lib.so: No such file or directory"),
    ("uprobe:/etc/passwd:f f", "/etc/passwd: not a library for this processor"),
    (f"uprobe:{CPP}:hookable_put f", "a C++ exception that leaves a function with a probe of its return ends the program: record hookable_put 'at "
     "entry', or add 'nothrow' if no exception leaves it"),
    ("uprobe:/lib/libc.so.6:_setjmp f", "_setjmp saves its return address: a probe of its return would crash the program"),
] + [(f"uprobe:/lib/libc.so.6:{name} f", f"{name} examines the address of its caller: a probe of its return would change its result; record it 'at "
      "entry'") for name in ("dlsym", "dlvsym", "dlopen", "dlmopen")]
ABSENT_TRACEPOINTS = [
    ("tracepoint:sched:no_such f", "the kernel has no tracepoint sched:no_such, or its module is not loaded"),
    ("tracepoint:../events/sched:sched_switch f", "the kernel has no tracepoint ../events/sched:sched_switch, or its module is not loaded"),
    ("tracepoint:sched:sched_switch f x=next", "the tracepoint has no field 'next', but prev_comm, prev_pid, prev_prio, prev_state, next_comm, "
     "next_pid, next_prio"),
    ("tracepoint:sched:sched_switch f if prev_comm == 1", "a condition compares numbers, and 'prev_comm' is a text"),
]


def probe(table, *options):
    return subprocess.run([CUDATRACE, "probe", "--hooks", table, *options], capture_output=True, text=True)


def written(s, text):
    file = s.dir / "hooks"
    file.write_text(text)
    return file


def good(s):
    """Checks that the targets of a valid table are found, and that the script generated for bpftrace has a probe for each of them."""
    if not can("tracefs", "tracepoints of a table"):
        return
    table = written(s, GOOD)
    done = probe(table, "--dry-run")
    equal((done.returncode, done.stderr), (0, ""), "the check of a good table")
    equal(done.stdout.splitlines(), [
        f"allocate                 uprobe:{LIBRARY}:cuMemAlloc_v2",
        f"find_function            uprobe:{LIBRARY}:cuModuleGetFunction",
        f"entered                  uprobe:{LIBRARY}:cuCtxSetFlags",
        f"put                      uprobe:{CPP}:hookable_put",
        f"name                     uprobe:{CPP}:hookable_name",
        f"launch                   uprobe:{LIBRARY}:cuLaunchKernel",
        "switch                   tracepoint:sched:sched_switch",
        f"queries                  uprobe:{LIBRARY}:cuStreamQuery",
        f"entered_queries          uprobe:{LIBRARY}:cuEventQuery",
        f"events                   uprobe:{LIBRARY}:cuEventRecord",
        "signal                   tracepoint:signal:signal_generate"], "its hooks")
    script = probe(table, "--bpftrace").stdout
    for line in (f'uprobe:"{LIBRARY}":cuMemAlloc_v2 {{', f'uretprobe:"{LIBRARY}":cuMemAlloc_v2 /@allocate[tid]/ {{',
                 "    if ((uint64)@allocate_arg1[tid] > 4096 && (nsecs - @allocate[tid]) >= 1000000) {",
                 "// bpftrace has no limit of 100/s.", "    @launch_arg8[tid] = sarg3;", "tracepoint:sched:sched_switch {",
                 '    @calls["queries"] = stats(nsecs - @queries[tid]);', '        @calls["entered_queries"] = count();',
                 "// bpftrace prints all calls, and not one of 100.",
                 f'uprobe:"{LIBRARY}":cuCtxSetFlags {{',
                 '    printf("%d %d entered flags=%llu seventh=%llu\\n", pid, tid, (uint32)arg0, (uint64)sarg1);',
                 "    if (args->next_pid != 0 && (args->prev_state & 3) != 0) {",
                 '        printf("%d %d signal number=%lld task_pid=%llu task_tid=%llu task_name=%s\\n", pid, tid, args->sig, pid, tid, comm);'):
        check(line in script.splitlines(), f"the script lacks '{line}':\n{script}")


def bad(s):
    """Checks that each invalid line, and each line whose target does not exist, is reported with its line number and the reason."""
    for line, message in BAD:
        table = written(s, f"# The next line is bad.\n{line}\nkprobe:good good\n")
        done = probe(table, "--dry-run")
        equal((done.returncode, done.stdout, done.stderr), (2, "", f"{table}:2: {message}\n"), f"the check of '{line}'")
    table = written(s, "kprobe:f same\nkprobe:g same\n")
    equal(probe(table, "--dry-run").stderr, f"{table}:2: line 1 has the name 'same' already\n", "two hooks of one name")
    if can("tracefs", "two hooks on one tracepoint"):
        switch = "tracepoint:sched:sched_switch"
        table = written(s, f"{switch} a\n{switch} b in machine\n{switch} c\n{switch} d in machine\n")
        equal(probe(table, "--dry-run").stderr, "".join(f"{table}:{line}: {name}: line {line - 2} hooks sched:sched_switch already\n"
                                                        for line, name in ((3, "c"), (4, "d"))), "hooks on one tracepoint")
    absent = ABSENT + (ABSENT_TRACEPOINTS if can("tracefs", "tracepoints that are absent") else [])
    for line, message in absent:
        table = written(s, line)
        done = probe(table, "--dry-run")
        equal((done.returncode, done.stdout, done.stderr), (1, "", f"{table}:1: f: {message}\n"), f"the search for '{line}'")


def not_tables(s):
    """Checks that tables that are too long, and files that are not tables, are rejected quickly and with a message."""
    table = written(s, "".join(f"kprobe:f f{i}\n" for i in range(1000000)))
    equal(probe(table, "--dry-run").stderr, f"{table}:257: the table has more than 256 hooks\n", "a million lines")
    table = written(s, "nonsense\n" * 1000000)
    lines = probe(table, "--dry-run").stderr.splitlines()
    equal((len(lines), lines[-1]), (21, f"{table}: only the first 20 errors are shown"), "a million bad lines")
    for content in "x" * 10000, "\0" * 10000, "kprobe:f f\0\n":
        table = written(s, content)
        done = probe(table, "--dry-run")
        equal(done.returncode, 2, "the status for a file that is no table")
        equal(done.stderr, f"{table}:1: the line has more than 4094 bytes, or a NUL: this is not a table of hooks\n", "its message")
    fifo = s.dir / "fifo"
    os.mkfifo(fifo)
    for file, reason in ((s.dir / "absent", "No such file or directory"), (s.dir, "Is a directory"), (fifo, "not a regular file"),
                         ("/dev/zero", "not a regular file")):
        done = probe(file, "--dry-run")
        equal((done.returncode, done.stderr), (2, f"cudatrace: probe: --hooks {file}: {reason}\n"), "a file that cannot be read")
    equal(probe(written(s, ""), "--dry-run").returncode, 0, "the status for an empty table")


def installed(s):
    """Checks that the tables installed with cudatrace have no errors, except that their targets may be missing on this machine."""
    tables = sorted((SOURCE / "dist/hooks").glob("*.hooks"))
    check(len(tables) >= 5, "tables are missing")
    for table in tables:
        done = probe(table, "--dry-run")
        check(done.returncode in (0, 1), table, "has errors:", done.stderr)
        for line in done.stderr.splitlines():
            check("has no kprobes" in line and not HAS_KPROBES or
                  re.fullmatch(r".*:\d+: uprobe:/.*: (nothing on this machine matches|\d+ targets.*)", line) or
                  re.fullmatch(r".*:\d+: \w+: (the kernel has no (function|tracepoint) .*|/.*: No such file or directory|/.* does not export .*|tracefs .*)",
                               line), "an error in a table that is installed:", line)


def patterns(s):
    """Checks that a pattern stands for all targets that match and can be hooked, except those of earlier lines."""
    plain = WORKLOADS / "libhookable.so"

    def found(*lines):
        done = probe(written(s, "".join(f"{line}\n" for line in lines)), "--dry-run")
        return done.returncode, [line.split() for line in done.stdout.splitlines()], done.stderr.replace(f"{s.dir}/hooks:", "")

    targets = [[name, f"uprobe:{plain}:{name}"] for name in ("hookable_name", "hookable_around", "hookable_put")]
    status, rows, errors = found(f"uprobe:{plain}:hookable_*")
    equal((status, sorted(rows), errors), (0, sorted(targets), f"1: uprobe:{plain}:hookable_*: 3 targets\n"), "the names of the functions")
    status, rows, errors = found(f"uprobe:{plain}:hookable_put put x=arg2:s32", f"uprobe:{WORKLOADS}/libhookabl[e].so:*a* both if arg0 > 1 nothrow")
    equal((status, sorted(rows)), (0, [["both", f"uprobe:{plain}:hookable_around"], ["both", f"uprobe:{plain}:hookable_name"],
                                       ["put", f"uprobe:{plain}:hookable_put"]]), "one name for all")
    equal(errors, f"2: uprobe:{WORKLOADS}/libhookabl[e].so:*a*: 2 targets\n", "the number of targets")
    equal(found(f"uprobe:{CPP}:hookable_*"), (1, [], f"1: uprobe:{CPP}:hookable_*: 3 functions match, but a hook is possible on none; --list "
                                                     "names the reasons\n"), "functions that can only be hooked at entry")
    equal(len(found(f"uprobe:{CPP}:hookable_* * at entry")[1]), 3, "hooks at entry")
    status, rows, errors = found(f"uprobe:{LIBRARY}:cuMem*", "uprobe:/no/such*:f", "kprobe:no_such_function_*|nor_this?")
    no_function = "nothing on this machine matches" if HAS_KPROBES else "the kernel has no kprobes (CONFIG_KPROBES)"
    check(status == 1 and not rows and re.fullmatch(
        rf"1: uprobe:{LIBRARY}:cuMem\*: the probe itself records the \d+ functions that match, unless --calls excludes them\n2: uprobe:/no/such\*:f: nothing on this machine "
        rf"matches\n3: kprobe:no_such_function_\*\|nor_this\?: {re.escape(no_function)}\n", errors), "patterns that match nothing", errors)
    equal("cannot be attached here" in found("kprobe:vfs_read")[2], not HAS_KPROBES, "whether a kernel without kprobes is named")
    libc = "/lib/x86_64-linux-gnu/libc.so.6"
    if os.path.exists(libc):
        status, rows, errors = found(f"uprobe:{plain}:hookable_put", f"uprobe:{libc}:*", f"uprobe:{libc}:getpid")
        check(status == 1 and re.search(r"^2: uprobe:.*: \d{4} targets match, and the table has room for 254: narrow the pattern$", errors, re.M), errors)
        equal(rows, [["hookable_put", f"uprobe:{plain}:hookable_put"], ["getpid", f"uprobe:{libc}:getpid"]], "the other lines")
    if can("tracefs", "a pattern of tracepoints"):
        status, rows, errors = found("tracepoint:sched:sched_process_*")
        check(status == 0 and ["sched_process_exit", "tracepoint:sched:sched_process_exit"] in rows and len(rows) >= 4, rows)


def without_file(s):
    """Checks tables on the command line and on standard input, together and alone. A line with only a target has a name, too."""
    line = f"uprobe:{LIBRARY}:cuMemAlloc_v2"

    def found(*options, text=None):
        done = subprocess.run([CUDATRACE, "probe", "--dry-run", *options], input=text, capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    row = f"cuMemAlloc_v2            {line}\n"
    equal(found("--hook", line), (0, row, ""), "a line")
    equal(found("--hook", f"uprobe:{LIBRARY}:cuInit first", "--hook", f"{line} # the second"),
          (0, f"first                    uprobe:{LIBRARY}:cuInit\n{row}", ""), "two lines")
    for name in "-", "/dev/stdin":
        equal(found("--hooks", name, text=f"# comment\n{line}\n"), (0, row, ""), f"the table in {name}")
    equal(found("--hooks", "-", "--hook", line, text="kprobe:f 7up\n"),
          (2, "", "standard input:1: invalid name '7up': use at most 71 letters, digits or '_'\n"), "an error on standard input")
    equal(found("--hook", line, "--hook", "kprobe:f 7up"), (2, "", "--hook:2: invalid name '7up': use at most 71 letters, digits or '_'\n"),
          "an error in the second line")
    equal(found("--hooks", "-", "--hook", f"{line} other", text=line)[2],
          f"--hook:1: other: line 1 hooks {LIBRARY}:cuMemAlloc_v2 already\n", "the same target twice")
    equal(found("--hooks", "-", text=""), (0, "", ""), "an empty table")
    equal(found("--hook", f"{line}\n{line}")[0], 2, "the status for two lines in one")
    equal(found()[2], "cudatrace: probe: --dry-run needs --hooks FILE or --hook LINE\n", "no table")


for case in good, bad, patterns, not_tables, installed, without_file:
    print(case.__name__, flush=True)
    with Session() as s:
        case(s)
