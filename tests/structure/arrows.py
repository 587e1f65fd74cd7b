#!/usr/bin/env python3
"""Computes the dependencies ("arrows") within the tree, from the headers that files include and the symbols that objects use.

    arrows.py BUILD              fails on an arrow that leads up, on a cycle of files, on two files with the same name,
                                 and on a picture that shows other arrows (the test `arrows`)
    arrows.py BUILD --list       prints the arrows between folders
    arrows.py BUILD --draw       draws docs/pictures/structure.svg again (needs Debian's graphviz)

A module is a .c file with its header. The folders are ordered like the floors of a building (FLOORS). An arrow must lead to a lower floor,
or stay within its folder.
"""
import collections
import html
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PICTURE = SOURCE / "docs/pictures/structure.svg"

# The parts and their folders, from the bottom to the top. A part may use the parts that its row lists, and a folder may use folders that
# precede it in the same part.
FLOORS = {
    "proto": ([], ["proto", "proto/base"]),
    "schema": (["proto"], ["schema"]),
    "hook": (["proto"], ["hook/arch", "hook/base", "hook/segment", "hook/lane", "hook/function", "hook/state", "hook/gpu", "hook/cupti", "hook/decode", "hook/process", "hook/call",
                         "hook/nvtx", "hook/ioctl", "hook/arch/x86_64", "hook/arch/aarch64", "hook"]),
    "collector": (["proto", "schema"], ["collector/base", "collector/call", "collector/process", "collector/store", "collector/ledger",
                                        "collector/source", "collector/source/shm", "collector/source/replay",
                                        "collector/source/gpu", "collector/loop"]),
    "probe": (["proto", "hook", "tools"], ["probe/bpf", "probe/writer", "probe/programs", "probe/hooks", "probe"]),
    "tools": (["proto", "schema"], ["tools/base", "tools/inline", "tools/trace", "tools/session", "tools/cli/report", "tools/cli/export", "tools/cli/html",
                                    "tools/cli/tail", "tools/cli/attach", "tools/cli/top", "tools/cli/run", "tools/cli/doctor", "tools/cli"]),
}
# Functions of the C library that the hook also defines. Using such a function does not count as a dependency on the hook's file.
INTERPOSED = {"_Exit", "_Fork", "_exit", "dlsym", "ioctl", "prctl", "syscall", "vfork"}
# Pairs of modules that implement one object in two files. Each of the two files states this in its first comment.
ONE_OBJECT = []


def sources():
    """Yields every C file, header, assembly file and table of the parts."""
    for part in FLOORS:
        for path in sorted((SOURCE / part).rglob("*")):
            if path.suffix in (".c", ".h", ".S", ".def"):
                yield path.relative_to(SOURCE)


def module(path):
    return path.with_suffix("")


def include_arrows(files):
    """Yields (module, module). If an included name has no folder, it refers to a file in the includer's folder, or else to the only file
    with that name."""
    by_name = collections.defaultdict(list)
    for path in files:
        by_name[path.name].append(path)
    for path in files:
        for name in re.findall(r'^\s*#\s*include "([^"]+)"', (SOURCE / path).read_text(), re.M):
            meant = [p for p in by_name[name] if p.parent == path.parent] or by_name[name]
            if meant and module(meant[0]) != module(path):
                yield module(path), module(meant[0])


