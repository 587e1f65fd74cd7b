"""Tests tables of hooks on kernel functions (`cudatrace probe --hooks`). The script runs in a virtual machine that has loaded stubs of the
NVIDIA driver (stub/), and compares traces with the stubs' own counts. Arguments select tests by name; the default is all tests."""
import json
import pathlib
import re
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from cudatrace_test import CUDATRACE, DEADLINE_S, SOURCE, WORKLOADS, check, equal, wait_for  # noqa: E402: it is in tests/e2e
from probing import Hooks as AnyHooks, OwnDriver, Probe  # noqa: E402

CALL = "cuOccupancyMaxPotentialBlockSize"
CALLS = 3  # the workload performs its acts once, and then once in each of these calls
ACTS = {"control": 2, "xid": 3, "unknown": 4, "fence": 5, "map": 6, "migrate": 7, "gpu-fault": 8, "touch": 9}
CAP_SYS_ADMIN = 21
IOCTL = "nvidia_unlocked_ioctl|nvidia_frontend_unlocked_ioctl"
IOCTL_ENTRY = next((name for name in IOCTL.split("|") if f" {name}\t" in pathlib.Path("/proc/kallsyms").read_text()), None)
NOT_A_CALL = "rm_ioctl"  # the kernel refuses a hook on it
IN_THREADS_OF_THE_KERNEL = "replayable_faults_isr_bottom_half_entry", "uvm_parent_gpu_service_replayable_faults", "service_fault_batch"
ENABLED = pathlib.Path("/sys/kernel/tracing/enabled_functions")
KPROBES = pathlib.Path("/sys/kernel/debug/kprobes/list")


class Hooks(AnyHooks):
    """A probe that is started with a table of hooks. The probe records calls to only a few driver functions, because perf events take long
    to attach and to detach."""

    def __init__(self, s, *lines, options=()):
        super().__init__(s, *lines, options=("--calls", f"cuCtxSetCurrent,{CALL}", *options))


def counts_by_module():
    """Returns the stubs' own counts, as {module: {function: calls}}."""
    return {module: {file.name: int(file.read_text()) for file in pathlib.Path(f"/sys/module/{module}/parameters").iterdir()}
            for module in ("nvidia", "nvidia_uvm")}


def counts():
    """Returns the stubs' own counts, as {function: calls}."""
    return {function: calls for functions in counts_by_module().values() for function, calls in functions.items()}


def functions_of_kernel():
    """Returns the names of the kernel's functions, without the suffixes that the compiler adds."""
    lines = pathlib.Path("/proc/kallsyms").read_text().splitlines()
    return {re.sub(r"\.(isra|constprop)\..*", "", line.split()[2]) for line in lines if line.split()[1] in "tTwW"}


def run(hooks):
    """Runs the workload. Returns its process ID and the calls that the stubs counted."""
    before = counts()
    pid = hooks.run(WORKLOADS / "devices", "--calls", CALLS, *(word for name, times in ACTS.items() for word in (f"--{name}", times)))
    return pid, {function: calls - before[function] for function, calls in counts().items()}


def recorded(s, pid):
    return dict(s.rows("SELECT name, count(*) FROM hooks WHERE pid = ? GROUP BY name", pid))


def functions(s):
    """Checks that each stub function has as many rows as calls. The probe must report each hook that it cannot attach, and must record
    calls with all other hooks."""
    names = sorted(counts())
    others = [name for name in names if name != NOT_A_CALL and not name.endswith("unlocked_ioctl")]
    hooks = Hooks(s, f"kprobe:{IOCTL} ioctl", "kprobe:nvidia_ioctl inlined", "kprobe:no_such_function absent", f"kprobe:{NOT_A_CALL} refused",
                  *(f"kprobe:{name} {name}" for name in others))
    why = "the kernel has no function {}: its module is not loaded, or the compiler has inlined it"
    for line in (f"{hooks.file}:2: inlined: {why.format('nvidia_ioctl')}", f"{hooks.file}:3: absent: {why.format('no_such_function')}",
                 f"{hooks.file}:4: refused: cannot attach: the kernel permits no kprobe there",
                 f"probe: {1 + len(others)} of {4 + len(others)} hooks are attached"):
        check(line + "\n" in hooks.probe.said, "the probe did not print", line, ":", hooks.probe.said)
    pid, calls = run(hooks)
    hooks.probe.end()
    entry, = (name for name in names if name.endswith("nlocked_ioctl") and name.startswith("nvidia"))
    calls["ioctl"] = calls.pop(entry)
    for name in NOT_A_CALL, *IN_THREADS_OF_THE_KERNEL:
        check(calls.pop(name) > 0, "the workload did not call", name)
    equal(recorded(s, pid), calls, "the calls of each function")
    equal(s.rows("SELECT DISTINCT thread FROM hooks WHERE pid = ?", pid), [("devices",)], "the names of their threads")
    s.check_identity(lost=0)


