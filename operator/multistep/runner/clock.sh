# Time, by the shell alone: in hundredths of a second, from the kernel's own clock, which nobody sets back.

PIPES=/dev/.multistep

# clock: set CLOCK to the hundredths of a second since the machine started.
clock() {
	read -r CLOCK _ </proc/uptime
	CLOCK=${CLOCK%.*}${CLOCK#*.}
	CLOCK=${CLOCK#0}
}

# to_hundredths SECONDS: set HUNDREDTHS; empty where there is no limit. The reference takes not-a-number for no time at all.
to_hundredths() {
	HUNDREDTHS=""
	case $1 in
	none | inf | +inf) return 0 ;;
	-* | nan)
		HUNDREDTHS=0
		return 0
		;;
	esac
	_whole=${1%%.*}
	_part=""
	case $1 in *.*) _part=${1#*.} ;; esac
	while :; do
		case $_whole in 0*) _whole=${_whole#0} ;; *) break ;; esac
	done
	# Thirty years are for ever, and would not fit the shell's numbers much longer.
	[ "${#_whole}" -le 9 ] || return 0
	_part=${_part}00
	HUNDREDTHS=$((${_whole:-0} * 100 + 1${_part%"${_part#??}"} - 100))
	case $HUNDREDTHS/$1 in 0/*[1-9]*) HUNDREDTHS=1 ;; esac
}

# is_zero SECONDS: whether a time limit leaves no time at all.
is_zero() {
	to_hundredths "$1"
	[ "$HUNDREDTHS" = 0 ]
}

# open_pipes: make the place of our pipes, where nobody but root can reach them.
# 6 is never written to: waiting for it is a sleep that starts no program and that a signal ends. 7 tells of programs' ends.
open_pipes() {
	[ -z "${PIPES_OPEN-}" ] || return 0
	PIPES_OPEN=1
	rm -rf "$PIPES"
	mkdir -m 700 "$PIPES"
	printf 'set -- %s "$@"\n' "$ENVIRONMENT" >"$PIPES/environment"
	mkfifo -m 600 "$PIPES/never" "$PIPES/status"
	exec 6<>"$PIPES/never" 7<>"$PIPES/status"
}

# nap SECONDS: sleep for a moment, and let the kernel forget the dead that were left to us as the container's first process.
nap() {
	open_pipes
	read -r -t "$1" _ <&6
	jobs >/dev/null
}

# pause SECONDS: sleep, but wake up when we are told to end.
pause() {
	to_hundredths "$1"
	clock
	pause_end=$((CLOCK + ${HUNDREDTHS:-100000000000}))
	while [ -z "$TERMINATED" ]; do
		clock
		slice $((pause_end - CLOCK)) || return 0
		nap "$SLICE"
	done
}

# slice HUNDREDTHS: set SLICE to the seconds to sleep at a time: a quarter of one, or what is left. Fails when nothing is.
slice() {
	[ "$1" -gt 0 ] || return 1
	SLICE=0.25
	if [ "$1" -lt 10 ]; then SLICE=0.0$1; elif [ "$1" -lt 25 ]; then SLICE=0.$1; fi
}
