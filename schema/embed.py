#!/usr/bin/env python3
"""Converts .sql files to one C header. FILE.sql becomes the string ct_sql_FILE. If a file has `-- name: X` lines, each part becomes a
string ct_sql_FILE_X instead, and CT_FILE_PARTS(ROW) has a ROW(X) for each part, in order.

For each view in views.sql and views_gpu.sql, CT_VIEWS(ROW) has a row ROW(name, key, table, select), and CT_VIEWS_LISTED has all names. In
a trace of several files, a view has the rows of all files, unless a line before the view states otherwise. With `-- files: newest KEY of
TABLE`, only the newest file that has the key counts. With `-- files: all`, the view reads only other views, and `select` is its query,
which is executed once for all files. With `-- files: its own`, the view is created elsewhere, and has no ROW.

`-- macro: NAME(PARAMETER, …)` begins a macro, which ends at an empty line. The macro's text replaces each NAME(…) in the file.

Files after `--list LIST` become ct_sql_LIST_FILE. For each of these files, in order, CT_LIST(ROW) has a row ROW(name, title, explanation,
queries). The queries are in the order of PLACES, with NULL for a missing part. The title is the comment on the file's first line, and the explanation is the rest of that comment."""
import pathlib
import re
import sys
import textwrap


PLACES = {"rows": 0, "side": 0, "note": 1, "compare": 1, "measured": 2}


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def define(name, value_lines):
    return f"#define {name} \\\n" + " \\\n".join(f"    {line}" for line in value_lines)


def expanded(text):
    """Returns the text with its macros expanded."""
    for name, parameters, body in re.findall(r"^-- macro: (\w+)\(([^)]*)\)\n(.*?)\n\n", text, re.M | re.S):
        text = re.sub(rf"^-- macro: {name}\b.*?\n\n", "", text, flags=re.M | re.S)

        def put(use):
            said = dict(zip(parameters.split(", "), use[1].split(", ")))
            return re.sub(rf":({'|'.join(said)})\b", lambda parameter: said[parameter[1]], body)

        text = re.sub(rf"\b{name}\(([^)]*)\)", put, text)
    return text


def views_of(text):
    """Returns the definitions that the tools use."""
    found = re.findall(r"(?:^-- files: ([^\n]*)\n)?^CREATE VIEW (\w+) AS\n(.*?);\n", text, re.M | re.S)
    rows = []
    for how, view, select in found:
        key, _, table = how.removeprefix("newest ").partition(" of ") if how.startswith("newest") else ("", "", "")
        values = [view, key, table, select if how == "all" else ""]
        if how != "its own":
            rows.append("ROW(" + ", ".join(quoted(value).replace("\n", "\\n") if value else "NULL" for value in values) + ")")
    *listed, last = textwrap.wrap("The views: " + ", ".join(view for _, view, _ in found), 86)
    return [define("CT_VIEWS(ROW)", rows), define("CT_VIEWS_LISTED", [quoted(line)[:-1] + '\\n"' for line in listed] + [quoted(last)])]


def parts_of(source, prefix):
    """Returns a file's parts as [(name, SQL)]."""
    text = expanded(source.read_text())
    stem = prefix + re.sub(r"\W", "_", source.stem)
    pieces = re.split(r"^-- name: (\w+)\n", text, flags=re.M)
    if len(pieces) == 1:
        return [(stem, text)]
    return [(f"{stem}_{name}", body) for name, body in zip(pieces[1::2], pieces[2::2])]


def row(source, parts):
    comment = re.match(r"(?:--.*\n)+", source.read_text())
    if not comment:
        raise SystemExit(f"{source}: it has to begin with a comment, its title")
    title, *explanation = (line.removeprefix("--").strip() for line in comment[0].splitlines())
    place = {PLACES[name.rpartition("_")[2]] if len(parts) > 1 else 0: name for name, _ in parts}
    queries = [place.get(n, "NULL") for n in range(max(place) + 1)]
    return f"ROW({', '.join([quoted(source.stem), quoted(title), quoted(' '.join(explanation)), *queries])})"


def main():
    output, *words = sys.argv[1:]
    lines, rows, prefix, views = ["/* Made by schema/embed.py. */", "#pragma once"], {}, "ct_sql_", ""
    while words:
        word = words.pop(0)
        if word == "--list":
            name = words.pop(0)
            prefix, rows[name] = f"ct_sql_{name}_", []
            continue
        source = pathlib.Path(word)
        parts = parts_of(source, prefix)
        lines += [define(name, (quoted(line)[:-1] + '\\n"' for line in sql.strip().splitlines())) for name, sql in parts]
        if source.name in ("views.sql", "views_gpu.sql"):
            views += expanded(source.read_text())
        if not rows and len(parts) > 1:
            names = (sql_name.removeprefix(f"{prefix}{source.stem}_") for sql_name, _ in parts)
            lines.append(define(f"CT_{source.stem.upper()}_PARTS(ROW)", (f"ROW({part})" for part in names)))
        if rows:
            rows[name].append(row(source, parts))
    lines += [define(f"CT_{name.upper()}(ROW)", rows[name]) for name in rows] + views_of(views)
    pathlib.Path(output).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
