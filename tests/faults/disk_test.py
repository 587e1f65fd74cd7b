"""Controls the disk simulated by fault_vfs.c, which fails on command."""
import mmap
import pathlib
import struct

FAULTS = ("none", "full", "short", "quota", "write", "readonly", "fsync", "read", "truncate", "shm", "open", "dead")
MAIN, LOG, SHM, JOURNAL = 1, 2, 4, 8
FIELDS = ("fault", "kinds", "left", "hits", "changes", "cut_at", "survival")  # struct disk
NEVER = 2**63


class Disk:
    """The state of a simulated disk, in the file named by $CUDATRACE_DISK. `env` is the environment that makes a daemon keep its database
    on this disk."""

    def __init__(self, directory):
        self.path = pathlib.Path(directory) / "disk"
        self.path.write_bytes(bytes(mmap.PAGESIZE))
        with open(self.path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self.env = {"CUDATRACE_DISK": str(self.path)}

    def __getitem__(self, field):
        return struct.unpack_from("<Q", self.map, 8 * FIELDS.index(field))[0]

    def __setitem__(self, field, value):
        struct.pack_into("<Q", self.map, 8 * FIELDS.index(field), value)

    def fail(self, fault, kinds=MAIN | LOG | SHM | JOURNAL, left=0):
        """Makes operations fail after `left` more successful ones, or after `left` more bytes if the fault is a full disk."""
        self["kinds"], self["left"], self["hits"] = kinds, left, 0
        self["fault"] = FAULTS.index(fault)

    def mend(self):
        """Ends the fault. Returns the number of times that it has struck."""
        self["fault"] = 0
        return self["hits"]
