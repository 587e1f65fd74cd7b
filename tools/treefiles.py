#!/usr/bin/env python3
"""Lists the tree's files.

    tools/treefiles.py        prints their names, relative to the tree

With git, lists the files that git tracks. Without git, or in an unpacked archive, lists the files that .gitignore does not match.
An archive unpacked inside another clone is not part of that clone, so only a repository at the tree's root counts.
"""
import fnmatch
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


def by_git(*options):
    """Returns the names of the files that git lists, or an empty list if git is not usable."""
    if not (ROOT / ".git").exists():
        return []
    try:
        listed = subprocess.run(["git", "ls-files", "-z", *options], cwd=ROOT, capture_output=True, check=False).stdout
    except FileNotFoundError:
        return []
    return [name for name in os.fsdecode(listed).split("\0") if name]


def is_ignored(path, patterns):
    """Returns whether .gitignore matches the file. In patterns, only *, a leading slash and a trailing slash are supported."""
    name = f"/{path.relative_to(ROOT)}"
    return path.name == ".git" or any(
        fnmatch.fnmatchcase(name if "/" in pattern[:-1] else path.name, pattern.rstrip("/"))
        for pattern in patterns if path.is_dir() or not pattern.endswith("/"))


def walked():
    patterns = (ROOT / ".gitignore").read_text().split()
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not is_ignored(pathlib.Path(folder, name), patterns)]
        for name in names:
            path = pathlib.Path(folder, name)
            if not is_ignored(path, patterns):
                yield str(path.relative_to(ROOT))


def tree_files(new=False):
    """Returns the sorted names of the tree's files. With `new`, includes files that git neither tracks nor ignores."""
    names = by_git(*(["--cached", "--others", "--exclude-standard"] if new else [])) or walked()
    return sorted(name for name in names if (ROOT / name).is_file())


if __name__ == "__main__":
    print("\n".join(tree_files()))
