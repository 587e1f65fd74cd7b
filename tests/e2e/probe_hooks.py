"""Tests the calls that `cudatrace probe --hooks` records for library functions and tracepoints, with their fields."""
import os
import pathlib
import signal
import subprocess
import sys

from cudatrace_test import DEADLINE_S, WORKLOADS, can, check, equal, wait_for
from probing import Hooks as AnyHooks, OwnDriver, writer_of

LIBRARY = WORKLOADS / "libhookable.so"
PUT = f"uprobe:{LIBRARY}:hookable_put"
CALL = "cuOccupancyMaxPotentialBlockSize"


class Hooks(AnyHooks):
    """A probe with a table of hooks that also records the program's calls to the driver function CALL."""

    def __init__(self, s, *lines, options=()):
        super().__init__(s, *lines, options=("--calls", CALL, *options))

    def run(self, *arguments):
        return super().run(WORKLOADS / "hooked", *arguments)


def values(s):
    """Checks the values of fields read from arguments, memory, strings and results. The numbers are signed and unsigned, and have various
    widths."""
    hooks = Hooks(s, f"{PUT} put tag=arg0+0:u32 level=arg0+4:s16 low=arg0+4:u8 bytes=arg0+8 name=arg1:str number=arg2:s32 sixth=arg6:s64 status=ret:s32",
                  f"uprobe:{LIBRARY}:hookable_name name text=ret:str out=arg0+0:u64 number=arg1:u8 seventh=arg7")
    pid = hooks.run("--times", 3)
    hooks.probe.end()
    numbers = [dict(tag=0xb0b0b0b0, level=-i, low=-i & 255, name=name, number=-i, sixth=-6 * i, status=i)
               for i, name in ((0, "number 0"), (1, "number 1"), (2, "number 2"), (1, "inside"), (2, "n" * 255), (3, 'a "quote", and ?'))]
    seen = hooks.fields(pid, "put")
    for fields, expected in zip(seen, numbers):
        bytes_ = fields.pop("bytes")
        equal(int(bytes_) % 2**64, 0xf << 60 | expected["status"], "an unsigned number of 64 bits")
        equal(fields, expected, "the fields of a call")
    equal(seen[-1], dict(name=None, number=0, sixth=0, status=0), "the fields of a call with pointers that are NULL")
    equal(len(seen), 7, "calls of hookable_put")
    equal([status for status, in s.rows("SELECT status FROM hooks WHERE pid = ? AND name = 'put' ORDER BY call_id", pid)],
          [0, 1, 2, 1, 2, 3, 0], "the status of the rows")
    equal([(f["text"], f["number"]) for f in hooks.fields(pid, "name")], [("zero", 0), ("one", 1), ("two", 2)], "texts at the return")
    s.check_identity(lost=0)


def depths(s):
    """Checks the depth and order of calls if a function with a hook is called inside a driver call, and vice versa. A call left by
    longjmp() is not recorded."""
    hooks = Hooks(s, f"{PUT} put", f"uprobe:{LIBRARY}:hookable_around around")
    pid = hooks.run("--times", 1)
    hooks.probe.end()
    equal(s.rows("SELECT name, depth FROM calls JOIN processes USING (process_id) WHERE processes.pid = ? ORDER BY call_id", pid),
          [(CALL, 0), ("put", 0), ("put", 1), (CALL, 0), (CALL, 1), ("around", 0), ("put", 0), ("put", 0), ("put", 0)],
          "calls and their depths, in the order of their returns")
    equal(s.rows("SELECT name FROM open_calls JOIN processes USING (process_id) WHERE processes.pid = ?", pid), [], "open calls")
    s.check_identity(lost=0)


def entries(s):
    """Checks that a hook with `at entry` records a call without a duration before the calls that the function makes, no matter how the
    function is left."""
    hooks = Hooks(s, f"{PUT} put number=arg2:s32 name=arg1:str seventh=arg7 at entry if arg2:s32 < -1", f"uprobe:{LIBRARY}:hookable_around around at entry")
    pid = hooks.run("--times", 3)
    hooks.probe.end()
    equal([(f["number"], f["name"][:8], f["seventh"]) for f in hooks.fields(pid, "put")],
          [(-2, "number 2", 14), (-2, "nnnnnnnn", 14), (-3, 'a "quote', 21)], "the fields of entries")
    equal(s.rows("SELECT name, depth, duration_ns = 0 FROM calls JOIN processes USING (process_id) WHERE processes.pid = ? ORDER BY call_id", pid),
          [(CALL, 0, 0), ("put", 0, 1), (CALL, 0, 0), ("around", 0, 1), ("around", 0, 1), (CALL, 0, 0), ("put", 0, 1), ("put", 0, 1)],
          "calls and entries")
    s.check_identity(lost=0)


