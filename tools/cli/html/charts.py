#!/usr/bin/env python3
"""Checks whether a file is dygraphs, the chart library that the page needs. Prints the library's version and the path of its
licence, on a line each. If the file is not usable, prints the reason and exits with 1. Called by Meson. The page includes the
library, so it must also include the library's licence."""
import pathlib
import re
import sys

# The first version that has everything charts.js needs, and the next major version, which may remove some of it.
OLDEST, BELOW = (2, 2), (3,)
DEBIAN = pathlib.Path("/usr/share/javascript/dygraphs"), pathlib.Path("/usr/share/doc/libjs-dygraphs/copyright")


def licence_of(library):
    """Finds the licence in the places where Debian, npm and dygraphs' own releases put it."""
    places = [library.parent / "LICENSE.txt", library.parent.parent / "LICENSE.txt"]
    if library.is_relative_to(DEBIAN[0]):
        places.append(DEBIAN[1])
    for place in places:
        if place.is_file() and "Permission is hereby granted" in place.read_text(errors="replace"):
            return place
    return None


def main():
    library = pathlib.Path(sys.argv[1])
    try:
        text = library.read_text()
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"{library} cannot be read: {getattr(error, 'strerror', error)}")
    found = re.search(r"""\bVERSION\s*=\s*["'](\d+)\.(\d+)([\d.]*)["']""", text)
    if not found or "Dygraph" not in text or "stepPlot" not in text:
        sys.exit(f"{library} is no dygraphs")
    version = int(found[1]), int(found[2])
    if not OLDEST <= version < BELOW:
        sys.exit(f"{library} is dygraphs {found[1]}.{found[2]}{found[3]}, and neither 2.2 nor a later 2")
    licence = licence_of(library)
    if not licence:
        sys.exit(f"{library} has no licence beside it that a page could show")
    print(f"{found[1]}.{found[2]}{found[3]}\n{licence}")


main()
