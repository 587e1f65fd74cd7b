"""The variants that gpu_calls compares, with the code to build and start each variant, and to count the calls that it has recorded."""
import collections
import contextlib
import glob
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time

import run as gpu_run
import uprobes
from figures import Missing

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FUNCTIONS = ["cuCtxGetCurrent", "cuCtxGetDevice", "cuLaunchKernel"]
PERCENTILES = ("p10", "p50", "p90", "p99")

# figures: {name printed by gpu_calls.c: {percentile: ns}}. recorded, lost: the number of calls or launches, or None if unknown. made: the
# smallest number that `recorded` may be.
Measured = collections.namedtuple("Measured", "figures device recorded lost made")


class Failed(Exception):
    """Raised if a variant cannot be measured on this machine. The exception's message is one line with the reason."""


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


def siblings(cpu):
    """Returns the processors that share a core with the given one."""
    try:
        text = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text(encoding="utf-8")
    except OSError:
        return {cpu}
    found = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


class Place:
    """What the variants share: the build, a scratch folder, the driver, the processor, and the compiled programs."""

    def __init__(self, build, options, scratch):
        self.options = options
        self.scratch = scratch
        self.allowed = os.sched_getaffinity(0)
        self.cpu = max(self.allowed)
        self.cudatrace = str(build / "tools/cudatrace")
        self.daemon = str(build / "collector/cudatraced")
        self.is_gpu = not options.driver
        self.label = {} if self.is_gpu else {"driver": "simulated, no GPU"}
        self.env = gpu_run.plain_environment(scratch)
        self.env["BENCH_FOLDER"] = scratch
        if options.driver:
            folder = os.path.dirname(os.path.abspath(options.driver))
            self.env["LD_LIBRARY_PATH"] = ":".join(filter(None, [folder, self.env.get("LD_LIBRARY_PATH")]))
        try:
            self.driver = uprobes.path_of_library(options.driver or "libcuda.so.1")
        except OSError as error:
            raise gpu_run.Skip(f"no driver: {error}") from error
        self.past = uprobes.addresses(self.driver)["cuLaunchKernel"]
        self.failed = {}

    def keep_away_from(self, cpus):
        """Moves this script, and therefore every daemon that it starts later, away from the given processors if there are any others."""
        cores = set().union(*(siblings(cpu) for cpu in cpus))
        os.sched_setaffinity(0, (self.allowed - cores) or (self.allowed - set(cpus)) or self.allowed)

    def build(self):
        compiler = [shutil.which("gcc") or "cc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra",
                    f"-I{ROOT}/proto", f"-I{ROOT}/tests/simcuda"]
        commands = {"gpu_calls": [*compiler, "-fno-plt", "-o", f"{self.scratch}/gpu_calls", f"{HERE}/gpu_calls.c",
                                    self.driver, "-Wl,--allow-shlib-undefined", "-ldl"]}
        for peer in ("WRAPPER", "COUNTERS", "CLOCK_RING", "JSON_LINES", "JSON_FLUSHED"):
            commands[f"PEER_{peer}"] = [*compiler, "-fPIC", "-shared", "-fvisibility=hidden", f"-DPEER=PEER_{peer}",
                                        "-o", f"{self.scratch}/PEER_{peer}.so", f"{HERE}/gpu_peers.c", "-ldl"]
        nvcc = gpu_run.find_nvcc()
        try:
            includes, libcupti = gpu_run.find_cupti(nvcc)
            commands["gpu_cupti"] = [*compiler, "-fPIC", "-shared", *(w for i in includes for w in ("-isystem", i)),
                                       "-o", f"{self.scratch}/gpu_cupti.so", f"{HERE}/gpu_cupti.c", libcupti,
                                       f"-Wl,-rpath,{os.path.dirname(libcupti)}", "-lpthread"]
        except gpu_run.Skip as missing:
            self.failed["gpu_cupti"] = str(missing)
        # With machine code for the kernel, the driver does not have to compile it in each process. The benchmark also works without machine
        # code.
        if nvcc and not self.options.driver:
            with open(f"{self.scratch}/empty.cu", "w", encoding="utf-8") as file:
                file.write('extern "C" __global__ void empty() {}\n')
            commands["empty"] = [nvcc, "-cubin", "-arch=native", "-o", f"{self.scratch}/empty.cubin", f"{self.scratch}/empty.cu"]
        for name, lines in gpu_run.build_together(commands, 120).items():
            self.failed[name] = last_line("\n".join(line for line in lines if "error" in line) or "\n".join(lines))
        if "gpu_calls" in self.failed:
            raise Failed(f"gpu_calls.c does not build: {self.failed['gpu_calls']}")

    def built(self, name):
        if name in self.failed:
            raise Failed(f"does not build: {self.failed[name]}")
        return f"{self.scratch}/{name}.so"

    def program(self, *more):
        image = f"{self.scratch}/empty.cubin"
        return [f"{self.scratch}/gpu_calls", f"cpu={self.cpu}", f"batches={self.options.batches}",
                f"launch_batches={self.options.launch_batches}", f"past={self.past:#x}",
                *([f"image={image}"] if os.path.exists(image) else []), *more]

    def pauses_before_launches(self):
        """Returns how many times gpu_calls.c pauses, so that a ring can be emptied, before its first timed launch."""
        return 2 * -(-self.options.batches // 100)

    def launches(self):
        """Returns the number of timed launches, which is the minimum that a recorder of kernels must have seen."""
        return 200 * 2 * self.options.launch_batches

    def calls(self):
        """Returns the number of timed calls, which is the minimum that a tracer must have seen."""
        return 200 * 2 * self.options.batches + self.launches()


@contextlib.contextmanager
def place(build, options):
    if not options.driver:
        gpu_run.require_gpu()
    with tempfile.TemporaryDirectory(prefix="cudatrace-gpubench-") as scratch:
        made = Place(build, options, scratch)
        try:
            yield made
        finally:
            os.sched_setaffinity(0, made.allowed)


def converse(command, env, on_pause, limit_s):
    """Returns (exit status, standard output, standard error). Calls on_pause(pid) whenever the program prints `pause`.

    At the time limit, the process group is killed. If the command has started processes in a different session, the caller must stop these
    processes.
    """
    lines = []
    with tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True,
                                   start_new_session=True)

        def kill():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        watchdog = threading.Timer(limit_s, kill)
        watchdog.start()
        try:
            for line in process.stdout:
                if line == "pause\n":
                    on_pause(process.pid)
                    process.stdin.write("\n")
                    process.stdin.flush()
                else:
                    lines.append(line)
            status = process.wait()
        except BrokenPipeError:
            status = process.wait()
        finally:
            watchdog.cancel()
            if process.poll() is None:
                kill()
                process.wait()
            process.stdin.close() if not process.stdin.closed else None
            process.stdout.close()
        err.seek(0)
        return status, "".join(lines), err.read().decode(errors="replace")


