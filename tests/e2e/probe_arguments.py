"""Tests that a probe records the same calls as the hook. Each program runs first with the hook and then under the probe. The two runs
must give the same rows about calls, except for times, addresses and process IDs."""
import os
import re
import signal
import subprocess

from cudatrace_test import DEADLINE_S, WORKLOADS, by_tier, check, equal
from probing import OwnDriver, Probe

CALLS = """SELECT call_id, name, category, status, depth, bytes FROM calls JOIN processes USING (process_id)
            WHERE processes.pid = ? AND layer = 'driver' ORDER BY call_id"""
SAME_EACH_RUN = re.compile(r"(?!.*(_ns|_us)$)(?!(process_id|thread_id|pid|tid|thread|process|layer|parent_id|began_at)$)")


def detail_views(s):
    """Returns {view: the columns whose values are the same in each run} for the views that have a row for each call."""
    views = {}
    for (name,) in s.rows("SELECT name FROM sqlite_master WHERE type = 'view'"):
        columns = [column for _, column, *_ in s.rows(f"PRAGMA table_info({name})")]
        if {"call_id", "process_id"} <= set(columns) and name not in ("calls", "long_calls", "failures"):
            views[name] = [column for column in columns if SAME_EACH_RUN.match(column)]
    return views


def rows_of(s, pid, views):
    """Returns all rows about the calls of a process. Replaces each call ID with the call's index. Replaces large numbers, which may be
    addresses, with consecutive numbers in the order of their first occurrence."""
    calls = s.rows(CALLS, pid)
    number_of = {call_id: number for number, (call_id, *_) in enumerate(calls)}
    large = {}

    def plain(column, value):
        if column.endswith("_id") and value in number_of:
            return number_of[value]
        if isinstance(value, float):
            return "measured"
        return f"large {large.setdefault(value, len(large))}" if isinstance(value, int) and abs(value) >= 1 << 20 else value

    rows = [("calls", *(plain("", value) for value in row)) for _, *row in calls]
    for view, columns in views.items():
        found = s.rows(f"SELECT {', '.join(columns)} FROM {view} JOIN processes USING (process_id) WHERE processes.pid = ? "
                       "ORDER BY call_id" + (", place" if "place" in columns else ""), pid)
        rows += [(view, *map(plain, columns, row)) for row in found if row[columns.index("call_id")] in number_of]
    return rows


def answer_pauses(s, child):
    """Lets the program continue each time it pauses. The program pauses after it has passed images or files to the driver, so that the
    probe's writer can read them from the process."""
    printed = 0
    for line in child.stdout:
        printed += line.startswith("call ")
        if line != "pauses\n":
            continue
        s.flush_until("the calls before a pause", lambda: s.value(
            "SELECT count(*) FROM calls JOIN processes USING (process_id) WHERE processes.pid = ?", child.pid) == printed)
        child.stdin.write("\n")
        child.stdin.flush()


class Run:
    """A run of a program. If the hook is not preloaded, the program is stopped before its first call, so that the probe can attach."""

    def __init__(self, s, command, env, preload):
        self.s, self.command = s, command
        wait = [] if preload else ["sh", "-c", 'kill -STOP $$; exec "$@"', "sh"]
        more = {"OBJECTS_PAUSE": "1"} if self.pauses() else {}
        self.child = s.start(*wait, WORKLOADS / command[0], *command[1:], preload=preload, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             text=True, env={**env, **more})
        self.pid = self.child.pid
        if not preload:
            os.waitpid(self.pid, os.WUNTRACED)

    def pauses(self):
        return self.command[-1] == "arguments"

    def end(self):
        os.kill(self.pid, signal.SIGCONT)
        if self.pauses():
            answer_pauses(self.s, self.child)
        self.child.communicate(timeout=DEADLINE_S)
        equal(self.child.returncode, 0, f"the status of {self.command}")


PROGRAMS = [
    *((["objects", mode], {"SIMCUDA_VERIFY": status, "SIMCUDA_COUNTS": ""}) for mode in ("arguments", "memory") for status in ("0", "1")),
    *((["objects", mode], {}) for mode in ("streams", "lookups")),
    *((["calls", "--mix", mix, "--calls", by_tier("500", "5000"), "--seed", "7"], {}) for mix in ("copy", "alloc", "launch", "training")),
    (["graph"], {}),
]

with OwnDriver() as s:
    s.start_daemon()
    hooked = [Run(s, command, env, True) for command, env in PROGRAMS]
    for program in hooked:
        program.end()
    s.flush()
    views = detail_views(s)
    check({"launches", "copies", "allocations", "objects", "graph_launches", "event_waits"} <= set(views), "views of details", views)
    probed = [Run(s, command, env, False) for command, env in PROGRAMS]
    probe = Probe(s, "--library", s.driver_file, *(argument for program in probed for argument in ("--pid", program.pid)))
    for program in probed:
        program.end()
    probe.end(number=None)
    s.flush()
    seen = set()
    for (command, env), with_hook, with_probe in zip(PROGRAMS, hooked, probed):
        wanted, got = rows_of(s, with_hook.pid, views), rows_of(s, with_probe.pid, views)
        check(len(wanted) > 10, "rows of", command, len(wanted))
        seen |= {row[0] for row in wanted}
        differ = [(a, b) for a, b in zip(wanted, got) if a != b]
        equal((differ[:5], len(got)), ([], len(wanted)), f"rows of {' '.join(command)} {env} that differ")
    check({"launches", "copies", "allocations", "objects", "graph_launches", "event_waits"} <= seen, "views with rows", seen)
    kernels = s.rows("SELECT DISTINCT kernel FROM launches JOIN processes USING (process_id) WHERE processes.pid = ?", probed[-3].pid)
    check(len(kernels) > 1 and (None,) not in kernels, "kernels' names", kernels)
    equal(s.value("SELECT count(*) FROM late_call"), 0, "late rows")
