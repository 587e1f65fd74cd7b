"""Tests that the trace contains the real user ID if fakeroot makes a user appear to be root. The cases are `run` within fakeroot, fakeroot
within `run`, and a daemon within fakeroot."""
import os
import sys

from fault_test import CUDATRACE, DAEMON, HOOK, Session, WORKLOADS, check, equal, needs

needs("fakeroot")
# A sanitizer expects its library to be loaded first, but here, fakeroot's library is loaded first.
os.environ["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))


class Oneself:
    """Replaces users.Users, and runs programs as the user who runs the test."""
    cudatrace, daemon, hook, calls = CUDATRACE, DAEMON, HOOK, WORKLOADS / "calls"

    def __init__(self, s):
        self.s = s

    def folder(self, name, uid):
        path = self.s.dir / name
        path.mkdir()
        return path

    def run(self, uid, *command):
        return self.s.run(*command, preload=False, cwd="/")


def somebody(s):
    if os.geteuid():
        return Oneself(s), os.geteuid()
    import users  # requires root
    return users.Users(s), users.ALICE


with Session() as s:
    u, uid = somebody(s)
    folder = u.folder("his", uid)
    # fakeroot pretends that `chown` has changed the owner of the file, and shows that owner from then on.
    script = f"set -e; cd {folder}; : >file; chown 7:8 file; stat -c %u:%g file; id -u; {u.calls} --calls 100"
    alone = u.run(uid, "fakeroot", "sh", "-c", script).stdout
    check(alone.startswith("7:8\n0\n"), "fakeroot alone", alone)
    for name, command in (("inside", ("fakeroot", u.cudatrace, "run", "--db", folder / "inside.db", "--", "sh", "-c", script)),
                          ("around", (u.cudatrace, "run", "--db", folder / "around.db", "--", "fakeroot", "sh", "-c", script)),
                          ("daemon", ("fakeroot", "sh", "-c", f"{u.daemon} --db {folder}/daemon.db --session {s.name}; "
                                      f"LD_PRELOAD={u.hook}:$LD_PRELOAD sh -c '{script}'; {u.cudatrace} flush --session {s.name}; "
                                      f"{u.cudatrace} stop --session {s.name}"))):
        done = u.run(uid, *command)
        equal(done.stdout, alone, f"what the command says, {name}")
        s.db = folder / f"{name}.db"
        equal(s.rows("SELECT uid, state, sum(calls) > 100 FROM processes JOIN totals USING (process_id)"), [(uid, "exited", 1)],
              f"the process in the trace, {name}")
        s.check_identity()
        equal(os.lstat(s.db).st_uid, uid, "the database's owner")
sys.exit(0)
