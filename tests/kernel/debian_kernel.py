"""Gets the kernels of Debian releases, and builds modules for them. apt downloads the packages to a folder of the build, and verifies them.
Nothing is installed, and the machine's own package sources do not change."""
import lzma
import pathlib
import shutil
import subprocess
import tarfile

from cudatrace_test import BUILD, equal, mount_namespace

CACHE = BUILD / "kernels"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
META_PACKAGE = "linux-image-cloud-amd64"  # this flavour has few drivers, and boots faster
META_PACKAGE_WITH_DRIVERS = "linux-image-amd64"
# The package of the kernel's headers depends on the compiler that built the kernel, and this compiler needs the same Debian release's C
# library.
BUILD_PACKAGES = "linux-headers-cloud-amd64", "make", "dash", "coreutils", "sed", "grep", "mawk"
BUILD_LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "usr/bin/sh": "dash", "usr/bin/awk": "mawk"}
UNUSED = "/usr/share/doc", "/usr/share/man", "/usr/share/locale", "/boot", "/usr/lib/modules", "/lib/modules"


class Unavailable(Exception):
    """Raised if the kernel, or a package for building modules, is not available. The exception's message gives the reason."""


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
    """Runs apt in a separate folder, with the given release as its only source."""

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
        """Returns the package's first dependency whose name begins with the prefix."""
        lines = self.run("apt-cache", "depends", package).splitlines()
        return next((line.split()[-1] for line in lines if line.strip().startswith(f"Depends: {prefix}")), None)

    def download(self, package):
        self.run("apt-get", "download", package)
        archive, = self.folder.glob(f"{package}_*.deb")
        return archive

    def download_all(self, *packages):
        """Downloads the packages and everything that they depend on."""
        self.run("apt-get", "install", "--yes", "--download-only", "--no-install-recommends", *packages)
        return sorted((self.folder / "archives").glob("*.deb"))


def extract_kernel(archive, folder, modules=()):
    """Extracts only the kernel image and the given modules."""
    packed = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE)
    with packed, tarfile.open(fileobj=packed.stdout, mode="r|") as files:
        for file in files:
            name = pathlib.PurePath(file.name).name
            if file.isfile() and name.startswith("vmlinuz"):
                fresh = folder / "fresh"
                fresh.write_bytes(files.extractfile(file).read())
                fresh.rename(folder / "vmlinuz")
            elif file.isfile() and (stem := name.partition(".")[0]) in modules:
                content = files.extractfile(file).read()
                (folder / f"{stem}.ko").write_bytes(lzma.decompress(content) if name.endswith(".xz") else content)


def download_kernel(apt, folder, package=META_PACKAGE, modules=()):
    apt.run("apt-get", "update")
    image = apt.depends(package, "linux-image-")
    # Since Linux 7.2, Debian has a separate package for the kernel image.
    archive = apt.download(apt.depends(image, "linux-binary-") or image)
    extract_kernel(archive, folder, modules)
    archive.unlink()


def kernel_of(release):
    """Returns the path of the release's kernel. Downloads the kernel the first time."""
    folder = CACHE / release
    kernel = folder / "vmlinuz"
    if not kernel.exists():
        download_kernel(Apt(release, folder), folder)
    return kernel


def kernel_with(release, *modules):
    """Returns the path of the release's kernel with all drivers, and the paths of the given modules. Downloads the kernel and the modules
    the first time."""
    folder = CACHE / f"{release}-{modules[-1]}"
    if not (folder / "vmlinuz").exists():
        download_kernel(Apt(release, folder), folder, META_PACKAGE_WITH_DRIVERS, modules)
    return folder / "vmlinuz", [folder / f"{module}.ko" for module in modules]


# ---- modules ----


def extract_package(archive, root):
    packed = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE)
    with packed:
        output_of("tar", "-x", "-C", root, "--no-same-owner", "--keep-directory-symlink", *(f"--exclude=.{path}" for path in UNUSED), stdin=packed.stdout)


def build_root(release):
    """Returns a folder with the headers of the release's kernel, and the programs that build modules. The first call downloads their
    packages, and also downloads the kernel again, because the kernel and the headers must have exactly the same version."""
    folder = CACHE / release
    root = folder / "root"
    if not root.exists():
        apt = Apt(release, folder)
        download_kernel(apt, folder)
        archives = apt.download_all(*BUILD_PACKAGES)
        fresh = folder / "fresh-root"
        shutil.rmtree(fresh, ignore_errors=True)
        for name in "usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "dev":
            (fresh / name).mkdir(parents=True)
        for name, target in BUILD_LINKS.items():
            (fresh / name).symlink_to(target)
        for archive in archives:
            extract_package(archive, fresh)
            archive.unlink()
        fresh.rename(root)
    return root


def build_modules(release, source, name, *options):
    """Builds the modules in a copy of the source folder, and passes the options to make. Returns the path of the copy, which is a folder
    called `name`."""
    root = build_root(release)
    shutil.rmtree(root / name, ignore_errors=True)
    shutil.copytree(source, root / name)
    headers, = (root / "usr/src").glob("linux-headers-*-cloud-amd64")
    in_root = 'mount --rbind /dev "$1/dev" && exec chroot "$@"'
    made = subprocess.run([*mount_namespace(), "sh", "-c", in_root, "sh", root, "make", "-C", f"/usr/src/{headers.name}", f"M=/{name}", "modules", *options],
                          capture_output=True, text=True)
    equal(made.returncode, 0, f"{made.stdout}{made.stderr}make's status")
    return root / name
