#!/usr/bin/env python3
"""Traces real CUDA programs on a real GPU, and compares the databases with CUPTI's counts. README.md lists the comparisons.

Exits with 77, which meson shows as a skip, if there is no GPU or if the CUPTI library cannot be built.
"""

import argparse
import collections
import contextlib
import glob
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import time

import compare
import compare_gpu_work
import compare_ioctls
import compare_nsys

SKIP = 77
HERE = os.path.dirname(os.path.abspath(__file__))
KEPT_DATABASE_BYTES = 15 << 20

# The fields are the program's name, its command as a list of arguments (None if it is not available), the time limit in seconds, and the
# number of kernels that the program runs (None if unknown).
Program = collections.namedtuple("Program", "name command limit_s kernels")
Outcome = collections.namedtuple("Outcome", "status stdout stderr seconds")

# The program `vectors` launches 1 + 1000 kernels, 1 cooperative kernel, 1 kernel with attributes, and 20 kernels in each of 50 replays.
VECTORS_KERNELS = 2003
MODES = ("alone", "activity", "calls", "gpu", "nsys", "ioctls")


class Skip(Exception):
    """Raised if the machine lacks something that the test needs."""


def programs(python, training, built):
    train = [python, training] if python else None
    table = [
        Program("vectors-static", built.get("static"), 60, VECTORS_KERNELS),
        Program("vectors-shared", built.get("shared"), 60, VECTORS_KERNELS),
        Program("training", train and train + ["--steps", "200"], 180, None),
        Program("training-graph", train and train + ["--steps", "50", "--graph"], 180, None),
        Program("training-ranges", train and train + ["--steps", "4", "--ranges"], 180, None),
        Program("training-compile", train and train + ["--steps", "20", "--compile"], 280, None),
    ]
    table += [Program(name, [python, f"{HERE}/frameworks.py", name] if python else None, 180, None) for name in ("triton", "cupy", "jax")]
    return {program.name: program for program in table}


# The other programs run only if they are named: torch.compile takes minutes and needs a C compiler, and few machines have all frameworks.
DEFAULT_PROGRAMS = ["vectors-static", "vectors-shared", "training", "training-graph", "training-ranges"]


# ---- the machine ----


def require_gpu():
    if not os.path.exists("/dev/nvidiactl"):
        raise Skip("no NVIDIA GPU: /dev/nvidiactl does not exist")
    if shutil.which("nvidia-smi"):
        listed = subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                                check=False)
        if listed.returncode or b"GPU" not in listed.stdout:
            raise Skip("no NVIDIA GPU: nvidia-smi -L lists none")


def find_nvcc():
    for home in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")):
        if home and os.access(f"{home}/bin/nvcc", os.X_OK):
            return f"{home}/bin/nvcc"
    return shutil.which("nvcc") or next(iter(glob.glob("/usr/local/cuda*/bin/nvcc")), None)


def find_nsys():
    """Returns the path of nsys, found in the PATH or else in a toolkit. The nsys that is part of Nsight Compute needs libdw to write its
    report."""
    patterns = ("/usr/local/cuda/bin/nsys", "/opt/nvidia/nsight-systems/*/bin/nsys",
                "/opt/nvidia/nsight-systems/*/target-linux-x64/nsys",
                "/opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys")
    found = [path for pattern in patterns for path in sorted(glob.glob(pattern)) if os.access(path, os.X_OK)]
    return shutil.which("nsys") or next(iter(found), None)


def nsys_command(report, command):
    """Returns a command that runs `command` under nsys, which writes the file `report`.nsys-rep."""
    return [find_nsys(), "profile", "-t", "cuda", "--cuda-graph-trace", "node", "-s", "none", "--cpuctxsw", "none", "-f", "true", "-o", report,
            *command]


def nsys_export(report, path, limit_s):
    """Exports the file `report`.nsys-rep to an SQLite file."""
    return run_process([find_nsys(), "export", "-t", "sqlite", "-f", "true", "-o", path, f"{report}.nsys-rep"], os.environ, limit_s)