def fields(s):
    """Checks the values of fields that are read from arguments, from the kernel's and the program's memory, and from results. Also checks
    hooks that have conditions on such values."""
    hooks = Hooks(s, f"kprobe:{IOCTL} ioctl command=arg1:u32 at=arg2 word=arg2+0:u32 status=ret:s32",
                  "kprobe:nvidia_open open mode=arg0+0:u16",
                  "kprobe:uvm_ioctl migrate request=arg1:u32 if arg1:u32 == 51 and ret:s32 == 0 in calls",
                  "kprobe:nvidia_mmap mapped if ret:s32 < 0",
                  "tracepoint:nvidia:nvidia_dev_xid error device=dev error=error_code text=msg if error_code >= 31")
    pid, _ = run(hooks)
    hooks.probe.end()
    times = 1 + CALLS
    seen = hooks.fields(pid, "ioctl")
    for request, act, word, status in ((0xc020462a, "control", 0, 0), (0x400446f0, "xid", 31, 0), (0x46f1, "fence", None, 0),
                                       (0x46f2, "unknown", None, -22)):
        equal([(f["at"] != 0, f.get("word"), f["status"]) for f in seen if f["command"] == request],
              times * ACTS[act] * [(word is not None, word, status)], f"the fields of {act}")
    equal(dict(s.rows("SELECT status, count(*) FROM hooks WHERE pid = ? AND name = 'ioctl' GROUP BY status", pid)),
          {0: times * sum(ACTS[act] for act in ("control", "xid", "fence")), -22: times * ACTS["unknown"]}, "the status of the rows")
    equal(hooks.fields(pid, "open"), 2 * [{"mode": 0o20666}], "a field in the kernel's memory")
    equal(recorded(s, pid).get("mapped"), None, "calls that do not meet the condition")
    equal(hooks.fields(pid, "migrate"), CALLS * ACTS["migrate"] * [{"request": 51}], "calls inside driver calls")
    errors = hooks.fields(pid, "error")
    equal([(f["error"], f["text"]) for f in errors], times * ACTS["xid"] * [(31, "stub")], "the fields of the tracepoint")
    check(all(re.fullmatch(r"[0-9a-f:.]+", f["device"]) for f in errors), "the texts of the tracepoint", errors)
    s.check_identity(lost=0)


