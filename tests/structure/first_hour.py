#!/usr/bin/env python3
"""Checks that tools/dev lists tests for every folder, and that the listed tests exist."""
import fnmatch
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
build = pathlib.Path(sys.argv[1])
loader = importlib.machinery.SourceFileLoader("dev", str(SOURCE / "tools/dev"))
dev = importlib.util.module_from_spec(importlib.util.spec_from_loader("dev", loader))
sys.dont_write_bytecode = True
loader.exec_module(dev)

names = [test["name"] for test in json.loads((build / "meson-info/intro-tests.json").read_text())]
for prefix, patterns in dev.TRY:
    assert prefix == "" or list(SOURCE.glob(prefix + "*")), f"tools/dev has a row for {prefix}, which is not there"
    for pattern in patterns.split():
        assert fnmatch.filter(names, pattern), f"tools/dev tries {pattern} for {prefix}, and there is no such test"
for file, test in (("hook/base/lock.c", "hook-symbols"), ("collector/call/merge.c", "unit-merge"), ("tests/e2e/killed.py", "killed"),
                   ("schema/views.sql", "sql_docs"), ("docs/guide.md", "docs")):
    assert (SOURCE / file).exists(), f"{file} is not there: another example, please"
    tried = dev.wanted(build, [file])
    assert test in tried, f"{file} has {tried} tried, without {test}"
# The lists of tests/meson.build.
text = (SOURCE / "tests/meson.build").read_text()
for variable in "alone", "longer", "quick":
    listed = re.findall(r"'([\w-]+)'", text.partition(f"\n{variable} =")[2].partition("]\n")[0])
    assert listed and not set(listed) - set(names), f"tests/meson.build names what is no test in {variable}: {set(listed) - set(names)}"
# No test is called "kill", so the error must suggest a similar name.
try:
    list(dev.matching(build, ["kill"]))
except SystemExit as end:
    assert "killed" in str(end.code), end.code
else:
    raise AssertionError("a test that is none was found")
