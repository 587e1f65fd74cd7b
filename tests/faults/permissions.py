"""Tests that only the owner can access a recorded trace, no matter what the umask and the folder's permissions are. Checks the modes of
files while the session is running, tries to access each file as another user, and tests names that another user has already taken."""
import glob
import os
import select
import signal
import socket
import stat
import subprocess

from fault_test import BUILD, Session, check, equal, promise, wait_for
from users import ALICE, BOB, DENIED, Users, attempt, intrusions

OTHER = BOB


def files_of(s, owner, folder):
    return sorted(glob.glob(f"/dev/shm/cudatrace.{owner}.{s.name}*") + glob.glob(f"{folder}/*"))


def check_alone(paths, owner):
    for path in paths:
        status = os.lstat(path)
        kind = stat.S_ISSOCK(status.st_mode) or stat.S_ISREG(status.st_mode)
        check(kind and status.st_uid == owner and stat.S_IMODE(status.st_mode) == 0o600, path, "is", oct(status.st_mode),
              "of", status.st_uid)


def connect(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)


def record(u, owner, umask):
    """Records a program as user `owner`, with a daemon in the background, in a folder that all users can write to. Checks that other users
    cannot access the files."""
    s, folder = u.s, u.folder(f"shared-{owner}-{umask:o}", mode=0o1777)
    db = folder / "trace.db"
    # Let another user create a file with the name of a segment. The daemon must not touch the file, but write a message to its log, so that
    # the log exists.
    stranger = f"/dev/shm/cudatrace.{owner}.{s.name}.1.1"
    start = [u.daemon, "--db", db, "--session", s.name]
    u.run(owner, *start, umask=umask)
    equal(attempt(OTHER, lambda: os.close(os.open(stranger, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))), "None", "made")
    with u.held(owner, "--calls", 500, umask=umask) as child:
        u.run(owner, u.cudatrace, "flush", "--session", s.name, umask=umask)
        paths = [path for path in files_of(s, owner, folder) if path != stranger]
        ends = {path.rsplit("/", 1)[1].replace(f"cudatrace.{owner}.{s.name}", "") for path in paths}
        segment = [end for end in ends if end.startswith(f".{child.pid}.")]
        equal(ends - set(segment), {"", ".sock", "trace.db", "trace.db-wal", "trace.db-shm", "trace.db.log"}, "the files")
        equal(len(segment), 1, "segments")
        with promise("modes_0600"):
            check_alone(paths, owner)
        for path in paths:
            acts = intrusions(path)
            if path.endswith(".sock"):
                acts = {"connect": lambda: connect(path), **{a: acts[a] for a in ("unlink", "rename", "chmod", "chown")}}
            for what, act in acts.items():
                with promise("others_denied"):
                    seen = attempt(OTHER, act)
                    check(seen in DENIED, f"user {OTHER}: {what} {path} of {owner}:", seen)
        check_alone(paths, owner)
        # Kill the daemon, and give all users access to its files. The next daemon must take over the files and restrict the access again.
        daemon = int(u.run(owner, u.cudatrace, "status", "--session", s.name).stdout.split("daemon ")[1].split()[0])
        end = os.pidfd_open(daemon)
        os.kill(daemon, 9)
        select.select([end], [], [], 60)
        os.close(end)
        for path in paths:
            if os.path.exists(path) and segment[0] not in path:
                os.chmod(path, 0o666)
        u.run(owner, *start, umask=umask)
        u.run(owner, u.cudatrace, "flush", "--session", s.name)
        with promise("modes_0600"):
            check_alone([path for path in files_of(s, owner, folder) if path != stranger], owner)
    u.run(owner, u.cudatrace, "stop", "--session", s.name)
    equal(os.lstat(stranger).st_size, 0, "the stranger's file")
    os.unlink(stranger)
    equal(s.value("SELECT count(*) > 500 FROM calls", db=db), 1, "calls")
    equal(s.rows("SELECT DISTINCT uid FROM processes", db=db), [(owner,)], "uids")


def taken_successor(u, owner, folder, home, makers):
    """Checks that the daemon skips the number of the trace's next file if another user has a file with one of its names. The daemon needs a
    next file at its start, because the first one is from another boot, and after SIGHUP."""
    s, db, victim = u.s, folder / "trace.db", home / "victim"
    os.rename(home / "old.db", db)
    subprocess.run(["sqlite3", db, "UPDATE meta SET value = 'another' WHERE key = 'boot_id'"], check=True)
    os.chown(db, owner, owner)
    for end in ("2.db", "2.db-wal"):
        for kind in ("file", "link", "fifo"):
            place = f"{folder}/trace.{end}"
            equal(attempt(OTHER, lambda: makers[kind](place)), "None", "made")
            with promise("names_skipped"):
                u.run(owner, u.daemon, "--db", db, "--session", s.name)
                next_taken = f"{folder}/trace.4.{end[2:]}"
                equal(attempt(OTHER, lambda: makers[kind](next_taken)), "None", "made")
                status = u.status(owner)
                equal(status["file"], f"{folder}/trace.3.db", "the file")
                os.kill(int(status["daemon"]), signal.SIGHUP)
                wait_for("the next file", lambda: u.status(owner)["file"] == f"{folder}/trace.5.db")
                u.run(owner, u.cudatrace, "stop", "--session", s.name)
                equal(victim.read_bytes(), b"precious\n", "the victim")
                check(os.lstat(place).st_uid == os.lstat(next_taken).st_uid == OTHER, "a planted file was replaced")
                read = u.run(owner, u.cudatrace, "sql", "--db", db, "SELECT count(*) FROM calls", status=None)
                check(read.returncode == 0, "reading", read.stderr)
            for path in glob.glob(f"{folder}/trace.[2-5].*"):
                os.unlink(path)


