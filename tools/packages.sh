# shellcheck shell=bash
# Installs Debian packages, as root or with sudo, and prints what it does. Sourced by quickstart, check, bench, fuzz and release.

# The packages needed to build everything.
# shellcheck disable=SC2034
build_packages=(gcc libc6-dev binutils pkg-config meson ninja-build python3 libuv1-dev libsqlite3-dev libiberty-dev
    libjansson-dev libprotobuf-c-dev protobuf-c-compiler libncurses-dev zlib1g-dev libjs-dygraphs libzydis-dev)

say() { printf '\n== %s\n' "$*"; }

# Installs the missing packages. If none are missing, needs neither root nor a network connection.
need_packages() {
    local missing=() package
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null)" = 'ii ' ] || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    say "Installing ${missing[*]}"
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "$0: needs root or sudo to install these packages: ${missing[*]}" >&2
            exit 1
        fi
        as_root=(sudo)
    fi
    export DEBIAN_FRONTEND=noninteractive
    "${as_root[@]}" apt-get update -q
    # Do not remove installed packages, since some conflict with each other (gcc-multilib and the cross compilers).
    "${as_root[@]}" apt-get install -q -y --no-install-recommends --no-remove "${missing[@]}"
}

# Installs the packages that are available, and continues without the others.
want_packages() {
    local package
    # Use a subshell, because need_packages exits if it lacks root. Try all packages together first, so that a single update is
    # enough.
    (need_packages "$@") && return
    for package in "$@"; do
        (need_packages "$package") || echo "$0: continuing without $package" >&2
    done
}

if ! command -v apt-get >/dev/null; then
    need_packages() {
        echo "$0: apt-get not found; install the equivalents of these Debian packages: $*" >&2
    }
fi
