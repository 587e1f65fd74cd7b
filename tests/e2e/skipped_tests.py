"""Tests needs.py and the list of skipped tests. If the machine refuses a need of a test, the test does not fail, but is skipped with a
message, and listed. If the machine meets all needs, tests may be skipped only for the reasons in SKIPS."""
import errno
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import needs
from cudatrace_test import SOURCE, check, equal, refuse_system_call

sys.path.insert(0, str(SOURCE / "tools"))
import testlog  # noqa: E402: it is in tools/

# Tests that may be skipped because of the type or the equipment of the machine, with the reasons that they give. All other tests may be
# skipped only if the machine refuses a need.
SKIPS = {
    "e2e/attach_test.py": ["a driver without a table of entry points is not attached to: the suite slots tests those with one"],
    "e2e/probing.py": ["this build has no probe: libbpf-dev, clang, bpftool"],
    "e2e/release.py": ["only a portable build makes a tarball: tools/check --full has one"],
    "faults/interrupted.py": ["steps through x86-64 instructions", "this C library has no _Fork()"],
    "kernel/kernels.py": ["only tools/check --long boots other kernels, and CUDATRACE_TIER=long"],
    "traps/contexts.py": ["steps through x86-64 instructions"],
    "traps/old_glibc.py": ["CUDATRACE_OLD_ROOT names no container root with an old glibc; --make-root makes one"],
    "traps/preload_order.py": ["{FILES[name]} is not installed"],
    "traps/sandboxed.py": ["the kernel has no Landlock"],
    "traps/signals.py": ["steps through x86-64 instructions", "there is no room above the stack"],
}
RIGHTS = {"chown": 0, "dac_override": 1, "kill": 5, "setgid": 6, "setuid": 7, "sys_chroot": 18, "sys_ptrace": 19, "sys_admin": 21,
          "sys_nice": 23, "mknod": 27}


def facts():
    return dict(line.split(":\t", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())


def restraints():
    """Returns the restrictions of this process that /proc shows. Does not try any need."""
    told, found = facts(), []
    if missing := [name for name, bit in RIGHTS.items() if not int(told["CapEff"], 16) >> bit & 1]:
        found.append("no right to " + ", ".join(missing))
    if int(told.get("Seccomp", 0)) or int(told.get("NoNewPrivs", 0)):
        found.append("a filter of system calls, or no_new_privs")
    places = {line.split()[4]: line.split()[5] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()}
    if "/" not in places:
        found.append("a chroot")
    if "/dev/pts" not in places:
        found.append("no /dev/pts")
    if any("ro" in places.get(place, "").split(",") for place in ("/proc", "/proc/sys")):
        found.append("/proc/sys cannot be written")
    if any("nosuid" in places.get(place, "").split(",") for place in ("/", "/tmp")):
        found.append("nosuid")
    for kind in "mnt", "pid", "user", "time":
        limit = pathlib.Path(f"/proc/sys/user/max_{kind}_namespaces")
        if not os.path.exists(f"/proc/self/ns/{kind}") or limit.exists() and int(limit.read_text()) == 0:
            found.append(f"no {kind} namespaces")
    return found


def in_script(script, refuse=None, **env):
    """Runs a test script. If `refuse` is given, it names a system call that fails in the script."""
    return subprocess.run([sys.executable, "-c", f"from needs import *\n{script}"], capture_output=True, text=True, cwd=pathlib.Path(__file__).parent,
                          env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **env},
                          preexec_fn=refuse and (lambda: refuse_system_call(refuse, errno.EPERM)))


def tool(name, *arguments, status=0):
    done = subprocess.run([sys.executable, SOURCE / "tools" / name, *arguments], capture_output=True, text=True)
    equal(done.returncode, status, f"{name}: {done.stdout[-500:]}{done.stderr}")
    return done


# If /proc shows no restriction of this process, the machine must meet all needs except those that depend on how the kernel was built. If
# it shows one, this part of the test is skipped.
OF_THE_KERNEL = {"32-bit programs"}
found = restraints()
if found:
    print(f"not tried: that all needs are had: {'; '.join(found)}")
else:
    equal({name: needs.why_not(name) for name in needs.NEEDS.keys() - OF_THE_KERNEL if needs.why_not(name)}, {}, "what is refused where nothing is in the way")

