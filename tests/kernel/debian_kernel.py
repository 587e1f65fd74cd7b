"""Gets the kernels of Debian releases. apt downloads and verifies their packages. It uses only a folder of the build, installs nothing,
and leaves the machine's own sources unchanged."""
import pathlib
import subprocess
import tarfile

from cudatrace_test import BUILD

CACHE = BUILD / "kernels"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
META_PACKAGE = "linux-image-cloud-amd64"  # this flavour has few drivers, and boots faster


class Unavailable(Exception):
    """The kernel, or a machine for it, is not available. The text is the reason."""


def output_of(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise Unavailable(f"{command[0]}: {done.stderr.partition(chr(10))[0] or f'status {done.returncode}'}")
    return done.stdout


def mirror():
    """Returns the address of the Debian archive that this machine uses."""
    used = output_of("apt-get", "indextargets", "--format", "$(REPO_URI)", "Identifier: Packages", "Origin: Debian", "Label: Debian").split()
    if not used:
        raise Unavailable("apt has no index of a Debian archive")
    return used[0]


class Apt:
    """Runs apt with that release as its only source, in a separate folder."""

    def __init__(self, release, folder):
        self.folder = folder
        for name in "lists/partial", "archives/partial":
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()
        (folder / "sources.list").write_text(f"deb [signed-by={KEYS}] {mirror()} {release} main\n")
        places = {"Etc::SourceList": "sources.list", "Etc::SourceParts": "none", "State": ".", "State::Lists": "lists", "State::Status": "status",
                  "Cache": ".", "Cache::Archives": "archives"}
        self.options = [f"-oDir::{key}={folder / place}" for key, place in places.items()]
        self.options += ["-oAPT::Architecture=amd64", "-oAPT::Sandbox::User=", "-oAcquire::Languages=none", "-oAPT::Update::Error-Mode=any"]

    def run(self, program, *arguments):
        return output_of(program, *self.options, "-q", *arguments, cwd=self.folder)

    def depends(self, package, prefix):
        """Returns the package's first dependency with that prefix."""
        lines = self.run("apt-cache", "depends", package).splitlines()
        return next((line.split()[-1] for line in lines if line.strip().startswith(f"Depends: {prefix}")), None)

    def download(self, package):
        self.run("apt-get", "download", package)
        archive, = self.folder.glob(f"{package}_*.deb")
        return archive


def extract_kernel(archive, folder):
    """Extracts only the kernel, without its modules and its configuration."""
    packed = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE)
    with packed, tarfile.open(fileobj=packed.stdout, mode="r|") as files:
        for file in files:
            name = pathlib.PurePath(file.name).name
            if file.isfile() and name.startswith("vmlinuz"):
                fresh = folder / "fresh"
                fresh.write_bytes(files.extractfile(file).read())
                fresh.rename(folder / "vmlinuz")


def kernel_of(release):
    """Returns the file of the release's kernel, which it downloads the first time."""
    folder = CACHE / release
    kernel = folder / "vmlinuz"
    if not kernel.exists():
        apt = Apt(release, folder)
        apt.run("apt-get", "update")
        image = apt.depends(META_PACKAGE, "linux-image-")
        # Since Linux 7.2, Debian has the kernel itself in a package of its own.
        archive = apt.download(apt.depends(image, "linux-binary-") or image)
        extract_kernel(archive, folder)
        archive.unlink()
    return kernel
