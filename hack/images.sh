#!/usr/bin/env bash
# Images that tests and demo need, made without a registry and loaded into the cluster of hack/cluster.sh.
#   hack/images.sh operator | test | all | image NAME
# Each is kept as an archive under $CLUSTER_DIR/images, named by a hash of what it is made from: unchanged ones are not made again.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

ARCHIVES=$CLUSTER_DIR/images
SUITE=bookworm
mkdir -p "$ARCHIVES"

# once NAME TAG INPUT...: make an image with build_NAME unless its archive is there, and load it if it is not loaded yet.
once() {
  local name=$1 tag=$2 key archive marker
  shift 2
  key=$(cat "$@" | sha256sum | cut -c1-16)
  archive=$ARCHIVES/$name-$key.tar
  if [ ! -s "$archive" ]; then
    progress "building $tag" "build_$name" "$tag"
    rm -f "$ARCHIVES/$name"-*.tar
    progress "saving $tag" buildah push -q "$tag" "docker-archive:$archive.new:$tag"
    mv "$archive.new" "$archive"
  fi
  marker=$CLUSTER_DIR/run/loaded-$name
  if [ -d "$CLUSTER_DIR/run" ] && [ "$(cat "$marker" 2>/dev/null)" != "$key" ]; then
    progress "loading $tag" "$REPOSITORY/hack/cluster.sh" load "$archive"
    echo "$key" >"$marker"
  fi
}

# from_directory DIRECTORY TAG COMMIT_OPTION...: an image of one layer from a root filesystem.
from_directory() {
  local directory=$1 tag=$2 container
  shift 2
  container=$(buildah from scratch)
  # By way of an archive: a plain copy would give all files to root.
  tar -C "$directory" --numeric-owner -cf "$directory.tar" .
  buildah add -q "$container" "$directory.tar" /
  rm -f "$directory.tar"
  buildah config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" "$container"
  buildah commit -q --rm "$container" "$tag"
}

