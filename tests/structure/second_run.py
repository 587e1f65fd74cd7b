#!/usr/bin/env python3
"""Checks that tools/suite runs a failed test a second time, with no other test running. If the second run passes, the test counts as
passed, and the summary names it. A test that fails twice counts as failed. With --strict, there is no second run."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROJECT = """project('second', meson_version: '>= 1.0')
sh = find_program('sh')
test('good', sh, args: ['-c', 'exit 0'])
test('once', sh, args: ['-c', 'echo first output; mkdir FOLDER/flag || exit 0; exit 1'])
test('twice', sh, args: ['-c', 'exit 1'])
test('killed', sh, args: ['-c', 'mkdir FOLDER/slow || exit 0; exec sleep 1000'], timeout: 1)
test('refused', sh, args: ['-c', 'echo "skipped: no GPU here"; exit 77'])
"""
# The first promise in promises.tsv. The test writes trials of this promise to $CUDATRACE_PROMISES. If a test passes on its second run,
# testlog.forget_failures() must remove that test's failures from the file.
PROMISE = next(line.split("\t") for line in (SOURCE / "tests/faults/promises.tsv").read_text().splitlines()[1:])


def suite(folder, *arguments):
    return subprocess.run([SOURCE / "tools/suite", *arguments], cwd=folder, capture_output=True, text=True, check=False,
                          env=dict(os.environ, CUDATRACE_PROMISES=str(folder / "promises")))


def summary(folder, *tests, strict=()):
    """Runs the given tests of the project above as a suite. Returns the summary and its exit status."""
    for flag in "flag", "slow":
        if (folder / flag).exists():
            (folder / flag).rmdir()
    (folder / "outcomes").unlink(missing_ok=True)
    done = suite(folder, *strict, "run", "outcomes", "build", *tests)
    assert done.returncode == 0, done.stderr
    done = suite(folder, "sum", "outcomes")
    return done.stdout, done.returncode


with tempfile.TemporaryDirectory(prefix="cudatrace-second-") as name:
    folder = pathlib.Path(name)
    (folder / "meson.build").write_text(PROJECT.replace("FOLDER", name))
    subprocess.run(["meson", "setup", "build"], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    said, status = summary(folder, "good", "refused", strict=["--strict"])
    assert status == 0 and said.endswith("1 passed, 0 failed, 1 skipped\n") and "second" not in said, said
    assert "refused: no GPU here" in said, said

    said, status = summary(folder, "good", "once")
    assert status == 0 and said.endswith("2 passed, 0 failed, 0 skipped\n"), said
    assert "Passed only on the second run\nbuild: once\n" in said, said
    assert "first output" in (folder / "build-once.first.txt").read_text()

    said, status = summary(folder, "twice", "killed")
    assert status == 1 and said.endswith("1 passed, 1 failed, 0 skipped\n"), said
    assert "== Failed\nbuild: twice\n" in said and "second run\nbuild: killed\n" in said, said

    said, status = summary(folder, "once", strict=["--strict"])
    assert status == 1 and said.endswith("0 passed, 1 failed, 0 skipped\n") and "== Failed\nbuild: once\n" in said, said

    # If Meson cannot build, the suite must fail. A step must fail if its command failed. A missing tool must count as skipped.
    (folder / "meson.build").write_text("no project")
    said, status = summary(folder)
    assert status == 1 and said.endswith("0 passed, 1 failed, 0 skipped\n"), said
    for arguments in ("note", "outcomes", "lint", "0"), ("note", "outcomes", "fuzzer", "3"), ("miss", "outcomes", "clang", "no clang here"):
        assert suite(folder, *arguments).returncode == 0
    said, status = suite(folder, "sum", "outcomes").stdout, None
    assert said.endswith("1 passed, 2 failed, 1 skipped\n") and "clang: no clang here" in said and "fuzzer: fuzzer" in said, said

    sys.dont_write_bytecode = True
    sys.path.insert(0, str(SOURCE / "tools"))
    import testlog
    account = folder / "promises"
    account.write_text("".join(json.dumps({"name": PROMISE[0], "times": 1, "failures": failures}) + "\n" for failures in (0, 1)))
    testlog.forget_failures(account, "faults-no_such_test")
    assert len(account.read_text().splitlines()) == 2
    testlog.forget_failures(account, "faults-" + PROMISE[1])
    assert account.read_text().splitlines() == [json.dumps({"name": PROMISE[0], "times": 1, "failures": 0})], account.read_text()