def examined_callers(s):
    """Checks that dlsym(RTLD_NEXT), whose result depends on its caller, works in a program with a hook on the entry of dlsym()."""
    libc, = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if line.endswith("/libc.so.6")}
    hooks = Hooks(s, f"uprobe:{libc}:dlsym dlsym name=arg1:str at entry")
    pid = hooks.run("--times", 0)
    hooks.probe.end()
    check("hookable_put" in [f["name"] for f in hooks.fields(pid, "dlsym")], "the call of dlsym() is not recorded")


def conditions(s):
    """Checks that a call is recorded only if it meets all conditions, and that calls beyond a limit are counted as skipped."""
    hooks = Hooks(s, f"{PUT} put number=arg2:s32 if arg2:s32 <= -2 and arg0+4:s16 > -5 and arg6:s64 != -18",
                  f"uprobe:{LIBRARY}:hookable_name name if arg1 & 2",
                  f"uprobe:{LIBRARY}:hookable_around around in calls")
    pid = hooks.run("--times", 8)
    equal([fields["number"] for fields in hooks.fields(pid, "put")], [-2, -4, -2], "the calls that meet the conditions")
    equal(s.value("SELECT count(*) FROM hooks WHERE pid = ? AND name = 'name'", pid), 1, "calls with a bit")
    equal(s.value("SELECT count(*) FROM hooks WHERE pid = ? AND name = 'around'", pid), 0, "calls outside of driver calls")
    hooks.probe.end()
    hooks = Hooks(s, f"{PUT} limited limit 1/s")
    pid = hooks.run("--times", 2000)
    hooks.probe.end()
    s.flush()
    calls, skipped = s.rows("SELECT calls, skipped FROM totals JOIN processes USING (process_id) WHERE pid = ? AND name = 'limited'", pid)[0]
    equal(calls, 2004, "all calls")
    check(skipped >= 1500, "calls beyond a limit of 1/s were stored, and", skipped, "were skipped")
    equal([tuple(row[column] for column in ("hook", "calls", "skipped", "lost")) for row in s.report("--pid", pid, "hooks")["hooks"]],
          [("limited", calls, skipped, 0)], "the report")
    s.check_identity(lost=0)


def counted(s):
    """Checks hooks that only count their calls, at the return and at the entry, and a hook that records a sample of them."""
    hooks = Hooks(s, f"{PUT} sampled number=arg2:s32 sample 10", f"uprobe:{LIBRARY}:hookable_around times count",
                  f"uprobe:{LIBRARY}:hookable_name entries at entry count")
    pid = hooks.run("--times", 3000)
    hooks.probe.end()
    s.flush()
    totals = {name: rest for name, *rest in s.rows("SELECT totals.name, calls, stored, skipped, lost, total_ns > 0 FROM totals JOIN processes "
                                                   "USING (process_id) WHERE pid = ? AND layer = 'hook'", pid)}
    calls, stored, *rest = totals["sampled"]
    equal((calls, rest), (3004, [calls - stored, 0, 1]), "the sampled calls")
    check(100 < stored < 600, "calls in the sample:", stored)
    equal(len(hooks.fields(pid, "sampled")), stored, "recorded calls with fields")
    times, entries = totals["times"], totals["entries"]
    check(times[0] > 0 and entries[0] > 0, "calls", totals)
    equal((times[1:], entries[1:]), ([0, times[0], 0, 1], [0, entries[0], 0, 0]), "the counted calls")
    s.check_identity(lost=0)


def tracepoints(s):
    """Checks that a tracepoint hit by a thread is recorded as a call without a duration, inside the thread's current call."""
    if not can("tracefs", "hooks on tracepoints"):
        return
    hooks = Hooks(s, "tracepoint:sched:sched_switch switch from=prev_comm next=next_comm pid=prev_pid to=next_pid state=prev_state in calls")
    done = s.start(WORKLOADS / "off_cpu", "--pages", 1, "--sleep", 5, preload=False, stdout=subprocess.DEVNULL)
    equal(done.wait(20), 0, "the program's status")
    s.flush_until("its end", lambda: s.value("SELECT count(*) FROM processes WHERE pid = ? AND state = 'exited'", done.pid) == 1)
    hooks.probe.end()
    sleeps = [fields for fields in hooks.fields(done.pid, "switch") if fields["state"] == 1]
    equal({(fields["from"], fields["pid"]) for fields in sleeps}, {("off_cpu", done.pid)}, "who slept")
    equal(len(sleeps), 2, "sleeps")
    equal(s.rows("SELECT DISTINCT depth, duration_ns FROM hooks WHERE pid = ?", done.pid), [(1, 0)], "their depth and duration")


