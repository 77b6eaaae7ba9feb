# seed: runs as root and copies what must persist of the image onto the volume, once per attempt.

VOLUME=/.multistep/volume
ERRORS=/dev/.multistep-errors

run_role() {
	WORKDIR=$OPT_workdir
	# The container starts in the image's working directory.
	[ -n "$WORKDIR" ] || WORKDIR=$(readlink "/proc/$$/cwd")
	: >"$ERRORS"
	if ! workdir_json=$(json_string "$WORKDIR"); then
		echo "the name of the image's working directory is no UTF-8: set environment.workdir in task.toml" >"$ERRORS"
		fail_seed
	fi
	find_copier
	DIRECTORIES=""
	if [ "$OPT_persistence" = Workdir ]; then
		seed_workdir 2>"$ERRORS" || fail_seed
	else
		seed_filesystem 2>"$ERRORS" || fail_seed
	fi
	if [ "$((${#DIRECTORIES} + ${#workdir_json}))" -gt 3800 ]; then
		echo "the image has too many directories directly under / to report: use persistence Workdir" >"$ERRORS"
		fail_seed
	fi
	write_report ",\"workdir\":$workdir_json,\"directories\":[$DIRECTORIES]"
}

fail_seed() {
	cat "$ERRORS" >&2
	set_fault SeedError seed "" "$ERRORS"
	write_report ',"workdir":null,"directories":[]'
	exit 1
}

# find_copier: the image's own cp where it is GNU's, which keeps extended attributes (file capabilities), and stays out of what
# the kubelet mounted; else ours.
find_copier() {
	COPIER=$(find_program cp) && COPIER_OPTION=-ax
	# An alpine's cp is a link to a busybox, whose --version is an error that names no GNU.
	if [ -z "$COPIER" ] || ! "$COPIER" --version 2>/dev/null | grep -q "GNU coreutils"; then
		COPIER="cp"
		COPIER_OPTION=-a
	fi
}

seed_workdir() {
	[ "$WORKDIR" != / ] || return 0
	mkdir -p "$WORKDIR" || return 1
	rm -rf "$VOLUME/workdir" "$VOLUME/seeding"
	mkdir "$VOLUME/seeding" || return 1
	# The dot, because the directory may be a link, and for its own owner and mode.
	"$COPIER" "$COPIER_OPTION" "${WORKDIR%/}/." "$VOLUME/seeding/" || return 1
	mv "$VOLUME/seeding" "$VOLUME/workdir"
}

seed_filesystem() {
	mkdir -p "$VOLUME/rootfs" || return 1
	# Made in the image's own tree before it is copied, so that they are mounts later, and so that links on the way stay links.
	[ -L /logs ] || mkdir -p /logs || return 1
	case $WORKDIR in
	/tests | /tests/* | /solution | /solution/*) ;;
	*) mkdir -p "$WORKDIR" || return 1 ;;
	esac
	list_entries /
	eval "set -- $ENTRIES"
	for directory; do
		[ -d "$directory" ] && [ ! -L "$directory" ] || continue
		case $directory in
		/proc | /sys | /dev | /.multistep | /tests | /solution) continue ;;
		# What cannot be the path of a mount stays in the image, and is carried as what agents make under / is.
		*:* | *[[:cntrl:]]*) continue ;;
		esac
		name=$(json_string "${directory#/}") || continue
		"$COPIER" "$COPIER_OPTION" "$directory" "$VOLUME/rootfs/" || return 1
		DIRECTORIES=$DIRECTORIES${DIRECTORIES:+,}$name
	done
}
