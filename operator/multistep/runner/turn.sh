# Two containers of one pod that take turns: the agent's, then the verifier's, while what the agent left running lives on.
# Each holds its pipe open as long as it is at work. The kernel closes it when the holder is gone, however that came.

TURN=/.multistep/turn

# hold_turn NAME: keep others waiting for as long as we live, and say that we are there.
hold_turn() {
	rm -rf "$TURN/$1.pipe"
	mkfifo -m 600 "$TURN/$1.pipe" || return 1
	exec 4<>"$TURN/$1.pipe"
	: >"$TURN/$1.there"
}

# end_turn: let the other one go on.
end_turn() { exec 4>&-; }

# await_turn NAME: wait until NAME was there and is done, or is gone. The kubelet starts the containers one after another.
await_turn() {
	open_pipes
	while [ -z "$TERMINATED" ] && [ ! -e "$TURN/$1.there" ]; do nap 0.1; done
	[ -z "$TERMINATED" ] || return 0
	# Opening a pipe waits for a writer, and there may be none any more: so we are one ourselves for a moment.
	exec 5<>"$TURN/$1.pipe"
	exec 3<"$TURN/$1.pipe"
	exec 5>&-
	cat <&3 >/dev/null 4>&- 6>&- 7>&- &
	turn_waiter=$!
	exec 3<&-
	while [ -z "$TERMINATED" ] && is_running "$turn_waiter"; do nap 0.1; done
	! is_running "$turn_waiter" || kill "$turn_waiter" 2>/dev/null
}