def inside(s):
    """Checks that a driver call, the ioctl inside it, and the functions that the ioctl calls are nested by depth and by time. A query from
    docs/sql.md must show this nesting."""
    hooks = Hooks(s, f"kprobe:{IOCTL} ioctl", "kprobe:nv_post_event event", "kprobe:nvidia_mmap mmap", "kprobe:uvm_unlocked_ioctl_entry uvm",
                  "kprobe:uvm_ioctl uvm_inner", "kprobe:uvm_api_migrate api_migrate", "kprobe:uvm_migrate migrate",
                  "kprobe:uvm_vm_fault_entry fault", "tracepoint:nvidia:nvidia_dev_xid error")
    pid, _ = run(hooks)
    hooks.probe.end()
    ioctls = sum(ACTS[name] for name in ("control", "xid", "unknown", "fence"))
    uvm = ACTS["migrate"] + ACTS["gpu-fault"]
    of_call = {("ioctl", 1): ioctls, ("event", 2): ACTS["fence"], ("error", 2): ACTS["xid"], ("mmap", 1): ACTS["map"], ("uvm", 1): uvm,
               ("uvm_inner", 2): uvm, ("api_migrate", 3): ACTS["migrate"], ("migrate", 4): ACTS["migrate"], ("fault", 1): ACTS["touch"]}
    equal({(name, depth): calls for name, depth, calls in
           s.rows("SELECT name, depth, count(*) FROM hooks WHERE pid = ? GROUP BY name, depth", pid)},
          {(name, depth - out): calls if out else CALLS * calls for (name, depth), calls in of_call.items() for out in (0, 1)},
          "the rows of each function at each depth")
    equal(s.rows("SELECT inner.name, inner.depth FROM calls AS inner JOIN processes USING (process_id) "
                 "WHERE processes.pid = ? AND inner.depth > 0 AND NOT EXISTS (SELECT * FROM calls AS outer WHERE outer.tid = inner.tid "
                 "AND outer.depth = inner.depth - 1 AND outer.start_ns <= inner.start_ns AND outer.call_id >= inner.call_id)", pid), [],
          "rows that are not inside a row of the next lower depth")
    query, = re.findall(r"^## What took the time inside the longest call\?\n.*?```sql\n(.*?)```", (SOURCE / "docs/sql.md").read_text(), re.M | re.S)
    slow = s.rows(query)
    print(*slow, sep="\n")
    equal((slow[0][0], slow[0][1], slow[0][2]), (0, CALL, 1), "the slow call")
    equal({(name, level): calls for level, name, calls, *_ in slow[1:]}, of_call, "the functions inside the slow call")
    check(all(0 <= row[-1] <= 100 for row in slow), "parts of the call", slow)
    s.check_identity(lost=0)


# For each kind of request that the workload makes: its name and its status in the trace. The hook does not know the request number for a
# GPU fault.
REQUESTS = {"control": ("RM_CONTROL NV0000_CTRL_CMD_NULL", 0), "xid": ("ESC 0xf0", 0), "fence": ("ESC 0xf1", 0), "unknown": ("ESC 0xf2", -22),
            "migrate": ("UVM_MIGRATE", 0)}
MAPPED = """
import ctypes, fcntl
driver = ctypes.CDLL("libcuda.so.1")
assert driver.cuInit(0) == 0 and driver.cuCtxSetCurrent(None) == 0
with open("/dev/nvidia-uvm", "r+b", buffering=0) as device:
    try:
        fcntl.ioctl(device, 33, bytearray(9264))
    except OSError:
        pass
"""


def requests(s):
    """With --ioctls, each request must have a row inside the driver call that makes it. The rows of the kernel's functions must be inside
    the request's row."""
    hooks = Hooks(s, f"kprobe:{IOCTL} entered", "kprobe:uvm_unlocked_ioctl_entry entered_uvm", options=["--ioctls"])
    pid, calls = run(hooks)
    mapped = hooks.run(sys.executable, "-c", MAPPED)
    hooks.probe.end()
    rows = {(name, depth, status): count for name, depth, status, count in
            s.rows("SELECT name, depth, status, count(*) FROM calls WHERE layer = 'ioctl' AND pid = ? GROUP BY 1, 2, 3", pid)}
    equal(rows, {(*REQUESTS[act][:1], depth, REQUESTS[act][1]): ACTS[act] * (CALLS if depth else 1) for act in REQUESTS for depth in (0, 1)},
          "requests")
    equal((sum(count for (name, *_), count in rows.items() if name != "UVM_MIGRATE"), rows["UVM_MIGRATE", 0, 0] + rows["UVM_MIGRATE", 1, 0]),
          (calls["rm_ioctl"], calls["uvm_api_migrate"]), "requests and the driver's own counts")
    equal(s.rows("SELECT DISTINCT request.depth, hook.depth FROM calls AS hook JOIN calls AS request ON request.tid = hook.tid AND request.layer = 'ioctl' "
                 "AND request.start_ns <= hook.start_ns AND request.end_ns >= hook.end_ns WHERE hook.layer = 'hook' AND hook.pid = ? ORDER BY 1", pid),
          [(0, 1), (1, 2)], "the depths of requests and of the kernel's functions inside them")
    equal(s.rows("SELECT name, bytes, status FROM calls WHERE layer = 'ioctl' AND pid = ?", mapped), [("UVM_MAP_EXTERNAL_ALLOCATION", 1200, -22)],
          "a request whose size depends on the version of the kernel driver")
    s.check_identity(lost=0)


