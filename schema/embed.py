#!/usr/bin/env python3
"""Turns .sql files into one C header: each FILE.sql becomes the string ct_sql_FILE. In a file with
`-- name: X` lines each part becomes ct_sql_FILE_X instead, and ct_sql_FILE is left out.

Files behind `--list LIST` become ct_sql_LIST_FILE, and CT_LIST(ROW) has a row for each, in their order: ROW(name, title,
explanation, one query for each part), the title being the comment in a file's first line and the explanation the comment
behind that."""
import pathlib
import re
import sys


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def define(name, value_lines):
    return f"#define {name} \\\n" + " \\\n".join(f"    {line}" for line in value_lines)


def parts_of(source, prefix):
    """[(name, SQL)] of a file."""
    text = source.read_text()
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
    return f"ROW({', '.join([quoted(source.stem), quoted(title), quoted(' '.join(explanation)), *(name for name, _ in parts)])})"


def main():
    output, *words = sys.argv[1:]
    lines, rows, prefix = ["/* Made by schema/embed.py. */", "#pragma once"], {}, "ct_sql_"
    while words:
        word = words.pop(0)
        if word == "--list":
            name = words.pop(0)
            prefix, rows[name] = f"ct_sql_{name}_", []
            continue
        source = pathlib.Path(word)
        parts = parts_of(source, prefix)
        lines += [define(name, (quoted(line)[:-1] + '\\n"' for line in sql.strip().splitlines())) for name, sql in parts]
        if rows:
            rows[name].append(row(source, parts))
    lines += [define(f"CT_{name.upper()}(ROW)", rows[name]) for name in rows]
    pathlib.Path(output).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