busybox_root() {
  local root=$1 applet
  mkdir -p "$root"/{bin,etc,root,tmp,app,home/agent/work,var,opt}
  chmod 1777 "$root/tmp"
  chmod 700 "$root/root"
  cp /bin/busybox "$root/bin/busybox"
  for applet in $("$root/bin/busybox" --list); do [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"; done
  printf 'root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:/home/agent:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\nagent:x:1000:\n' >"$root/etc/group"
  chown -R 1000:1000 "$root/home/agent"
}

build_busybox() {
  local root
  root=$(mktemp -d)
  busybox_root "$root"
  from_directory "$root" "$1" --workingdir /app --cmd sh
  rm -rf "$root"
}

build_nonroot() {
  local root
  root=$(mktemp -d)
  busybox_root "$root"
  from_directory "$root" "$1" --workingdir /home/agent/work --user agent --cmd sh
  rm -rf "$root"
}

# A verifier's own image, with bundled tests and a user of its own. They pass what the agent may only have handed over as an artifact.
build_verifier() {
  local root
  root=$(mktemp -d)
  busybox_root "$root"
  mkdir -p "$root/tests" "$root/grading"
  cat >"$root/tests/test.sh" <<'TEST'
#!/bin/sh
echo "user $(id -un) in $PWD, env $ONLY_HERE"
ls /app /opt 2>&1
if [ "$(cat /app/out)" = right ] && [ ! -e /opt/agent-was-here ]; then echo 1; else echo 0; fi >/logs/verifier/reward.txt
TEST
  chmod 755 "$root/tests/test.sh"
  from_directory "$root" "$1" --workingdir /grading --user agent --cmd sh
  rm -rf "$root"
}

bootstrap() { # DIRECTORY PACKAGES
  # --variant=minbase without recommended packages; what apt keeps of lists and archives is not part of an image.
  debootstrap --variant=minbase --include="$2" "$SUITE" "$1"
  rm -rf "$1"/var/cache/apt/archives/*.deb "$1"/var/log/*.log
}

build_debian() {
  local root
  root=$(mktemp -d)
  bootstrap "$root" bash,sudo
  mkdir -p "$root/app" "$root/opt/secret"
  chroot "$root" useradd --create-home --shell /bin/bash --uid 1000 agent
  echo "the answer" >"$root/opt/secret/answer"
  chmod 600 "$root/opt/secret/answer"
  chmod 700 "$root/opt/secret"
  printf '%s\n' '#include <stdio.h>' 'int main(void){FILE*f=fopen("/opt/secret/answer","r");if(!f){perror("answer");return 1;}puts("played");return 0;}' >"$root/tmp/play.c"
  gcc -static -Os -o "$root/usr/local/bin/play" "$root/tmp/play.c"
  rm "$root/tmp/play.c"
  chmod 4755 "$root/usr/local/bin/play"
  echo "agent ALL=(root) NOPASSWD: /bin/cat /opt/secret/answer" >"$root/etc/sudoers.d/agent"
  from_directory "$root" "$1" --workingdir /app --cmd bash
  rm -rf "$root"
}

# The base that stands in for python:3-slim: Debian's own Python, and the packages that the Dockerfile's first stage would install.
build_base() {
  local root
  root=$(mktemp -d)
  bootstrap "$root" python3,ca-certificates,busybox-static,gosu,python3-venv,python3-pip
  from_directory "$root" "$1" --cmd python3
  rm -rf "$root"
}

# The wheels are fetched here, where pip is configured, and not inside the build.
fetch_wheels() {
  rm -rf "$REPOSITORY/build/wheels"
  mkdir -p "$REPOSITORY/build/wheels"
  python3.11 -m pip --version >/dev/null 2>&1 || apt_install python3.11=python3
  "$REPOSITORY/.venv/bin/python" -m pip download -q --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 --abi abi3 --abi none \
    --platform manylinux2014_x86_64 --platform manylinux_2_28_x86_64 --platform manylinux_2_34_x86_64 --platform any \
    -d "$REPOSITORY/build/wheels" -r "$REPOSITORY/build/requirements.txt"
}

build_operator() {
  local kept
  kept=$ARCHIVES/wheels-$(sha256sum <"$REPOSITORY/build/requirements.txt" | cut -c1-16)
  if [ -d "$kept" ]; then
    rm -rf "$REPOSITORY/build/wheels"
    cp -a "$kept" "$REPOSITORY/build/wheels"
  else
    fetch_wheels
    cp -a "$REPOSITORY/build/wheels" "$kept"
  fi
  buildah bud -q --layers --build-arg BASE_IMAGE=localhost/multistep/base:bookworm --build-arg WHEELS_ONLY=1 -t "$1" "$REPOSITORY"
}

# requirements: what pyproject.toml asks for, as pip reads it.
requirements() {
  mkdir -p "$REPOSITORY/build/wheels"
  "$REPOSITORY/.venv/bin/python" "$REPOSITORY/hack/requirements.py" >"$REPOSITORY/build/requirements.txt"
}

images_test() {
  apt_install debootstrap=debootstrap buildah=buildah busybox=busybox-static gcc=gcc
  once busybox localhost/multistep/busybox:test "$REPOSITORY/hack/images.sh"
  once nonroot localhost/multistep/nonroot:test "$REPOSITORY/hack/images.sh"
  once verifier localhost/multistep/verifier:test "$REPOSITORY/hack/images.sh"
  once debian localhost/multistep/debian:test "$REPOSITORY/hack/images.sh"
  # The examples name the image that a user would really use; here the same tag leads to our own busybox.
  local marker=$CLUSTER_DIR/run/loaded-example
  if [ -d "$CLUSTER_DIR/run" ] && ! cmp -s "$CLUSTER_DIR/run/loaded-busybox" "$marker"; then
    "$CLUSTER_DIR/bin/ctr" -a "$CLUSTER_DIR/run/containerd.sock" -n k8s.io images tag --force localhost/multistep/busybox:test \
      docker.io/library/busybox:1.36 >/dev/null
    cp "$CLUSTER_DIR/run/loaded-busybox" "$marker"
  fi
}

images_operator() {
  apt_install debootstrap=debootstrap buildah=buildah
  requirements
  buildah inspect localhost/multistep/base:bookworm >/dev/null 2>&1 || progress "building a base image with debootstrap" build_base localhost/multistep/base:bookworm
  # shellcheck disable=SC2046
  once operator "$OPERATOR_IMAGE" "$REPOSITORY/Dockerfile" "$REPOSITORY/build/requirements.txt" \
    $(find "$REPOSITORY/operator" -name '*.py' -o -name '*.sh' | sort)
}

# The image for a registry, as a user builds it: with the builder that is at hand, and the dependencies from where pip finds them.
image() {
  local builder
  [ -n "${1-}" ] || fail "say what it is called: make image IMAGE=registry/name:tag"
  cd "$REPOSITORY"
  for builder in docker podman buildah; do
    if "$builder" info >/dev/null 2>&1; then
      say "Building $1 with $builder"
      "$builder" build -t "$1" .
      return 0
    fi
  done
  fail "none of docker, podman and buildah works here"
}

case ${1-} in
image) image "${2-}" ;;
operator | test) "images_$1" ;;
all) images_test; images_operator ;;
*) fail "usage: hack/images.sh operator | test | all | image NAME" ;;
esac