def installed(s):
    """Checks the installed tables for the driver. The probe must attach the hook of each line whose function exists in the stubs, and must
    report all other lines."""
    known = functions_of_kernel()
    for table in "driver", "uvm":
        lines = (SOURCE / f"dist/hooks/{table}.hooks").read_text().splitlines()
        hooks = Hooks(s, *lines)
        targets = {i: line.split()[0].partition(":")[2] for i, line in enumerate(lines, 1) if line.startswith("kprobe:")}
        there = {i for i, target in targets.items() if known & set(target.split("|"))}
        check(len(there) >= 4, "the stubs have only", there)
        reported = {int(line) for line in re.findall(r"^.*/hooks:(\d+): \w+: the kernel has no function", hooks.probe.said, re.M)}
        equal(reported, set(targets) - there, "the lines that are reported")
        check(f"probe: {len(there)} of {len(targets)} hooks are attached\n" in hooks.probe.said, hooks.probe.said)
        pid, _ = run(hooks)
        hooks.probe.end()
        check(recorded(s, pid), "the table", table, "records nothing")
    s.check_identity(lost=0)


def invalidates(s):
    """The kernel notifies the driver before a process's mappings change. Each notification must be recorded inside the driver call that
    changes the mappings."""
    hooks = Hooks(s, "kprobe:__mmu_notifier_invalidate_range_start invalidate status=ret:s32", "kprobe:uvm_ats_invalidate_notifier_entry uvm_invalidate")
    pid, calls = run(hooks)
    hooks.probe.end()
    made = calls["uvm_ats_invalidate_notifier_entry"]
    check(made >= (1 + CALLS) * ACTS["touch"], "announcements", made)  # each touched mapping is removed
    seen = recorded(s, pid)
    equal(seen["uvm_invalidate"], made, "the calls of the driver")
    # When the process exits, exit_mmap() starts a notification for all mappings, but by then no driver is registered to receive it.
    check(seen["invalidate"] - made in (0, 1), "the calls of the kernel and of the driver", seen)
    equal(s.rows("SELECT DISTINCT inner.depth - outer.depth FROM hooks AS inner JOIN hooks AS outer ON inner.start_ns BETWEEN outer.start_ns AND outer.end_ns "
                 "WHERE inner.name = 'uvm_invalidate' AND outer.name = 'invalidate' AND outer.pid = ?", pid), [(1,)], "the levels between them")
    in_calls = s.value("SELECT count(*) FROM hooks WHERE name = 'invalidate' AND depth = 1 AND pid = ?", pid)
    check(in_calls >= CALLS * ACTS["touch"], "announcements in driver calls", in_calls)
    s.check_identity(lost=0)


def fences(s):
    """Even without a table, each of the driver's fences must have a row. The row begins when work is submitted, and ends when a kernel
    thread signals the fence."""
    probe = Probe(s, *s.every, "--kernel", "--calls", f"cuCtxSetCurrent,{CALL}")
    done = s.start(WORKLOADS / "devices", "--calls", CALLS, "--fence", ACTS["fence"], preload=False)
    equal(done.wait(DEADLINE_S), 0, "the program's status")
    s.flush_until("its end", lambda: s.value("SELECT count(*) FROM processes WHERE pid = ? AND state = 'exited'", done.pid) == 1)
    probe.end()
    equal(s.rows("SELECT inside, driver, timeline, is_emitted, count(*), min(duration_ns > 0) FROM fences WHERE pid = ? GROUP BY 1 ORDER BY 1", done.pid),
          [(inside, "nvidia", "nvidia", 1, times * ACTS["fence"], 1) for inside, times in ((None, 1), (CALL, CALLS))], "the fences")
    equal(dict(s.rows("SELECT name, count(*) FROM calls WHERE name LIKE 'fence%' GROUP BY name")),
          dict.fromkeys(("fence_init", "fence_emit", "fence_signaled"), (1 + CALLS) * ACTS["fence"]), "the events")
    s.check_identity(lost=0)


