"""Runs one workload of attach.py, with its daemon, its processes, and the commands that attach to the processes."""
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

import compare

HERE = pathlib.Path(__file__).resolve().parent
QUIET_TRIES = 30
# A machine that has just started needs time to read gigabytes of libraries for the first time.
READY_LIMIT_S = 150

# steps: number of steps between the two moments. burst: number of steps made at a time while an attach or a detach is in progress.
Workload = collections.namedtuple("Workload", "processes steps burst")
WORKLOADS = {
    "torch": Workload(1, 200, 5),
    "triton": Workload(1, 5, 1),
    "jax": Workload(1, 200, 5),
    "nccl": Workload(2, 100, 5),
    "load": Workload(1, 0, 0),
    "handover": Workload(1, 200, 5),
    "recordings": Workload(8, 0, 0),
    "graphs": Workload(1, 0, 0),
    "whole-graphs": Workload(1, 0, 0),
    "waiting": Workload(1, 0, 0),
}
# The calls that each process has made up to a moment, by function, according to the trace and to CUPTI.
Moment = collections.namedtuple("Moment", "ours theirs")


class Trouble(Exception):
    """Raised when any further results of this workload would be meaningless."""


class Lines:
    """Collects a process's output line by line, and notes when each line was read."""

    def __init__(self, stream):
        self.lines, self.has_ended, self.changed = [], False, threading.Condition()
        self.reader = threading.Thread(target=self.read, args=(stream,), daemon=True)
        self.reader.start()

    def read(self, stream):
        for line in stream:
            with self.changed:
                self.lines.append((time.monotonic_ns(), line.rstrip("\n")))
                self.changed.notify_all()
        with self.changed:
            self.has_ended = True
            self.changed.notify_all()

    def find(self, pattern, begin=0):
        """Returns (ns, match) for the first line at or after `begin` that matches the pattern, or None."""
        return next(((ns, found) for ns, line in self.lines[begin:] if (found := re.search(pattern, line))), None)

    def await_line(self, pattern, limit_s, begin=0):
        with self.changed:
            said = self.changed.wait_for(lambda: self.find(pattern, begin) or self.has_ended, limit_s)
            found = self.find(pattern, begin)
        if not found:
            raise Trouble(f"{'it ended' if said else f'{limit_s} s passed'} before it said '{pattern}'; it said: {self.text()[-1500:]}")
        return found

    def text(self):
        return "\n".join(line for _, line in self.lines)


class Program:
    """One process of attach_programs.py."""

    def __init__(self, work, rank, command, env):
        self.work, self.files = work, 0
        self.errors = work.path(f"program.{rank}.log")
        with open(self.errors, "wb") as errors:
            self.child = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                                          cwd=work.folder)
        self.pid, self.said, self.heard = self.child.pid, Lines(self.child.stdout), 0

    def tell(self, *words):
        self.heard = len(self.said.lines)
        try:
            print(*words, file=self.child.stdin, flush=True)
        except BrokenPipeError:
            raise Trouble(f"the program has ended: {self.last_errors()}") from None

    def hear(self, pattern="^done", limit_s=100):
        try:
            return self.said.await_line(pattern, limit_s, self.heard)[1]
        except Trouble as trouble:
            raise Trouble(f"the program: {trouble}; its standard error: {self.last_errors()}") from None

    def ask_file(self, command):
        """Sends a command to the program, and returns the path of the file that the program writes."""
        self.files += 1
        path = self.work.path(f"{command}.{self.pid}.{self.files}")
        self.tell(command, path)
        self.hear()
        return path

    def snapshot(self):
        truth = compare.Truth().read(self.ask_file("snapshot"))
        self.work.problems.update(truth.problems)
        return truth.calls

    def ask(self, command):
        return json.loads(pathlib.Path(self.ask_file(command)).read_text())

    def last_errors(self):
        return pathlib.Path(self.errors).read_text(errors="replace")[-1500:]

    def descriptors(self):
        found = {}
        for name in os.listdir(f"/proc/{self.pid}/fd"):
            with contextlib.suppress(OSError):
                found[int(name)] = os.readlink(f"/proc/{self.pid}/fd/{name}")
        return found

    def shared_memory(self):
        return [name for name in os.listdir("/dev/shm") if name.startswith(f"cudatrace.{os.geteuid()}.{self.work.session}.{self.pid}")]

    def mappings(self):
        """Counts the process's mappings of the hook and of the hook's shared memory. Returns both numbers."""
        maps = pathlib.Path(f"/proc/{self.pid}/maps").read_text().splitlines()
        return sum("memfd:" in line and "cudatrace" in line for line in maps), sum("/dev/shm/cudatrace" in line for line in maps)

    def end(self):
        """Call this after `quit`. Returns the exit status, or None if the program does not exit."""
        self.hear(limit_s=30)
        try:
            return self.child.wait(30)
        except subprocess.TimeoutExpired:
            return None