def follow_own_link(u, owner, folder, home):
    """Checks that the daemon follows a symbolic link that belongs to the owner. It must refuse a file with a second hard link, because
    another user could later read the file by the second name."""
    s = u.s
    real = home / "real.db"
    os.symlink(real, folder / "own.db")
    os.chown(folder / "own.db", owner, owner, follow_symlinks=False)
    real.touch()
    os.chown(real, owner, owner)
    u.run(owner, u.daemon, "--db", folder / "own.db", "--session", s.name)
    check(str(real) in u.run(owner, u.cudatrace, "status", "--session", s.name).stdout, "the database")
    u.run(owner, u.cudatrace, "stop", "--session", s.name)
    os.link(real, home / "second.db")
    done = u.run(owner, u.daemon, "--db", real, "--session", s.name, status=1)
    check("hard link" in done.stderr, done.stderr)


def exchanged(u):
    """Exchanges the folder of root's trace, which belongs to another user, for a link to a folder of root's. The daemon must notice that its
    database was moved, and must create no file behind the link, not even its log."""
    s = u.s
    theirs, victim = u.folder("theirs", OTHER), u.folder("victim", mode=0o700)
    equal(attempt(OTHER, lambda: os.mkdir(theirs / "inner")), "None", "making the folder")
    (s.dir / "link").symlink_to(theirs)  # root's own link, which is followed
    u.run(0, u.daemon, "--db", s.dir / "link/inner/trace.db", "--session", s.name)
    equal(u.status(0)["file"], f"{theirs}/inner/trace.db", "the file")
    equal(attempt(OTHER, lambda: os.rename(theirs / "inner", theirs / "away") or os.symlink(victim, theirs / "inner")), "None", "the exchange")
    with promise("names_taken"):
        u.run(0, u.calls, "--calls", 100, preload=True)
        wait_for("the daemon's notice", lambda: "moved, deleted or replaced" in u.status(0)["state"])
        u.run(0, u.cudatrace, "stop", "--session", s.name, status=None)
        equal(os.listdir(victim), [], "files behind the link")
    u.run(0, u.cudatrace, "gc", "--session", s.name, "--force")


def taken(u, owner):
    """Checks that if another user has already taken a name that the daemon needs, the daemon reports this and exits at once. It must not
    follow the link or write to the file with that name."""
    s = u.s
    for mode in (0o1777, 0o777):
        folder = u.folder(f"taken-{owner}-{mode:o}", mode=mode)
        home = u.folder(f"home-{owner}-{mode:o}", owner, 0o700)
        db, victim = folder / "trace.db", home / "victim"
        victim.write_bytes(b"precious\n")
        os.chown(victim, owner, owner)
        u.run(owner, u.daemon, "--db", home / "old.db", "--session", s.name)
        u.run(owner, u.cudatrace, "stop", "--session", s.name)
        makers = {
            "file": lambda path: os.chmod(os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o666)) or path, 0o666),
            "link": lambda path: os.symlink(victim, path),
            "dangling": lambda path: os.symlink(home / "nothing", path),
            "fifo": lambda path: os.mkfifo(path, 0o666),
            "folder": lambda path: os.mkdir(path, 0o777),
        }
        places = [f"{db}{end}" for end in ("", "-wal", "-shm", "-journal", ".log")]
        places += [f"/dev/shm/cudatrace.{owner}.{s.name}", f"/dev/shm/cudatrace.{owner}.{s.name}.sock"]
        for place in places:
            for kind, make in makers.items():
                equal(attempt(OTHER, lambda: make(place)), "None", f"making {kind} {place}")
                made = os.lstat(place)
                with promise("names_taken"):
                    done = u.run(owner, u.daemon, "--db", db, "--session", s.name, status=None)
                    if place.startswith("/dev/shm/") and owner == 0:  # root removes it without following it
                        u.run(owner, u.cudatrace, "stop", "--session", s.name)
                    else:
                        check(done.returncode == 1 and done.stderr.count("\n") == 1 and place.rsplit("/", 1)[1] in done.stderr,
                              f"{kind} {place} of another user:", done.returncode, done.stderr)
                        check(not place.startswith("/dev/shm/") or f"of user {OTHER}, which cannot be removed" in done.stderr and
                              "--shm-dir" in done.stderr, done.stderr)
                        now = os.lstat(place)
                        equal((now.st_ino, now.st_size, now.st_mode, now.st_mtime_ns),
                              (made.st_ino, made.st_size, made.st_mode, made.st_mtime_ns), f"{kind} {place}")
                    equal(victim.read_bytes(), b"precious\n", f"the victim of {kind} {place}")
                    equal(sorted(os.listdir(home)), ["old.db", "victim"], "the owner's files")
                subprocess.run(["rm", "-rf", place], check=True)
                for path in glob.glob(f"{db}*"):
                    os.unlink(path)
        taken_successor(u, owner, folder, home, makers)
        follow_own_link(u, owner, folder, home)


