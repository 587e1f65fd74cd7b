"""The variants that bench.py compares: how each is built, started and asked what it recorded."""
import collections
import contextlib
import glob
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading

import bench_uprobes
import run

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FUNCTIONS = ["cuCtxGetCurrent", "cuCtxGetDevice", "cuLaunchKernel"]
PERCENTILES = ("p10", "p50", "p90", "p99")

# figures: {what bench_calls.c printed: {percentile: ns}}; recorded, lost: calls, None where nobody can tell.
Measured = collections.namedtuple("Measured", "figures device recorded lost")


class Failed(Exception):
    """A variant that cannot be measured here, and why, in one line."""


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


class Place:
    """What the variants share: the build, a scratch folder, the driver, the processor, the programs built."""

    def __init__(self, options, scratch, cpu):
        self.options = options
        self.scratch = scratch
        self.cpu = cpu
        self.cudatrace = os.path.join(os.path.abspath(options.build), "tools", "cudatrace")
        self.env = run.plain_environment(scratch)
        self.env["BENCH_FOLDER"] = scratch
        if options.driver:
            folder = os.path.dirname(os.path.abspath(options.driver))
            self.env["LD_LIBRARY_PATH"] = ":".join(filter(None, [folder, self.env.get("LD_LIBRARY_PATH")]))
        try:
            self.offsets, distances, self.driver = bench_uprobes.function_places(options.driver or "libcuda.so.1", FUNCTIONS)
        except (OSError, AttributeError) as error:
            raise run.Skip(f"no driver: {error}") from error
        self.past = distances["cuLaunchKernel"]
        self.failed = {}

    def build(self):
        compiler = [shutil.which("gcc") or "cc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra",
                    f"-I{ROOT}/proto", f"-I{ROOT}/tests/simcuda"]
        commands = {"bench_calls": [*compiler, "-fno-plt", "-o", f"{self.scratch}/bench_calls", f"{HERE}/bench_calls.c",
                                    self.driver, "-Wl,--allow-shlib-undefined", "-ldl"]}
        for peer in ("WRAPPER", "COUNTERS", "CLOCK_RING", "JSON_LINES", "JSON_FLUSHED"):
            commands[f"PEER_{peer}"] = [*compiler, "-fPIC", "-shared", "-fvisibility=hidden", f"-DPEER=PEER_{peer}",
                                        "-o", f"{self.scratch}/PEER_{peer}.so", f"{HERE}/bench_peers.c", "-ldl"]
        nvcc = run.find_nvcc()
        try:
            includes, libcupti = run.find_cupti(nvcc)
            commands["bench_cupti"] = [*compiler, "-fPIC", "-shared", *(w for i in includes for w in ("-isystem", i)),
                                       "-o", f"{self.scratch}/bench_cupti.so", f"{HERE}/bench_cupti.c", libcupti,
                                       f"-Wl,-rpath,{os.path.dirname(libcupti)}", "-lpthread"]
        except run.Skip as missing:
            self.failed["bench_cupti"] = str(missing)
        # Machine code spares each process the driver's compiler, and where that is missing the bench still runs.
        if nvcc and not self.options.driver:
            with open(f"{self.scratch}/empty.cu", "w", encoding="utf-8") as file:
                file.write('extern "C" __global__ void empty() {}\n')
            commands["empty"] = [nvcc, "-cubin", "-arch=native", "-o", f"{self.scratch}/empty.cubin", f"{self.scratch}/empty.cu"]
        for name, lines in run.build_together(commands, 120).items():
            self.failed[name] = last_line("\n".join(line for line in lines if "error" in line) or "\n".join(lines))
        if "bench_calls" in self.failed:
            raise Failed(f"bench_calls.c does not build: {self.failed['bench_calls']}")

    def built(self, name):
        if name in self.failed:
            raise Failed(f"does not build: {self.failed[name]}")
        return f"{self.scratch}/{name}.so"

    def program(self, *more):
        image = f"{self.scratch}/empty.cubin"
        return [f"{self.scratch}/bench_calls", f"cpu={self.cpu}", f"batches={self.options.batches}",
                f"launch_batches={self.options.launch_batches}", f"past={self.past:#x}",
                *([f"image={image}"] if os.path.exists(image) else []), *more]

    def calls(self):
        """How many calls a tracer must have seen at least: those that were timed."""
        return 200 * (2 * self.options.batches + 2 * self.options.launch_batches)


