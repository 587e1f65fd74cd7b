"""Tests `cudatrace probe` on the kernel of a Debian release, in a virtual machine. The probe uses the best method of that kernel, and
records every call. If the kernel cannot run it, the probe and the doctor report the reason.

    kernels.py RELEASE
"""
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from cudatrace_test import BUILD, CUDATRACE, DEADLINE_S, LONG, SOURCE, check, equal, needs, refused, skip  # noqa: E402: it is in tests/e2e
from debian_kernel import Unavailable, kernel_of  # noqa: E402
from machine import PYTHON, Machine, why_no_kvm, write_archive  # noqa: E402

PROBE = [CUDATRACE, "probe", "--session", "kernels", "--all", "--for", "1s", "--verbose"]
DOCTOR = [CUDATRACE, "doctor", "--session", "kernels"]
IN_MACHINE = {"CUDATRACE_BUILD": BUILD, "CUDATRACE_REQUIRE": "all", "CUDATRACE_TIER": "full", "CUDATRACE_TEST_DEADLINE": int(DEADLINE_S),
              "PYTHONDONTWRITEBYTECODE": "1"}


def records(machine, method, *tests):
    """Checks that the probe attaches by that method, and that these tests of tests/e2e/probe.py pass."""
    said = machine.run(*PROBE).errors
    check(said.startswith(f"probe: by {method}; "), said)
    check("can record driver calls of all processes by eBPF" in machine.run(*DOCTOR, status=None).output, "the doctor's line on the probe")
    for test in tests:
        print(test, flush=True)
        machine.run(PYTHON, SOURCE / "tests/e2e/probe.py", test, env=IN_MACHINE)


def refuses(machine, why):
    equal(machine.run(*PROBE, status=1).errors, f"cudatrace: probe: {why}\n", "the probe's reason")
    said = machine.run(*DOCTOR, status=None).output
    check(f"`cudatrace probe` cannot run: {why}\n" in said, said)


# Perf events take long to attach and to detach, so these tests attach to few functions.
BY_EVENTS = "exact event", "nested event", "whole_life cuMem*"
BY_LINKS = "whole_life", "nested", "hidden deleted", "open_calls", "probe_killed", "executes"


def bullseye(boot):
    with boot() as machine:
        release = machine.run("uname", "-r").output.strip()
        check(release.startswith("5.10."), release)
        refuses(machine, f"Linux {release} is too old: the probe needs Linux 5.15 or later")


def bookworm(boot):
    with boot() as machine:
        records(machine, "perf events", *BY_EVENTS)
    with boot("lockdown=integrity") as machine:
        records(machine, "perf events", "whole_life cuMem*")
    with boot("lockdown=confidentiality") as machine:
        refuses(machine, "the kernel is in lockdown (confidentiality), and lets no BPF program read its memory: boot it with lockdown=integrity")


def trixie(boot):
    with boot() as machine:
        records(machine, "links to many functions", "exact multi", "short_lives", *BY_LINKS)


# short_lives is left out, because it sometimes misses a first call there, or does not end.
def forky(boot):
    with boot() as machine:
        records(machine, "sessions", "exact session", *BY_LINKS)


RELEASES = {test.__name__: test for test in (bullseye, bookworm, trixie, forky)}

if not LONG:
    skip("only tools/check --long boots other kernels, and CUDATRACE_TIER=long")
needs("qemu-system-x86_64", "busybox")
try:
    kernel = kernel_of(sys.argv[1])
    no_kvm = why_no_kvm()
    print(f"{kernel} runs by {f'emulation, since {no_kvm}' if no_kvm else 'KVM'}", flush=True)
    with tempfile.TemporaryDirectory(prefix="cudatrace-kernels-") as folder:
        archive = pathlib.Path(folder) / "initramfs"
        write_archive(archive)
        RELEASES[sys.argv[1]](lambda *parameters: Machine(kernel, archive, *parameters))
except Unavailable as why:
    refused(str(why))
