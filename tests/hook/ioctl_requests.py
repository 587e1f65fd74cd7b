"""Tests that the trace contains exactly the requests that the program made to the kernel driver, with name, status, size and depth. The
program must receive the kernel's results."""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))
from cudatrace_test import BUILD, SIMCUDA, WORKLOADS, Session, check, equal, fifo, needs  # noqa: E402: it is in tests/e2e
from simulated_devices import IOCTLS, devices, printed, recorded  # noqa: E402


def test_everything(s, env):
    process = s.start(IOCTLS, "all", 4, 20, env=env, stdout=-1, text=True)
    output = process.communicate()[0]
    equal(process.returncode, 0, "status of ioctl_requests all")
    s.flush()
    want, seen = printed(output), recorded(s, process.pid)
    check(sum(want.values()) > 2000, "requests made", sum(want.values()))
    equal(sorted((want - seen).items()), [], "requests that the trace lacks")
    equal(sorted((seen - want).items()), [], "requests that nobody made")
    equal(s.rows("SELECT DISTINCT layer FROM calls WHERE pid = ?", process.pid), [("ioctl",)], "layers")
    names = dict(s.rows("SELECT status, status_name FROM calls WHERE layer = 'ioctl' GROUP BY 1"))
    for status, name in {0: "NV_OK", 0x56: "NV_ERR_NOT_SUPPORTED", 0x51: "NV_ERR_NO_MEMORY", -14: "EFAULT", -25: "ENOTTY",
                         0x10006: "NV_WARN_NOTHING_TO_DO"}.items():
        equal(names[status], name, f"the name of {status}")
    categories = dict(s.rows("SELECT name, category FROM functions WHERE layer = 'ioctl'"))
    equal({n: categories[n] for n in ("NVKMS_IOCTL_SET_MODE", "UVM_TOOLS_FLUSH_EVENTS")},
          {"NVKMS_IOCTL_SET_MODE": "control", "UVM_TOOLS_FLUSH_EVENTS": "control"}, "categories of the other devices'")
    equal({n: categories[n] for n in ("UVM_MAP_EXTERNAL_ALLOCATION", "NV_ESC_ALLOC_OS_EVENT", "NV_ESC_CARD_INFO", "ESC 0xfe")},
          {"UVM_MAP_EXTERNAL_ALLOCATION": "memory", "NV_ESC_ALLOC_OS_EVENT": "event", "NV_ESC_CARD_INFO": "control",
           "ESC 0xfe": "control"}, "categories")


def test_numbers(s, env):
    process = s.start(IOCTLS, "all", 1, 1, env=env, stdout=-1)
    process.communicate()
    s.flush()
    numbers = collections.defaultdict(list)
    for name, role, number in s.rows("SELECT DISTINCT name, role, handle FROM objects JOIN calls USING (call_id) WHERE pid = ? ORDER BY place", process.pid):
        numbers[name].append((role, number))
    equal(sorted(set(name for name, in s.rows("SELECT name FROM calls WHERE pid = ?", process.pid)) - set(numbers)), [], "requests without a number")
    for name, request, more in (("RM_CONTROL NV2080_CTRL_CMD_GPU_GET_INFO_V2", 0xc0000000 | 32 << 16 | 0x462a, [("command", 0x20800102)]),
                                ("RM_ALLOC NV01_ROOT_CLIENT", 0xc0000000 | 48 << 16 | 0x462b, [("class", 0x41)]),
                                ("UVM_INITIALIZE", 0x30000001, []), ("NVKMS 0xffffffff", 0x6d00, []), ("NVKMS 1999", 0xc0106d00, [("command", 1999)]),
                                ("NV_ESC_CARD_INFO", 0xc0000000 | 2304 << 16 | 0x46c8, [])):
        check(("request", request) in numbers[name], "the number of", name, numbers[name])
        equal([pair for pair in numbers[name] if pair[0] != "request"], more, f"the code of {name}")


def test_no_device(s, env):
    processes = s.value("SELECT count(*) FROM processes")
    s.run(IOCTLS, "foreign", env=env)
    s.flush()
    equal(s.value("SELECT count(*) FROM processes"), processes, "processes: one with ioctls on other files is none")


def test_too_many(s, env):
    process = s.start(IOCTLS, "many", 700, env=env, stdout=-1)
    process.communicate()
    equal(process.returncode, 0, "status of ioctl_requests many")
    s.flush()
    named = dict(s.rows("SELECT totals.name, calls FROM totals JOIN processes USING (process_id) WHERE pid = ?", process.pid))
    equal(sum(named.values()), 700, "requests counted")
    equal(named.pop("RM other"), 700 - 512, "requests without a row of their own")
    equal(set(named), {f"RM_CONTROL 0x{0xf0000000 + i:08x}" for i in range(512)}, "requests with one")