def find_python():
    """Returns the path of the `python3` in the caller's PATH if it has PyTorch. This script itself may run under another Python, because
    Meson may have started it."""
    python = shutil.which("python3")
    if python and subprocess.run([python, "-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=180,
                                 check=False).returncode == 0:
        return python
    return None


def cuda_roots(nvcc):
    """Returns directories that may contain CUDA's or CUPTI's include/ and lib/. Directories of toolkits come before directories of pip
    packages."""
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    if nvcc:
        toolkits += [os.path.dirname(os.path.dirname(path)) for path in (nvcc, os.path.realpath(nvcc))]
    toolkits += ["/usr/local/cuda"] + sorted(glob.glob("/usr/local/cuda-*"), reverse=True)
    roots = []
    for toolkit in filter(None, toolkits):
        roots += [toolkit, f"{toolkit}/extras/CUPTI"] + glob.glob(f"{toolkit}/targets/*")
    sites = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    if shutil.which("python3"):
        asked = subprocess.run(["python3", "-c", "import sys; print(*sys.path, sep='\\n')"], stdout=subprocess.PIPE,
                               timeout=60, check=False)
        sites += [line for line in asked.stdout.decode().splitlines() if line.endswith("-packages")]
    for site in sites:
        roots += sorted(glob.glob(f"{site}/nvidia/*"))
    return list(dict.fromkeys(root for root in roots if os.path.isdir(root)))


def find_cupti(nvcc):
    """Returns (include directories, path of the CUPTI library). If possible, takes CUPTI's header and library from the same directory."""
    roots = cuda_roots(nvcc)

    def with_file(root, name):
        return [f"{root}/include"] if os.path.exists(f"{root}/include/{name}") else []

    def library(root):
        found = [path for lib in ("lib64", "lib") for path in sorted(glob.glob(f"{root}/{lib}/libcupti.so*"))]
        return found[0] if found else None

    headers = [root for root in roots if with_file(root, "cupti.h")]
    libraries = [root for root in roots if library(root)]
    if not headers:
        raise Skip("no cupti.h found in a CUDA toolkit or in pip's nvidia packages")
    if not libraries:
        raise Skip("no libcupti.so found in a CUDA toolkit or in pip's nvidia packages")
    home = next((root for root in headers if root in libraries), None)
    includes = with_file(home or headers[0], "cupti.h")
    includes += [path for root in roots for path in with_file(root, "cuda.h")]
    return list(dict.fromkeys(includes)), library(home or libraries[0])


# ---- building ----


def build_together(commands, limit_s):
    """Runs all compiler commands in parallel. Returns {name: output} for the commands that failed."""
    running = {name: subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
               for name, command in commands.items()}
    failed = {}
    for name, process in running.items():
        try:
            output = process.communicate(timeout=limit_s)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            output = f"took more than {limit_s} s"
        if process.returncode:
            failed[name] = [" ".join(commands[name])] + output.splitlines()
    return failed


def truth_command(includes, libcupti, truth):
    return [shutil.which("gcc") or "cc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-fPIC", "-shared",
            *(word for path in includes for word in ("-isystem", path)),
            "-o", truth, f"{HERE}/cupti_truth.c", libcupti, f"-Wl,-rpath,{os.path.dirname(libcupti)}", "-lpthread"]


def vectors_command(nvcc, cudart, path):
    """Returns the command that builds vectors.cu with a `static` or a `shared` libcudart."""
    cudart_dirs = [path for root in cuda_roots(nvcc) for path in (f"{root}/lib64", f"{root}/lib") if glob.glob(f"{path}/libcudart.so*")]
    rpaths = [word for path in cudart_dirs[:4] for word in ("-Xlinker", "-rpath", "-Xlinker", path)]
    return [nvcc, "-std=c++17", "-O2", "-arch=native", "-cudart", cudart, *(rpaths if cudart == "shared" else ()), "-o", path,
            f"{HERE}/vectors.cu"]


def build_all(report, into):
    """Builds all programs. Returns (path of the library built from cupti_truth.c, path of ioctl_truth, {cudart: command of vectors})."""
    nvcc = find_nvcc()
    includes, libcupti = find_cupti(nvcc)
    truth = f"{into}/libcupti_truth.so"
    commands = {"cupti_truth.c": truth_command(includes, libcupti, truth)}
    ioctl_truth = f"{into}/ioctl_truth"
    commands["ioctl_truth.c"] = [shutil.which("gcc") or "cc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-o", ioctl_truth,
                                 f"{HERE}/ioctl_truth.c"]
    vectors = {}
    if nvcc:
        vectors = {cudart: f"{into}/vectors-{cudart}" for cudart in ("static", "shared")}
        commands |= {f"vectors.cu, {cudart} cudart": vectors_command(nvcc, cudart, path) for cudart, path in vectors.items()}
    else:
        report.warn("no nvcc: vectors.cu is left out")
    failed = build_together(commands, 240)
    for name in commands:
        report.check(name not in failed, f"{name} compiles", failed.get(name, ()))
    report.note(f"CUPTI: {libcupti}")
    return (None if "cupti_truth.c" in failed else truth, None if "ioctl_truth.c" in failed else ioctl_truth,
            {cudart: [path] for cudart, path in vectors.items() if os.path.exists(path)})


# ---- running ----


def run_process(command, env, limit_s):
    """Runs a command in a separate process group, and kills the group when the time limit is reached. The status is then None."""
    begun = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        # Redirect the output to files instead of pipes, because a daemon that outlives the command would keep a pipe open.
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   start_new_session=True)
        try:
            status = process.wait(timeout=limit_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        out.seek(0)
        err.seek(0)
        return Outcome(status, out.read(), err.read(), time.monotonic() - begun)


def plain_environment(scratch):
    env = {name: value for name, value in os.environ.items()
           if name == "CUDATRACE_WAY" or
           (name != "LD_PRELOAD" and not name.startswith(("CUDATRACE_", "CUDA_INJECTION", "CUPTI_TRUTH")))}
    # All runs of torch.compile share a cache, so that each run except the first finds the same kernels in the cache.
    env.update(PYTHONHASHSEED="0", TORCHINDUCTOR_CACHE_DIR=f"{scratch}/inductor", TRITON_CACHE_DIR=f"{scratch}/triton")
    return env


def own_lines(stderr):
    """Returns standard error without the lines that cudatrace itself printed."""
    return b"".join(line for line in stderr.splitlines(keepends=True) if not line.startswith(b"cudatrace"))


def describe(outcome):
    if outcome.status is None:
        return [f"killed after {outcome.seconds:.0f} s"]
    lines = [f"exit status {outcome.status}"]
    for name, text in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        lines += [f"{name}: {line}" for line in text.decode(errors="replace").splitlines()[-12:]]
    return lines


class Bench:
    """Data that all runs share: the tools, the library built from cupti_truth.c, a scratch directory, and the directory for kept
    results."""

    def __init__(self, report, options, scratch, truth_library, ioctl_truth=None):
        self.report = report
        self.options = options
        self.scratch = scratch
        self.truth_library = truth_library
        self.ioctl_truth = ioctl_truth
        self.cudatrace = os.path.join(os.path.abspath(options.build), "tools", "cudatrace")

    def ask_for_functions(self):
        """Checks that all queries that libcudart sends to cuGetProcAddress have the same results with and without the hook."""
        self.report.begin("cuGetProcAddress")
        hook = os.path.join(os.path.abspath(self.options.build), "hook", "libcudatrace.so")
        asked = run_process([sys.executable, f"{os.path.dirname(HERE)}/hook/procaddress.py", hook],
                            plain_environment(self.scratch), 120)
        said = (asked.stdout + asked.stderr).decode(errors="replace").splitlines()
        self.report.check(asked.status == 0, said[-1] if said else "no answer", said[-12:])

    def ask_doctor(self):
        """Checks that `cudatrace doctor` finds the real driver and its devices, and reports that no calls would be missed. Lists the
        functions that the hook does not know."""
        self.report.begin("doctor")
        asked = run_process([self.cudatrace, "doctor", "--db", f"{self.scratch}/doctor.db", "--session", "gpu-doctor"],
                            plain_environment(self.scratch), 120)
        said = (asked.stdout + asked.stderr).decode(errors="replace").splitlines()
        self.report.check(asked.status == 0, "nothing would be missed", said)
        for line in (r"  ok +driver +/.*/libcuda\.so\.[0-9.]+, CUDA [0-9]+\.[0-9]+$", r"  ok +devices +/dev/nvidiactl"):
            self.report.check(any(re.match(line, text) for text in said), f"it says {line!r}", said)
        for text in said:
            if text.startswith("  note  functions"):
                self.report.note(text.strip())

    def run_program(self, program):
        self.report.begin(program.name)
        if not program.command:
            missing = "nvcc, or its build failed" if program.name.startswith("vectors") else "PyTorch that sees a GPU"
            if self.options.only:
                self.report.check(False, f"cannot run: no {missing}")
            else:
                self.report.warn(f"left out: no {missing}")
            return
        env = plain_environment(self.scratch)
        untraced = run_process(program.command, env, program.limit_s)
        self.keep_output(program, "untraced", untraced)
        if not self.report.check(untraced.status == 0, f"runs untraced, {untraced.seconds:.1f} s", describe(untraced)):
            return
        self.report.note(untraced.stdout.decode(errors="replace").strip())
        untraced, comparable = self.settle(program, untraced, env)

        modes = ["alone", "activity", "calls"]
        if self.options.quick:
            modes = ["activity"]
        elif program.name == "training-ranges":
            modes = ["alone"]
        if not self.options.quick:
            modes += ["gpu", "nsys"] if find_nsys() else ["gpu"]
        if self.ioctl_truth and not self.options.quick and program.name not in ("training-compile", "training-ranges"):
            modes.append("ioctls")
        for mode in self.options.mode or modes:
            self.run_traced(program, mode, untraced, comparable, env)

    def settle(self, program, untraced, env):
        """Runs the program untraced until two successive runs have the same results. The first run may differ because it fills caches and
        prints messages about this. Returns (the last run, whether traced runs can be compared with it)."""
        for number in range(2):
            again = run_process(program.command, env, program.limit_s)
            self.keep_output(program, "untraced-again" if number == 0 else "untraced-third", again)
            if again[:3] == untraced[:3]:
                return again, True
            untraced = again
        self.report.warn("two untraced runs differ: results of traced runs cannot be compared", describe(again))
        return untraced, False

    def run_traced(self, program, mode, untraced, comparable, env):
        """Runs and checks a traced program. In `alone` mode, only cudatrace traces the program. `activity` mode adds CUPTI's records, and
        `calls` mode also adds CUPTI's callbacks. In `gpu` and `nsys` mode, cudatrace records GPU work, which CUPTI has counted or nsys has
        recorded in an earlier run. In `ioctls` mode, the kernel counts the program's ioctls."""
        beside = {"alone": "", "gpu": " with the GPU's work", "nsys": " with the GPU's work, after a run under nsys",
                  "ioctls": ", the kernel counting its ioctls"}.get(mode, f", CUPTI's {mode}")
        self.report.begin(f"{program.name}, traced{beside}")
        database = f"{self.scratch}/{program.name}.{mode}.db"
        truth = f"{self.scratch}/{program.name}.{mode}.truth"
        session = f"gpu{os.getpid()}{program.name.replace('-', '')}{mode}"
        env = dict(env)
        command = program.command
        if mode == "ioctls":
            command = [self.ioctl_truth, "--out", f"{truth}.0", *command]
        elif mode == "gpu":
            counted = run_process(program.command, {**env, "CUDA_INJECTION64_PATH": self.truth_library, "CUPTI_TRUTH_OUT": truth},
                                  program.limit_s)
            self.report.check(counted.status == 0, "runs with CUPTI alone", describe(counted))
            env.update(CUDATRACE_GPU="kernels")
        elif mode == "nsys":
            if not self.profile(program, truth, env):
                return
            env.update(CUDATRACE_GPU="kernels")
        elif mode != "alone":
            env.update(CUDA_INJECTION64_PATH=self.truth_library, CUPTI_TRUTH_OUT=truth)
        if mode == "calls":
            env.update(CUPTI_TRUTH_CALLBACKS="1")
        traced = run_process([self.cudatrace, "run", "--db", database, "--session", session, "--", *command],
                             env, program.limit_s)
        if traced.status is None:
            # The daemon is not in the process group that was killed, so stop it. Name the session, because other sessions' daemons must
            # continue.
            run_process([self.cudatrace, "stop", "--db", database, "--session", session], env, 30)
        self.keep_output(program, mode, traced)
        self.compare_results(untraced, traced, comparable)

        truths = sorted(glob.glob(f"{glob.escape(truth)}.*[0-9]"))
        try:
            with contextlib.closing(compare.open_database(database)) as opened:
                self.keep_database(program, mode, opened, truths)
                self.compare_database(program, mode, opened, truths)
        except (sqlite3.Error, ValueError, IndexError) as error:
            self.report.check(False, f"the database can be compared: {type(error).__name__}: {error}")

    def profile(self, program, truth, env):
        """Runs the program under nsys. Writes what nsys has recorded to an SQLite file, and returns whether that succeeded."""
        profile = f"{self.scratch}/{program.name}"
        if not find_nsys():
            return self.report.check(False, "nsys is installed")
        profiled = run_process(nsys_command(profile, program.command), {**env, "TMPDIR": self.scratch}, 2 * program.limit_s)
        self.keep_output(program, "profiled", profiled)
        if not os.path.exists(f"{profile}.nsys-rep"):
            self.report.warn("nsys cannot write its report", describe(profiled))
            return False
        exported = nsys_export(profile, f"{truth}.0", program.limit_s)
        return self.report.check(profiled.status == 0 and exported.status == 0, "runs under nsys", describe(profiled) + describe(exported))

    def export_to_nsys(self, program, database):
        """Checks that `nsys stats` reads the exported trace."""
        path, prefix = f"{self.scratch}/{program.name}.exported.sqlite", f"{self.scratch}/{program.name}.stats"
        traced = database.execute("PRAGMA database_list").fetchone()[2]
        exported = run_process([self.cudatrace, "export", "--db", traced, "--format", "nsys", "--output", path], os.environ, program.limit_s)
        stats = run_process([find_nsys(), "stats", "--format", "csv", "--output", prefix, "--report", ",".join(compare_nsys.STATS), path],
                            os.environ, program.limit_s)
        if self.report.check((exported.status, stats.status) == (0, 0), "nsys stats accepts the exported trace",
                             describe(exported) + describe(stats)):
            compare_nsys.check_stats(self.report, database, {name: f"{prefix}_{name}.csv" for name in compare_nsys.STATS})

    def compare_results(self, untraced, traced, comparable):
        same = (traced.status, traced.stdout, own_lines(traced.stderr)) == \
            (untraced.status, untraced.stdout, own_lines(untraced.stderr))
        if comparable:
            self.report.check(same, f"same output and exit status as untraced, {traced.seconds:.1f} s "
                              f"(untraced {untraced.seconds:.1f})", describe(traced))
        else:
            self.report.check(traced.status == untraced.status, "same exit status as untraced", describe(traced))
            self.report.check(False, "same output as untraced: cannot be told, since two untraced runs differ")

    def compare_database(self, program, mode, database, truths):
        checks = [lambda: compare.check_database(self.report, database)]
        if program.name == "training-ranges":
            checks.append(lambda: compare.check_layers(self.report, database))
        if mode == "ioctls":
            checks.append(lambda: compare_ioctls.check_ioctls(self.report, database, truths[0]))
        elif mode == "gpu":
            checks.append(lambda: compare_gpu_work.check_gpu_work(self.report, database, truths))
        elif mode == "nsys":
            checks.append(lambda: compare_nsys.check_work(self.report, database, truths[0]))
            checks.append(lambda: self.export_to_nsys(program, database))
        elif mode != "alone":
            checks.append(lambda: compare.check_activity(self.report, database, truths, program.kernels))
        if mode == "calls":
            checks.append(lambda: compare.check_calls(self.report, database, truths, self.options.strict_calls))
        for check in checks:
            try:
                check()
            except (sqlite3.Error, ValueError, IndexError) as error:
                self.report.check(False, f"the comparison could be made: {type(error).__name__}: {error}")

    def keep_output(self, program, mode, outcome):
        if not self.options.out:
            return
        with open(f"{self.options.out}/{program.name}.{mode}.log", "wb") as log:
            log.write(f"exit status {outcome.status}, {outcome.seconds:.2f} s\n".encode())
            log.write(b"---- stdout\n" + outcome.stdout + b"---- stderr\n" + outcome.stderr)

    def keep_database(self, program, mode, database, truths):
        if not self.options.out:
            return
        for path in truths:
            shutil.copy(path, self.options.out)
        pages, page_bytes = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        if pages * page_bytes >= KEPT_DATABASE_BYTES:
            self.report.note(f"database of {pages * page_bytes >> 20} MiB not kept")
            return
        # Use SQLite's backup, because it also copies the rows that are still in the write-ahead log.
        with contextlib.closing(sqlite3.connect(f"{self.options.out}/{program.name}.{mode}.db")) as kept:
            database.backup(kept)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Compare cudatrace with CUPTI on this machine's GPU.")
    parser.add_argument("--build", required=True, help="meson's build directory")
    parser.add_argument("--out", help="keep logs, truths and databases below 15 MiB here")
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="run this program alone (repeatable): " + ", ".join(programs(None, None, {})))
    parser.add_argument("--quick", action="store_true", help="one traced run of each program, with CUPTI's activity")
    parser.add_argument("--mode", action="append", choices=MODES, help="one traced run in this mode (repeatable)")
    parser.add_argument("--strict-calls", action="store_true", help="fail on any unexplained difference in calls")
    options = parser.parse_args()
    unknown = set(options.only or ()) - set(programs(None, None, {}))
    if unknown:
        parser.error("no such program: " + ", ".join(sorted(unknown)))
    if not os.access(os.path.join(options.build, "tools", "cudatrace"), os.X_OK):
        parser.error(f"{options.build} holds no tools/cudatrace: build it first")
    return options


