"""Tests the names of kernels that were loaded before `cudatrace attach`. All launches must have a name, the same as when the hook is
preloaded. The hook queries the driver once for each handle. These queries are not in the trace, and change nothing in the program. A handle
that the driver reuses has its new name. If the hook may not query the driver, the launches have no name, and nothing else changes."""
import pathlib
import subprocess

from attach_test import Attach
from cudatrace_test import DEADLINE_S, DRIVER_PATH, WORKLOADS, Session, check, equal

NAMES = ["function", "another_function", "kernel", "another_kernel", "of_kernel"]
HIDDEN = ["hidden_1", "hidden_2", "hidden_3", "hidden_4"]  # after `unload`, together with "loaded_later"
QUERIES = ("cuFuncGetName", "cuKernelGetName")


class Launcher:
    def __init__(self, s, preload=False, env=None):
        self.s = s
        self.child = s.start(WORKLOADS / "launcher", preload=preload, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        self.pid = self.child.pid
        self.await_line("ready")

    def await_line(self, line):
        equal(self.child.stdout.readline(), f"{line}\n", "the program's output")

    def do(self, *commands):
        """Sends the commands one after another, and waits until each has been carried out."""
        for command in commands:
            self.child.stdin.write(f"{command}\n")
            self.child.stdin.flush()
            if command == "unload":
                self.await_line("same 1")
            self.await_line(command)

    def attach(self):
        a = Attach(self.s, self.pid)
        a.await_armed(self.pid)
        self.do("version")
        a.await_line("is recorded")
        return a

    def end(self):
        equal(self.child.communicate(timeout=DEADLINE_S), ("", ""), "the rest of its output")
        equal(self.child.returncode, 0, "its status")

    def names(self):
        """Returns {name: launches}. Checks that the trace contains no query."""
        self.s.flush()
        equal(self.s.rows("SELECT totals.name FROM totals JOIN processes USING (process_id) WHERE pid = ? AND totals.name IN (?, ?)", self.pid,
                          *QUERIES), [], "queries in the trace")
        return dict(self.s.rows("SELECT kernel, count(*) FROM launches JOIN processes USING (process_id) WHERE pid = ? GROUP BY kernel",
                                self.pid))

    def queries(self):
        """Returns how often the driver has been queried for a function's name, and for a kernel's."""
        truth = self.s.truth()
        return tuple(truth.get((self.pid, name), 0) for name in QUERIES)


def named(s):
    """Checks that names after attach equal names with the hook preloaded, and how often the driver was queried."""
    commands = ["launch", "launch", "thread", "capture", "launch"]
    p = Launcher(s)
    a = p.attach()
    p.do(*commands)
    # Four handles are CUfunctions, and two are CUkernels. The first launch after an attach, and each launch of another kind than the previous
    # one, takes two queries: "function", "kernel" and "of_kernel".
    equal(p.queries(), (4 + 1, 2 + 2), "queries")
    p.do(*commands)
    equal(p.queries(), (5, 4), "queries for handles that are known")
    a.end()
    p.do("launch")
    p.end()
    preloaded = Launcher(s, preload=True)
    preloaded.do("version", *commands, *commands)
    preloaded.end()
    wanted = {name: 8 for name in NAMES} | {"captured": 2}
    equal(p.names(), wanted, "launches by name after attach")
    equal(preloaded.names(), wanted, "launches by name with the hook preloaded")
    equal(preloaded.queries(), (0, 0), "queries with the hook preloaded")


def reused(s):
    """Checks that a handle that is reused after an unload has its new name, also in a lane that has recorded the old one."""
    p = Launcher(s)
    a = p.attach()
    p.do("launch", "unload", "launch", "launch")
    a.end()
    p.end()
    equal(p.names(), {name: 1 for name in NAMES} | {name: 2 for name in [*HIDDEN, "loaded_later"]}, "launches by name")


def in_handler(s):
    """Checks that a launch in a signal handler does not query the driver, which may allocate memory, and that the kernel's next launch outside
    of the handler does."""
    p = Launcher(s)
    a = p.attach()
    p.do("handler", "handler")
    equal(p.queries(), (0, 0), "queries in a signal handler")
    p.do("outside")
    equal(p.queries(), (1, 1), "queries outside of it")
    p.do("handler", "outside")
    a.end()
    p.end()
    equal(p.queries(), (1, 1), "queries for a known kernel")
    equal(p.names(), {None: 2, "in_handler": 3}, "launches by name")


def filtered(s):
    """Checks that the driver is not queried under a system call filter, and is queried without one. A process under a filter cannot be
    attached to, so the hook is preloaded."""
    for commands, queries, names in ((["launch"], (len(HIDDEN), 0), {name: 1 for name in HIDDEN}),
                                     (["filter", "launch"], (0, 0), {None: len(HIDDEN)})):
        p = Launcher(s, preload=True)
        p.do("version", "unload", *commands)
        p.end()
        equal(p.queries(), queries, f"queries after {commands}")
        equal(p.names(), names | {"loaded_later": 1}, f"launches by name after {commands}")


def without_queries(s, why, env):
    p = Launcher(s, env=env)
    a = p.attach()
    p.do("launch", "thread", "capture", "unload", "launch")
    a.end()
    p.end()
    equal(p.queries(), (0, 0), f"queries with {why}")
    equal(p.names(), {None: 2 * len(NAMES) + 1 + len(HIDDEN), "loaded_later": 1}, f"launches by name with {why}")


def older_driver(s):
    """Checks that with a driver older than CUDA 12.3, which lacks the functions, launches have no name. The driver's copy exports them under
    other names."""
    folder = s.dir / "older"
    folder.mkdir()
    image = pathlib.Path(DRIVER_PATH.split(":")[0], "libcuda.so.1").read_bytes()
    for name in QUERIES:
        check(name.encode() in image, name, "is not in the driver")
        image = image.replace(f"{name}\0".encode(), f"{name[:-4]}Nome\0".encode())
    (folder / "libcuda.so.1").write_bytes(image)
    without_queries(s, "an older driver", {"LD_LIBRARY_PATH": f"{folder}:{DRIVER_PATH}"})


def with_log(s):
    """Checks that the driver is not queried if it would write its errors to a file or to the program's output."""
    without_queries(s, "CUDA_LOG_FILE", {"CUDA_LOG_FILE": "stderr"})


for test in named, reused, in_handler, filtered, older_driver, with_log:
    with Session() as session:
        session.start_daemon()
        test(session)
        session.stop_daemon()
