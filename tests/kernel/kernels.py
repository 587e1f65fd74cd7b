"""Tests `cudatrace probe` on the kernel of a Debian release, in a virtual machine. The probe uses the best method that the kernel permits,
and records every call. If the kernel cannot run the probe, the probe and the doctor report the reason. On some releases, the machine also
loads stubs of the NVIDIA driver (stub/).

    kernels.py RELEASE
"""
import contextlib
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from cudatrace_test import BUILD, CUDATRACE, DEADLINE_S, LONG, SOURCE, WORKLOADS, check, equal, needs, refused, skip  # noqa: E402: it is in tests/e2e
from debian_kernel import Unavailable, build_modules, kernel_of, kernel_with  # noqa: E402
from machine import PYTHON, Machine, why_no_kvm, write_archive  # noqa: E402

PROBE = [CUDATRACE, "probe", "--session", "kernels", "--all", "--for", "1s", "--verbose"]
DOCTOR = [CUDATRACE, "doctor", "--session", "kernels"]
IN_MACHINE = {"CUDATRACE_BUILD": BUILD, "CUDATRACE_REQUIRE": "all", "CUDATRACE_TIER": "full", "CUDATRACE_TEST_DEADLINE": int(DEADLINE_S),
              "PYTHONDONTWRITEBYTECODE": "1"}


def passes(machine, script, *tests):
    """Checks that the given tests of the script pass in the machine, or all of its tests if none is given."""
    for test in tests or [""]:
        print(script, test, flush=True)
        machine.run(PYTHON, SOURCE / "tests" / script, *filter(None, [test]), env=IN_MACHINE)


def records(machine, method, *tests):
    """Checks that the probe attaches by the given method, and that the given tests of tests/e2e/probe.py pass."""
    said = machine.run(*PROBE).errors
    check(said.startswith(f"probe: by {method}; "), said)
    check("can record driver calls of all processes by eBPF" in machine.run(*DOCTOR, status=None).output, "the doctor's line on the probe")
    passes(machine, "e2e/probe.py", *tests)


def refuses(machine, why):
    equal(machine.run(*PROBE, status=1).errors, f"cudatrace: probe: {why}\n", "the probe's reason")
    said = machine.run(*DOCTOR, status=None).output
    check(f"`cudatrace probe` cannot run: {why}\n" in said, said)


# ---- the stubs of the driver ----

# For each variant of the stubs: the options for make, and the name of the driver function that receives ioctls.
STUBS = {"stub": ([], "nvidia_unlocked_ioctl"), "stub-frontend": (["FRONTEND=y"], "nvidia_frontend_unlocked_ioctl")}
# How often the `devices` workload performs each act. All numbers differ, so that a count cannot match the wrong function by accident.
ACTS = {"control": 7, "alloc": 11, "free": 3, "unknown": 19, "map": 2, "xid": 5, "fence": 4, "migrate": 13, "gpu-fault": 6, "touch": 17}
# For some acts, the tracepoint event that the act causes, and a part of the event's text.
EVENTS = {"xid": ("nvidia:nvidia_dev_xid", ": 31, stub"), "fence": ("dma_fence:dma_fence_emit", "driver=nvidia"),
          "fence signaled": ("dma_fence:dma_fence_signaled", "driver=nvidia")}
# Functions whose symbols get a suffix from the compiler.
RENAMED, SUFFIX = {"nv_post_event"}, r"\.(isra|constprop)\.\d+"
# The C library also changes mappings, so the number of calls to this function is not known in advance.
INVALIDATE = "uvm_ats_invalidate_notifier_entry"
FAULT = "replayable_faults_isr_bottom_half_entry", "uvm_parent_gpu_service_replayable_faults", "service_fault_batch"


