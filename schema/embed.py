#!/usr/bin/env python3
"""Converts .sql files to one C header. FILE.sql becomes the string ct_sql_FILE. If a file has `-- name: X` lines, each part becomes a
string ct_sql_FILE_X instead, and CT_FILE_PARTS(ROW) has a ROW(X) for each part, in order.

For each view in the files named views*.sql, CT_VIEWS(ROW) has a row ROW(name, key, table, select), and CT_VIEWS_LISTED has all names. In a
trace of several files, a view has the rows of all files, unless the line before the view states otherwise. With `-- files: newest KEY of
TABLE`, the rows with a given KEY are taken only from the newest file whose TABLE contains that KEY. With `-- files: by KEY`, that
column is different in all rows, and each file finds a row by it without reading other rows. With `-- files: all`, the view reads
only other views, and `select` is its query, which is executed once for all files. With `-- files: its own`, the view over several files is
created elsewhere, and has no ROW.

`-- macro: NAME(PARAMETER, …)` begins a macro, which ends at an empty line. The macro's text replaces each NAME(…) in the file.

Files after `--list LIST` become ct_sql_LIST_FILE. For each of these files, in order, CT_LIST(ROW) has a row ROW(name, title, explanation,
queries). The queries are in the order of PLACES, with NULL for a missing part. The title is the comment on the file's first line, and the explanation is the rest of that comment."""
import pathlib
import re
import sqlite3
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


def statements_of(text):
    """Returns the SQL statements of a text, each with the comments before it. A semicolon in a comment or in a string does not end a
    statement."""
    statements, statement = [], ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            statements.append(statement)
            statement = ""
    if re.search(r"^(?!--)\s*\S", statement, re.M):
        raise SystemExit(f"a statement has no end: {statement.strip()}")
    return statements


def view_of(statement):
    """Returns the parts of a view's definition: the words after `-- files:` (or an empty string), the view's name, and its query."""
    found = re.fullmatch(r"(?:\n|--.*\n)*?(?:-- files: (.*)\n)?CREATE VIEW (\w+) AS\n((?:.*\n)*?.*);\n", statement)
    if not found or statement.count("-- files: ") > (found[1] is not None) or "CREATE VIEW" in found[3]:
        raise SystemExit(f"not a view, or a misplaced line '-- files:': {statement.strip()}")
    return found[1] or "", found[2], found[3]


def views_of(text):
    """Returns the definitions of CT_VIEWS and CT_VIEWS_LISTED."""
    found = [view_of(statement) for statement in statements_of(text)]
    rows = []
    for how, view, select in found:
        newest = re.fullmatch(r"newest (\w+) of (\w+)", how)
        by = re.fullmatch(r"by (\w+)", how)
        if not newest and not by and how not in ("", "all", "its own"):
            raise SystemExit(f"the view {view}: invalid line '-- files: {how}'")
        values = [view, *(newest.groups() if newest else (by[1], "") if by else ("", "")), select if how == "all" else ""]
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
        if source.name.startswith("views"):
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
