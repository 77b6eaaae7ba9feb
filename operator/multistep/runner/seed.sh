# seed: runs as root and copies what must persist of the image onto the volume, once per attempt.

VOLUME=/.multistep/volume
set -o pipefail

run_role() {
	WORKDIR=$(option workdir)
	# The container starts in the image's working directory.
	[ -n "$WORKDIR" ] || WORKDIR=$(readlink /proc/$$/cwd)
	ERRORS=/dev/.multistep-errors
	copier=$(image_copier)
	if [ "$(option persistence)" = Workdir ]; then
		seed_workdir 2>"$ERRORS" || fail_seed
		write_report ",\"workdir\":$(json_string "$WORKDIR"),\"directories\":[]"
	else
		seed_filesystem 2>"$ERRORS" || fail_seed
		directories=$(list_directories)
		if [ "${#directories}" -gt 3000 ]; then
			echo "the image has too many directories directly under / to report" >"$ERRORS"
			fail_seed
		fi
		write_report ",\"workdir\":$(json_string "$WORKDIR"),\"directories\":[$directories]"
	fi
}

fail_seed() {
	cat "$ERRORS" >&2
	set_fault SeedError seed "" "$ERRORS"
	write_report ""
	exit 1
}

# image_copier: print the image's own cp where it is GNU's, which keeps extended attributes (file capabilities); else nothing.
image_copier() {
	rest=$IMAGE_PATH:
	while [ -n "$rest" ]; do
		directory=${rest%%:*}
		rest=${rest#*:}
		if [ -x "$directory/cp" ] && "$directory/cp" --version 2>/dev/null | grep -q GNU; then
			printf '%s' "$directory/cp"
			return 0
		fi
	done
}

# copy_into DIRECTORY DESTINATION: copy a directory, under its own name, into another.
copy_into() {
	if [ -n "$copier" ]; then
		"$copier" -a "$1" "$2/"
	else
		# Not busybox' cp, which makes two files of a hard link.
		tar -C "${1%/*}/" -cf - "${1##*/}" | tar -C "$2" -xpf - --numeric-owner
	fi
}

seed_workdir() {
	if [ "$WORKDIR" = / ]; then
		return 0
	fi
	mkdir -p "$WORKDIR"
	rm -rf "$VOLUME/workdir" "$VOLUME/seeding"
	mkdir "$VOLUME/seeding"
	copy_into "${WORKDIR%/}" "$VOLUME/seeding" || return 1
	mv "$VOLUME/seeding"/* "$VOLUME/workdir"
}

seed_filesystem() {
	mkdir -p "$VOLUME/rootfs"
	for path in /* /.[!.]* /..?*; do
		[ -d "$path" ] && [ ! -L "$path" ] || continue
		case $path in
		/proc | /sys | /dev | /.multistep | /tests | /solution) continue ;;
		esac
		copy_into "$path" "$VOLUME/rootfs" || return 1
	done
	mkdir -p "$VOLUME/rootfs/logs" || return 1
	# A working directory directly under / that the image lacks must be a mount, too, or it would be copied from pod to pod.
	case $WORKDIR in
	/) ;;
	/*) [ -L "/${WORKDIR#/}" ] || [ -d "$WORKDIR" ] || mkdir -p "$VOLUME/rootfs$WORKDIR" ;;
	esac
}

list_directories() {
	separator=""
	for path in "$VOLUME"/rootfs/* "$VOLUME"/rootfs/.[!.]* "$VOLUME"/rootfs/..?*; do
		[ -d "$path" ] || continue
		printf '%s%s' "$separator" "$(json_string "${path##*/}")"
		separator=,
	done
}