def signals(number, count, handler="signal.SIG_IGN"):
    """Starts an untraced process that sends signals to itself."""
    act = f"import os, signal; signal.signal({number}, {handler}); [os.kill(os.getpid(), {number}) for _ in range({count})]"
    return subprocess.Popen([sys.executable, "-c", act])


def machine(s):
    """Checks that a tracepoint whose hook contains `in machine` is recorded in any thread, including threads of untraced processes and of
    the kernel."""
    if not can("tracefs", "hooks on tracepoints"):
        return
    low, high, limited = (signal.SIGRTMIN + number for number in (20, 21, 22))
    hooks = Hooks(s, f"tracepoint:signal:signal_generate sent number=sig to=pid name=comm if sig >= {low} and sig <= {high} in machine",
                  f"tracepoint:signal:signal_generate inside if sig == {low}",  # another hook on the same tracepoint
                  f"tracepoint:signal:signal_deliver limited if sig == {limited} in machine limit 1/s",
                  "tracepoint:workqueue:workqueue_execute_start work in machine limit 1000/s")
    pid = hooks.probe.child.pid
    counts = {low: 1200, high: 1800, limited: 2000}  # the ring has room for all of them, even if the writer does not run
    senders = {low: signals(low, counts[low]), high: signals(high, counts[high]),  # at the same time
               limited: signals(limited, counts[limited], "lambda *_: None")}
    for sender in senders.values():
        equal(sender.wait(DEADLINE_S), 0, "the status of a sender")
    kernels = "SELECT count(*) FROM hook_fields WHERE name = 'work' AND field = 'task_name' AND value GLOB 'kworker/*'"
    s.flush_until("work of the kernel", lambda: s.value(kernels) > 0)
    equal((s.status()["processes"], s.status()["probed"]), ("0", "0"), "traced processes, without the probe itself")
    hooks.probe.end()
    s.flush()
    events = s.rows("""SELECT json_extract(fields, '$.number') AS number, json_extract(fields, '$.task_pid'), json_extract(fields, '$.task_tid'),
                              json_extract(fields, '$.task_name') = json_extract(fields, '$.name'), json_extract(fields, '$.to'), pid, thread,
                              depth, duration_ns, count(*)
                         FROM hooks WHERE name = 'sent' GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9 ORDER BY 1""")
    equal(events, [(number, senders[number].pid, senders[number].pid, 1, senders[number].pid, pid, "machine", 0, 0, counts[number])
                   for number in (low, high)], "the events of each sender")
    equal(s.value("SELECT count(*) FROM hooks WHERE name = 'inside'"), 0, "events in processes that are recorded")
    calls, skipped = s.rows("SELECT calls, skipped FROM totals WHERE name = 'limited'")[0]
    equal(calls, counts[limited], "all events of the hook with a limit")
    check(skipped >= 1500, "events beyond a limit of 1/s were stored, and", skipped, "were skipped")
    s.check_identity(lost=0)


def machine_losses(s):
    """Checks that events of `in machine` hooks are counted as lost if they do not fit into the ring. If the writer is killed, a new writer
    must continue where it stopped."""
    if not can("tracefs", "hooks on tracepoints"):
        return
    number = signal.SIGRTMIN + 23
    hooks = Hooks(s, f"tracepoint:signal:signal_generate sent if sig == {number} in machine")
    pid = hooks.probe.child.pid
    seen = "SELECT calls, lost FROM totals WHERE name = 'sent'"
    writer = writer_of(hooks.probe, pid)
    os.kill(writer, signal.SIGSTOP)
    equal(signals(number, 20000).wait(DEADLINE_S), 0, "the status of the sender")  # the ring has room for about half of them
    os.kill(writer, signal.SIGCONT)
    s.flush_until("all events", lambda: s.value("SELECT sum(calls) FROM totals WHERE name = 'sent'") == 20000)
    lost = s.rows(seen)[0][1]
    check(5000 < lost < 15000, lost, "events were lost")
    os.kill(writer, signal.SIGKILL)
    wait_for("another writer", lambda: writer_of(hooks.probe, pid) not in (None, writer))
    equal(signals(number, 10).wait(DEADLINE_S), 0, "the status of the sender")
    hooks.probe.end()
    s.flush()
    equal(s.rows(seen), [(20010, lost)], "the events, and those that were lost")
    s.check_identity(lost=lost)


