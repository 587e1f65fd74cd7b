#!/usr/bin/env python3
"""Combines the page, its style, its scripts and the chart library into a C header. ct_html_page_head is the part before the
trace's data, and ct_html_page_tail is the part after it. The option --charts LIBRARY LICENCE must precede the files. Without this
option, the page has no charts."""
import pathlib
import re
import sys


def array(name, data):
    lines = [", ".join(str(byte) for byte in data[i:i + 32]) for i in range(0, len(data), 32)]
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(lines) + "\n};\n"


def main():
    words = sys.argv[1:]
    files = {"charts.code": "", "charts.licence": ""}
    if words[0] == "--charts":
        # Remove the reference to the library's source map, which is a separate file and not part of the page.
        files["charts.code"] = re.sub(r"^//# sourceMappingURL=.*$", "", pathlib.Path(words[1]).read_text(), flags=re.M)
        files["charts.licence"] = pathlib.Path(words[2]).read_text()
        words = words[3:]
    output, page, *parts = map(pathlib.Path, words)
    files |= {part.name: part.read_text() for part in parts}

    def insert(match):
        text = files.pop(match[1])
        if "</script" in text or "</style" in text:
            raise SystemExit(f"{match[1]}: has the end of its own element in it")
        return text

    whole = re.sub(r"<!-- insert (\S+) -->\n?|/\* insert (\S+) \*/\n?", lambda m: insert([None, m[1] or m[2]]), page.read_text())
    if files:
        raise SystemExit(f"{page}: nothing inserts {', '.join(files)}")
    head, tail = whole.split("<!-- data -->\n")
    output.write_text(array("ct_html_page_head", head.encode()) + array("ct_html_page_tail", tail.encode()))


main()
