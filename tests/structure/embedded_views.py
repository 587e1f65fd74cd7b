#!/usr/bin/env python3
"""Tests how schema/embed.py reads the definitions of views. A definition that the script cannot read must cause an error."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "schema"))
import embed  # noqa: E402

COMMENTED = """-- The views are for a test;

-- files: all
CREATE VIEW first AS
-- It has a comment;
SELECT ';
' AS text -- of no use;
  FROM second;

-- files: newest row_id of thing
CREATE VIEW second AS
SELECT 1;
CREATE VIEW third AS
SELECT 2;

-- files: its own
CREATE VIEW fourth AS
SELECT 3;

-- files: by row_id
CREATE VIEW fifth AS
SELECT 4;
"""
FIRST = "-- It has a comment;\\nSELECT ';\\n' AS text -- of no use;\\n  FROM second"
ROWS = [f'ROW("first", NULL, NULL, "{FIRST}")', 'ROW("second", "row_id", "thing", NULL)', 'ROW("third", NULL, NULL, NULL)', 'ROW("fifth", "row_id", NULL, NULL)']
# (the error, a text)
WRONG = (("a statement has no end", "CREATE VIEW first AS\nSELECT 1 -- no semicolon;\n"),
         ("misplaced line", "-- files: all\n\nCREATE VIEW first AS\nSELECT 1;\n"),
         ("misplaced line", "CREATE VIEW first AS\n-- files: all\nSELECT 1;\n"),
         ("not a view", "CREATE VIEW first AS\nSELECT 1 --;\nCREATE VIEW second AS\nSELECT 2;\n"),
         ("not a view", "CREATE TABLE first (a);\n"),
         ("invalid line '-- files: some'", "-- files: some\nCREATE VIEW first AS\nSELECT 1;\n"),
         ("invalid line '-- files: newest of thing'", "-- files: newest of thing\nCREATE VIEW first AS\nSELECT 1;\n"))

rows = [line.strip(" \\") for line in embed.views_of(COMMENTED)[0].splitlines()[1:]]
if rows != ROWS:
    raise SystemExit(f"the rows are {rows}, and should be {ROWS}")
for error, text in WRONG:
    try:
        raise SystemExit(f"no error for {text!r}: {embed.views_of(text)}")
    except SystemExit as raised:
        if error not in str(raised) or str(raised).startswith("no error"):
            raise
