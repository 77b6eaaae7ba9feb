# Copying files into the container, and what makes a script fail on Linux.

# remove_conflicts SOURCE DESTINATION: take away what would make a copy write through a link, or fail: links where SOURCE has
# anything, directories where it has files, files where it has directories.
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
				elif [ -d "$path" ] && [ ! -L "$path" ]; then
					if [ -e "$target" ] && [ ! -d "$target" ]; then rm -f "$target"; fi
				elif [ -d "$target" ]; then
					rm -rf "$target"
				fi
			done
		' sh "$2" {} +
	)
}

# overlay SOURCE DESTINATION: copy what is in SOURCE over DESTINATION, which keeps its own mode and owner.
overlay() {
	[ -d "$1" ] || return 0
	mkdir -p "$2"
	remove_conflicts "$1" "$2"
	for path in "$1"/* "$1"/.[!.]* "$1"/..?*; do
		[ -e "$path" ] || [ -L "$path" ] || continue
		cp -a "$path" "$2/" || return 1
	done
}

# has_crlf FILE: whether the first line ends as lines do on Windows.
has_crlf() {
	[ -f "$1" ] || return 1
	head -n 1 "$1" | grep -q "$(printf '\r')"'$'
}

# open_logs DIRECTORY...: let a user who is not root write its logs, as the reference does.
open_logs() {
	mkdir -p "$@"
	chmod 0777 "$@"
}