class Command:
    """A running `cudatrace attach` or `cudatrace detach` command."""

    def __init__(self, work, *words):
        self.begun_ns = time.monotonic_ns()
        self.child = subprocess.Popen([work.bench.cudatrace, *map(str, words)], env=work.bench.tool_env, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.said = Lines(self.child.stderr)
        work.commands.append(self)

    def await_recorded(self, pid, limit_s=30):
        """Returns the time of the line that reports that the process is being recorded."""
        return self.said.await_line(f"process {pid} .* is recorded$", limit_s)[0]

    def wait(self, limit_s=60):
        try:
            self.child.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise Trouble(f"cudatrace did not end within {limit_s} s; it said: {self.said.text()}") from None
        if self.child.returncode:
            raise Trouble(f"cudatrace ended with {self.child.returncode}, and said: {self.said.text()}")
        return time.monotonic_ns()

    def interrupt(self):
        self.child.send_signal(signal.SIGINT)

    def end(self):
        """Interrupts the command. Returns the times of the interrupt and of the exit."""
        begun_ns = time.monotonic_ns()
        self.interrupt()
        return begun_ns, self.wait()


class Work:
    """A workload's daemon and processes. When the block ends, the daemon and all processes are stopped."""

    def __init__(self, bench, name):
        self.bench, self.name, self.workload = bench, name, WORKLOADS[name]
        self.session, self.folder = f"gpuattach{os.getpid()}{name}", f"{bench.scratch}/{name}"
        self.db = self.path("trace.db")
        self.programs, self.commands, self.problems, self.daemon, self.ends = [], [], set(), None, {}

    def path(self, name):
        return f"{self.folder}/{name}"

    def __enter__(self):
        os.makedirs(self.folder)
        try:
            self.start_daemon()
        except Trouble:
            self.__exit__()
            raise
        return self

    def start_daemon(self):
        with open(self.path("daemon.log"), "wb") as log:
            self.daemon = subprocess.Popen([self.bench.daemon, "--foreground", "--db", self.db, "--session", self.session], stdout=log,
                                           stderr=log, env=self.bench.tool_env)
        until = time.monotonic() + 30
        while self.tool("status").returncode:
            if self.daemon.poll() is not None or time.monotonic() > until:
                raise Trouble("no daemon serves: " + pathlib.Path(self.path("daemon.log")).read_text(errors="replace"))

    def __exit__(self, *error):
        self.ends = {program.pid: program.child.poll() for program in self.programs}
        for process in [command.child for command in self.commands] + [program.child for program in self.programs]:
            if process.poll() is None:
                process.kill()
                process.wait()
        self.daemon.terminate()
        try:
            self.daemon.wait(30)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()
        for left in pathlib.Path("/dev/shm").glob(f"cudatrace.{os.geteuid()}.{self.session}*"):
            left.unlink()
        self.keep()

    def keep(self):
        if not self.bench.out:
            return
        with open(self.path("commands.log"), "w", encoding="utf-8") as log:
            for command in self.commands:
                print(*command.child.args[1:], command.child.returncode, command.said.text(), sep="\n", file=log)
        for kept in pathlib.Path(self.folder).glob("*.log"):
            shutil.copy(kept, f"{self.bench.out}/{self.name}.{kept.name}")

    def start(self, cupti):
        for rank in range(self.workload.processes):
            command = [self.bench.python, f"{HERE}/attach_programs.py", "load" if self.name == "load" else self.name, "--rank", str(rank),
                       "--ranks", str(self.workload.processes), "--meet", self.path("meeting")]
            env = dict(self.bench.env)
            if self.bench.simulated:
                command.append("--simulated")
            elif cupti:
                env.update(CUDA_INJECTION64_PATH=self.bench.truth_library, CUPTI_TRUTH_CALLBACKS="1")
            self.programs.append(Program(self, rank, command, env))
        for program in self.programs:
            self.epoch_steps = int(program.hear(r"^ready (\d+)", READY_LIMIT_S)[1])

    def tool(self, *words):
        return subprocess.run([self.bench.cudatrace, *words, "--session", self.session], capture_output=True, text=True, timeout=60,
                              env=self.bench.tool_env, check=False)

    def attach(self, *options, other=""):
        """Attaches to all processes, which then record into the workload's trace. With `other`, a daemon is started for another trace,
        and the processes record into that trace."""
        db = self.path(f"{other}.db") if other else self.db
        return Command(self, "attach", *(program.pid for program in self.programs), "--session", self.session + other, "--db", db,
                       "--verbose", *options)

    def steps(self, count):
        """Makes all processes run `count` steps at the same time, because they may wait for each other."""
        for program in self.programs:
            program.tell("steps", count)
        for program in self.programs:
            program.hear()

    def steps_until(self, is_over, limit_s=30):
        until = time.monotonic() + limit_s
        while not is_over():
            if time.monotonic() > until:
                raise Trouble(f"{limit_s} s passed while it worked on; the command said: {self.commands[-1].said.text()}")
            self.steps(self.workload.burst)

    def recorded_at_work(self):
        """Attaches while the programs are running steps. Returns the `attach` command once all programs are being recorded."""
        attach = self.attach()
        self.steps_until(lambda: attach.child.poll() is not None or
                         all(attach.said.find(f"process {program.pid} .* is recorded$") for program in self.programs))
        for program in self.programs:
            attach.await_recorded(program.pid)
        return attach

    def probed_at_work(self):
        """Starts a probe while the programs are running steps. Returns the `probe` command once all programs are being probed."""
        pids = [word for program in self.programs for word in ("--pid", program.pid)]
        probe = Command(self, "probe", "--session", self.session, "--verbose", *pids)
        self.steps_until(lambda: probe.child.poll() is not None or probe.said.find("functions are probed$"))
        return probe

    def interrupt_at_work(self, command):
        """Interrupts the command while the programs are running steps, and waits for the command to exit."""
        for program in self.programs:
            program.tell("steps", self.workload.burst)
        command.interrupt()
        for program in self.programs:
            program.hear()
        self.steps_until(lambda: command.child.poll() is not None)
        command.wait()

    # ---- counts ----

    def rows(self, sql, *values):
        with contextlib.closing(compare.open_database(self.db)) as database:
            return database.execute(sql, values).fetchall()

    def recorded(self, program):
        return collections.Counter(dict(self.rows(
            "SELECT totals.name, sum(calls) FROM totals JOIN processes USING (process_id) WHERE pid = ? AND layer = 'driver' "
            "GROUP BY 1", program.pid)))

    def flush(self):
        flushed = self.tool("flush")
        if flushed.returncode:
            raise Trouble(f"flush: {flushed.stderr}")

    def moment(self):
        """Returns a moment when none of the processes' threads is making a call. CUPTI's counts are then the same just before and just
        after the trace is read."""
        for _ in range(QUIET_TRIES):
            before = [program.snapshot() for program in self.programs]
            self.flush()
            ours = [self.recorded(program) for program in self.programs]
            if [program.snapshot() for program in self.programs] == before:
                return Moment(ours, before)
        raise Trouble(f"its threads make calls while it waits for a command: {QUIET_TRIES} times CUPTI counted more behind a look at "
                      "the trace than before")
