"""Tests that `cudatrace probe --ioctls` records a probed process's requests to NVIDIA's kernel driver, as the hook does, and also its other
system calls on the driver's devices. Arguments select tests by name."""
import collections
import errno
import os
import signal
import subprocess
import sys

from cudatrace_test import DEADLINE_S, WORKLOADS, check, equal, needs
from probing import OwnDriver, Probe, await_stored, truth_of, writer_of
from simulated_devices import IOCTLS, devices, printed, recorded

needs("tracefs", "terminals")  # the test itself opens /dev/ptmx
REQUEST, ITS_CLASS = "UVM_RELEASE_VA", "RM_ALLOC NV01_ROOT_CLIENT"


def start(s, *mode, preload=False):
    """Starts the program ioctl_requests, which calls the driver and then waits for a line."""
    return s.start(IOCTLS, *mode, preload=preload, env=s.simulated, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def wait_for_page(s):
    """Starts ioctl_requests, and returns once it hangs in a request that waits for a page of memory."""
    process = start(s, "fault")
    process.stdin.write("\n")
    process.stdin.flush()
    equal(process.stdout.readline(), "waiting\n", "what ioctl_requests prints in its request")
    return process


def await_end(s, pid, *states):
    s.flush_until("its end", lambda: s.value("SELECT state FROM processes WHERE pid = ?", pid) in (states or ["exited"]))


def requests(s):
    """Checks that every kind of request and every kind of failure has a row with the name, the status and the size of the request. Ioctls
    on other files must have no rows."""
    probe = Probe(s, *s.every, "--ioctls", env=s.simulated)
    process = start(s, "kernel", 4, 20)
    output = process.communicate("\n", DEADLINE_S)[0]
    equal(process.returncode, 0, "status of ioctl_requests")
    await_end(s, process.pid)
    probe.end()
    want, seen = printed(output), recorded(s, process.pid)
    check(sum(want.values()) > 2000, "requests made", sum(want.values()))
    check(want[REQUEST, 0x1f, 24] > 0, "no request has succeeded", want)
    equal(sorted((want - seen).items()), [], "requests that the trace lacks")
    equal(sorted((seen - want).items()), [], "requests that nobody made")
    equal(s.rows("SELECT DISTINCT depth, status_name FROM calls WHERE layer = 'ioctl' AND name = ?", REQUEST),
          [(0, "NV_ERR_INVALID_ARGUMENT")], "the depth and the name of the status")
    equal(s.rows("SELECT category FROM functions WHERE name = 'UVM_MAP_EXTERNAL_ALLOCATION'"), [("memory",)], "a category")
    s.check_identity()


def like_hook(s):
    """Checks that the hook and the probe record the same rows for a program's requests: inside the same calls, and with the same values."""
    inside = """
        SELECT outer.name, inner.name, inner.depth, inner.status, inner.bytes,
               (SELECT group_concat(role || ' ' || handle) FROM objects WHERE objects.call_id = inner.call_id), count(*)
          FROM calls AS inner
          LEFT JOIN calls AS outer ON outer.pid = inner.pid AND outer.tid = inner.tid AND outer.depth = inner.depth - 1
                                  AND outer.start_ns <= inner.start_ns AND outer.end_ns >= inner.end_ns
         WHERE inner.layer = 'ioctl' AND inner.pid = ? GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6"""
    probe = Probe(s, *s.every, "--ioctls", env=s.simulated)
    pids = []
    for preload in True, False:
        done = s.start(WORKLOADS / "calls", "--calls", 500, "--mix", "alloc", "--threads", 2, "--seed", 3, preload=preload,
                       env={**s.simulated, "SIMCUDA_IOCTLS": 1}, stdout=subprocess.DEVNULL)
        equal(done.wait(DEADLINE_S), 0, "the program's status")
        await_end(s, done.pid)
        pids.append(done.pid)
    probe.end()
    equal(s.rows("SELECT DISTINCT layer FROM calls WHERE pid = ? ORDER BY 1", pids[1]), [("driver",), ("ioctl",), ("kernel",)],
          "the layers of the probe")
    by_hook, by_probe = (s.rows(inside, pid) for pid in pids)
    equal(by_probe, by_hook, "requests of the probe and of the hook")
    made = {(outer, name): count for outer, name, *_, count in by_probe}
    check(all(numbers and numbers.startswith("request ") for *_, numbers, _ in by_probe), "requests without their numbers", by_probe)
    truth = truth_of(s, pids[1])
    check(truth["cuMemAlloc_v2"] > 10, "allocations", truth)
    equal((made["cuMemAlloc_v2", "NV_ESC_RM_VID_HEAP_CONTROL"], made["cuInit", ITS_CLASS]), (truth["cuMemAlloc_v2"], truth["cuInit"]),
          "requests and the driver's own count of the calls that make them")
    equal(s.rows("SELECT inside, name, device, count(*) FROM device_files WHERE pid = ? GROUP BY 1, 2, 3 ORDER BY 1, 2, 3", pids[1]),
          [(call, name, device, truth[call]) for call in ("cuInit", "cuMemAlloc_v2") for name in ("close", "openat") for device in ("null", "ptmx")],
          "device files that the driver opens and closes, and the calls that do it")
    s.check_identity()


def on_device_files(s, pid):
    """Returns {(name, status, device, bytes): calls} of system calls on device files."""
    return collections.Counter(dict((row[:4], row[4]) for row in s.rows("""
        SELECT name, status, device, ifnull(bytes, 0), count(*) FROM device_files WHERE pid = ? GROUP BY 1, 2, 3, 4""", pid)))


def used(output):
    """Returns {(name, status, device, bytes): calls} as printed by `ioctl_requests files`."""
    lines = (line.split("\t") for line in output.splitlines())
    return collections.Counter((name, int(status), device, int(size)) for name, status, device, size in lines)


def check_files(s, pid, output):
    want, seen = used(output), on_device_files(s, pid)
    check(sum(want.values()) > 100, "calls on device files", want)
    check({status for _, status, _, _ in want} == {0, -errno.ENOENT, -errno.ENOTDIR, -errno.ENODEV}, "kinds of failures", want)
    equal(sorted((want - seen).items()), [], "calls on device files that the trace lacks")
    equal(sorted((seen - want).items()), [], "calls on device files that nobody made")
    equal(s.rows("SELECT DISTINCT address IS NOT NULL, status = 0 FROM device_files WHERE pid = ? AND name = 'mmap' ORDER BY 1", pid),
          [(0, 0), (1, 1)], "whether mappings have an address, and were successful")


def files(s):
    """Checks that every openat(), mmap() and close() of a device file has a row, whether or not it fails, and that calls on other files
    have none."""
    probe = Probe(s, *s.every, "--ioctls", env=s.simulated)
    process = start(s, "files", 4, 20)
    output = process.communicate("\n", DEADLINE_S)[0]
    equal(process.returncode, 0, "status of ioctl_requests")
    await_end(s, process.pid)
    probe.end()
    check_files(s, process.pid, output)
    equal(s.rows("SELECT DISTINCT inside FROM device_files"), [(None,)], "calls around them")
    equal(s.value("SELECT count(*) FROM waits WHERE blocked_ns IS NOT NULL"), 0, "waits whose blocked time is known, without --kernel")
    s.check_identity()


def files_with_hook(s):
    """Checks that in a process with the hook, the hook records the requests, and the probe adds the openat(), mmap() and close() calls,
    which the hook does not record."""
    process = start(s, "files", 4, 20, preload=True)
    s.flush_until("the process's segment", lambda: s.value("SELECT count(*) FROM processes WHERE pid = ?", process.pid))
    probe = Probe(s, "--pid", process.pid, "--ioctls", env=s.simulated)
    check("0 functions are probed" in probe.said, "the driver has probes:", probe.said)
    output = process.communicate("\n", DEADLINE_S)[0]
    equal(process.returncode, 0, "status of ioctl_requests")
    await_end(s, process.pid)
    probe.end(number=None)
    check_files(s, process.pid, output)
    equal(recorded(s, process.pid), collections.Counter(), "requests that nobody made")
    s.check_identity()


def by_option(s):
    """Checks that the probe without --ioctls records no requests, but the same driver calls."""
    probe = Probe(s, *s.every, env=s.simulated)
    done = s.start(WORKLOADS / "calls", "--calls", 50, "--mix", "alloc", preload=False, env={**s.simulated, "SIMCUDA_IOCTLS": 1},
                   stdout=subprocess.DEVNULL)
    equal(done.wait(DEADLINE_S), 0, "the program's status")
    await_stored(s, done.pid, dict(truth_of(s, done.pid)))
    probe.end()
    equal((recorded(s, done.pid), on_device_files(s, done.pid)), (collections.Counter(), collections.Counter()), "requests, and calls on files")


def hanging(s):
    """Checks that the trace shows a hanging request by name as an open call, and has a row for it once it has returned. The time that the
    request was blocked is recorded, too."""
    probe = Probe(s, *s.every, "--ioctls", "--kernel", env=s.simulated)
    process = wait_for_page(s)
    open_calls = "SELECT name, depth FROM open_calls JOIN processes USING (process_id) WHERE pid = ?", process.pid
    s.flush_until("the open call", lambda: s.rows(*open_calls))
    equal(s.rows(*open_calls), [(REQUEST, 0)], "the call that hangs")
    process.communicate("\n", DEADLINE_S)
    equal(process.returncode, 0, "status of ioctl_requests")
    await_end(s, process.pid)
    probe.end()
    equal(s.rows(*open_calls), [], "open calls in the end")
    equal(recorded(s, process.pid), {(REQUEST, 0, 24): 1}, "the request")
    blocked, = s.rows("SELECT name, blocked > 0 AND blocked_ns <= duration_ns FROM off_cpu WHERE layer = 'ioctl'")
    equal(blocked, (REQUEST, 1), "the time that the request was blocked")


def killed(s):
    """Kills a process during a request. Checks that the request has a row, because the kernel ends the request before it ends the
    process."""
    probe = Probe(s, *s.every, "--ioctls", env=s.simulated)
    process = wait_for_page(s)
    process.kill()
    process.wait(DEADLINE_S)
    await_end(s, process.pid, "killed")
    probe.end()
    equal(recorded(s, process.pid), {(REQUEST, -errno.EFAULT, 24): 1}, "the request")
    equal(s.rows("SELECT name FROM open_calls JOIN processes USING (process_id) WHERE pid = ?", process.pid), [], "open calls")
    s.check_identity()


def full_ring(s):
    """Stops the writer, so that the ring fills up. Checks that requests that do not fit are counted as lost, separately for each device."""
    probe = Probe(s, *s.every, "--ioctls", env=s.simulated)
    process = start(s, "kernel", 4, 400)
    s.flush_until("the process's segment", lambda: s.value("SELECT count(*) FROM processes WHERE pid = ?", process.pid))
    writer = writer_of(probe, process.pid)
    os.kill(writer, signal.SIGSTOP)
    output = process.communicate("\n", DEADLINE_S)[0]
    equal(process.returncode, 0, "status of ioctl_requests")
    os.kill(writer, signal.SIGCONT)
    await_end(s, process.pid, "exited", "killed")  # the full ring may have no room for the exit status
    probe.end()
    calls, lost = s.rows("SELECT sum(calls), sum(lost) FROM totals JOIN processes USING (process_id) WHERE pid = ? AND layer = 'ioctl'", process.pid)[0]
    print(f"{calls} requests, {lost} lost", flush=True)
    equal(calls, sum(printed(output).values()), "requests that were stored or lost")
    check(0 < lost < calls, "nothing was lost, or everything")
    equal(s.rows("SELECT DISTINCT totals.name FROM totals WHERE layer = 'ioctl' AND lost > 0 ORDER BY 1"),
          [("NVKMS other",), ("RM other",), ("UVM other",)], "the names of lost requests")
    s.check_identity(lost=s.value("SELECT sum(lost) FROM totals"))


def many(s):
    """Checks that if there are more than 512 kinds of requests, all further kinds are recorded under one name."""
    probe = Probe(s, *s.every, "--ioctls", env=s.simulated)
    process = start(s, "kernel-many", 700)
    process.communicate("\n", DEADLINE_S)
    equal(process.returncode, 0, "status of ioctl_requests")
    await_end(s, process.pid)
    probe.end()
    named = dict(s.rows("SELECT name, count(*) FROM calls WHERE pid = ? AND layer = 'ioctl' GROUP BY name", process.pid))
    equal(named.pop("RM other"), 700 - 512, "requests without a row of their own")
    equal(set(named), {f"RM_CONTROL 0x{0xf0000000 + i:08x}" for i in range(512)}, "requests with one")


TESTS = requests, like_hook, files, files_with_hook, by_option, hanging, killed, full_ring, many
for unknown in set(sys.argv[1:]) - {test.__name__ for test in TESTS}:
    sys.exit(f"no test is called '{unknown}'")
for test in TESTS:
    if not sys.argv[1:] or test.__name__ in sys.argv[1:]:
        print(test.__name__, flush=True)
        with OwnDriver() as s:
            s.simulated = {"CUDATRACE_DEVICES": devices(s)}
            s.start_daemon()
            test(s)