def understand(text):
    """Returns (figures, device) from the output of gpu_calls.c. The figures are None if the program did not finish."""
    figures, device = {}, "unknown"
    for line in text.splitlines():
        words = line.split()
        if line.startswith("device "):
            device = line[len("device "):]
        elif words[:1] == ["calls"] and len(words) == 6:
            figures[words[1]] = dict(zip(PERCENTILES, map(float, words[2:])))
        elif words[:1] == ["launch"] and len(words) == 5:
            figures["cuLaunchKernel"] = dict(zip(PERCENTILES, map(float, words[1:])))
        elif words[:1] == ["launch_turns"] and len(words) == 3:
            figures["turns"] = {"through": float(words[1]), "past": float(words[2])}
    return (figures if len(figures) == 4 else None), device


class Variant:
    """Runs the program untraced. Subclasses extend the environment or the command line."""

    LIMIT_S = 60

    def __init__(self, place, name, env=None):
        self.setup_ms = []  # for each round: the time from the tracer's start until it records
        self.place = place
        self.name = name
        self.env = dict(place.env, **(env or {}))

    def measure(self, number):
        status, out, err = self.run(number)
        figures, device = understand(out)
        if figures is None or not self.accepts(status):
            raise Failed(f"ended with status {status}: {last_line(err)}")
        recorded, lost = self.recorded(number)
        return Measured(figures, device, recorded, lost, self.made())

    def accepts(self, status):
        return status == 0

    def run(self, _number):
        return converse(self.place.program(), self.env, lambda _pid: None, self.LIMIT_S)

    def recorded(self, _number):
        return None, None

    def made(self):
        return self.place.calls()

    def close(self):
        """Releases everything that the variant still holds on the machine."""


