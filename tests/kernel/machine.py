"""Runs commands in a virtual machine (qemu). The virtual machine contains the programs and libraries that the probe's tests need, at the
same paths as on the host. All of these files are in an initramfs, so the virtual machine needs no disk."""
import collections
import os
import pathlib
import shlex
import subprocess
import sys
import sysconfig
import tempfile

from cudatrace_test import BUILD, CUDATRACE, DAEMON, HOOK, SOURCE, check, end_in_time

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = os.path.realpath(sys.executable)
PROGRAMS = [CUDATRACE, DAEMON, HOOK, BUILD / "probe/cudatrace-probe", BUILD / "tests/hook/ioctl_requests", PYTHON, "/bin/sh", "/usr/bin/busybox", "/usr/bin/unshare",
            "/usr/bin/mount", "/usr/sbin/bpftool"]
# Parts of Python's standard library that no test imports.
UNUSED = {"test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "pydoc_data", "site-packages", "dist-packages", "__pycache__"}
MEMORY_MIB = 2048

Done = collections.namedtuple("Done", "status output errors")


def why_no_kvm():
    """Returns the reason why KVM cannot run the machine, or None if KVM can run it. Even if the processor has neither vmx nor svm, /dev/kvm
    may exist, but KVM then runs only special kernels (kvm-pvm)."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "no access to /dev/kvm"
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    return None if {"vmx", "svm"} & set(flags) else "the processor has neither vmx nor svm"


# ---- the machine's files ----


def files_below(folder, unused=frozenset(), suffix=""):
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in unused and not name.endswith(".p")]
        yield from (os.path.join(place, name) for name in names if name.endswith(suffix))


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def libraries_of(files):
    listed = subprocess.run(["ldd", *files], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    return {word for line in listed.splitlines() for word in line.split() if word.startswith("/") and not word.endswith(":")}


def add_path(paths, path):
    """Adds a path and the folders above it. Also adds any symbolic links in the path, and their targets."""
    place = pathlib.Path("/")
    for i, part in enumerate(parts := pathlib.Path(path).parts[1:]):
        place /= part
        paths[place] = None
        if place.is_symlink():
            return add_path(paths, os.path.normpath(place.parent.joinpath(os.readlink(place), *parts[i + 1:])))


def list_paths(more):
    files = {str(file) for file in (*PROGRAMS, *more)}
    for folder in "tests/simcuda", "tests/workloads":
        files.update(files_below(BUILD / folder))
    for folder in "tests/e2e", "tests/simcuda":
        files.update(files_below(SOURCE / folder, suffix=".py"))
    for folder in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}:
        files.update(files_below(folder, UNUSED, ".py"), files_below(folder, UNUSED, ".so"))
    files.update(libraries_of([file for file in files if is_elf(file)]))
    files.update(library for library in ["/lib/x86_64-linux-gnu/libgcc_s.so.1"] if os.path.exists(library))  # glibc loads it later
    paths = {}
    for file in sorted(files):
        add_path(paths, file)
    return paths


def write_archive(path, more=()):
    """Writes an archive of this machine's files, followed by an archive with the first process's program (init). The kernel reads both."""
    pack = ["busybox", "cpio", "-o", "-H", "newc", "-R", "0:0"]
    with open(path, "wb") as archive:
        for folder, paths in ("/", list_paths(more)), (HERE, {HERE / "init": None}):
            names = "".join(f"{name.relative_to(folder)}\n" for name in paths)
            archive.flush()
            subprocess.run(pack, cwd=folder, input=names.encode(), stdout=archive, stderr=subprocess.DEVNULL, check=True)


# ---- the machine ----


class Machine:
    """A virtual machine that has booted the kernel with the given parameters. The machine is used in a `with` statement, and is stopped
    when that statement ends."""

    def __init__(self, kernel, archive, *parameters):
        self.kernel, self.archive = kernel, archive
        # Expedite RCU grace periods, because closing hundreds of perf events would otherwise take minutes.
        self.parameters = ["console=ttyS0", "quiet", "panic=-1", "rcupdate.rcu_expedited=1", *parameters]

    def __enter__(self):
        end_in_time()
        self.console = tempfile.NamedTemporaryFile(prefix="cudatrace-console-")
        # If qemu emulates the processors in separate threads, a processor may execute an old copy of code that the kernel has changed. The
        # kernel would then panic when an event such as sched_switch is enabled, because enabling an event changes code.
        accelerator = "tcg,thread=single" if why_no_kvm() else "kvm"
        self.qemu = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-nodefaults", "-no-reboot", "-display", "none",
             "-accel", accelerator, "-cpu", "max", "-smp", "2", "-m", str(MEMORY_MIB), "-kernel", self.kernel, "-initrd", self.archive,
             "-append", " ".join(self.parameters),
             "-serial", f"file:{self.console.name}", "-serial", "stdio"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            self.read_line("ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error):
        self.qemu.kill()
        self.qemu.communicate()
        self.console.close()

    def read_line(self, what):
        line = self.qemu.stdout.readline().decode()
        check(line, "the machine ended before", what, "" if line else self.last_words())
        return line.rstrip("\n")

    def last_words(self):
        return self.qemu.stderr.read().decode() + pathlib.Path(self.console.name).read_text(errors="replace")[-2000:]

    def run(self, *command, status=0, env=None):
        """Runs a command in the machine. Checks its exit status unless `status` is None."""
        line = shlex.join(["env", *(f"{key}={value}" for key, value in (env or {}).items()), *map(str, command)])
        check("\n" not in line, "a command of several lines:", line)
        self.qemu.stdin.write(f"{line}\n".encode())
        self.qemu.stdin.flush()
        ended_with, *sizes = map(int, self.read_line(f"the end of {line}").split())
        done = Done(ended_with, *(self.qemu.stdout.read(size).decode() for size in sizes))
        check(status in (None, done.status), line, "ended with", done.status, "and not", status, done.output, done.errors)
        return done