class Tee:
    """Prints text both to standard output and to report.txt."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")

    def write(self, text):
        sys.stdout.write(text)
        self.file.write(text)

    def flush(self):
        sys.stdout.flush()
        self.file.flush()


def main():
    options = parse_arguments()
    sys.stdout.reconfigure(errors="replace")
    begun = time.monotonic()
    try:
        require_gpu()
        if options.out:
            os.makedirs(options.out, exist_ok=True)
        report = compare.Report(Tee(f"{options.out}/report.txt") if options.out else sys.stdout)
        names = options.only or DEFAULT_PROGRAMS
        with tempfile.TemporaryDirectory(prefix="cudatrace-gpu-") as scratch:
            report.begin("build")
            truth_library, ioctl_truth, vectors = build_all(report, scratch)
            python = find_python() if any(not name.startswith("vectors") for name in names) else None
            table = programs(python, f"{HERE}/training.py", vectors)
            if truth_library:
                bench = Bench(report, options, scratch, truth_library, ioctl_truth)
                if not options.only:
                    bench.ask_for_functions()
                    bench.ask_doctor()
                for name in names:
                    bench.run_program(table[name])
        report.note(f"took {time.monotonic() - begun:.0f} s")
        return report.finish()
    except Skip as reason:
        print(f"skipped: {reason}")
        return SKIP


if __name__ == "__main__":
    sys.exit(main())