def led_astray(u, owner):
    """Checks that no command creates a file behind another user's link in a folder that all users can write to. The link may be the folder of
    the file, or the target of a link of the owner's."""
    s = u.s
    for mode in (0o1777, 0o777):
        shared, victim = u.folder(f"astray-{owner}-{mode:o}", mode=mode), u.folder(f"victim-{owner}-{mode:o}", owner, 0o700)
        laid = shared / "laid"
        equal(attempt(OTHER, lambda: os.symlink(victim, laid)), "None", "laid")
        for name, target in (("chain", laid), ("own", victim)):
            os.symlink(target, shared / name)
            os.chown(shared / name, owner, owner, follow_symlinks=False)
        dump = shared / "dump.jsonl"
        dump.touch()
        start = [u.daemon, "--session", s.name]
        for name in ("laid", "chain"):
            for command in ([*start, "--db", shared / name / "a.db"], [*start, "--db", victim / "b.db", "--record", shared / name / "a.rec"],
                            [*start, "--db", victim / "c.db", "--shm-dir", shared / name], [u.cudatrace, "import", "--db", shared / name / "a.db", dump],
                            [u.cudatrace, "run", "--new", "--db", shared / name / "a.db", "--", "true"],
                            [u.cudatrace, "gc", "--shm-dir", shared / name]):
                with promise("links_not_followed"):
                    done = u.run(owner, *command, status=None)
                    wanted = f"'{laid}' is a link of user {OTHER} in a directory writable by all; remove it"
                    check(done.returncode == 1 and wanted in done.stderr and done.stderr.count("\n") == 1, command, done.returncode, done.stderr)
                    equal(os.listdir(victim), [], f"files behind the link after {command}")
        probe = BUILD / "probe/cudatrace-probe"
        if owner == 0 and probe.exists():
            with promise("links_not_followed"):
                done = u.run(owner, probe, "--dry-run", "--pid", os.getpid(), "--shm-dir", shared / "laid", status=1)
                check(wanted in done.stderr, done.stderr)
        os.symlink(shared / "laid" / "a.db", shared / "own.db")
        os.chown(shared / "own.db", owner, owner, follow_symlinks=False)
        with promise("links_not_followed"):
            done = u.run(owner, *start, "--db", shared / "own.db", status=1)
            check(f"'{laid}' is a link of user {OTHER}" in done.stderr, done.stderr)
            equal(os.listdir(victim), [], "files behind the second link")
        with promise("own_links_followed"):
            u.run(owner, *start, "--db", shared / "own/trace.db", "--record", shared / "own/trace.rec")
            u.run(owner, u.cudatrace, "stop", "--session", s.name)
            check((victim / "trace.db").exists(), "a link of the owner's was not followed")


def lured(u, owner):
    """Checks that hooks ignore a control segment that another user has put in the place of the owner's control segment."""
    s = u.s
    his, hers = (f"/dev/shm/cudatrace.{uid}.{s.name}" for uid in (OTHER, owner))
    db = u.folder(f"lure-{owner}", OTHER) / "trace.db"
    u.run(OTHER, u.daemon, "--db", db, "--session", s.name)
    for mode in (0o600, 0o644, 0o666):
        for lay in (os.link, os.symlink):
            equal(attempt(OTHER, lambda: (os.chmod(his, mode), lay(his, hers)) and None), "None", "laid")
            with promise("hook_not_lured"), u.held(owner, "--calls", 200):
                equal(glob.glob(f"/dev/shm/cudatrace.*.{s.name}.[1-9]*"), [], f"segments after {lay.__name__} to {mode:o}")
            os.unlink(hers)
    os.chmod(his, 0o600)
    with u.held(OTHER, "--calls", 200):
        equal(len(glob.glob(f"/dev/shm/cudatrace.{OTHER}.{s.name}.[1-9]*")), 1, "segments of who is served")
    u.run(OTHER, u.cudatrace, "stop", "--session", s.name)
    equal(s.rows("SELECT DISTINCT uid FROM processes", db=db), [(OTHER,)], "who is in his trace")


with Session() as s:
    u = Users(s)
    for owner in (0, ALICE):
        lured(u, owner)
    for owner in (0, ALICE):
        for umask in (0o000, 0o077, 0o777):
            record(u, owner, umask)
    for owner in (0, ALICE):
        taken(u, owner)
        led_astray(u, owner)
    exchanged(u)