def reload(s):
    """Checks that SIGHUP makes the probe read the table again. Unchanged hooks continue to record, removed hooks end, and new hooks begin.
    If the new table has errors, all hooks stay as they are."""
    hooks = Hooks(s, f"{PUT} put number=arg2:s32", f"uprobe:{LIBRARY}:hookable_name name")

    def read_again(*lines, message):
        hooks.file.write_text("".join(line + "\n" for line in lines))
        hooks.probe.child.send_signal(signal.SIGHUP)
        return hooks.probe.await_line(message)

    def recorded(pid):
        return dict(s.rows("SELECT name, count(*) FROM hooks WHERE pid = ? GROUP BY name", pid))

    equal(recorded(hooks.run("--times", 0)), {"put": 4, "name": 3}, "calls of the first table")
    read_again(f"{PUT} put number=arg2:s32", f"uprobe:{LIBRARY}:hookable_around around", message="2 of 2 hooks are attached")
    equal(recorded(hooks.run("--times", 0)), {"put": 4, "around": 1}, "calls of the second table")
    read_again("nonsense", message="the hooks remain as they were")
    equal(recorded(hooks.run("--times", 0)), {"put": 4, "around": 1}, "calls after a bad table")
    read_again(f"{PUT} put text=arg1:str", message="1 of 1 hooks are attached")
    pid = hooks.run("--times", 1)
    equal(hooks.fields(pid, "put")[0], {"text": "number 0"}, "a field of the third table")
    hooks.probe.end()
    s.check_identity(lost=0)


def pattern(s):
    """Checks that a pattern records the calls of all functions that match, under their own names or under one name."""
    hooks = Hooks(s, f"uprobe:{LIBRARY}:hookable_*")
    check("3 targets" in hooks.probe.said and "probe: 3 of 3 hooks are attached" in hooks.probe.said, hooks.probe.said)
    pid = hooks.run("--times", 0)
    separate = dict(s.rows("SELECT name, count(*) FROM hooks WHERE pid = ? GROUP BY name", pid))
    equal(separate, {"hookable_put": 4, "hookable_name": 3, "hookable_around": 1}, "calls by function")
    hooks.file.write_text(f"uprobe:{LIBRARY}:hookable_* together\n")
    hooks.probe.child.send_signal(signal.SIGHUP)
    hooks.probe.await_line("3 of 3 hooks are attached")
    pid = hooks.run("--times", 0)
    equal(s.rows("SELECT name, count(*) FROM hooks WHERE pid = ? GROUP BY name", pid), [("together", 8)], "calls of all")
    hooks.probe.end()


def refused(s):
    """Checks that the probe reports hooks that it cannot attach, and that the other hooks record calls."""
    hooks = Hooks(s, f"{PUT} put", "kprobe:no_such_function none", f"uprobe:{s.driver_file}:{CALL} twice", f"{PUT} again")
    for line in (f"{hooks.file}:2: none: the kernel has no function no_such_function: its module is not loaded, or the compiler has inlined it",
                 f"{hooks.file}:3: twice: the probe records {CALL} itself: exclude it there with --calls '*,!{CALL}' to hook it",
                 f"{hooks.file}:4: again: line 1 hooks {PUT.removeprefix('uprobe:')} already", "probe: 1 of 4 hooks are attached"):
        check(line + "\n" in hooks.probe.said, "the probe did not print", line, ":", hooks.probe.said)
    pid = hooks.run("--times", 0)
    equal(s.value("SELECT count(*) FROM hooks WHERE pid = ?", pid), 4, "calls of the hook that is left")
    hooks.probe.end()


CASES = values, depths, entries, examined_callers, conditions, tracepoints, machine, machine_losses, counted, reload, pattern, refused
for unknown in set(sys.argv[1:]) - {case.__name__ for case in CASES}:
    sys.exit(f"no test is called '{unknown}'")
for case in CASES:
    if not sys.argv[1:] or case.__name__ in sys.argv[1:]:
        print(case.__name__, flush=True)
        with OwnDriver() as s:
            s.start_daemon()
            case(s)
