# Between the runner and a user's program; started by stage.sh, as root, in a session of its own.
# A shell's background job ignores INT and QUIT for ever, and so would all that it starts: `kill -INT` on a server would do nothing.
# This one is started as a daemon and runs the program in its foreground, with all signals as a container's first process has them.
# What there is to tell stands in files, whose text ends in a dot once it is whole; the pipe only wakes the runner up. A `read -t`
# whose time is over in the middle of a line forgets what it has of it.
# Arguments: PIPES NUMBER WORKDIR USER INPUT EXTRA_VARIABLES PROGRAM...
pipes=$1 number=$2 workdir=$3 user=$4 input=$5 extra=$6
shift 6
tools=${0%/runner/*}

exec 7>"$pipes/status" 8>"$pipes/output"
[ -z "$user" ] || set -- "$tools/gosu" "$user" "$@"
eval "set -- $extra \"\$@\""
. "$pipes/environment"
(
	# Our own number and the program's, which this subshell becomes.
	read -r pid _ </proc/self/stat
	echo "$$ $pid ." >"$pipes/launched-$number"
	echo >&7
	exec 7>&- 8>&-
	cd "$workdir" || exit 126
	exec "$tools/busybox" env -i -- "$@"
) <"$input" >&8 2>&1
code=$?
exec 8>&-
echo "$code ." >"$pipes/ended-$number"
echo >&7
