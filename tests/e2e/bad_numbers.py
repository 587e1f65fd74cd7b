"""Passes invalid and far too large values to every option that takes a number, a size, a duration or a point in time. For an invalid value,
the command must exit with status 2 and print one line that names the option. Valid values must be used as given. The options are read from
the help texts."""
import os
import re
import subprocess
import time

from cudatrace_test import CUDATRACE, DAEMON, Session, WORKLOADS, check, equal

NO_NUMBERS = ["", " ", "-1", "+5", " 5", "5 ", "5x", "0x10", "1e2", "five", "nan", "inf", "٥", "5\n", "99999999999999999999", "1" * 400]
NO_MOMENTS = ["soon", "", " ", "5x", "5 s", "+ 5", "--5", "+-5", "0x10", "1e3", "nan", "inf", ".", "-", "+", "@", "@x", "@-5", "@ 5", "@5.5",
              "5..5", "25:00", "12:60", "12:30:61", "12:30.5", "12:30:01.5h", "2026-02-30 12:00", "2026-13-01 12:00", "2026-11-22", "2026-11-22 ",
              "12:30:01.", "five", "5\n"]
FAR_MOMENTS = ["2500-01-01 00:00", "9999-12-31 23:59:59", "0001-01-01 00:00", "1e30"[:1] + "0" * 30, "-" + "9" * 30, "99999999999999h", "9" * 40 + "ns",
               "@9223372036854775807", "@18446744073709551616", "@" + "9" * 40]
# Invalid values for each kind of value in the help texts. Every option that takes such a value is tested.
VALUES = {
    "T": NO_MOMENTS + FAR_MOMENTS,
    "PID": [*NO_NUMBERS, "0", "1.5", "2147483648", "4294967297"],
    "CALL": [*NO_NUMBERS, "1.5"],
    "S": [value for value in NO_NUMBERS] + ["0", "0.09", "3601", "1.2.3", ".", "1,5"],
    "SIZE": [*NO_NUMBERS, "0", "1.5M", "5MB", "M", "18446744073709551616", "99999999999G", "17592186044416M"],
    "SPAN": ["", " ", "soon", "-1ms", "+5", "5 ms", "5x", "0x10", "1e3", "nan", ".", "5..5", "9" * 40, "99999999999999h"],
    "DURATION": [*NO_NUMBERS, "0s", "1.5h", "5", "s", "5ms", "99999d", "18446744073709551616s"],
}
NUMBERS = {"--width": [*NO_NUMBERS, "0", "39", "2001", "4294967396", "100.5"], "--last": [*NO_NUMBERS, "1.5", "2147483648"],
           **dict.fromkeys(("--run", "--run-a", "--run-b"), [*NO_NUMBERS, "0", "1.5", "9223372036854775808"]),
           "--count": [*NO_NUMBERS, "0", "1.5", "4294967297"],
           "--sample": [*NO_NUMBERS, "0", "1.5", "1000000001", "4294967297"], "--workers": [*NO_NUMBERS, "0", "3", "1.5", "4294967297"]}
ARGUMENTS = {"run": ["--", "true"], "top": ["--once"], "set": [], "sql": ["SELECT 1"], "diff": ["x", "y"],
             "attach": ["--new", "--for", "1s"], "probe": ["--pid", str(os.getpid())]}


def numeric_options(text):
    found = re.findall(r"^  (--[\w-]+) ([A-Z]+)\b", text, re.M)
    return [(option, NUMBERS[option] if value == "N" else VALUES[value]) for option, value in found if value in VALUES or value == "N"]


def refuse(s, command, option, value, arguments):
    """Checks that the command fails at once, prints one line, and creates no file."""
    has_db = command[-1] not in ("probe", "diff") and (option != "--sample" or command[-1] == "run")
    here = [*command, *(["--db", "trace.db"] if has_db else []), f"{option}={value}", *arguments]
    done = subprocess.run([str(word) for word in here], env=s.env(preload=False), cwd=s.dir, capture_output=True)
    said = done.stderr.decode()
    equal((done.returncode, said.count("\n")), (2, 1), f"{here}: {said}")
    check(option in said, here, "said", said)


def moments(s):
    """Checks each way to write a point in time. Seconds are relative to the start of the trace. A time of day refers to the day when the
    trace began."""
    begin, last = s.rows("SELECT (SELECT min(started_ns) FROM processes), (SELECT max(call_id) FROM calls)")[0]
    offset = int(s.value("SELECT value FROM meta WHERE key = 'realtime_offset_ns'"))
    ends = s.value("SELECT max(ended_ns) FROM processes")
    middle = s.value("SELECT call_id FROM calls ORDER BY call_id LIMIT 1 OFFSET (SELECT count(*) / 2 FROM calls)")
    at = middle - begin
    clock = time.localtime((middle + offset) // 10**9)
    fraction = f".{(middle + offset) % 10**9:09d}"
    same = [f"{at // 10**9}.{at % 10**9:09d}", f"+{at // 10**9}.{at % 10**9:09d}s", f"{at}ns", f"{at // 1000}.{at % 1000:03d}us",
            f"-{ends - middle}ns", f"@{middle}", time.strftime("%Y-%m-%d %H:%M:%S", clock) + fraction,
            time.strftime("%Y-%m-%dT%H:%M:%S", clock) + fraction, time.strftime("%H:%M:%S", clock) + fraction]
    for moment in same:
        lines = s.run(CUDATRACE, "export", "--db", s.db, "--format", "csv", f"--from={moment}", preload=False).stdout.splitlines()[1:]
        calls = [int(line.split(",")[0]) for line in lines]
        equal((calls[0], calls[-1], len(calls)), (middle, last, s.value("SELECT count(*) FROM calls WHERE call_id >= ?", middle)), moment)
    for option in ("--from=0", "--from=-1h", "--to=1h", "--from=1970-01-02 00:00", "--to=2090-01-01 00:00", "--from=@0", "--to=@4000000000000000000"):
        for command in (["export", "--format", "csv"], ["report", "functions"], ["timeline"]):
            s.run(CUDATRACE, command[0], "--db", s.db, option, *command[1:], preload=False)


with Session() as s:
    s.trace(WORKLOADS / "calls", "--calls", 200)
    moments(s)
    before = sorted(os.listdir(s.dir))
    names = [name for name in re.findall(r"^  (\w+) +\S", s.run(CUDATRACE, "--help", preload=False).stdout, re.M) if name != "cudatrace"]
    tried = 0
    for program, command in [(CUDATRACE, name) for name in names] + [(DAEMON, None)]:
        command = [program, *filter(None, [command])]
        text = s.run(*command, "--help", preload=False).stdout
        for option, values in numeric_options(text):
            arguments = [] if option in ("--count",) else ARGUMENTS.get(command[-1], []) if program == CUDATRACE else []
            for value in values:
                refuse(s, command, option, value, arguments)
                tried += 1
    check(tried > 300, "values tried:", tried)
    equal(sorted(os.listdir(s.dir)), before, "files after all that")