def stub_calls(entry):
    """Returns the counts that one run of the workload must produce, as {module: {function: calls}}. The workload opens each file once."""
    requests = sum(ACTS[name] for name in ("control", "alloc", "free", "unknown", "xid", "fence"))
    uvm_requests = ACTS["migrate"] + ACTS["gpu-fault"]
    return {"nvidia": {"nvidia_open": 2, "nvidia_close": 2, "nvidia_mmap": ACTS["map"], entry: requests, "rm_ioctl": requests,
                       "nv_post_event": ACTS["fence"]},
            "nvidia_uvm": {"uvm_open_entry": 1, "uvm_release_entry": 1, "uvm_mmap_entry": ACTS["touch"], "uvm_unlocked_ioctl_entry": uvm_requests,
                           "uvm_ioctl": uvm_requests, "uvm_api_migrate": ACTS["migrate"], "uvm_migrate": ACTS["migrate"],
                           "uvm_vm_fault_entry": ACTS["touch"], "uvm_va_space_cpu_fault_managed": ACTS["touch"],
                           **{function: ACTS["gpu-fault"] for function in FAULT}}}


def counted(machine):
    """Returns the stubs' own counts, in the same form as stub_calls()."""
    lines = machine.run("grep", "-r", "", "/sys/module/nvidia/parameters", "/sys/module/nvidia_uvm/parameters").output.splitlines()
    counts = {}
    for path, _, calls in (line.partition(":") for line in lines):
        module, function = path.split("/")[3::2]
        counts.setdefault(module, {})[function] = int(calls)
    return counts


@contextlib.contextmanager
def driver(machine, stub):
    """Loads the modules, and makes the device files as nvidia-modprobe does."""
    for module in "nvidia", "nvidia-uvm":
        machine.run("insmod", stubs[stub] / f"{module}.ko")
    majors = {words[1]: words[0] for words in map(str.split, machine.run("cat", "/proc/devices").output.splitlines()) if len(words) == 2}
    for name, major, minor in ("nvidiactl", "nvidia", 255), ("nvidia0", "nvidia", 0), ("nvidia-uvm", "nvidia-uvm", 0):
        machine.run("mknod", "-m", "666", f"/dev/{name}", "c", majors[major], minor)
    yield
    machine.run("sh", "-c", "rm /dev/nvidia*")
    for module in "nvidia_uvm", "nvidia":
        machine.run("rmmod", module)


@contextlib.contextmanager
def events(machine):
    """Enables EVENTS. At the end, checks how often each of these events occurred."""
    write = 'echo "$2" >"/sys/kernel/tracing/$1"'
    for name, _ in EVENTS.values():
        machine.run("sh", "-c", write, "sh", f"events/{name.replace(':', '/')}/enable", 1)
    yield
    lines = machine.run("cat", "/sys/kernel/tracing/trace").output.splitlines()
    for act, (name, text) in EVENTS.items():
        equal(sum(f" {name.partition(':')[2]}: " in line and text in line for line in lines), ACTS[act.split()[0]], f"the events {name}")
        machine.run("sh", "-c", write, "sh", f"events/{name.replace(':', '/')}/enable", 0)
    machine.run("sh", "-c", write, "sh", "trace", "")


def devices(machine):
    """Checks that the stubs count the workload's calls, and that the driver's events occur. Then runs the tests that attach hooks to the
    stubs' functions."""
    machine.run("mount", "-t", "tracefs", "none", "/sys/kernel/tracing")
    machine.run("mount", "-t", "debugfs", "none", "/sys/kernel/debug")
    hook_tests = []
    for stub, (_, entry) in STUBS.items():
        print(stub, flush=True)
        with driver(machine, stub):
            with events(machine):
                machine.run(WORKLOADS / "devices", *(word for name, times in ACTS.items() for word in (f"--{name}", times)))
            counts = counted(machine)
            check(counts["nvidia_uvm"].pop(INVALIDATE) > 0, "the kernel has not announced a change of mappings")
            equal(counts, stub_calls(entry), f"the counts of {stub}")
            symbols = machine.run("grep", "-F", "[nvidia", "/proc/kallsyms").output
            for module, functions in stub_calls(entry).items():
                for function in functions:
                    pattern = fr" {function}{SUFFIX if function in RENAMED else ''}\t\[{module}\]\n"
                    check(re.search(pattern, symbols), f"{module} has no symbol {function}")
            form = machine.run("cat", "/sys/kernel/tracing/events/nvidia/nvidia_dev_xid/format").output
            for field in "__data_loc char[] dev", "u32 error_code", "__data_loc char[] msg":
                check(f"field:{field};" in form, field, "is not in", form)
            passes(machine, "kernel/driver_hooks.py", *hook_tests)
            hook_tests = ["functions"]  # the others are the same for each variant