# If the machine refuses a need, the test must exit with status 77, or skip a part, and print a message. If CUDATRACE_REQUIRE names the
# need, the test must fail instead.
for flags, result, said in (({}, 77, "skipped: no mount namespaces here: unshare: unshare failed: Operation not permitted"),
                            ({"CUDATRACE_REQUIRE": "all"}, 1, ""), ({"CUDATRACE_REQUIRE": "ptrace,mount namespaces"}, 1, ""),
                            ({"CUDATRACE_REQUIRE": "ptrace"}, 77, "skipped: no mount namespaces")):
    done = in_script('needs("mount namespaces")\nprint("went on")', refuse="unshare", **{"CUDATRACE_REQUIRE": "", **flags})
    equal(done.returncode, result, done.stderr)
    check(done.stdout.startswith(said) and "went on" not in done.stdout, done.stdout)
equal([in_script('refused("no such kernel")', CUDATRACE_REQUIRE=required).returncode for required in ("", "ptrace", "all")], [77, 77, 1], "a refusal")
part = 'print(can("pid namespaces", "a child", promises=["pids"]), have_shm(1 << 40, "too much"))'
done = in_script(part, refuse="unshare", CUDATRACE_REQUIRE="")
why = "no pid namespaces here: unshare: unshare failed: Operation not permitted"
equal(done.stdout.splitlines(), [f"not tried: a child: {why}", f"not tried: promise pids: {why}",
                                 f"not tried: too much: /dev/shm has no {1 << 40} MiB free", "False False"], done.stderr)
check("AssertionError" in in_script(part, refuse="unshare", CUDATRACE_REQUIRE="all").stderr, "it went on")
equal(in_script('needs("no-such-command")', CUDATRACE_REQUIRE="").stdout, "skipped: no no-such-command here: there is no such command\n")

# Test the list of skipped tests, and the table of promises. A promise counts as not tried if its test, or the part of the test that tries
# the promise, was skipped. If the test failed, or ran without reporting the promise, the promise counts as not tested.
with tempfile.TemporaryDirectory() as folder:
    log, account = pathlib.Path(folder) / "testlog.json", pathlib.Path(folder) / "promises.jsonl"

    def write(**replaced):
        rows = [line.split("\t") for line in (SOURCE / "tests/faults/promises.tsv").read_text().splitlines()[1:]]
        account.write_text("".join(json.dumps({"name": row[0], "times": 1, "failures": 0}) + "\n" for row in rows if row[0] not in replaced))
        tests = {row[0]: ("faults-" + row[1], *replaced[row[0]]) for row in rows if row[0] in replaced}
        log.write_text("".join(json.dumps({"name": f"cudatrace:x / {name}", "result": result, "stdout": said}) + "\n"
                               for name, result, said in tests.values()) * 2)

    skipped, partly = ("SKIP", f"skipped: {why}\n"), ("OK", f"first\nnot tried: mounts: {why}\nnot tried: promise power-whole: {why}\n")
    write(**{"full-tmpfs": skipped, "power-whole": partly})
    equal(testlog.skipped(testlog.read([log])), [("faults-power_cut", "mounts", why), ("faults-power_cut", "promise power-whole", why),
                                                  ("faults-full_disk", None, why)], "what was left out")
    check(f"not tried here: full-tmpfs: {why}" in tool("promises", account, log).stdout, "the promise")
    for result in ("OK", ""), ("OK", f"not tried: mounts: {why}\n"), ("FAIL", ""):
        write(**{"full-tmpfs": result})
        check("not tested: full-tmpfs" in tool("promises", account, log, status=1).stderr, result)

# No test may skip anything in another way, for example silently, or after a check of its own.
scripts = sorted(path for path in (SOURCE / "tests").glob("*/*.py") if path.parent.name in ("e2e", "faults", "hook", "kernel", "model", "traps"))
for path in scripts:
    if path.name in ("needs.py", "skipped_tests.py"):
        continue
    name, text = str(path.relative_to(SOURCE / "tests")), path.read_text()
    equal(re.findall(r'\bskip\(f?"(.*?)"\)', text), SKIPS.get(name, []), f"{name}: what it skips for, which needs() may not know,")
    equal(re.findall(r"^\s*if .*(?:geteuid\(\) *[!=]= *0|shutil\.which\(|can_unshare).*:$", text, re.M), [], f"{name}: what can() asks for")
