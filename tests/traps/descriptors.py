"""With any of descriptors 0 to 2 closed, no file of the hook's takes such a number, and writing to it fails as it did."""
from trap_test import LINKED, Session, check, compiled, equal

with Session() as s:
    program = compiled(s, "descriptors.c", "-rdynamic", *LINKED, "-lpthread", "-ldl")
    s.start_daemon()
    for closed in range(8):
        said = s.run(program, closed, preload=False).stdout
        seen = s.run(program, closed, env={"SAY_OPENED": "1"}).stdout
        opened, _, rest = seen.partition("\n")
        equal(rest, said, f"what the program saw with {closed:03b} closed")
        equal(said, "taken 0, written 0, left 0, child 0\n", "untraced")
        check(int(opened.split()[1]) > 5, "the hook opened hardly a file", opened)
    s.flush()
    s.check_identity()
    equal(s.value("SELECT sum(calls) FROM totals WHERE name = 'cuDeviceGetCount'"), 8 * 10 * 3000, "calls recorded")
    print("8 ways to have 0 to 2 closed: none taken")
