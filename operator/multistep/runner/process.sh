# Users, shells and process trees.

GOSU=$TOOLS/gosu
TERMINATED=""
KNOWN=""
NEW=""
KILL_GRACE=10

trap 'TERMINATED=1' TERM INT
# Without a trap, a waiting `read -t` starts its time anew with every child that ends, and we inherit all orphans: a program that
# leaves some every moment would never run out of time. What was written to a pipe is not lost: data goes before signals.
trap : CHLD

# exec_as USER PROGRAM...: become one of our own programs as a user; an empty user stays root. Call it in a subshell.
exec_as() {
	exec_user=$1
	shift
	[ -n "$exec_user" ] || exec "$@"
	exec "$GOSU" "$exec_user" "$@"
}

user_exists() { [ -z "$1" ] || "$GOSU" "$1" "$TOOLS/busybox" true 2>/dev/null; }

# find_program NAME: print the path of the image's program; fails if it has none.
find_program() {
	rest=$IMAGE_PATH:
	while [ -n "$rest" ]; do
		directory=${rest%%:*}
		rest=${rest#*:}
		if [ -x "$directory/$1" ] && [ ! -d "$directory/$1" ]; then
			printf '%s' "$directory/$1"
			return 0
		fi
	done
	return 1
}

# image_shell: print the shell that scripts are run with: the image's bash, else its sh, else ours.
image_shell() { find_program bash || find_program sh || printf '%s' "$TOOLS/applets/sh"; }

# look_at PID: set STATE and START, which tells a process from a later one of the same number. Fails if there is none.
look_at() {
	{ read -r stat_line <"/proc/$1/stat"; } 2>/dev/null || return 1
	# shellcheck disable=SC2086 # what stands behind the name is numbers
	set -- ${stat_line##*) }
	STATE=$1
	START=${20}
}

# is_running PID: whether a process exists and is no zombie.
is_running() {
	look_at "$1" || return 1
	case $STATE in Z | X) return 1 ;; esac
}

# remember_processes: what runs now is not the next program's: setup.sh's servers, our own helpers.
remember_processes() {
	KNOWN=" "
	for directory in /proc/[0-9]*; do
		! look_at "${directory#/proc/}" || KNOWN="$KNOWN${directory#/proc/}:$START "
	done
}

# find_new: set NEW to the processes that came since. Without a subshell, which would find itself.
find_new() {
	NEW=""
	for directory in /proc/[0-9]*; do
		pid=${directory#/proc/}
		is_running "$pid" || continue
		case $KNOWN in *" $pid:$START "*) continue ;; esac
		NEW="$NEW $pid"
	done
}

# await_no_new HUNDREDTHS: wait until none of the new processes is left; fails when the time is over.
await_no_new() {
	clock
	await_end=$((CLOCK + $1))
	moment=0.01
	while :; do
		find_new
		[ -n "$NEW" ] || return 0
		clock
		[ "$CLOCK" -lt "$await_end" ] || return 1
		nap "$moment"
		# The first look is soon, because most programs end at once; the later ones cost less.
		[ "$moment" = 0.01 ] && moment=0.02 || moment=0.05
	done
}

# end_new SECONDS: end every process that came since: TERM, then, after the grace, KILL. A daemon that forked away is among them.
end_new() {
	find_new
	if [ -n "$NEW" ]; then
		# shellcheck disable=SC2086
		kill -TERM $NEW 2>/dev/null
		to_hundredths "$1"
		await_no_new "${HUNDREDTHS:-1000}"
	fi
	rounds=20
	while [ "$rounds" -gt 0 ]; do
		kill_new
		[ -n "$NEW" ] || return 0
		await_no_new 20
		rounds=$((rounds - 1))
	done
}

# kill_new: end what is new, and set NEW to what that was. A program that forks faster than we look would get away, unseen even: as the
# container's first process we can hold everything still while we look; what is not new goes on a moment later.
kill_new() {
	[ "$$" -ne 1 ] || kill -STOP -1 2>/dev/null
	find_new
	# shellcheck disable=SC2086
	[ -z "$NEW" ] || kill -KILL $NEW 2>/dev/null
	[ "$$" -ne 1 ] || kill -CONT -1 2>/dev/null
}
