# Sourced by quickstart and check: makes sure of Debian packages, as root or with sudo, and says what it does.

say() { printf '\n== %s\n' "$*"; }

# Installs the packages that are missing; with none missing it needs neither root nor a network.
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
            echo "$0: needs root, or sudo, to install: ${missing[*]}" >&2
            exit 1
        fi
        as_root=(sudo)
    fi
    export DEBIAN_FRONTEND=noninteractive
    "${as_root[@]}" apt-get update -q
    "${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"
}

if ! command -v apt-get >/dev/null; then
    need_packages() {
        echo "$0: no apt-get here; on Debian these packages would be installed: $*" >&2
    }
fi
