"""Tests `cudatrace probe -- COMMAND`, which records the calls of a command and of the processes that it starts, and of no others, without
preloading the library."""
import json
import subprocess

from cudatrace_test import CUDATRACE, DEADLINE_S, WORKLOADS, can, check, equal, fifo
from probing import PROBE, OwnDriver, Probe, await_stored, truth_of
from untraced import Program

CALLS = WORKLOADS / "calls", "--mix", "training", "--calls", "2000"


def probe(s, *arguments, status=0, **options):
    """Runs a command under the probe. Returns (standard output, standard error)."""
    done = s.run(CUDATRACE, "probe", "--session", s.name, *arguments, preload=False, status=status, **options)
    return done.stdout, done.stderr


def made_by(s, command):
    """Checks that all calls of the processes with this command are recorded, and returns how many processes these are."""
    s.flush()
    pids = [pid for pid, in s.rows("SELECT pid FROM processes WHERE cmdline GLOB ?", f"*{command}*")]
    for pid in pids:
        await_stored(s, pid, dict(truth_of(s, pid)))
    return len(pids)


def tree(s):
    """Checks that children of children are recorded, and that another process is not."""
    other = Program(s, "steps")
    other.step(5)
    first, second = ([*CALLS, "--seed", seed] for seed in ("1", "2"))
    script = f"{' '.join(map(str, first))} & sh -c '{' '.join(map(str, second))}; exit 7'; status=$?; wait; exit $status"
    output, errors = probe(s, "--", "sh", "-c", script, status=7)
    equal(output.count(" calls=2000 "), 2, f"programs that have printed their result: {output}")
    equal(errors, "", "messages")
    equal(made_by(s, "/calls "), 2, "processes")
    other.step(5)
    other.end()
    s.flush()
    equal(s.value("SELECT count(*) FROM processes WHERE pid = ?", other.pid), 0, "other processes")


def events(s):
    """Checks that events and hooks are recorded, and that the hooked function of a library is a layer of its own."""
    probe(s, "--kernel", "--hook", f"uprobe:{s.driver_file}:cuOccupancyMaxPotentialBlockSize library", "--calls", "!cuOccupancyMaxPotentialBlockSize", "--",
          WORKLOADS / "off_cpu", "--pages", "20", "--sleep", "30")
    s.flush()
    layers = dict(s.rows("SELECT name, layer || ' ' || category FROM functions WHERE name IN ('library', 'page_fault', 'blocked')"))
    equal(layers, {"library": "hook library", "page_fault": "kernel memory", "blocked": "kernel scheduling"}, "layers and categories")
    rows = {row["layer"]: row for row in s.report("layers")["layers"] if "off_cpu" in row["command"]}
    check(rows["blocked"]["own_ms"] >= 30 and rows["library"]["with_inner_ms"] >= 30 and rows["library"]["own_ms"] < rows["library"]["with_inner_ms"] - 29,
          "the layers:", rows)


def printed(s):
    """Checks that --print prints the command's calls, and that a probe of running processes refers to `cudatrace tail`."""
    _, errors = probe(s, "--print", "--relative", "--", *CALLS, "--seed", "5")
    lines = errors.splitlines()
    equal((len(lines), made_by(s, "--seed 5")), (s.value("SELECT count(*) FROM calls"), 1), "printed lines, and processes")
    check(lines[0].split()[0].replace(".", "").isdigit() and "cuInit(flags=0)" in lines[0], "the first line", lines[0])
    # The probe is a process of the trace, too, but made no calls. On a busy machine, it may have ended before its row was made.
    command = s.value("SELECT cmdline FROM processes WHERE cmdline GLOB '*--seed 5'")
    found = s.report("summary", "runs", "phases")
    equal([row["found"].rpartition("calls: ")[2] for row in found["summary"] if row["about"] in ("processes", "command")], ["1", command], "the summary")
    equal([(row["processes"], row["command"]) for row in found["runs"]], [(1, command)], "runs")
    equal(len({row["pid"] for row in found["phases"]}), 1, "processes with phases")
    done = s.run(CUDATRACE, "diff", s.db, s.db, "--format", "json", "summary", preload=False)
    equal([row["a"] for row in json.loads(done.stdout)["summary"] if row["what"] == "processes"], [1], "processes in diff")
    check("probe: --print needs COMMAND: `cudatrace tail` prints" in probe(s, "--all", "--print", status=2)[1], "a probe of running processes")


