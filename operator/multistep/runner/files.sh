# Copying files into the container, and what makes a script fail on Linux.

# remove_conflicts SOURCE DESTINATION: take away what SOURCE replaces: all but directories that merge. A copy over a link would write
# where it leads, one over a hard link would change the file's other names, and one over a running program would fail.
remove_conflicts() {
	(
		cd "$1" || exit 1
		find . -mindepth 1 -exec "$TOOLS/busybox" sh -c '
			destination=$1
			shift
			for path in "$@"; do
				target=$destination/${path#./}
				if [ -L "$target" ]; then
					rm -f "$target"
				elif [ -d "$target" ]; then
					if [ -L "$path" ] || [ ! -d "$path" ]; then rm -rf "$target"; fi
				elif [ -e "$target" ]; then
					rm -f "$target"
				fi
			done
		' sh "$2" {} +
	)
}

# overlay SOURCE DESTINATION: copy what is in SOURCE over DESTINATION, which keeps its own mode and owner.
overlay() {
	[ -d "$1" ] || return 0
	mkdir -p "$2" || return 1
	remove_conflicts "$1" "$2" || return 1
	list_entries "$1"
	eval "set -- \"\$2\" $ENTRIES"
	[ "$#" -gt 1 ] || return 0
	overlay_target=$1
	shift
	cp -a "$@" "$overlay_target/"
}

# bring_environment: the task's environment/, where the image was not built with it, into the working directory.
bring_environment() { overlay /.multistep/environment "$WORKDIR"; }

# list_entries DIRECTORY: set ENTRIES to its entries' paths, hidden ones too, as quoted words.
list_entries() {
	ENTRIES=""
	for entry_path in "${1%/}"/* "${1%/}"/.[!.]* "${1%/}"/..?*; do
		[ -e "$entry_path" ] || [ -L "$entry_path" ] || continue
		quote "$entry_path"
		ENTRIES="$ENTRIES $QUOTED"
	done
}

# has_crlf FILE: whether the first line ends as lines do on Windows.
has_crlf() {
	[ -f "$1" ] || return 1
	head -n 1 "$1" | grep -q "$(printf '\r')"'$'
}

# empty DIRECTORY: take away what is in it. It stays the same directory: in the pod's other container it may be a mount.
empty() {
	[ ! -L "$1" ] && [ -d "$1" ] || rm -rf "$1"
	mkdir -p "$1" && find "$1" -mindepth 1 -maxdepth 1 -exec rm -rf {} +
}

# open_logs DIRECTORY...: let a user who is not root write its logs, as the reference does.
open_logs() {
	mkdir -p "$@"
	chmod 0777 "$@"
}
