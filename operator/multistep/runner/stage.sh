# Running one program of a user's: with a time limit that ends the whole process tree, and its output on the pod's log and in a file.

TIMED_OUT=""
FOLLOWER=""
LAUNCHES=0
STAGE_EXTRA=""
STAGE_LEFTOVERS=keep
STAGE_GRACE=""
# What was logged is read back through the open file: the agent can put a link in the place of its log, not into our descriptor.
STAGE_LOG=/proc/$$/fd/9

# run_stage NAME USER SECONDS|none LOG_FILE STDIN PROGRAM...: run a program in the working directory as one stage.
# Sets STAGE_EXIT and, when its time was over, TIMED_OUT. Processes it leaves behind live on, unless its time was over
# or STAGE_LEFTOVERS is `end`. STAGE_EXTRA holds more variables, as quoted words.
run_stage() {
	stage_name=$1 stage_user=$2 stage_limit=$3 stage_log=$4 stage_input=$5
	shift 5
	stage_start=$(now)
	TIMED_OUT=""
	if is_zero "$stage_limit"; then
		# Nothing starts, so there is no log, and no other stage's may be quoted.
		exec 9>&-
		TIMED_OUT=1
		STAGE_EXIT=124
		add_stage "$stage_name" "$stage_start" 124 true
		return 0
	fi
	open_pipes
	open_log "$stage_log"
	start_follower
	remember_processes
	launch "$@"
	[ -z "$LAUNCHED" ] || await_program "$stage_limit"
	if [ -n "$TERMINATED" ]; then
		# The kubelet does not wait long.
		end_new 2
	elif [ -n "$TIMED_OUT" ] || [ "$STAGE_LEFTOVERS" = end ]; then
		end_new "${STAGE_GRACE:-$KILL_GRACE}"
	fi
	drain_follower
	timed_out=false
	[ -z "$TIMED_OUT" ] || timed_out=true
	add_stage "$stage_name" "$stage_start" "$STAGE_EXIT" "$timed_out"
}

# open_log FILE: open it anew as descriptor 9. Never through a link that somebody may have put there: root would write where it leads.
open_log() {
	exec 9>&-
	tries=5
	set -C
	while [ "$tries" -gt 0 ]; do
		rm -rf "$1"
		if { command exec 9>"$1"; } 2>/dev/null && [ -f "$STAGE_LOG" ]; then
			set +C
			return 0
		fi
		tries=$((tries - 1))
	done
	set +C
	exec 9>"$PIPES/log"
}

# start_follower: what is written to the output pipe goes to the pod's log and to descriptor 9.
# The pipe may be opened anew by whoever holds it, as /dev/stderr is, hence its mode; its name lies where only root can go.
start_follower() {
	mkfifo -m 666 "$PIPES/output"
	# 5 keeps the pipe open until the program has it, 8 lets us see whether anything is left in it.
	exec 5<>"$PIPES/output"
	exec 8<"$PIPES/output"
	tee /proc/self/fd/9 <&8 4>&- 5>&- 6>&- 7>&- &
	FOLLOWER=$!
}

# launch PROGRAM...: start a program; sets LAUNCHED to its number and LAUNCHER to that of the process that waits for it, or
# LAUNCHED to nothing and STAGE_EXIT to 126.
launch() {
	LAUNCHES=$((LAUNCHES + 1))
	# -p names a file that is not there: without it the search for a running busybox would find ourselves, and start nothing.
	start-stop-daemon -S -b -p "$PIPES/none" -x "$TOOLS/busybox" -- sh "$TOOLS/runner/launch.sh" \
		"$PIPES" "$LAUNCHES" "$WORKDIR" "$stage_user" "$stage_input" "$STAGE_EXTRA" "$@" 4>&- 5>&- 6>&- 7>&- 8<&- 9>&- >&2
	STAGE_EXIT=126
	clock
	launch_end=$((CLOCK + 6000))
	until has_launched; do
		clock
		[ -z "$TERMINATED" ] && [ "$CLOCK" -lt "$launch_end" ] || break
		read -r -t 0.25 _ <&7
	done
	exec 5>&-
	rm -f "$PIPES/output"
}

# has_launched: whether the program runs, or ran; sets LAUNCHER and LAUNCHED.
has_launched() {
	LAUNCHED=""
	told="$PIPES/launched-$LAUNCHES"
	[ -f "$told" ] && read -r LAUNCHER LAUNCHED whole <"$told" && [ "$whole" = . ] || LAUNCHED=""
	[ -n "$LAUNCHED" ]
}

# has_ended: whether the program told of its end; sets STAGE_EXIT.
has_ended() {
	told="$PIPES/ended-$LAUNCHES"
	[ -f "$told" ] && read -r code whole <"$told" && [ "$whole" = . ] || return 1
	STAGE_EXIT=$code
}

# await_program SECONDS|none: wait for the program's end, its time limit or our own end; sets STAGE_EXIT.
await_program() {
	to_hundredths "$1"
	program_end=""
	clock
	[ -z "$HUNDREDTHS" ] || program_end=$((CLOCK + HUNDREDTHS))
	SLICE=0.25
	until has_ended; do
		# The clock and the flag are looked at again and again, so no signal can be lost between two commands.
		if [ -n "$TERMINATED" ]; then
			STAGE_EXIT=143
			return 0
		fi
		if [ -n "$program_end" ]; then
			clock
			if ! slice $((program_end - CLOCK)); then
				TIMED_OUT=1
				STAGE_EXIT=124
				return 0
			fi
		fi
		read -r -t "$SLICE" _ <&7
		jobs >/dev/null
		# A program that is root can end our helpers: then nobody is left to tell of its end.
		is_running "$FOLLOWER" || resume_follower
		is_running "$LAUNCHED" || is_running "$LAUNCHER" || {
			has_ended || STAGE_EXIT=137
			return 0
		}
	done
}

resume_follower() {
	tee -a /proc/self/fd/9 <&8 4>&- 6>&- 7>&- &
	FOLLOWER=$!
	KNOWN="$KNOWN$(look_at "$FOLLOWER" && printf '%s' "$FOLLOWER:$START") "
}

# drain_follower: wait until all that was written stands in the log, but not for a daemon that keeps the pipe open: it may
# write on until the pod ends. Nothing is left when the pipe is empty and its reader asleep, and still so a moment later.
drain_follower() {
	clock
	drain_end=$((CLOCK + 200))
	quiet=0
	while is_running "$FOLLOWER" && [ "$CLOCK" -lt "$drain_end" ] && [ "$quiet" -lt 3 ]; do
		nap 0.003
		clock
		if look_at "$FOLLOWER" && [ "$STATE" = S ] && ! read -r -t 0 _ <&8; then quiet=$((quiet + 1)); else quiet=0; fi
	done
	exec 8<&-
}

# end_if_terminated: the pod is being deleted or its deadline is over: say so and go.
end_if_terminated() {
	[ -n "$TERMINATED" ] || return 0
	FAULT=null
	set_fault TerminatedError "${1:-runner}" "" ""
	write_report "${2-}"
	exit 143
}
