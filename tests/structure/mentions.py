#!/usr/bin/env python3
"""Checks that files and symbols named in documents and comments exist, so that documents and comments are updated when something is moved
or renamed.

A symbol is ct_… or CT_…. Within a symbol, a word in the opposite case is a placeholder, as in ct_decode_NAME and CT_LOG_kind. `SYMBOL` in
`FILE`, `SYMBOL` (`FILE`…) and function() of FILE are correct if the file contains the symbol, with or without a prefix.
"""
import collections
import functools
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tools"))
from treefiles import tree_files  # noqa: E402

PARTS = "hook|collector|proto|probe|schema|tools|tests|docs|dist"
# Generated files, headers and sources of other projects, and examples.
ELSEWHERE = set("""arguments_calls.h arguments_calls_runtime.h arguments.c cuda.h cudadebugger.h cupti.h driver_types.h entries.c front.h fatbinary_section.h
g_allclasses.h html_page.h nvos.h schema.h osapi.c re.S schema_sql.h uvm_ioctl.h nvToolsExt.h nvToolsExtCuda.h nvToolsExtCudaRt.h nvtxTypes.h
question.sql query.sql export_toy.c decode_toy.c toy.c train.py""".split())
BUILT = {"tools/cudatrace"}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
SYMBOL = re.compile(r"\b(?:ct|CT)_\w+")
FILE = r"[\w/.-]+\.(?:c|h|def|S|sql|pml|py|js|build)\b"
IN_FILE = re.compile(rf"`(?:struct |enum )?(?P<symbols>[A-Za-z_]\w+)(?:\(\))?` +(?:in +|of +|\()`(?P<file>{FILE})|"
                     rf"(?P<functions>\b[A-Za-z_]\w+\(\)(?:(?:,| and) +\w+\(\))*) +(?:in +|of +|\()(?P<of>{FILE})")


class Tree:
    def __init__(self):
        self.files = [file for file in tree_files() if not file.startswith(("tests/fixtures/", "tests/fuzz/corpus/")) and
                      pathlib.Path(file).suffix not in (".png", ".svg", ".xz", ".tsv")]
        self.text = {file: (SOURCE / file).read_text(errors="replace") for file in self.files}
        self.named = collections.defaultdict(list)
        for file in tree_files():
            self.named[pathlib.Path(file).name].append(file)
        self.symbols = {symbol for file in self.files if file.endswith((".c", ".h", ".S", ".def", ".sql", ".map"))
                        for symbol in SYMBOL.findall(COMMENT.sub(" ", self.text[file]))}

    @functools.cache
    def has_path(self, path):
        return path in BUILT or bool(list(SOURCE.glob(re.sub(r"<\w+>|NAME", "*", path).rstrip("/."))))

    @functools.cache
    def has_symbol(self, symbol):
        return symbol in self.symbols or any(map(re.compile(meaning(symbol)).fullmatch, self.symbols))

    def has_in_file(self, symbol, file):
        """Returns True if a file with the given path or name contains the symbol. Also returns True if there is no such file, because
        files_named() reports missing files."""
        files = [file] if file in self.text else self.named[file]
        return not files or any(re.search(rf"\b{meaning(symbol)}\b", self.text[file]) for file in files)


def meaning(symbol):
    """Returns a regular expression for the symbols that a mention may refer to."""
    prefix, *words = symbol.split("_")
    if prefix not in ("ct", "CT"):
        return re.escape(symbol)
    is_other = str.islower if prefix == "CT" else str.isupper
    return "_".join([prefix, *(r"\w+" if not word or is_other(word) else word for word in words)])


def files_named(tree, file):
    """Yields (offset, error or None) for each mention of a file."""
    text = tree.text[file]
    is_document = file.endswith(".md")
    # Documents also mention files in commands, without backquotes.
    for path in re.finditer(rf"(?<![\w./-])((?:{PARTS})/[\w./<>*-]+)" if is_document else rf"`((?:{PARTS})/[\w./<>*-]+)`", text):
        yield path.start(), None if tree.has_path(path[1]) else f"{path[1]} is not there"
    if file.endswith((".c", ".h", ".S", ".def", ".py", ".sql", ".build", ".md")):
        for name in re.finditer(r'(?<![\w/.<"*-])([a-z_]\w*\.(?:c|h|def|S|sql|pml|py|js|tsv))\b(?!")', text):
            is_there = "NAME" in name[1] or name[1] in tree.named or name[1] in ELSEWHERE
            yield name.start(), None if is_there else f"no file is called {name[1]}"


def symbols_named(tree, file):
    """Yields (offset, error or None) for each mention of a symbol."""
    text = tree.text[file]
    prose = re.compile(r"`[^`]+`") if file.endswith(".md") else COMMENT if file.endswith((".c", ".h", ".S", ".def", ".pml")) else None
    for part in prose.finditer(text) if prose else ():
        for symbol in SYMBOL.finditer(part[0]):
            yield part.start() + symbol.start(), None if tree.has_symbol(symbol[0]) else f"no symbol is called {symbol[0]}"
    # Join lines, because a mention may continue on the next line.
    flat = re.sub(r"\n[ *#]*", lambda end: " " * len(end[0]), text)
    for mention in IN_FILE.finditer(flat):
        of = mention["file"] or mention["of"]
        for symbol in re.findall(r"\w+", mention["symbols"] or re.sub(r"\(\)(,| and)?", "", mention["functions"])):
            yield mention.start(), None if tree.has_in_file(symbol, of) else f"{of} has no {symbol}"


def main():
    tree, wrong, seen = Tree(), [], 0
    for file in tree.files:
        for offset, what in (*files_named(tree, file), *symbols_named(tree, file)):
            seen += 1
            if what:
                line = tree.text[file].count("\n", 0, offset) + 1
                wrong.append(f"{file}:{line}: {what}")
    for what in wrong:
        print(what, file=sys.stderr)
    print(f"{seen} mentions of files and symbols, {len(wrong)} of what is not there")
    return 1 if wrong or not seen else 0


sys.exit(main())
