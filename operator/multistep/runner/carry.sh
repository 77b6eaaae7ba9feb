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
		*\\*) point=$(printf '%b' "$(printf '%s' "$point" | sed 's/\\\([0-7][0-7][0-7]\)/\\0\1/g')") ;;
		esac
		MOUNTS="$MOUNTS$point
"
	done </proc/self/mountinfo
}

same_link() { [ -L "$1" ] && [ -L "$2" ] && [ "$(readlink "$1")" = "$(readlink "$2")" ]; }

# carry_out: keep what lies directly under /. Built beside, then swapped.
carry_out() {
	[ -d "$CARRY" ] || return 0
	read_mounts
	rm -rf "$CARRY/new" "$CARRY/old"
	mkdir "$CARRY/new"
	for path in /* /.[!.]* /..?*; do
		[ -e "$path" ] || [ -L "$path" ] || continue
		is_outside "${path#/}" || continue
		cp -a "$path" "$CARRY/new/" || return 1
	done
	[ ! -d "$CARRY/root" ] || mv "$CARRY/root" "$CARRY/old"
	mv "$CARRY/new" "$CARRY/root"
	rm -rf "$CARRY/old"
}

# carry_in: make what lies directly under / what it was at the end of the last pod.
carry_in() {
	# What lay directly under / may have been readable by root alone.
	[ ! -d "$CARRY" ] || chmod 0700 "$CARRY"
	[ -d "$CARRY/root" ] || return 0
	read_mounts
	for path in /* /.[!.]* /..?*; do
		[ -e "$path" ] || [ -L "$path" ] || continue
		name=${path#/}
		is_outside "$name" || continue
		[ -e "$CARRY/root/$name" ] || [ -L "$CARRY/root/$name" ] || rm -rf "$path"
	done
	for path in "$CARRY/root"/* "$CARRY/root"/.[!.]* "$CARRY/root"/..?*; do
		[ -e "$path" ] || [ -L "$path" ] || continue
		name=${path##*/}
		is_outside "$name" || continue
		! same_link "$path" "/$name" || continue
		rm -rf "/${name:?}"
		cp -a "$path" / || return 1
	done
}

# enter_filesystem USER: make the filesystem what the last pod left, with a working directory and a user that exist; else set a fault.
enter_filesystem() {
	if ! carry_in; then
		set_fault CarryError runner "" ""
		return 1
	fi
	if ! user_exists "$1"; then
		printf 'user %s' "$1" >"$RUN/user.log"
		set_fault UserNotFoundError runner "" "$RUN/user.log"
		return 1
	fi
	mkdir -p "$WORKDIR"
}
