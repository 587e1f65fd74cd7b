"""Tests that tools/release makes the same tarball from the same build, and that the tarball works in any folder and contains the licences
of the linked libraries."""
import hashlib
import json
import os
import pathlib
import subprocess
import tarfile
import tempfile

from cudatrace_test import BUILD, SOURCE, check, equal, needs, skip
from install_test import check_commands, check_completions, check_files

TIME = 1700000000
# The Debian packages that contain the libraries linked into a portable build.
PACKAGES = ("libiberty-dev", "libjansson-dev", "libncurses-dev", "libprotobuf-c-dev", "libsqlite3-dev", "libuv1-dev", "zlib1g-dev")


def release(*arguments, status=0, umask=0o022, **env):
    done = subprocess.run([SOURCE / "tools/release", *arguments], capture_output=True, text=True, umask=umask,
                          env={**os.environ, "SOURCE_DATE_EPOCH": str(TIME), **env})
    equal(done.returncode, status, f"{arguments}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def options():
    return {option["name"]: option["value"] for option in json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())}


def check_entries(tarball):
    """Tests that no entry of the tarball depends on the user, the time or the umask."""
    with tarfile.open(tarball) as tar:
        entries = tar.getmembers()
        equal({(entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime) for entry in entries}, {(0, 0, "", "", TIME)}, "owners and times")
        equal({entry.mode for entry in entries if not entry.issym()}, {0o644, 0o755}, "modes")
        equal({entry.name.partition("/")[0] for entry in entries}, {tarball.name.removesuffix(".tar.gz")}, "top folders")


check("Usage: tools/release" in release("--help"), "the help")
check("unknown argument '--fast'" in release("--fast", status=2), "an unknown argument")
check("--build requires an existing folder" in release("--build", "/dev/null", status=2), "no folder")
check("is not a build folder" in release("--build", SOURCE / "docs", status=1), "no build")
needs("meson")
if not options()["portable"]:
    check("is not a portable build" in release("--build", BUILD, status=1), "a build that is not portable")
    skip("only a portable build makes a tarball: tools/check --full has one")

with tempfile.TemporaryDirectory(prefix="cudatrace-test-") as name:
    sums = set()
    for turn, umask in ("first", 0o022), ("second", 0o077):
        folder = pathlib.Path(name, turn)
        folder.mkdir()
        said = release("--build", BUILD, "--output", folder, umask=umask, TZ=f"UTC{umask}")
        [tarball] = folder.iterdir()
        sums.add(seen := hashlib.sha256(tarball.read_bytes()).hexdigest())
        check(said.endswith(f"{seen}  {tarball.name}\n"), said, "and should end with", seen)
    equal(len(sums), 1, "different tarballs")
    check_entries(tarball)
    empty = pathlib.Path(name).resolve() / "empty"
    empty.mkdir()
    subprocess.run(["tar", "-xzf", tarball, "-C", empty], check=True)
    [prefix] = empty.iterdir()
    licences = {str(path.relative_to(prefix)) for path in (prefix / "share/doc/cudatrace/licences").iterdir()}
    folder = "share/doc/cudatrace/licences"
    equal({f"{folder}/{package}" for package in PACKAGES} - licences, set(), "licences that are missing")
    check_files(prefix, *licences)
    version = subprocess.run([prefix / "bin/cudatrace", "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    check(prefix.name.startswith(f"cudatrace-{version}-linux-"), prefix.name, "and version", version)
    check_commands(prefix)
    check_completions(prefix)
