"""Runs a fuzz target's replay program on every file of the target's corpus, which must not be empty."""
import pathlib
import subprocess
import sys

program, corpus = sys.argv[1], pathlib.Path(sys.argv[2])
inputs = sorted(corpus.iterdir())
if not inputs:
    sys.exit(f"nothing in {corpus}")
sys.exit(subprocess.run([program, *inputs]).returncode)
