# What lies directly under / is in no mount: it is carried from pod to pod by copying. Directories of the image are mounts and cost nothing.

CARRY=/.multistep/carry

# is_outside NAME: whether /NAME is neither a mount, nor above one, nor one of the paths that never persist.
is_outside() {
	case $1 in
	proc | sys | dev | .multistep | tests | solution) return 1 ;;
	esac
	case $MOUNTS in
	*"
/$1
"* | *"
/$1/"*) return 1 ;;
	esac
}

# read_mounts: set MOUNTS to the mount points, one a line, with the kernel's octal escapes undone.
read_mounts() {
	MOUNTS="
"
	while read -r _ _ _ _ point _; do
		case $point in
		*\\*) point=$(printf '%b.' "$(printf '%s' "$point" | sed 's/\\\([0-7][0-7][0-7]\)/\\0\1/g')") && point=${point%.} ;;
		esac
		MOUNTS="$MOUNTS$point
"
	done </proc/self/mountinfo
}

# list_outside DIRECTORY: set ENTRIES to the names in it that are carried, as quoted words.
list_outside() {
	ENTRIES=""
	for entry_path in "${1%/}"/* "${1%/}"/.[!.]* "${1%/}"/..?*; do
		[ -e "$entry_path" ] || [ -L "$entry_path" ] || continue
		is_outside "${entry_path##*/}" || continue
		quote "${entry_path##*/}"
		ENTRIES="$ENTRIES $QUOTED"
	done
}

# links_in DIRECTORY NAME...: print a line for every link of these. One program for all: an image has a handful of them, as /bin.
links_in() {
	cd "$1" || return 0
	shift
	links=""
	for entry in "$@"; do
		[ -L "$entry" ] || continue
		quote "./$entry"
		links="$links $QUOTED"
	done
	[ -z "$links" ] || eval "stat -c %N $links"
}

# settle_carry: what a crash left between the two renames of a swap: the new state is whole by then.
settle_carry() {
	[ -d "$CARRY/root" ] || [ ! -d "$CARRY/old" ] || [ ! -d "$CARRY/new" ] || mv "$CARRY/new" "$CARRY/root"
	rm -rf "$CARRY/new" "$CARRY/old"
}

# carry_out: keep what lies directly under /. Built beside, then swapped.
carry_out() {
	[ -d "$CARRY" ] || return 0
	read_mounts
	settle_carry
	mkdir "$CARRY/new" || return 1
	list_outside /
	eval "set -- $ENTRIES"
	[ "$#" -eq 0 ] || (cd / && cp -a -- "$@" "$CARRY/new/") || return 1
	[ ! -d "$CARRY/root" ] || mv "$CARRY/root" "$CARRY/old" || return 1
	mv "$CARRY/new" "$CARRY/root" || return 1
	rm -rf "$CARRY/old"
}

# carry_in: make what lies directly under / what it was at the end of the last pod.
carry_in() {
	[ -d "$CARRY" ] || return 0
	# What lay directly under / may have been readable by root alone.
	chmod 0700 "$CARRY"
	settle_carry
	[ -d "$CARRY/root" ] || return 0
	read_mounts
	list_outside /
	eval "set -- $ENTRIES"
	# In subshells: a pod's processes must not find us in the carry.
	here=$(links_in / "$@")
	for entry in "$@"; do
		[ -e "$CARRY/root/$entry" ] || [ -L "$CARRY/root/$entry" ] || rm -rf "/${entry:?}"
	done
	list_outside "$CARRY/root"
	eval "set -- $ENTRIES"
	there=$(links_in "$CARRY/root" "$@")
	[ "$here" != "$there" ] || here=same
	for entry in "$@"; do
		if [ -L "$CARRY/root/$entry" ] && [ -L "/$entry" ] && [ "$here" = same ]; then continue; fi
		rm -rf "/${entry:?}"
		cp -a "$CARRY/root/$entry" / || return 1
	done
}
