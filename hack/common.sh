# What the scripts of this folder share: where things are, and how they talk.
# shellcheck shell=bash
set -euo pipefail

REPOSITORY=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export CLUSTER_DIR=${CLUSTER_DIR:-$HOME/.cache/multistep-cluster}
OPERATOR_IMAGE=localhost/multistep/operator:dev
export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot} STORAGE_DRIVER=${STORAGE_DRIVER:-vfs}

say() {
  if [ -t 2 ]; then printf '\033[1m==> %s\033[0m\n' "$*" >&2; else printf '==> %s\n' "$*" >&2; fi
}
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

# progress TEXT COMMAND...: run a long command quietly; say how long it took, and show its output only if it fails.
progress() {
  local text=$1 log start
  shift
  log=$(mktemp) start=$SECONDS
  printf '    %s ... ' "$text" >&2
  if "$@" >"$log" 2>&1; then
    printf '%d s\n' "$((SECONDS - start))" >&2
    rm -f "$log"
  else
    printf 'failed\n' >&2
    tail -n 40 "$log" >&2
    rm -f "$log"
    return 1
  fi
}

# apt_install COMMAND=PACKAGE...: install the packages whose command is missing.
apt_install() {
  local pair missing=()
  for pair in "$@"; do
    [ -e "${pair%%=*}" ] || command -v "${pair%%=*}" >/dev/null 2>&1 || missing+=("${pair##*=}")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  command -v apt-get >/dev/null 2>&1 || fail "please install: ${missing[*]}"
  progress "apt-get update" apt-get update -q
  progress "installing ${missing[*]}" env DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends "${missing[@]}"
}