def listed(*arguments):
    """Returns the lines of `cudatrace probe --list`."""
    return subprocess.run([CUDATRACE, "probe", *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def lists(s):
    """The list contains the stubs' functions and their tracepoint. The kernel must refuse hooks on exactly those functions that the list
    marks as not permitted."""
    modules = {name: module for module, names in counts_by_module().items() for name in names}
    lines = listed(*(word for name in modules for word in ("--list", f"kprobe:{name}")))
    barred = "# kprobe:{}  # module {}; the kernel permits no kprobe there: the function is notrace"
    equal(lines, [barred.format(NOT_A_CALL, modules[name]) if name == NOT_A_CALL else f"kprobe:{name}  # module {modules[name]}"
                  for name in sorted(modules)], "the functions of the stubs")
    equal(listed("-v", "--list", "nvidia_dev_xid"), ["tracepoint:nvidia:nvidia_dev_xid nvidia_dev_xid dev=dev error_code=error_code msg=msg  "
          "# __data_loc char[] dev, u32 error_code, __data_loc char[] msg"], "the tracepoint")
    every = [line.split("  # ")[0] for line in listed("--list", "kprobe:*") if "functions have this name" not in line]
    refused = [line.removeprefix("# ") for line in every if line.startswith("# ")]
    forbidden = [f"kprobe:{line.split()[1]}" for line in (KPROBES.parent / "blacklist").read_text().splitlines()]
    allowed = [line for line in every if line.startswith("kprobe:vfs_")]
    check(len(refused) >= 100 and len(allowed) >= 20, "the list has few functions:", len(refused), len(allowed))
    check(len(set(refused) & set(forbidden)) >= 100, "the list bars few functions of the blacklist", len(set(refused) & set(forbidden)))
    tried = refused[::len(refused) // 20] + sorted(set(refused) & set(forbidden))[::40] + allowed[::len(allowed) // 10]
    tried = list(dict.fromkeys(tried))
    hooks = Hooks(s, *(f"{target} hook_{i}" for i, target in enumerate(tried)))
    said = set(map(int, re.findall(r"^.*/hooks:(\d+): \w+: cannot attach: the kernel permits no kprobe there$", hooks.probe.said, re.M)))
    equal([target for i, target in enumerate(tried, 1) if i in said], [target for target in tried if target in refused],
          f"the functions that the kernel refuses, of {len(tried)}")
    hooks.probe.end()


def acts(*more):
    """Returns a command that runs the workload without driver calls."""
    return [WORKLOADS / "devices", *map(str, more), *(str(word) for name, times in ACTS.items() for word in (f"--{name}", times))]


class Discovery:
    """Runs `cudatrace probe --discover` with a command that waits for a line, runs the workload as its child, and exits with status 7. When
    the constructor returns, the probe is already counting calls."""

    def __init__(self, *options):
        self.child = subprocess.Popen([CUDATRACE, "probe", "--discover", *options, "--", "sh", "-c", 'echo "started" && read -r line && "$@"; exit 7',
                                       "sh", *acts()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        equal(self.child.stdout.readline(), "started\n", "the command's first line")

    def end(self):
        return self.child.communicate("go\n")


def table_of(text):
    """Parses a table of hooks that `cudatrace probe --discover` has printed. Returns {function: (calls, indentation)}, in the order of the
    table's lines."""
    lines = re.findall(r"^( *)kprobe:(\S+) \S+  # calls: (\d+), module: nvidia(?:_uvm)?$", text, re.M)
    return {function: (int(calls), len(blanks)) for blanks, function, calls in lines}


def discovers(s):
    """`cudatrace probe --discover` must count exactly the calls made by the command and its children, and must not change the command's
    output or status."""
    file = s.dir / "found.hooks"
    modules = "--modules", "nvidia,nvidia_uvm"
    discovery = Discovery(*modules, "--save", file)
    subprocess.run(acts(), check=True)  # a program that is not followed
    before = counts()
    output, errors = discovery.end()
    equal((output, errors, discovery.child.returncode), ("", "", 7), "the command's output and status")
    truth = {function: calls - before[function] for function, calls in counts().items()}
    for name in NOT_A_CALL, *IN_THREADS_OF_THE_KERNEL:
        check(truth.pop(name) > 0, "the workload did not call", name)
    found = table_of(file.read_text())
    equal({name: calls for name, (calls, _) in found.items() if name in truth}, {name: calls for name, calls in truth.items() if calls},
          "the counts of each function")
    nested = "uvm_unlocked_ioctl_entry", "uvm_ioctl", "uvm_api_migrate", "uvm_migrate"  # some of these calls are jumps
    indents = [found[name][1] for name in nested]
    check(indents[0] == 0 < indents[2] and indents == sorted(indents), "the indentation of functions that call each other", indents)
    outermost = "nvidia_open", "nvidia_close", "nvidia_mmap", IOCTL_ENTRY, "uvm_open_entry", "uvm_release_entry", "uvm_mmap_entry", "uvm_vm_fault_entry"
    equal({name: found[name][1] for name in outermost}, dict.fromkeys(outermost, 0), "the indentation of functions that the kernel calls")
    check(found["nv_post_event"][1] > 0, "a function inside an ioctl is not indented")
    equal([name for name in found if name in nested], list(nested), "the order of their first calls")
    dry = subprocess.run([CUDATRACE, "probe", "--hooks", file, "--dry-run"], stdout=subprocess.PIPE, text=True)
    equal((dry.returncode, len(dry.stdout.splitlines())), (0, len(found)), "the check of the table")
    _, errors = Discovery(*modules, "--order", "calls", "--verbose").end()
    method = "links to many functions" if "register_fprobe_ips" in functions_of_kernel() else "perf events"
    check(re.match(fr"probe: counts \d+ functions by {method}\n", errors), "the probe does not count by", method, ":", errors)
    by_calls = table_of(errors)
    equal({name: calls for name, (calls, _) in by_calls.items()}, {name: calls for name, (calls, _) in found.items()}, "the same, by calls")
    equal([calls for calls, _ in by_calls.values()], sorted((calls for calls, _ in found.values()), reverse=True), "the order by calls")
    equal(subprocess.run([CUDATRACE, "probe", "--discover", "--", "sh", "-c", "kill -USR1 $$"], stderr=subprocess.DEVNULL).returncode,
          -signal.SIGUSR1, "the status after a signal")
    discovery = Discovery(*modules)
    discovery.child.kill()
    output, _ = discovery.end()
    wait_for("the probes to leave the kernel", lambda: KPROBES.read_text() == "" and not re.search("nvidia|uvm", ENABLED.read_text()))


def killed(s):
    """Checks that no kprobe remains in the kernel after the probe has been killed."""
    equal(KPROBES.read_text(), "", "kprobes before the probe")
    hooks = Hooks(s, f"kprobe:{IOCTL} ioctl", "kprobe:uvm_ioctl uvm")
    equal(len(re.findall(r" (?:nvidia_\w*unlocked_ioctl|uvm_ioctl)\+", KPROBES.read_text())), 4, "kprobes of two hooks")
    pid, calls = run(hooks)
    equal(recorded(s, pid)["uvm"], calls["uvm_ioctl"], "calls before the end of the probe")
    hooks.probe.end(-signal.SIGKILL, signal.SIGKILL)
    wait_for("the kprobes to leave the kernel", lambda: KPROBES.read_text() == "")


def machine(s):
    """Hooks on function entries must also record kernel threads, and processes whose driver calls are not recorded."""
    names = sorted(name for name in counts() if name != NOT_A_CALL)
    hooks = Hooks(s, *(f"kprobe:{name} {name} first=arg0 at entry in machine" for name in names))
    probe = hooks.probe.child.pid
    pid, calls = run(hooks)
    hooks.probe.end()
    check(calls.pop(NOT_A_CALL) > 0, "the workload did not call", NOT_A_CALL)
    calls["xid"] = (1 + CALLS) * ACTS["xid"]  # the probe's own hook
    equal(recorded(s, probe), calls, "the entries of each function")
    tasks = s.rows("SELECT name, value GLOB 'kworker/*' AS is_worker, count(*) FROM hook_fields WHERE field = 'task_name' GROUP BY 1, 2")
    equal({(name, bool(is_worker)): count for name, is_worker, count in tasks},
          {(name, name in IN_THREADS_OF_THE_KERNEL): count for name, count in calls.items()}, "the entries in threads of the kernel")
    equal(s.rows("SELECT name, min(value) FROM hook_fields WHERE field = 'task_pid' AND name = 'uvm_ioctl'"), [("uvm_ioctl", pid)], "the process")
    equal(s.rows("SELECT DISTINCT depth, duration_ns FROM hooks"), [(0, 0)], "depths and durations")
    s.check_identity(lost=0)


def xids(s):
    """Even without a table, a probe records GPU errors in any process, whether or not it records the process's calls."""
    probe = Probe(s, "--all", "--only", "/none", "--verbose")
    check("probe: errors of GPUs (Xids) are recorded\n" in probe.said, probe.said)
    if "by perf events" not in probe.said:
        rights, = re.findall(r"^CapEff:\t(\w+)$", pathlib.Path(f"/proc/{probe.child.pid}/status").read_text(), re.M)
        check(not int(rights, 16) & 1 << CAP_SYS_ADMIN, "the probe still has CAP_SYS_ADMIN:", rights)
    device = s.start(WORKLOADS / "devices", "--xid", 5, preload=False)
    equal(device.wait(DEADLINE_S), 0, "the program's status")
    pid = probe.child.pid
    probe.end()
    s.flush()
    seen = [(of, json.loads(fields)) for of, fields in s.rows("SELECT pid, fields FROM hooks WHERE name = 'xid' ORDER BY call_id")]
    equal(s.rows("SELECT device, code, meaning, message, pid FROM xids"),
          [(fields["device"], 31, "page fault in GPU memory", "stub", None) for _, fields in seen], "the view")
    since = "SELECT count(*) FROM xids WHERE abs(julianday(time) - julianday('now')) * 24 < 1"  # the machine may wait for its processor
    equal(s.value(since), 5, "errors in the last hour")
    check(all(re.fullmatch(r"[0-9a-f:.]+", fields.pop("device")) for _, fields in seen), "devices", seen)
    equal(seen, 5 * [(pid, {"code": 31, "message": "stub", "task_pid": device.pid, "task_tid": device.pid, "task_name": "devices"})], "the errors")
    s.check_identity(lost=0)


THREADS, ROUNDS = 60, 3
BLOCKED = f"""
import ctypes, glob, os, threading, time
driver = ctypes.CDLL("libcuda.so.1")
assert driver.cuInit(0) == 0 and driver.cuCtxSetCurrent(None) == 0
source, sink = os.pipe()
turn = threading.Barrier({THREADS} + 1)
def read():
    for _ in range({ROUNDS}):
        turn.wait()
        assert os.read(source, 1) == b"x"
def is_blocked(task):
    with open(task + "/wchan") as place:
        return "pipe_read" in place.read()
threads = [threading.Thread(target=read) for _ in range({THREADS})]
for thread in threads:
    thread.start()
for _ in range({ROUNDS}):
    turn.wait()
    while sum(map(is_blocked, glob.glob("/proc/self/task/*"))) < {THREADS}:
        time.sleep(0.01)
    os.write(sink, {THREADS} * b"x")
for thread in threads:
    thread.join()
"""


def blocked(s):
    """If too many threads are inside a function at once, the kernel misses some of the function's returns. Checks that such calls are
    counted as lost, and that later calls have the correct depth."""
    hooks = Hooks(s, "kprobe:pipe_read|anon_pipe_read read bytes=ret:s64 if ret:s64 == 1")
    pid = hooks.run(sys.executable, "-c", BLOCKED)
    hooks.probe.end()
    s.flush()
    calls, stored, lost = s.rows("SELECT calls, stored, lost FROM totals JOIN processes USING (process_id) WHERE pid = ? AND name = 'read'", pid)[0]
    print(f"{stored} calls stored, {lost} lost", flush=True)
    equal(s.rows("SELECT DISTINCT depth FROM hooks WHERE pid = ?", pid), [(0,)], "the depths of the calls")
    equal(calls, THREADS * ROUNDS, "all calls")
    check(stored > 0 and lost > 0, "no return was missed, so nothing was tested")
    s.check_identity(lost=lost)


CASES = functions, fields, inside, requests, machine, xids, invalidates, fences, installed, lists, discovers, killed, blocked
for unknown in set(sys.argv[1:]) - {case.__name__ for case in CASES}:
    sys.exit(f"no test is called '{unknown}'")
for case in CASES:
    if not sys.argv[1:] or case.__name__ in sys.argv[1:]:
        print(case.__name__, flush=True)
        with OwnDriver() as s:
            s.start_daemon()
            case(s)
