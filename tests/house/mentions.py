#!/usr/bin/env python3
"""Files of the tree that documents and comments name are there: what was moved or renamed is followed."""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tools"))
from treefiles import tree_files  # noqa: E402

PARTS = "hook|collector|proto|probe|schema|tools|tests|docs|dist"
# Made by the build, or others' headers and sources that a fact is from.
ELSEWHERE = set("""arguments_calls.h arguments_calls_runtime.h arguments.c cuda.h cudadebugger.h cupti.h driver_types.h entries.c front.h fatbinary_section.h
g_allclasses.h html_page.h nvos.h schema.h osapi.c re.S schema_sql.h uvm_ioctl.h nvToolsExt.h nvToolsExtCuda.h nvToolsExtCudaRt.h nvtxTypes.h
question.sql query.sql export_toy.c decode_toy.c toy.c""".split())


def main():
    files = tree_files()
    names, wrong, seen = {pathlib.Path(file).name for file in files}, [], 0
    for file in files:
        path = SOURCE / file
        if file.startswith(("tests/fixtures/", "tests/fuzz/corpus/")) or path.suffix in (".png", ".svg", ".xz", ".tsv"):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for meant in re.findall(rf"`((?:{PARTS})/[\w./<>*-]+)`", line):
                seen += 1
                if not list(SOURCE.glob(re.sub(r"<\w+>|NAME", "*", meant).rstrip("/"))) and meant != "tools/cudatrace":  # the build makes that
                    wrong.append(f"{file}:{number}: {meant} is not there")
            if path.suffix not in (".c", ".h", ".S", ".def", ".py", ".sql", ".build", ".md"):
                continue
            for meant in re.findall(r'(?<![\w/.<"*-])([a-z_]\w*\.(?:c|h|def|S|sql|pml))\b(?!")', line):
                seen += 1
                if "NAME" not in meant and meant not in names | ELSEWHERE:
                    wrong.append(f"{file}:{number}: no file is called {meant}")
    for what in wrong:
        print(what, file=sys.stderr)
    print(f"{seen} mentions of files, {len(wrong)} of what is not there")
    return 1 if wrong or not seen else 0


sys.exit(main())