def other_user(s):
    """Checks that a process that changes its user is recorded."""
    if not can("several users", "a command of another user"):
        return
    probe(s, "--", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *CALLS, "--seed", "3", env={"SIMCUDA_COUNTS": ""})
    s.flush()
    equal(s.rows("SELECT uid, state FROM processes WHERE cmdline GLOB '*calls*'"), [(65534, "exited")], "the process")
    check(s.value("SELECT sum(stored) FROM totals") >= 2000, "too few calls")


def waiting(s):
    """Checks that with --wait, a process that outlives the command is recorded to its end."""
    with fifo(s.dir, "hold") as hold:
        script = f"{' '.join(map(str, CALLS))} --seed 4 --hold {hold} & exit 0"
        run = s.start(CUDATRACE, "run", "--session", s.name, "--probe", "--wait", "--", "sh", "-c", script, preload=False, stderr=subprocess.PIPE, text=True)
        check("still tracing 1 process that outlived the command" in run.stderr.readline(), "run does not wait")
        with open(hold, "w") as end:
            end.write("\n")
        equal(run.communicate(timeout=DEADLINE_S)[1], "", "messages")
        equal(run.returncode, 0, "the status of run")
    equal(made_by(s, "/calls "), 1, "processes")


def started_daemon(s):
    """Checks that a daemon is started if there is none, and that the trace is complete when the command has ended."""
    s.stop_daemon()
    trace = s.dir / "own.db"
    s.run(CUDATRACE, "run", "--db", trace, "--probe", "--", *CALLS, "--seed", "5", preload=False)
    truth = {}
    for pid, in s.rows("SELECT pid FROM processes WHERE cmdline GLOB '*calls*'", db=trace):
        truth = dict(truth_of(s, pid))
    equal(dict(s.rows("SELECT name, sum(calls) FROM totals WHERE layer = 'driver' GROUP BY name", db=trace)), truth, "calls")
    check(truth, "no calls")


def children(s):
    """Checks that --children records the processes that a running process starts, and ends with it."""
    shell = s.start("sh", preload=False, stdin=subprocess.PIPE, text=True)
    probing = Probe(s, "--children", shell.pid, "--library", s.driver_file, "--only", s.driver_file)
    shell.communicate(f"{' '.join(map(str, CALLS))} --seed 6\n", timeout=DEADLINE_S)
    probing.end(number=None)
    equal(made_by(s, "/calls "), 1, "processes")


def wrong(s):
    for arguments, status, message in (
            ((CUDATRACE, "probe", "--all", "--", "true"), 2, "probe: --all cannot be combined with the command 'true'"),
            ((CUDATRACE, "probe", "--pid", "1", "true"), 2, "probe: --pid cannot be combined with the command 'true'"),
            ((CUDATRACE, "probe", "--for", "1s", "true"), 2, "probe: --for cannot be combined with the command 'true'"),
            ((CUDATRACE, "probe", "4711"), 2, "probe: unknown argument '4711': use --pid with a process"),
            ((PROBE, "--", "true"), 2, "probe: only `cudatrace probe` can run a command"),
            ((CUDATRACE, "run", "--probe", "--gpu", "--", "true"), 2, "run: --gpu needs the hook: omit --probe"),
            ((CUDATRACE, "run", "--probe", "--layers", "driver", "--", "true"), 2, "run: --layers needs the hook: omit --probe"),
            ((CUDATRACE, "probe", "--children", "0"), 2, "probe: invalid value '0' for --children: expected a process ID"),
            ((CUDATRACE, "probe", "--children", "4194305"), 1, "probe: no such process: 4194305")):
        equal(s.run(*arguments, preload=False, status=status).stderr, f"cudatrace: {message}\n", "the message")


for case in tree, events, printed, other_user, waiting, started_daemon, children, wrong:
    print(case.__name__, flush=True)
    with OwnDriver() as session:
        session.start_daemon()
        case(session)
