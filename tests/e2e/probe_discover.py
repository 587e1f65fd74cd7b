"""Tests that `cudatrace probe --discover` does not start the command if it cannot count calls, because an option is wrong or the kernel
lacks a feature. The counts themselves are tested by tests/kernel/driver_hooks.py, in a virtual machine."""
import os
import subprocess

from cudatrace_test import CUDATRACE, Session, can, check, equal
from probing import PROBE  # noqa: F401: skips without a probe

HAS_KPROBES = os.path.exists("/sys/bus/event_source/devices/kprobe")
LACK = "--discover needs kprobes, and this kernel has none (CONFIG_KPROBES, CONFIG_KPROBE_EVENTS)"


def discover(s, *arguments, **options):
    """Runs `cudatrace probe` with a command that would create a file, and checks that it does not. Returns (exit status, standard
    error)."""
    made = s.dir / "made"
    command = ["--", "touch", made] if "--discover" in arguments else []
    done = subprocess.run([CUDATRACE, "probe", *arguments, *command], capture_output=True, text=True, **options)
    check(not made.exists(), "the command was started:", done)
    equal(done.stdout, "", "standard output")
    return done.returncode, done.stderr


with Session() as s:
    why = "none of the modules no_such,nor_this is loaded: see /proc/modules" if HAS_KPROBES else LACK
    equal(discover(s, "--discover", "--modules", "no_such,nor_this"), (1, f"cudatrace: probe: {why}\n"), "a discovery that cannot count")
    if can("several users", "a discovery without root"):
        s.dir.chmod(0o777)
        status, errors = discover(s, "--discover", "--modules", "no_such", user=65534, group=65534, extra_groups=[], cwd="/")
        equal((status, len(errors.splitlines())), (1, 1), f"the status without root: {errors}")
    for arguments, message in (
            (["--discover", "--all"], "--discover follows only COMMAND: omit --all, --children, --hooked, --pid, --hooks, --hook and --list"),
            (["--discover", "--list", "x"], "--discover follows only COMMAND: omit --all, --children, --hooked, --pid, --hooks, --hook and --list"),
            (["--save", "x.hooks"], "--save x.hooks needs --discover"),
            (["--modules", "nvidia"], "--modules nvidia needs --discover"),
            (["--discover", "--order", "name"], "invalid value 'name' for --order: expected first or calls")):
        status, errors = discover(s, *arguments)
        equal(status, 2, f"the status of {arguments}: {errors}")
        equal(errors, f"cudatrace: probe: {message}\n", f"the message for {arguments}")
    done = subprocess.run([CUDATRACE, "probe", "--discover"], capture_output=True, text=True)
    equal((done.returncode, done.stderr), (2, "cudatrace: probe: --discover needs a command: cudatrace probe --discover -- COMMAND\n"), "no command")
