#!/usr/bin/env python3
"""The recipes of docs/hacking.md, followed on a copy of the tree: a file, its name where the recipe says, a build, and it works.

    recipes.py BUILD NAME...     NAME: report, format, command, layer, decoder

A recipe is the paragraph that begins with its **words in bold**; it names every file that is touched here.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/e2e"))

# {recipe: (its words, {new file: content}, {file: (a pattern, what comes behind the first place that it matches)})}
RECIPES = {
    "report": ("add a section to the report", {"schema/reports/toy.sql": """-- Toys.
-- Calls of a name that begins with cuMem, for a test.
SELECT name, sum(calls) AS toys
  FROM totals
 WHERE name GLOB 'cuMem*'
 GROUP BY name;
"""}, {"schema/meson.build": (r"foreach name : \[", "'toy', ")}),
    "format": ("add a format to `export`", {"tools/cli/export/export_toy.c": """/* cudatrace export --format toy: the names of the calls. */
#include "export_format.h"

#include <stdio.h>

static bool call(struct ct_export *to, const struct ct_stream_call *call)
{
    return fprintf(to->to, "toy %s\\n", call->site.name) > 0;
}

const struct ct_export_format ct_export_toy = { .name = "toy", .about = "names", .call = call };
"""}, {"tools/cli/export/export.c": (r"#define EACH\(ROW\)", " ROW(toy)"), "tools/cli/export/meson.build": (r"'export\.c',", " 'export_toy.c',")}),
    "command": ("add a command", {"tools/cli/toy.c": """/* cudatrace toy: says that it is one. */
#include "subcommand.h"

#include <stdio.h>

static int toy(int argc, char **argv)
{
    (void)argc, (void)argv;
    return puts("a toy") < 0;
}

const struct ct_subcommand ct_subcommand_toy = { "toy", "says that it is one", toy };
"""}, {"tools/cli/cudatrace.c": (r"#define EACH\(ROW\)", " ROW(toy)"), "tools/meson.build": (r"'cli/control\.c',", " 'cli/toy.c',")}),
}


def copy_of_tree(folder):
    """What git knows, as it stands in the working tree."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=SOURCE, capture_output=True, text=True,
                            check=False).stdout.splitlines()
    if not listed:
        shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("build*"))
        return
    for name in listed:
        if (SOURCE / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(SOURCE / name, folder / name)


def recipe_of(words):
    """The paragraph of docs/hacking.md."""
    for paragraph in (SOURCE / "docs/hacking.md").read_text().split("\n\n"):
        if f"**{words}" in paragraph:
            return paragraph
    raise AssertionError(f"docs/hacking.md has no recipe '{words}'")


def follow(tree, name):
    words, files, rows = RECIPES[name]
    recipe = recipe_of(words)
    for path in [*files, *rows]:
        folder, _, file = path.rpartition("/")
        assert path in recipe or folder + "/" in recipe or file in recipe, f"the recipe '{words}' does not name {path}: {recipe}"
    for path, content in files.items():
        assert not (tree / path).exists()
        (tree / path).write_text(content)
    for path, (pattern, row) in rows.items():
        text = (tree / path).read_text()
        place = re.search(pattern, text)
        assert place, f"{path} has no place for a row: {pattern}"
        (tree / path).write_text(text[:place.end()] + row + text[place.end():])


def made(tree, build):
    for command in (["meson", "setup", build, tree, "--werror"], ["ninja", "-C", build, "hook/libcudatrace.so", "collector/cudatraced",
                                                                "tools/cudatrace", "tests/workloads/calls", "tests/simcuda/libcuda.so.1"]):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


def main():
    names = sys.argv[1:] or list(RECIPES)
    with tempfile.TemporaryDirectory(prefix="cudatrace-recipes-") as folder:
        tree, build = pathlib.Path(folder, "tree"), pathlib.Path(folder, "build")
        copy_of_tree(tree)
        for name in names:
            follow(tree, name)
        made(tree, build)
        os.environ["CUDATRACE_BUILD"] = str(build)
        os.environ.pop("CUDATRACE_DAEMON_BUILD", None)
        from cudatrace_test import CUDATRACE, WORKLOADS, Session, check, equal
        with Session() as s:
            s.trace(WORKLOADS / "calls", "--calls", 200, "--mix", "training")
            calls = [row[0] for row in s.rows("SELECT name FROM calls ORDER BY call_id")]
            for name in names:
                if name == "report":
                    check("Toys" in s.run(CUDATRACE, "report", "--db", s.db, preload=False).stdout, "no section in the report")
                elif name == "format":
                    lines = s.run(CUDATRACE, "export", "--db", s.db, "--format", "toy", preload=False).stdout.splitlines()
                    equal(lines, [f"toy {call}" for call in calls], "the export")
                elif name == "command":
                    equal(s.run(CUDATRACE, "toy", preload=False).stdout, "a toy\n", "the command")
                    check("says that it is one" in s.run(CUDATRACE, "--help", preload=False).stdout, "the list of commands")
    print(f"followed: {', '.join(names)}")


main()
