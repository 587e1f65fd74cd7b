"""uprobes and uretprobes on functions of a library, through a tracefs of our own: a peer in bench.py.

The kernel's names for probes are global and may collide with nobody's: the group has this process's number in its
name. Events go into a trace instance of our own, so that whoever traces besides is not disturbed. All of it is gone
when the context ends, whatever happened inside.
"""
import contextlib
import ctypes
import os
import pathlib
import subprocess
import tempfile


class Unavailable(Exception):
    """The kernel or our rights do not allow it; the text says what."""


def mapped_at(address):
    """(path, offset in the file, where the file begins in memory) of an address in this process."""
    begins = {}
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            fields = line.split(maxsplit=5)
            if len(fields) < 6:
                continue
            start, end = (int(part, 16) for part in fields[0].split("-"))
            path, offset = fields[5].strip(), int(fields[2], 16)
            if offset == 0:
                begins[path] = start
            if start <= address < end:
                return path, address - start + offset, begins.get(path)
    raise LookupError(hex(address))


def function_places(library, names):
    """({name: offset in the file}, {name: distance from where the library begins}, path) of exported functions."""
    loaded = ctypes.CDLL(library)
    offsets, distances, path = {}, {}, None
    for name in names:
        address = ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value
        path, offsets[name], begin = mapped_at(address)
        distances[name] = address - begin
    return offsets, distances, path


def write(path, text, append=False):
    """Python's own appending seeks to the end first, which these files refuse."""
    fd = os.open(path, os.O_WRONLY | (os.O_APPEND if append else os.O_TRUNC))
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


class Uprobes:
    """A probe at entry and one at return of each function. They cost nothing until on() and after off()."""

    def __init__(self, path, offsets):
        self.path = path
        self.offsets = offsets
        self.group = f"cudatrace_bench_{os.getpid()}"
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        try:
            with contextlib.ExitStack() as stack:
                self.set_up(stack)
                self.stack = stack.pop_all()
        except OSError as error:
            raise Unavailable(f"uprobes: {error}") from error
        return self

    def __exit__(self, *_):
        self.stack.close()

    def set_up(self, stack):
        if os.geteuid() != 0:
            raise Unavailable("uprobes: they need root")
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="cudatrace-tracefs-"))
        stack.callback(self.root.rmdir)
        mounted = subprocess.run(["mount", "-t", "tracefs", "none", self.root], capture_output=True, text=True, check=False)
        if mounted.returncode:
            raise Unavailable(f"uprobes: tracefs cannot be mounted: {mounted.stderr.strip()}")
        stack.callback(subprocess.run, ["umount", self.root], check=False)
        if not (self.root / "uprobe_events").exists():
            raise Unavailable("uprobes: the kernel has none (CONFIG_UPROBE_EVENTS)")
        stack.callback(self.remove_events)
        for name, offset in self.offsets.items():
            for kind in "pr":
                write(self.root / "uprobe_events", f"{kind}:{self.group}/{kind}_{name} {self.path}:{offset:#x}\n", True)
        self.instance = self.root / "instances" / self.group
        self.instance.mkdir()
        stack.callback(self.instance.rmdir)
        # What is not read is written over: nobody reads while the clock runs, which is to the probes' favour.
        write(self.instance / "buffer_size_kb", "1024")
        # For the kernel refuses to remove what is on.
        stack.callback(self.off)

    def remove_events(self):
        for name in self.offsets:
            for kind in "pr":
                with contextlib.suppress(OSError):
                    write(self.root / "uprobe_events", f"-:{self.group}/{kind}_{name}\n", True)

    def switch(self, state):
        write(self.instance / "events" / self.group / "enable", state)

    def on(self):
        self.switch("1")

    def off(self):
        self.switch("0")

    def hits(self):
        """{event: how often it was hit}; 'missed' ones are not counted."""
        lines = (self.root / "uprobe_profile").read_text(encoding="utf-8").splitlines()
        fields = [line.split() for line in lines]
        return {words[1]: int(words[2]) for words in fields if len(words) >= 3 and words[1][2:] in self.offsets}
