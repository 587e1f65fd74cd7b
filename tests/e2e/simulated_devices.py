"""Uses other devices in place of NVIDIA's, and counts requests to them, both in the trace and in the output of ioctl_requests."""
import collections
import os

from cudatrace_test import BUILD

IOCTLS = BUILD / "tests/hook/ioctl_requests"
# As with the real devices, nvidiactl and nvidia0 have the same major number, and nvidia-uvm has a different one. Terminals replace two
# further devices (see devices()).
DEVICES = {"nvidiactl": "/dev/null", "nvidia0": "/dev/zero", "nvidia-uvm": "/dev/ptmx"}


def devices(session):
    folder = session.dir / "devices"
    folder.mkdir()
    for name, target in DEVICES.items():
        (folder / name).symlink_to(target)
    for name in ("nvidia-uvm-tools", "nvidia-modeset"):
        (folder / name).symlink_to(os.ttyname(os.openpty()[1]))  # the descriptors stay open
    return folder


def recorded(session, pid):
    """Returns a process's recorded requests as {(name, status, bytes): count}."""
    return collections.Counter(dict(((name, status, size), count) for name, status, size, count in session.rows(
        "SELECT name, status, ifnull(bytes, 0), count(*) FROM calls WHERE layer = 'ioctl' AND pid = ? GROUP BY 1, 2, 3", pid)))


def printed(output):
    """Returns the requests printed by ioctl_requests as {(name, status, bytes): count}."""
    seen = collections.Counter()
    for line in output.splitlines():
        name, status, size = line.split("\t")
        seen[name, int(status), int(size)] += 1
    return seen