def objects(build):
    """Yields (source, object) for each source file of the parts that the build compiles. Skips variants that are built only for tests,
    because they have the same symbols."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(os.path.normpath(os.path.join(entry["directory"], entry["file"])))
        made = build / entry["output"]
        if path.is_relative_to(SOURCE) and path.relative_to(SOURCE).parts[0] in FLOORS and made.exists():
            if not entry["output"].startswith("tests/"):
                yield path.relative_to(SOURCE), made


def symbol_arrows(build):
    """Yields (using module, defining module) for each symbol used within a part. Different parts share memory and files, but no
    symbols."""
    defined, wanted = {}, []
    for path, made in objects(build):
        listed = subprocess.run(["nm", "--format=posix", made], capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            name, kind = line.split()[:2]
            if kind == "U":
                wanted.append((path, name))
            elif kind in "TDBRVWC":
                defined[path.parts[0], name] = path
    for path, name in wanted:
        meant = defined.get((path.parts[0], name)) if name not in INTERPOSED else None
        if meant and module(meant) != module(path):
            yield module(path), module(meant)


def circles(arrows):
    """Returns the sets of modules that are mutually reachable (strongly connected components, by Tarjan's algorithm)."""
    following = collections.defaultdict(set)
    for a, b in arrows:
        following[a].add(b)
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(following[node]):
            if other not in number:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], number[other])
        if low[node] == number[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(10000)
    for node in sorted(following):
        if node not in number:
            visit(node)
    return found


def goes_up(a, b):
    """Returns the reason why a dependency (arrow) is not allowed, or None if it is allowed."""
    below, floors = FLOORS[a.parts[0]]
    if a.parts[0] != b.parts[0]:
        return None if b.parts[0] in below else f"{a.parts[0]}/ does not look at {b.parts[0]}/"
    if {str(a.parent), str(b.parent)} - set(floors):
        return None  # main() reports it once, as a folder without a floor
    return None if floors.index(str(b.parent)) <= floors.index(str(a.parent)) else f"{b.parent}/ lies above {a.parent}/"


def twice(files):
    names = collections.Counter(path.name for path in files)
    return sorted(str(path) for path in files if names[path.name] > 1)


def folder_arrows(arrows):
    return sorted({(str(a.parent), str(b.parent)) for a, b in arrows if a.parent != b.parent})


def drawn():
    """Returns the dependencies (arrows) that the current picture shows."""
    titles = re.findall(r"<title>([^<]*)</title>", PICTURE.read_text())
    return sorted(tuple(html.unescape(title).split("->")) for title in titles if "&gt;" in title)


def shown(arrows):
    """Returns the arrows to draw between folders. Omits an arrow if a longer path connects the same two folders."""
    following = collections.defaultdict(set)
    for a, b in folder_arrows(arrows):
        following[a].add(b)

    def reaches(a, b, seen):
        return b in following[a] or any(reaches(c, b, seen | {c}) for c in following[a] - seen)

    return sorted((a, b) for a, b in folder_arrows(arrows) if not any(reaches(c, b, {a, c}) for c in following[a] - {b}))


def draw(arrows):
    lines = ["digraph structure {", "rankdir=TB; newrank=true; nodesep=0.15; ranksep=0.35; fontname=\"sans-serif\"; bgcolor=white",
             "node [shape=box, style=\"filled,rounded\", fillcolor=white, color=\"#8899aa\", fontname=\"sans-serif\", fontsize=11, height=0.3]",
             "edge [color=\"#556677\", arrowsize=0.6]"]
    for part, (_, floors) in FLOORS.items():
        lines.append(f'subgraph "cluster_{part}" {{ label="{part}/"; style="filled,rounded"; color="#eef2f6"; fontname="sans-serif-bold"')
        for folder in floors:
            lines.append(f'"{folder}" [label="{folder.partition("/")[2] + "/" if "/" in folder else "(top)" if len(floors) > 1 else part + "/"}"]')
        lines.append("}")
    lines += [f'"{a}" -> "{b}"' for a, b in shown(arrows)] + ["}"]
    picture = subprocess.run(["dot", "-Tsvg"], input="\n".join(lines), capture_output=True, text=True, check=True).stdout
    PICTURE.write_text(re.sub(r"<!--.*?-->\n?", "", picture, flags=re.S))


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    files = list(sources())
    includes, symbols = set(include_arrows(files)), set(symbol_arrows(build))
    arrows = includes | symbols
    if "--draw" in sys.argv:
        draw(arrows)
    wrong = [f"{a} wants {b} by {how}: {why}" for how, kind in (("include", includes), ("symbol", symbols))
             for a, b in sorted(kind) if (why := goes_up(a, b))]
    wrong += [f"{folder}/ has no floor: give it one in {pathlib.Path(__file__).name}" for folder in sorted({str(path.parent) for path in files})
              if folder not in FLOORS[folder.partition("/")[0]][1]]
    wrong += [f"a circle: {' '.join(map(str, circle))}" for circle in circles(arrows) if list(map(str, circle)) not in ONE_OBJECT]
    wrong += [f"a name that stands twice: {path}" for path in twice(files)]
    if PICTURE.exists() and drawn() != shown(arrows):
        wrong.append(f"{PICTURE.relative_to(SOURCE)} shows other arrows: tests/structure/arrows.py BUILD --draw")
    if "--list" in sys.argv or wrong:
        for part, arrows_of in itertools.groupby(folder_arrows(arrows), lambda arrow: arrow[0]):
            print(part, "→", " ".join(b for _, b in arrows_of))
    for what in wrong:
        print(what, file=sys.stderr)
    print(f"{len(files)} files, {len(includes)} arrows by includes, {len(symbols)} by symbols, {len(wrong)} wrong")
    return 1 if wrong else 0


sys.exit(main())
