#!/usr/bin/env python3
"""Checks that the list of the tree's files is the same with git, without git, and in an unpacked archive. In each case, tools/lint must
check the same files. The script tools/dev needs git, and must report an error if git is missing."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
IGNORED = ("build/made.c", "build-check/gcc/made.c", "tests/trace.db", "trace.html", "tools/__pycache__/made.pyc", ".cache/made")
KNOWN = ("a file.c", "docs/build/page.html", "docs/trace.html", "tools/built.py")


def commands_without_git(folder):
    """Returns an environment whose PATH contains only the commands that tools/lint requires."""
    folder.mkdir()
    for command in "bash", "dirname", "env", "grep", "nproc", "readlink", "sed", "tail", "tr", "xargs":
        (folder / command).symlink_to(shutil.which(command))
    (folder / "python3").symlink_to(sys.executable)
    return dict(os.environ, PATH=str(folder))


def run(tree, env, *command):
    return subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False)


def says_why(tree, env, why):
    done = run(tree, env, "tools/dev", "status")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1) and why in done.stderr, (done.stdout, done.stderr)


def looked_at(tree, env, *wanted):
    listed = run(tree, env, "tools/treefiles.py")
    assert (listed.stdout.splitlines(), listed.stderr) == (sorted(wanted), ""), (listed.stdout, listed.stderr)
    lint = run(tree, env, "tools/lint", "--go-on")
    assert lint.returncode == 1 and "docs/trace.html:1:" in lint.stderr, (lint.stdout, lint.stderr)


with tempfile.TemporaryDirectory(prefix="cudatrace-test-") as name:
    tree = pathlib.Path(name, "tree")
    for file in (*IGNORED, *KNOWN):
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        (tree / file).touch()
    (tree / "docs/trace.html").write_text("blanks at the end of the line \n")
    scripts = "tools/dev", "tools/lint", "tools/treefiles.py"
    for file in (*scripts, ".gitignore"):
        shutil.copy(SOURCE / file, tree / file)
    files = (*KNOWN, *scripts, ".gitignore")
    env = commands_without_git(pathlib.Path(name, "commands"))
    looked_at(tree, env, *files)
    says_why(tree, env, "git not found")
    if shutil.which("git"):
        says_why(tree, dict(os.environ, GIT_CEILING_DIRECTORIES=name), "git rev-parse: ")
        for command in ("init", "-q"), ("add", "."):
            assert run(tree, os.environ, "git", *command).returncode == 0, command
        (tree / "unknown").touch()
        looked_at(tree, os.environ, *files)
        (tree / "unknown").unlink()
    (tree / ".git").mkdir(exist_ok=True)
    looked_at(tree, env, *files)
