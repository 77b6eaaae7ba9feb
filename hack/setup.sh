#!/usr/bin/env bash
# What the tests need from the system: the runner's tools, and shellcheck.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[ "$(id -u)" = 0 ] || { echo "not root: the runner's own tests will be skipped" >&2; exit 0; }
apt_install /usr/bin/busybox=busybox-static gosu=gosu shellcheck=shellcheck unshare=util-linux pgrep=procps
