# verify: the tests, in the filesystem as the agent left it, and the reward file handed back as it is.

RUN=/.multistep/run
PROBE=/.multistep/probe
LOG=/logs/verifier/test-stdout.txt
INLINE_BYTES=2000
LARGEST_BYTES=1048576
NO_REWARD=',"reward":null,"crlf":false'

run_role() {
	REPORT_ROLE=verifier
	# A separate verifier works where its image says.
	WORKDIR=${OPT_workdir:-$(readlink "/proc/$$/cwd")}
	[ -n "$OPT_user" ] || [ ! -f "$PROBE/user" ] || OPT_user=$(cat "$PROBE/user")
	KILL_GRACE=$OPT_kill_grace
	REWARD=null
	CRLF=false
	mkdir -p "$RUN"
	chmod 0700 "$RUN"
	if [ "$OPT_after_agent" = yes ]; then
		hold_turn verifier
		await_turn agent
		end_if_terminated verifier "$NO_REWARD"
		if [ -e "$TURN/no-verification" ]; then
			write_report "$NO_REWARD"
			exit 0
		fi
	fi
	run_tests
	end_if_terminated verifier "$NO_REWARD"
	carry_out || set_fault CarryError runner "" ""
	# A reward beside an error would only be mistaken for one that counts.
	[ "$FAULT" = null ] || REWARD=null
	write_report ",\"reward\":$REWARD,\"crlf\":$CRLF"
	exit 0
}

run_tests() {
	if ! carry_in; then
		set_fault CarryError runner "" ""
		return 0
	fi
	if ! user_exists "$OPT_user"; then
		say_fault UserNotFoundError runner "user $OPT_user"
		return 0
	fi
	open_logs /logs/agent /logs/artifacts /logs/verifier
	# What lies here is stale: a reward that somebody else wrote must never be read.
	if ! mkdir -p "$WORKDIR" 2>"$RUN/tests.log" ||
		! empty /logs/verifier 2>>"$RUN/tests.log" || ! bring_environment 2>>"$RUN/tests.log" ||
		! place_artifacts 2>>"$RUN/tests.log" || ! bring_tests 2>>"$RUN/tests.log"; then
		set_fault AddTestsDirError verifier "" "$RUN/tests.log"
		return 0
	fi
	end_if_terminated verifier "$NO_REWARD"
	! has_crlf /tests/test.sh || CRLF=true
	# Nothing may write to the reward file, or to our report, after it was read.
	STAGE_LEFTOVERS=end
	run_stage verifier "$OPT_user" "$OPT_timeout" "$LOG" /dev/null "$(image_shell)" -c /tests/test.sh
	end_if_terminated verifier "$NO_REWARD"
	if [ -n "$TIMED_OUT" ]; then
		set_fault VerifierTimeoutError verifier "" "$STAGE_LOG"
		return 0
	fi
	hand_over_reward
}

# bring_tests: where the image does not bring them, /tests is made anew, in the container's own layer: whatever lies there, the agent may have made it.
bring_tests() {
	[ "$OPT_tests" = upload ] || return 0
	rm -rf /tests && mkdir -m 755 /tests || return 1
	overlay /.multistep/tests/shared /tests && overlay /.multistep/tests/step /tests || return 1
	# A directory of that name is run, too, and fails as in the reference.
	if [ ! -e /tests/test.sh ]; then
		echo "there is no /tests/test.sh" >&2
		return 1
	fi
	chmod a+rx /tests /tests/test.sh
}

hand_over_reward() {
	for name in reward.json reward.txt; do
		if [ -e "/logs/verifier/$name" ]; then
			describe_reward "$name"
			return 0
		fi
	done
}

# describe_reward NAME: set REWARD to what the operator has to know of the file.
describe_reward() {
	file=/logs/verifier/$1
	kind="file" size=0 digest=null content=null
	if [ -d "$file" ]; then
		kind=directory
	elif [ ! -f "$file" ]; then
		kind=other
	else
		# A copy, because what a link leads to may change.
		head -c "$((LARGEST_BYTES + 1))" "$file" >"$RUN/reward"
		size=$(stat -c %s "$RUN/reward")
		if [ "$size" -gt "$LARGEST_BYTES" ]; then
			kind=tooLarge
			size=$(stat -L -c %s "$file")
		else
			hand_over_content
		fi
	fi
	REWARD="{\"name\":\"$1\",\"kind\":\"$kind\",\"size\":$size,\"sha256\":$digest,\"contentBase64\":$content}"
}

hand_over_content() {
	digest=$(sha256sum "$RUN/reward")
	digest=${digest%% *}
	if [ "$size" -le "$INLINE_BYTES" ]; then
		content=\"$(base64 <"$RUN/reward" | tr -d '\n')\"
	else
		# Too large for a termination message: it goes to the end of the log, and the digest says which is the real one.
		printf '\n-----BEGIN MULTISTEP REWARD %s-----\n' "$digest"
		base64 <"$RUN/reward"
		printf '\n-----END MULTISTEP REWARD %s-----\n' "$digest"
	fi
	digest=\"$digest\"
}