class Cudatrace(Variant):
    """Runs the program with `cudatrace run`, which starts a daemon, with default settings and layers, as in normal use."""

    session = f"gpubench{os.getpid()}"
    options = ()

    def database(self, number):
        return f"{self.place.scratch}/{self.name}.{number}.db"

    def run(self, number):
        command = [self.place.cudatrace, "run", *self.where(number), *self.options, "--"]
        try:
            return converse(command + self.place.program("pause=ask"), self.env, lambda _pid: self.flush(), self.LIMIT_S)
        finally:
            stop_left_over(self.place, self.session)

    def where(self, number):
        return ["--session", self.session, "--db", self.database(number)]

    def flush(self):
        subprocess.run([self.place.cudatrace, "flush", "--session", self.session], env=self.env, check=True, timeout=30)

    def recorded(self, number):
        return totals(self.database(number), f"name IN ({', '.join(repr(name) for name in FUNCTIONS)})")


class RecordingGpu(Cudatrace):
    """Runs the program with `cudatrace run --gpu`, which records calls and also, through CUPTI, the time when each kernel ran."""

    options = ("--gpu",)

    def recorded(self, number):
        with contextlib.closing(sqlite3.connect(self.database(number))) as opened:
            kernels = opened.execute("SELECT count(*) FROM gpu_work WHERE kind = 'kernel'").fetchone()[0]
        if kernels < self.place.launches():
            raise Failed(f"{kernels} kernels recorded of {self.place.launches()} or more")
        return super().recorded(number)


class AfterRecordingGpu(Cudatrace):
    """Runs the program with `cudatrace run`, and records GPU work for a short while before the first timed launch."""

    def run(self, number):
        command = [self.place.cudatrace, "run", *self.where(number), "--"]
        said, pauses = "", 0

        def on_pause(_pid):
            nonlocal said, pauses
            pauses += 1
            if not said.startswith("1 of 1 "):  # the program begins to record at one of its next calls
                said = self.set_gpu("on")
                if said.startswith("1 of 1 "):
                    self.set_gpu("off")
                elif pauses > self.place.pauses_before_launches():
                    raise Failed(f"does not record before the first launch: {said.strip()}")
            self.flush()

        try:
            return converse(command + self.place.program("pause=ask"), self.env, on_pause, self.LIMIT_S)
        finally:
            stop_left_over(self.place, self.session)

    def set_gpu(self, state):
        return subprocess.run([self.place.cudatrace, "set", "--gpu", state, "--session", self.session], env=self.env, check=True, timeout=30,
                              capture_output=True, text=True).stdout


class Attached(Cudatrace):
    """Runs `cudatrace attach` between the program's set-up and its first timed call."""

    def run(self, number):
        command = [self.place.cudatrace, "attach", *self.where(number)]
        attach = None

        def on_pause(pid):
            nonlocal attach
            if attach:
                self.flush()
                return
            attach = subprocess.Popen([*command, str(pid)], env=self.env, stderr=subprocess.PIPE, text=True)
            line = attach.stderr.readline()
            if "waiting for its next CUDA call" not in line:
                raise Failed(line.strip())

        try:
            ended = converse(self.place.program("pause=ask"), self.env, on_pause, self.LIMIT_S)
            said = attach.communicate(timeout=30)[1] if attach else "it was never asked"
            if not attach or attach.returncode:
                raise Failed(last_line(said))
            return ended
        finally:
            if attach and attach.poll() is None:
                attach.kill()
            stop_left_over(self.place, self.session)


@contextlib.contextmanager
def probing(place, env, session, database, *options):
    """Runs a daemon and `cudatrace probe`. Once all functions are probed, yields the number of milliseconds since the start of `cudatrace
    probe`."""
    with tempfile.TemporaryFile() as err:
        daemon = subprocess.Popen([place.daemon, "--foreground", "--session", session, "--db", database], env=env, stderr=err)
        while gpu_run.run_process([place.cudatrace, "status", "--session", session], env, 30).status != 0:
            if daemon.poll() is not None:
                raise Failed("the daemon has ended")
        begun = time.monotonic()
        probe = subprocess.Popen([place.cudatrace, "probe", "--session", session, *map(str, options)], env=env, stderr=subprocess.PIPE, text=True)
        try:
            for line in probe.stderr:
                if "functions are probed" in line:
                    break
            else:
                raise Failed("cudatrace probe has ended: " + line.strip())
            yield (time.monotonic() - begun) * 1000
        finally:
            probe.send_signal(signal.SIGINT)
            probe.communicate(timeout=60)
            stop_left_over(place, session)
            daemon.wait(60)


