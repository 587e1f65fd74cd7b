"""Runs a program that closes one or more of the descriptors 0 to 2. If a file that the hook opens gets one of these numbers, the hook must
have opened it with O_PATH, so that reading and writing still fail. strace lists the files that the hook opens."""
import re

from trap_test import LINKED, Session, check, compiled, equal, needs

needs("strace", "ptrace")
STANDARD = 3
DRIVERS = ("/proc/self/stat", ".counts")  # files of the simulated driver

with Session() as s:
    program = compiled(s, "descriptors.c", *LINKED, "-lpthread")
    s.start_daemon()
    trace = s.dir / "strace.txt"
    filled = 0
    for closed in range(8):
        said = s.run(program, closed, preload=False).stdout
        equal(said, "left 0, child 0\n", "untraced")
        seen = s.run("strace", "-f", "-e", "trace=openat,socket,fcntl,close", "-o", trace, program, closed).stdout
        equal(seen, said, f"what the program saw with {closed:03b} closed")
        calls = trace.read_text()
        # Look only at files that were opened after the descriptors were closed. Before that, the loader opened files too, and these got the
        # descriptors that were free.
        opened = [line for line in calls[calls.rindex("F_DUPFD, 100"):].splitlines()
                  if re.search(r"(openat|socket)\(.* = \d+$", line) and not any(f'{end}"' in line for end in DRIVERS)]
        check(len(opened) > 5, "the hook opened hardly a file:", opened)
        low = [line for line in opened if int(line.rsplit(" ", 1)[1]) < STANDARD]
        check(all("O_PATH" in line for line in low), "takes a closed number:", low)
        equal(bool(low), closed != 0, "whether closed numbers were filled")
        filled += len(low)
    s.flush()
    s.check_identity()
    equal(s.value("SELECT sum(calls) FROM totals WHERE name = 'cuDeviceGetCount'"), 8 * 10 * 3000, "calls recorded")
    print(f"8 ways to have 0 to 2 closed: filled {filled} times, none taken")
