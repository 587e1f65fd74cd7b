"""The two peers that use uprobes, which trap into the kernel at a function's entry and return. One peer is the kernel's own tracing through
tracefs, which needs no installation. The other is bpftrace."""
import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from figures import Missing
from program import PROGRAMS

LIBRARY = (PROGRAMS / "libcuda.so.1").resolve()
TRACEFS = pathlib.Path("/sys/kernel/tracing")


def lines(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError) as error:
        raise Missing(f"{error} (Debian: binutils)") from None


def addresses(library):
    """Returns {function: offset from the library's base in memory}."""
    words = (line.split() for line in lines("nm", "-D", "--defined-only", library))
    return {name.partition("@")[0]: int(address, 16) for address, _, name in words}


def path_of_library(name):
    """Returns the path of the file that the dynamic loader finds for the given library name."""
    ctypes.CDLL(name)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = (line.split(maxsplit=5)[-1].strip() for line in maps)
        return next(path for path in paths if os.path.basename(path).startswith(os.path.basename(name).partition(".so")[0] + ".so"))


def file_offset(library, symbol):
    """Returns a function's offset in the file, which is what uprobes need."""
    address = addresses(library).get(symbol)
    if address is None:
        raise Missing(f"{library} has no {symbol}")
    for line in lines("readelf", "-lW", library):
        words = line.split()
        if words[:1] == ["LOAD"]:
            offset, start, size = int(words[1], 16), int(words[2], 16), int(words[4], 16)
            if start <= address < start + size:
                return address - start + offset
    raise Missing(f"{symbol} lies in no segment of {library}")


class Probes:
    """Probes at the entry and return of the given functions in a library, defined through tracefs. switch(True) enables the probes, and the
    end of the context removes them."""

    def __init__(self, library, functions):
        self.probed_file, self.functions = library, functions
        self.group = f"cudatrace_bench_{os.getpid()}"  # the kernel's names are global to the machine
        self.undo = contextlib.ExitStack()

    def __enter__(self):
        if os.geteuid() != 0:
            raise Missing("uprobes want root")
        with contextlib.ExitStack() as undo:
            self.tracefs = self.mount(undo)
            try:
                for function in self.functions:
                    where = f"{self.probed_file}:0x{file_offset(self.probed_file, function):x}"
                    for kind in "pr":
                        self.define(f"{kind}:{self.group}/{kind}_{function} {where}")
                        undo.callback(self.define, f"-:{self.group}/{kind}_{function}")
                # A separate instance has its own buffers, so other users' tracing is not affected. Unread data is overwritten.
                self.instance = self.tracefs / "instances" / self.group
                self.instance.mkdir()
                undo.callback(self.instance.rmdir)
                (self.instance / "buffer_size_kb").write_text("1024")
                undo.callback(self.switch, False)  # the kernel refuses to remove an active probe
            except OSError as error:
                raise Missing(f"the kernel refuses uprobes: {error}") from None
            self.undo = undo.pop_all()
        return self

    def __exit__(self, *_):
        self.undo.close()

    def switch(self, is_on):
        (self.instance / "events" / self.group / "enable").write_text(str(int(is_on)))

    def mount(self, undo):
        if (TRACEFS / "uprobe_events").exists():
            return TRACEFS
        place = tempfile.mkdtemp(prefix="cudatrace-tracefs-")
        undo.callback(os.rmdir, place)
        done = subprocess.run(["mount", "-t", "tracefs", "tracefs", place], capture_output=True, text=True)
        if done.returncode != 0:
            raise Missing(f"no tracefs: {' '.join(done.stderr.split())}")
        undo.callback(subprocess.run, ["umount", place], check=True)
        if not os.path.exists(f"{place}/uprobe_events"):
            raise Missing("this kernel has no uprobe_events")
        return pathlib.Path(place)

    def define(self, text):
        # Append to the file, because truncating it would remove the probes of all users. Do not use open(), because in append mode it would
        # seek to the end of the file.
        file = os.open(self.tracefs / "uprobe_events", os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, f"{text}\n".encode())
        finally:
            os.close(file)

    def hits(self):
        """Returns {event: number of hits}."""
        words = (line.rsplit(maxsplit=2) for line in (self.tracefs / "uprobe_profile").read_text().splitlines())
        return {event: int(count) for file, event, count in words if file.strip() == str(self.probed_file)}


class Tracefs(Probes):
    name = "uprobes_tracefs"
    ways = ("uprobes_tracefs",)
    options = ()
    env = {}
    FUNCTION = "bench_probed_tracefs"

    def __init__(self, _):
        super().__init__(LIBRARY, [self.FUNCTION])

    def __enter__(self):
        super().__enter__()
        self.switch(True)
        return self

    def check(self, made):
        hits = self.hits()
        for kind in "pr":
            if hits.get(f"{kind}_{self.FUNCTION}") != made:
                raise Missing(f"{hits.get(f'{kind}_{self.FUNCTION}')} of {made} calls came to {kind}_{self.FUNCTION}")


class Bpftrace:
    """The bpftrace peer, used in the cheapest way: it keeps only sums for each function instead of recording every call."""
    name = "uprobes_bpftrace"
    ways = ("uprobes_bpftrace",)
    options = ()
    env = {}
    PROGRAM = """
        uprobe:{library}:bench_probed_bpftrace {{ @start[tid] = nsecs; }}
        uretprobe:{library}:bench_probed_bpftrace /@start[tid]/ {{
            @calls = count(); @ns = sum(nsecs - @start[tid]); delete(@start[tid]);
        }}
        interval:ms:200 {{ printf("ready\\n"); }}
        END {{ clear(@start); }}"""

    def __init__(self, _):
        self.tracer = None

    def __enter__(self):
        if not shutil.which("bpftrace"):
            raise Missing("no bpftrace command (Debian: bpftrace)")
        if os.geteuid() != 0:
            raise Missing("bpftrace wants root")
        self.tracer = subprocess.Popen(["bpftrace", "-e", self.PROGRAM.format(library=LIBRARY)],
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            said = []
            for line in self.tracer.stdout:
                if line == "ready\n":
                    return self
                said.append(line)
            raise Missing(f"bpftrace ended: {' '.join(''.join(said).split())[:200]}")
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        self.end()

    def end(self):
        """Stops bpftrace, and returns its output, which contains the number of calls that it has seen."""
        tracer, self.tracer = self.tracer, None
        if not tracer:
            return ""
        tracer.terminate()
        try:
            return tracer.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            tracer.kill()
            return tracer.communicate()[0]

    def check(self, made):
        found = re.search(r"@calls: (\d+)", self.end())
        seen = int(found.group(1)) if found else 0
        if seen != made:
            raise Missing(f"{seen} of {made} calls were seen")
