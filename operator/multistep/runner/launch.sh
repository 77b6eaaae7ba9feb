# Between the runner and a user's program; started by stage.sh, as root, in a session of its own.
# A shell's background job ignores INT and QUIT for ever, and so would all that it starts: `kill -INT` on a server would do nothing.
# This one is started as a daemon and runs the program in its foreground, with all signals as a container's first process has them.
# Arguments: PIPES WORKDIR USER INPUT EXTRA_VARIABLES PROGRAM...
pipes=$1 workdir=$2 user=$3 input=$4 extra=$5
shift 5
tools=${0%/runner/*}

exec 7>"$pipes/status" 8>"$pipes/output"
[ -z "$user" ] || set -- "$tools/gosu" "$user" "$@"
eval "set -- $extra \"\$@\""
. "$pipes/environment"
(
	# Our own number and the program's, which this subshell becomes.
	read -r pid _ </proc/self/stat
	echo "$$ $pid" >&7
	exec 7>&- 8>&-
	cd "$workdir" || exit 126
	exec "$tools/busybox" env -i -- "$@"
) <"$input" >&8 2>&1
code=$?
exec 8>&-
echo "$code" >&7