def converse(command, env, on_pause, limit_s):
    """(exit status, standard output, standard error); on_pause() is called whenever the program says `pause`.

    The limit kills the group; what a command put into a session of its own is for the caller to stop.
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
                    on_pause()
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
    """(figures, device) of what bench_calls.c printed, None for figures when it did not come to its end."""
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
    """Runs the program as it is; others add to its environment or its command line."""

    LIMIT_S = 60

    def __init__(self, place, name, what, env=None):
        self.place = place
        self.name = name
        self.what = what
        self.env = dict(place.env, **(env or {}))

    def measure(self, number):
        status, out, err = self.run(number)
        figures, device = understand(out)
        if figures is None or not self.accepts(status):
            raise Failed(f"ended with status {status}: {last_line(err)}")
        recorded, lost = self.recorded(number)
        return Measured(figures, device, recorded, lost)

    def accepts(self, status):
        return status == 0

    def run(self, _number):
        return converse(self.place.program(), self.env, lambda: None, self.LIMIT_S)

    def recorded(self, _number):
        return None, None

    def close(self):
        """Gives back what the variant took from the machine."""


class Cudatrace(Variant):
    """As a person would: `cudatrace run`, which starts a daemon, with default settings and default layers."""

    def database(self, number):
        return f"{self.place.scratch}/{self.name}.{number}.db"

    def run(self, number):
        session = f"gpubench{os.getpid()}"
        place = [self.place.cudatrace, "flush", "--session", session]
        command = [self.place.cudatrace, "run", "--session", session, "--db", self.database(number), "--"]
        try:
            return converse(command + self.place.program("pause=ask"), self.env,
                            lambda: subprocess.run(place, env=self.env, check=True, timeout=30), self.LIMIT_S)
        finally:
            stop_left_over(self.place, session)

    def recorded(self, number):
        return totals(self.database(number), f"name IN ({', '.join(repr(name) for name in FUNCTIONS)})")


def stop_left_over(place, session):
    """A daemon that `run` started goes with it, unless `run` was killed."""
    if glob.glob(f"/dev/shm/cudatrace.{os.geteuid()}.{session}*"):
        run.run_process([place.cudatrace, "stop", "--session", session], place.env, 30)


def totals(database, which="1"):
    """(stored, lost) of the calls of a trace, which is removed."""
    with contextlib.closing(sqlite3.connect(database)) as opened:
        stored, lost = opened.execute(f"SELECT sum(stored), sum(lost) FROM totals WHERE {which}").fetchone()
    for path in glob.glob(f"{glob.escape(database)}*"):
        os.unlink(path)
    return stored or 0, lost or 0


class Cupti(Variant):
    def __init__(self, place, name, what, mode):
        super().__init__(place, name, what, {"CUDA_INJECTION64_PATH": place.built("bench_cupti"), "BENCH_CUPTI": mode})

    def run(self, number):
        self.env["BENCH_CUPTI_OUT"] = f"{self.place.scratch}/{self.name}.{number}"
        return super().run(number)

    def recorded(self, number):
        try:
            with open(self.env["BENCH_CUPTI_OUT"], encoding="utf-8") as file:
                said = dict((line.split()[0], line.split()[1:]) for line in file)
        except OSError as error:
            raise Failed("the driver did not load CUPTI") from error
        if "error" in said:
            raise Failed("CUPTI: " + " ".join(said["error"]))
        return int(said["records"][0]), int(said["records"][2])


class Uprobes(Variant):
    """The probes are in the kernel from the first round on, and in the program only while it runs."""

    def __init__(self, place, name, what):
        super().__init__(place, name, what)
        self.probes = bench_uprobes.Uprobes(place.driver, place.offsets)
        try:
            self.probes.__enter__()
        except bench_uprobes.Unavailable as why:
            raise Failed(str(why)) from why
        self.before = 0

    def run(self, number):
        self.probes.on()
        try:
            return super().run(number)
        finally:
            self.probes.off()

    def recorded(self, _number):
        hits = self.probes.hits()
        entered = sum(count for event, count in hits.items() if event.startswith("p_"))
        new, self.before = entered - self.before, entered
        return new, None

    def close(self):
        self.probes.__exit__()


def find_nsys():
    """The one on the PATH, else that of a toolkit; Nsight Compute carries one that may fail at its report."""
    patterns = ("/usr/local/cuda/bin/nsys", "/opt/nvidia/nsight-systems/*/bin/nsys",
                "/opt/nvidia/nsight-systems/*/target-linux-x64/nsys",
                "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys")
    found = [path for pattern in patterns for path in sorted(glob.glob(pattern)) if os.access(path, os.X_OK)]
    return shutil.which("nsys") or next(iter(found), None)


class Nsys(Variant):
    def __init__(self, place, name, what):
        super().__init__(place, name, what)
        self.path = find_nsys()
        if not self.path:
            raise Failed("Nsight Systems is not installed")

    def run(self, number):
        report = f"{self.place.scratch}/nsys.{number}"
        command = [self.path, "profile", "-t", "cuda", "-s", "none", "--cpuctxsw", "none", "-o", report]
        try:
            return converse(command + self.place.program(), dict(self.env, TMPDIR=self.place.scratch), lambda: None, self.LIMIT_S)
        finally:
            self.report_bytes = sum(os.path.getsize(path) for path in glob.glob(f"{report}*"))
            for path in glob.glob(f"{report}*"):
                os.unlink(path)

    def accepts(self, status):
        """Its figures are the program's, whether or not a report could be made of what it collected."""
        return self.report_bytes > 0


def preload(path):
    return {"LD_PRELOAD": path}


# name, what it is, how it is made. In this order they run; the first is what all others are compared with.
TABLE = [
    ("untraced", "the program alone", Variant),
    ("cudatrace", "cudatrace run, default layers", Cudatrace),
    ("wrapper", "a preloaded wrapper that does nothing", lambda p, *n: Variant(p, *n, preload(p.built("PEER_WRAPPER")))),
    ("two_counter_reads", "two counter reads in a wrapper", lambda p, *n: Variant(p, *n, preload(p.built("PEER_COUNTERS")))),
    ("clock_ring", "two clock_gettime and a record", lambda p, *n: Variant(p, *n, preload(p.built("PEER_CLOCK_RING")))),
    ("json_lines", "two lines of JSON, buffered", lambda p, *n: Variant(p, *n, preload(p.built("PEER_JSON_LINES")))),
    ("json_flushed", "two lines of JSON, each flushed", lambda p, *n: Variant(p, *n, preload(p.built("PEER_JSON_FLUSHED")))),
    ("cupti_activity", "CUPTI activity, driver calls", lambda p, *n: Cupti(p, *n, "activity")),
    ("cupti_activity_kernels", "the same, and kernels", lambda p, *n: Cupti(p, *n, "activity-kernels")),
    ("cupti_callback", "CUPTI callbacks and a record", lambda p, *n: Cupti(p, *n, "callback")),
    ("uprobes", "uprobe and uretprobe, tracefs", Uprobes),
    ("nsys", "nsys profile -t cuda", Nsys),
]