class Probed(Cudatrace):
    """Runs `cudatrace probe` between the program's set-up and its first timed call."""

    def __init__(self, place, name):
        super().__init__(place, name)
        if not os.path.exists(f"{os.path.dirname(os.path.dirname(place.cudatrace))}/probe/cudatrace-probe"):
            raise Failed("this build has no cudatrace-probe")
        if os.geteuid() != 0:
            raise Failed("cudatrace probe needs root")

    def run(self, number):
        with contextlib.ExitStack() as stack:
            probed = []

            def on_pause(pid):
                if probed:
                    self.flush()
                    return
                probed.append(stack.enter_context(probing(self.place, self.env, self.session, self.database(number), "--pid", pid, *self.options)))
                self.setup_ms += probed

            return converse(self.place.program("pause=ask"), self.env, on_pause, self.LIMIT_S)


class ProbedWithKernel(Probed):
    """`cudatrace probe --kernel`."""

    options = ("--kernel",)


BPFTRACE = """
    uprobe:{driver}:{name} {{ @start{i}[tid] = nsecs; }}
    uretprobe:{driver}:{name} /@start{i}[tid]/ {{ @calls = count(); @ns[{i}] = sum(nsecs - @start{i}[tid]); delete(@start{i}[tid]); }}"""


@contextlib.contextmanager
def bpftracing(place, env, said):
    """Runs bpftrace on FUNCTIONS in the cheapest way: bpftrace only sums up the calls and times of each function. Once bpftrace is ready,
    yields the number of milliseconds since its start. Appends the output of bpftrace to `said`."""
    if not shutil.which("bpftrace"):
        raise Failed("no bpftrace command (Debian: bpftrace)")
    if os.geteuid() != 0:
        raise Failed("bpftrace needs root")
    probes = "".join(BPFTRACE.format(driver=place.driver, name=name, i=i) for i, name in enumerate(FUNCTIONS))
    begun = time.monotonic()
    tracer = subprocess.Popen(["bpftrace", "-e", probes + ' interval:ms:50 { printf("ready\\n"); }'], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    try:
        for line in tracer.stdout:
            if line == "ready\n":
                break
            said.append(line)
        else:
            raise Failed("bpftrace has ended: " + " ".join("".join(said).split())[:200])
        yield (time.monotonic() - begun) * 1000
    finally:
        tracer.send_signal(signal.SIGINT)
        said.append(tracer.communicate(timeout=60)[0])


class Bpftrace(Variant):
    def __init__(self, place, name):
        super().__init__(place, name)
        with bpftracing(place, self.env, []):
            pass

    def run(self, _number):
        self.said = []
        with bpftracing(self.place, self.env, self.said) as took_ms:
            self.setup_ms.append(took_ms)
            return super().run(_number)

    def recorded(self, _number):
        calls = re.search(r"@calls: (\d+)", "".join(self.said))
        return int(calls[1]) if calls else 0, None


def strace_command(command):
    """Returns a command line that runs the command under strace. strace does not see driver calls, only the ioctls that some driver calls
    make."""
    path = shutil.which("strace")
    if not path:
        raise Failed("no strace command (Debian: strace)")
    return [path, "-f", "-e", "trace=ioctl", "-o", "/dev/null", *command]


class Strace(Variant):
    def __init__(self, place, name):
        super().__init__(place, name)
        strace_command([])

    def run(self, _number):
        return converse(strace_command(self.place.program()), self.env, lambda _pid: None, self.LIMIT_S)


def stop_left_over(place, session):
    """If the session's daemon is still running because the command that started it was killed, stops the daemon."""
    if glob.glob(f"/dev/shm/cudatrace.{os.geteuid()}.{session}*"):
        gpu_run.run_process([place.cudatrace, "stop", "--session", session], place.env, 30)


def totals(database, which="1"):
    """Returns (stored calls, lost calls) of a trace, and removes the trace."""
    with contextlib.closing(sqlite3.connect(database)) as opened:
        stored, lost = opened.execute(f"SELECT sum(stored), sum(lost) FROM totals WHERE {which}").fetchone()
    for path in glob.glob(f"{glob.escape(database)}*"):
        os.unlink(path)
    return stored or 0, lost or 0


def cupti_records(path):
    """Reads the file that gpu_cupti.c has written. Returns [driver calls, kernels, dropped records, the kernels' time in nanoseconds]."""
    try:
        with open(path, encoding="utf-8") as file:
            said = dict((line.split()[0], line.split()[1:]) for line in file)
    except OSError as error:
        raise Failed("the driver did not load CUPTI") from error
    if "error" in said:
        raise Failed("CUPTI: " + " ".join(said["error"]))
    return [int(word) for word in said["records"]]


class Cupti(Variant):
    KIND = 0  # the position of the number to check in the line `records`

    def __init__(self, place, name, mode):
        super().__init__(place, name, {"CUDA_INJECTION64_PATH": place.built("gpu_cupti"), "BENCH_CUPTI": mode})

    def run(self, number):
        self.env["BENCH_CUPTI_OUT"] = f"{self.place.scratch}/{self.name}.{number}"
        return super().run(number)

    def recorded(self, number):
        records = cupti_records(self.env["BENCH_CUPTI_OUT"])
        return records[self.KIND], records[2]


class CuptiKernels(Cupti):
    KIND = 1

    def made(self):
        return self.place.launches()


class Uprobes(Variant):
    """Runs the program under the kernel's own uprobes. They are defined in the kernel for the whole benchmark, but enabled only while this
    variant's program runs."""

    def __init__(self, place, name):
        super().__init__(place, name)
        self.probes = uprobes.Probes(pathlib.Path(place.driver), FUNCTIONS)
        try:
            self.probes.__enter__()
        except Missing as why:
            raise Failed(str(why)) from why
        self.before = 0

    def run(self, number):
        self.probes.switch(True)
        try:
            return super().run(number)
        finally:
            self.probes.switch(False)

    def recorded(self, _number):
        entered = sum(count for event, count in self.probes.hits().items() if event.startswith("p_"))
        new, self.before = entered - self.before, entered
        return new, None

    def close(self):
        self.probes.__exit__()


class Nsys(Variant):
    def __init__(self, place, name):
        super().__init__(place, name)
        if not gpu_run.find_nsys():
            raise Failed("Nsight Systems is not installed")

    def run(self, number):
        report = f"{self.place.scratch}/nsys.{number}"
        try:
            return converse(gpu_run.nsys_command(report, self.place.program()), dict(self.env, TMPDIR=self.place.scratch), lambda _pid: None,
                            self.LIMIT_S)
        finally:
            self.report_bytes = sum(os.path.getsize(path) for path in glob.glob(f"{report}*"))
            for path in glob.glob(f"{report}*"):
                os.unlink(path)

    def accepts(self, status):
        """The figures come from the program, so they are valid whether or not the report succeeded."""
        return self.report_bytes > 0


def peer(which):
    return lambda place, name: Variant(place, name, {"LD_PRELOAD": place.built(f"PEER_{which}")})


def cupti(mode):
    return lambda place, name: Cupti(place, name, mode)


# The variants run in this order, and are all compared with the first one.
TABLE = {
    "untraced": Variant,
    "cudatrace": Cudatrace,  # `cudatrace run`, default layers
    "cudatrace_gpu": RecordingGpu,
    "cudatrace_after_gpu": AfterRecordingGpu,
    "attached": Attached,
    "probe": Probed,
    "probe_kernel": ProbedWithKernel,
    "wrapper": peer("WRAPPER"),  # a preloaded wrapper that does nothing
    "two_counter_reads": peer("COUNTERS"),
    "clock_ring": peer("CLOCK_RING"),  # two calls of clock_gettime and a record
    "json_lines": peer("JSON_LINES"),  # two lines of JSON, buffered
    "json_flushed": peer("JSON_FLUSHED"),
    "cupti_activity": cupti("activity"),  # driver calls
    "cupti_activity_kernels": cupti("activity-kernels"),
    "cupti_kernels": lambda place, name: CuptiKernels(place, name, "kernels"),  # kernels, copies and sets, without driver calls
    "cupti_callback": cupti("callback"),  # driver calls, with a record
    "uprobes": Uprobes,  # at entry and return, through tracefs
    "bpftrace": Bpftrace,
    "strace": Strace,
    "nsys": Nsys,  # nsys profile -t cuda
}