# ---- fences ----

# vgem is a driver that needs no hardware, and whose fences are created and signaled by a program. vgem depends on the other modules in the
# list.
FENCE_MODULES = "drm", "drm_kms_helper", "drm_shmem_helper", "vgem"


def fences(boot):
    """Boots the kernel that has all drivers, and tests vgem's fences."""
    with boot(kernel=kernel_with_vgem) as machine:
        for module in vgem:
            machine.run("insmod", module)
        passes(machine, "kernel/vgem_fences.py")


# ---- releases ----

# Perf events take long to attach and to detach, so these tests attach to few functions.
BY_EVENTS = "exact event", "nested event", "whole_life cuMem*", "kernel_events"
FEW_PROBES = "hooks", "hooks_on_all", "plain_probe", "in_doctor", "writer_killed", "outlived"  # these probe few functions of the driver
REQUESTS = "requests", "like_hook", "hanging"
BY_LINKS = "whole_life", "nested", "kernel_events", "hidden deleted", "open_calls", "probe_killed", "executes"


def bullseye(boot):
    with boot() as machine:
        release = machine.run("uname", "-r").output.strip()
        check(release.startswith("5.10."), release)
        refuses(machine, f"Linux {release} is too old: the probe needs Linux 5.15 or later")


def bookworm(boot):
    with boot() as machine:
        records(machine, "perf events", *BY_EVENTS)
        passes(machine, "e2e/probe_hooks.py")
        passes(machine, "e2e/probe_ioctls.py", *REQUESTS)
        passes(machine, "e2e/probe_companions.py", *FEW_PROBES)
        devices(machine)
    fences(boot)
    with boot("lockdown=integrity") as machine:
        records(machine, "perf events", "whole_life cuMem*")
    with boot("lockdown=confidentiality") as machine:
        refuses(machine, "the kernel is in lockdown (confidentiality), and lets no BPF program read its memory: boot it with lockdown=integrity")


def trixie(boot):
    with boot() as machine:
        records(machine, "links to many functions", "exact multi", "short_lives", *BY_LINKS)
        passes(machine, "e2e/probe_hooks.py")
        passes(machine, "e2e/probe_ioctls.py", *REQUESTS)
        passes(machine, "e2e/probe_companions.py")
        devices(machine)
    fences(boot)


# The short_lives test is left out, because on this kernel it sometimes misses a first call, or does not end.
def forky(boot):
    with boot() as machine:
        records(machine, "sessions", "exact session", *BY_LINKS)


RELEASES = {test.__name__: test for test in (bullseye, bookworm, trixie, forky)}
WITH_STUBS = "bookworm", "trixie"

if not LONG:
    skip("only tools/check --long boots other kernels, and CUDATRACE_TIER=long")
needs("qemu-system-x86_64", "busybox")
release = sys.argv[1]
try:
    stubs, vgem = {}, []
    if release in WITH_STUBS:
        needs("mount namespaces")
        stubs = {name: build_modules(release, HERE / "stub", name, *options) for name, (options, _) in STUBS.items()}
        kernel_with_vgem, vgem = kernel_with(release, *FENCE_MODULES)
    kernel = kernel_of(release)
    no_kvm = why_no_kvm()
    print(f"{kernel} runs by {f'emulation, since {no_kvm}' if no_kvm else 'KVM'}", flush=True)
    with tempfile.TemporaryDirectory(prefix="cudatrace-kernels-") as folder:
        archive = pathlib.Path(folder) / "initramfs"
        scripts = HERE / "driver_hooks.py", HERE / "vgem_fences.py", SOURCE / "docs/sql.md", *(SOURCE / "dist/hooks").glob("*.hooks")
        write_archive(archive, [*scripts, *vgem, *(module for stub in stubs.values() for module in stub.glob("*.ko"))])
        RELEASES[release](lambda *parameters, kernel=kernel: Machine(kernel, archive, *parameters))
except Unavailable as why:
    refused(str(why))
