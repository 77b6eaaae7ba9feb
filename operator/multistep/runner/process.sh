# Running programs as a user, with a time limit that ends the whole process tree, and with their output on the pod's log.

GOSU=$TOOLS/gosu
TERMINATED=""
TIMED_OUT=""
KNOWN=""
NEW=""
FOLLOWER=""
KILL_GRACE=10

trap 'TERMINATED=1' TERM INT
trap 'TIMED_OUT=1' ALRM

# exec_as USER PROGRAM...: become a program with the image's PATH; an empty user stays root. Call it in a subshell.
exec_as() {
	exec_user=$1
	shift
	PATH=$IMAGE_PATH
	trap - TERM INT ALRM
	if [ -z "$exec_user" ]; then
		exec "$@"
	fi
	exec "$GOSU" "$exec_user" "$@"
}

user_exists() { [ -z "$1" ] || "$GOSU" "$1" "$TOOLS/busybox" true 2>/dev/null; }

# image_shell: print the shell that scripts are run with: the image's bash, else its sh, else ours.
image_shell() {
	for name in bash sh; do
		rest=$IMAGE_PATH:
		while [ -n "$rest" ]; do
			directory=${rest%%:*}
			rest=${rest#*:}
			if [ -x "$directory/$name" ] && [ ! -d "$directory/$name" ]; then
				printf '%s' "$directory/$name"
				return 0
			fi
		done
	done
	printf '%s' "$TOOLS/applets/sh"
}

# is_running PID: whether a process exists and is no zombie.
is_running() {
	{ read -r status_line <"/proc/$1/stat"; } 2>/dev/null || return 1
	case ${status_line##*) } in Z* | X*) return 1 ;; esac
}

# remember_processes: what runs now is not the next program's: setup.sh's servers, our own helpers.
remember_processes() {
	KNOWN=" $$ "
	for directory in /proc/[0-9]*; do
		KNOWN="$KNOWN${directory#/proc/} "
	done
}

# find_new: set NEW to the processes that came since. Without a subshell, which would find itself.
find_new() {
	NEW=""
	for directory in /proc/[0-9]*; do
		pid=${directory#/proc/}
		case $KNOWN in *" $pid "*) continue ;; esac
		is_running "$pid" && NEW="$NEW $pid"
	done
}

# end_new: end every process that came since: TERM, then, after the grace, KILL. A daemon that forked away is among them.
end_new() {
	find_new
	[ -n "$NEW" ] || return 0
	# shellcheck disable=SC2086
	kill -TERM $NEW 2>/dev/null
	tries=$((KILL_GRACE * 10))
	while [ "$tries" -gt 0 ]; do
		find_new
		[ -n "$NEW" ] || return 0
		sleep 0.1
		tries=$((tries - 1))
	done
	tries=50
	while [ "$tries" -gt 0 ]; do
		find_new
		[ -n "$NEW" ] || return 0
		# shellcheck disable=SC2086
		kill -KILL $NEW 2>/dev/null
		sleep 0.1
		tries=$((tries - 1))
	done
}

# start_watchdog SECONDS|none: send us ALRM when the time is over.
start_watchdog() {
	WATCHDOG=""
	TIMED_OUT=""
	[ "$1" != none ] || return 0
	(
		trap 'kill "$sleeper" 2>/dev/null; exit 0' TERM
		trap - ALRM
		sleep "$1" &
		sleeper=$!
		wait "$sleeper" && kill -ALRM $$
	) &
	WATCHDOG=$!
}

stop_watchdog() {
	[ -z "$WATCHDOG" ] || kill -TERM "$WATCHDOG" 2>/dev/null
	WATCHDOG=""
}

# is_zero SECONDS: whether a time limit leaves no time at all.
is_zero() {
	case $1 in
	none) return 1 ;;
	-*) return 0 ;;
	*[1-9]*) return 1 ;;
	esac
}

# start_follower FILE: what is written to $OUTPUT goes to the pod's log and to FILE.
start_follower() {
	OUTPUT=/dev/.multistep-output
	rm -f "$OUTPUT"
	mkfifo -m 600 "$OUTPUT"
	tee "$1" <"$OUTPUT" &
	FOLLOWER=$!
}

# drain_follower: wait until all output is written, but not for a daemon that keeps it open; it may write on until the pod ends.
drain_follower() {
	tries=20
	while [ "$tries" -gt 0 ] && is_running "$FOLLOWER"; do
		sleep 0.05
		tries=$((tries - 1))
	done
	rm -f "$OUTPUT"
}

# run_stage NAME USER SECONDS|none LOG_FILE STDIN PROGRAM...: run a program in the working directory as one stage.
# Sets STAGE_EXIT and, when its time was over, TIMED_OUT. Processes it leaves behind live on, unless its time was over.
run_stage() {
	stage_name=$1 stage_user=$2 stage_limit=$3 stage_log=$4 stage_input=$5
	shift 5
	stage_start=$(now)
	if is_zero "$stage_limit"; then
		TIMED_OUT=1
		STAGE_EXIT=124
		add_stage "$stage_name" "$stage_start" 124 true
		return 0
	fi
	start_follower "$stage_log"
	start_watchdog "$stage_limit"
	remember_processes
	(cd "$WORKDIR" && exec_as "$stage_user" "$@") <"$stage_input" >"$OUTPUT" 2>&1 &
	child=$!
	wait_for "$child"
	stop_watchdog
	if [ -n "$TIMED_OUT$TERMINATED" ]; then
		end_new
	fi
	drain_follower
	timed_out=false
	[ -z "$TIMED_OUT" ] || timed_out=true
	add_stage "$stage_name" "$stage_start" "$STAGE_EXIT" "$timed_out"
}

# wait_for PID: wait for a child, its time limit or our own end; sets STAGE_EXIT. A signal makes `wait` return early.
wait_for() {
	while :; do
		wait "$1"
		STAGE_EXIT=$?
		if ! is_running "$1"; then
			# It ended by itself, perhaps in the very moment its time was over.
			TIMED_OUT=""
			return 0
		fi
		[ -z "$TIMED_OUT$TERMINATED" ] || return 0
	done
}

# pause SECONDS: sleep, but wake up when we are told to end.
pause() {
	sleep "$1" &
	wait $!
}

# end_if_terminated: the pod is being deleted or its deadline is over: say so and go.
end_if_terminated() {
	[ -n "$TERMINATED" ] || return 0
	FAULT=null
	set_fault TerminatedError "${1:-runner}" "" ""
	write_report ""
	exit 143
}
