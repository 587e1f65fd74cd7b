"""Tests that dladdr() and dladdr1() return the same results as without the hook, for driver and runtime functions."""
from trap_test import BUILD, LINKED, Session, check, compiled, same

with Session() as s:
    program = compiled(s, "located.c", *LINKED, "-ldl")
    said = same(s, "where functions lie", program, BUILD / "tests/simcudart/12/libcudart.so.12").stdout
    check(said.count("libcuda.so.1") >= 6 and said.count("libcudart.so.12") == 4, "untraced, too few are found:", said)