def test_depth(s, env):
    process = s.start(WORKLOADS / "calls", "--calls", 500, "--mix", "alloc", env=env, stdout=-3)
    equal(process.wait(), 0, "status of calls")
    s.flush()
    inside = s.rows("""
        SELECT outer.name, inner.name, inner.depth, count(*)
          FROM calls AS inner
          JOIN calls AS outer ON outer.pid = inner.pid AND outer.tid = inner.tid AND outer.depth = inner.depth - 1
                             AND outer.start_ns <= inner.start_ns AND outer.end_ns >= inner.end_ns
         WHERE inner.layer = 'ioctl' AND inner.pid = ? GROUP BY 1, 2, 3""", process.pid)
    calls = dict(s.rows("SELECT totals.name, calls FROM totals JOIN processes USING (process_id) WHERE pid = ?", process.pid))
    check(calls["cuMemAlloc_v2"] > 10, "allocations", calls)
    equal({(outer, inner, depth): count for outer, inner, depth, count in inside}, {
        ("cuInit", "NV_ESC_CHECK_VERSION_STR", 1): calls["cuInit"],
        ("cuInit", "NV_ESC_CARD_INFO", 1): calls["cuInit"],
        ("cuInit", "RM_ALLOC NV01_ROOT_CLIENT", 1): calls["cuInit"],
        ("cuInit", "RM_CONTROL NV0000_CTRL_CMD_GPU_GET_ID_INFO", 1): calls["cuInit"],
        ("cuInit", "UVM_INITIALIZE", 1): calls["cuInit"],
        ("cuMemAlloc_v2", "NV_ESC_RM_VID_HEAP_CONTROL", 1): calls["cuMemAlloc_v2"],
        ("cuMemAlloc_v2", "UVM_MAP_EXTERNAL_ALLOCATION", 1): calls["cuMemAlloc_v2"],
    }, "requests inside driver calls")
    equal(s.rows("SELECT name, count(*) FROM calls WHERE layer = 'ioctl' AND pid = ? AND depth = 0 GROUP BY 1", process.pid), [],
          "requests outside of any driver call")


def test_hang(s, env):
    with fifo(s.dir, "notify") as notify, fifo(s.dir, "hold") as hold:
        process = s.start(IOCTLS, "hang", notify, hold, env=env)
        with open(notify, "rb") as inside, open(hold, "wb") as release:
            inside.read(1)
            s.flush()
            equal(s.rows("SELECT name, depth FROM open_calls JOIN processes USING (process_id) WHERE pid = ?", process.pid),
                  [("RM_CONTROL NV2080_CTRL_CMD_GPU_GET_INFO_V2", 0)], "the call it hangs in")
            release.write(b"\n")
        equal(process.wait(), 0, "its status")
        s.flush()
        equal(s.rows("SELECT name FROM open_calls JOIN processes USING (process_id) WHERE pid = ?", process.pid), [],
              "calls open after it ended")


def test_dormant(env):
    with Session() as s:
        env = dict(env, CUDATRACE_DEVICES=devices(s))
        plain = s.run(IOCTLS, "all", 2, 3, env=env, preload=False)
        hooked = s.run(IOCTLS, "all", 2, 3, env=env)
        equal(sorted(hooked.stdout.splitlines()), sorted(plain.stdout.splitlines()), "what it printed with no daemon")
        equal([n for n in os.listdir("/dev/shm") if s.name in n], [], "files with no daemon")


needs("terminals")  # the test itself opens /dev/ptmx
with Session() as s:
    env = {"CUDATRACE_DEVICES": devices(s), "SIMCUDA_IOCTLS": 1, "LD_LIBRARY_PATH": SIMCUDA}
    with_answers = dict(env, LD_PRELOAD=f"{BUILD / 'hook/libcudatrace.so'} {SIMCUDA / 'libsimdevice.so'}")
    s.start_daemon()
    test_everything(s, env)
    made = {row["object"]: row["created"] for row in s.report("contexts")["contexts"] if row["object"] != "context"}
    equal(made, {what: s.value("SELECT sum(calls) FROM totals WHERE name = ?", f"RM_ALLOC {name}") for what, name in
                 (("channel", "HOPPER_CHANNEL_GPFIFO_A"), ("channel group", "KEPLER_CHANNEL_GROUP_A"))}, "channels in the report")
    test_numbers(s, env)
    test_no_device(s, env)
    test_too_many(s, env)
    test_depth(s, with_answers)
    test_hang(s, env)
    s.check_identity()
test_dormant(env)
