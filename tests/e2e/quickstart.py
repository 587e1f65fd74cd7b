"""Tests that if the checkout is not writable, or a name is already in use, tools/quickstart reports this and exits before it changes
anything."""
import os
import pathlib
import shutil
import subprocess
import tempfile

from cudatrace_test import SOURCE, check, equal

NOBODY = 65534


def refuse(folder, says, **options):
    before = sorted((path.name, os.lstat(path).st_ino) for path in folder.iterdir())
    done = subprocess.run([folder / "tools/quickstart"], capture_output=True, text=True, **options)
    equal((done.returncode, done.stdout, done.stderr.count("\n")), (1, "", 1), done.stderr)
    check(str(folder) in done.stderr and says in done.stderr, done.stderr)
    equal(sorted((path.name, os.lstat(path).st_ino) for path in folder.iterdir()), before, "the checkout")


with tempfile.TemporaryDirectory(prefix="cudatrace-test-") as name:
    folder = pathlib.Path(name)
    (folder / "tools").mkdir()
    for script in ("quickstart", "packages.sh"):
        shutil.copy(SOURCE / "tools" / script, folder / "tools")
    victim = folder / "victim"
    victim.write_text("precious")
    for place in ("quickstart.db", "quickstart.db-wal", "quickstart.db.log"):
        for make in (lambda path: path.symlink_to(victim), lambda path: path.symlink_to("nowhere"), pathlib.Path.mkdir, os.mkfifo):
            path = folder / place
            make(path)
            refuse(folder, f"{place} is a link or a folder")
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    equal(victim.read_text(), "precious", "what a link led to")
    folder.chmod(0o555)
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    refuse(folder, "is not writable", **user)
    folder.chmod(0o755)
