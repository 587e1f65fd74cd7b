#!/usr/bin/env python3
"""Follows the recipes of docs/hacking.md in a copy of the tree. For each recipe, adds a file, adds its name at the places that the recipe
mentions, builds, and checks that the result works.

    recipes.py BUILD NAME...     NAME: report, format, command, decoder, layer

A recipe is the paragraph that begins with its **words in bold**. The recipe must mention every file that this test changes.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(SOURCE / "tests/e2e"), str(SOURCE / "tools")]
from treefiles import tree_files  # noqa: E402

# {recipe: (its words in docs/hacking.md, {new file: content}, {file: (pattern, replacement of its first match)})}
RECIPES = {
    "report": ("add a section to the report", {"schema/reports/toy.sql": """-- Toys.
-- Calls of a name that begins with cuMem, for a test.
SELECT name, sum(calls) AS toys
  FROM totals
 WHERE name GLOB 'cuMem*'
 GROUP BY name;
"""}, {"schema/meson.build": (r"foreach name : \[", r"\g<0>'toy', ")}),
    "format": ("add a format to `export`", {"tools/cli/export/export_toy.c": """/* cudatrace export --format toy: the names of the calls. */
#include "export_format.h"

#include <stdio.h>

static bool call(struct ct_export *to, const struct ct_stream_call *call)
{
    return fprintf(to->to, "toy %s\\n", call->site.name) > 0;
}

const struct ct_export_format ct_export_toy = { .name = "toy", .about = "names", .call = call };
"""}, {"tools/cli/export/export.c": (r"#define EACH\(ROW\)", r"\g<0> ROW(toy)"), "tools/cli/export/meson.build": (r"'export\.c',", r"\g<0> 'export_toy.c',")}),
    "command": ("add a command", {"tools/cli/toy.c": """/* cudatrace toy: says that it is one. */
#include "subcommand.h"

#include <stdio.h>

static int toy(int argc, char **argv)
{
    (void)argc, (void)argv;
    return puts("a toy") < 0;
}

const struct ct_subcommand ct_subcommand_toy = { "toy", "says that it is one", toy };
"""}, {"tools/cli/cudatrace.c": (r"#define EACH\(ROW\)", r"\g<0> ROW(toy)"), "tools/meson.build": (r"'cli/control\.c',", r"\g<0> 'cli/toy.c',")}),
    "decoder": ("decode its arguments", {"hook/decode/decode_toy.c": """/* A decoder that says how many bytes a context has. */
#include "decoded.h"

void ct_decode_toy(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    decoded->flags = CT_FLAG_BYTES;
    decoded->value = (int32_t)frame->result == 0 && ct_argument(frame, 0) ? 1234 : 0;
}
"""}, {"hook/decode/decoders.def": (r"^DECODER\(", r"DECODER(toy)\n\g<0>"), "hook/meson.build": (r"'decode\.c',", r"\g<0> 'decode_toy.c',"),
       "proto/driver_api.def": (r"(ROW\(cuCtxGetCurrent,.*, )none\)", r"\1toy)")}),
    "layer": ("add a layer", {"hook/ioctl/toy.c": """/* A layer of one function, which does nothing. */
#include "names.h"
#include "trampoline.h"

static void decode_toy(const struct ct_frame *frame, struct ct_decoded *decoded)
{
    decoded->status = (int32_t)frame->result;
}

__attribute__((visibility("default"))) int toyWork(int status);
int toyWork(int status)
{
    struct ct_frame frame = { .args = { (uint64_t)status }, .row = ct_row_extra(CT_LAYER_TOY, CT_CATEGORY_other, "toyWork") };
    ct_call_begin(&frame);
    frame.result = (uint64_t)status;
    ct_call_end(&frame, decode_toy);
    return status;
}
"""}, {"proto/layer.def": (r"LAYER\(NVTX.*\n", r"\g<0>LAYER(TOY, toy)\n"), "hook/meson.build": (r"'ioctl\.c',", r"\g<0> 'toy.c',")}),
}
TOY_PROGRAM = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
int main(void)
{
    int (*toy)(int) = (int (*)(int))(uintptr_t)dlsym(RTLD_DEFAULT, "toyWork");
    return !toy || toy(0) != 0 || toy(7) != 7;
}
"""


def copy_of_tree(folder):
    """Copies the files of the working tree into the folder."""
    for name in tree_files(new=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(SOURCE / name, folder / name)


def recipe_of(words):
    """Returns the paragraph of docs/hacking.md that contains the recipe."""
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
        text, places = re.subn(pattern, row, text, count=1, flags=re.M)
        assert places, f"{path} has no place for a row: {pattern}"
        (tree / path).write_text(text)


def made(tree, build):
    for command in (["meson", "setup", build, tree, "--werror"], ["ninja", "-j1", "-C", build, "hook/libcudatrace.so", "collector/cudatraced",
                                                                "tools/cudatrace", "tests/workloads/calls", "tests/simcuda/libcuda.so.1"]):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]


def main():
    # The short tier omits the other recipes, which change headers that most files include.
    short = ["report", "format", "command"] if os.environ.get("CUDATRACE_TIER", "short") == "short" else list(RECIPES)
    names = sys.argv[1:] or short
    with tempfile.TemporaryDirectory(prefix="cudatrace-recipes-") as folder:
        # The build folder is as deep below the tree as the build folders of tools/check, so ccache already has most results.
        tree = pathlib.Path(folder, "tree")
        build = tree / "build-check/recipes"
        copy_of_tree(tree)
        os.environ["CCACHE_BASEDIR"] = str(tree)
        for name in names:
            follow(tree, name)
        made(tree, build)
        os.environ["CUDATRACE_BUILD"] = str(build)
        os.environ.pop("CUDATRACE_DAEMON_BUILD", None)
        from cudatrace_test import CUDATRACE, WORKLOADS, Session, check, equal
        with Session() as s:
            program = s.dir / "toy"
            subprocess.run(["cc", "-x", "c", "-o", program, "-", "-ldl"], input=TOY_PROGRAM, text=True, check=True)
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
                elif name == "decoder":
                    s.trace(WORKLOADS / "calls", "--calls", 20, "--mix", "getctx")
                    equal(s.rows("SELECT DISTINCT bytes FROM calls WHERE name = 'cuCtxGetCurrent'"), [(1234,)], "what is decoded")
                elif name == "layer":
                    s.trace(program)
                    equal(s.rows("SELECT name, status FROM calls WHERE layer = 'toy' ORDER BY call_id"), [("toyWork", 0), ("toyWork", 7)],
                          "calls of the layer")
    print(f"followed: {', '.join(names)}")


main()
