#!/usr/bin/env python3
"""Turns .sql files into one C header: each FILE.sql becomes the string ct_sql_FILE. In a file with
`-- name: X` lines each part becomes ct_sql_FILE_X instead, and ct_sql_FILE is left out."""
import pathlib
import re
import sys


def literal(text):
    lines = text.strip().splitlines()
    quoted = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return "\n".join(f'    "{line}\\n"' for line in quoted)


def main():
    output, *sources = sys.argv[1:]
    parts = ["/* Made by schema/embed.py. */", "#pragma once"]
    for source in map(pathlib.Path, sources):
        text = source.read_text()
        stem = "ct_sql_" + re.sub(r"\W", "_", source.stem)
        pieces = re.split(r"^-- name: (\w+)\n", text, flags=re.M)
        if len(pieces) == 1:
            named = [(stem, text)]
        else:
            named = [(f"{stem}_{name}", body) for name, body in zip(pieces[1::2], pieces[2::2])]
        for name, body in named:
            parts.append(f"#define {name} \\\n" + literal(body).replace("\n", " \\\n"))
    pathlib.Path(output).write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
