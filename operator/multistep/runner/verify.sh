# verify: the tests, in the filesystem as the agent left it, and the reward file handed back as it is.

RUN=/.multistep/run
LOG=/logs/verifier/test-stdout.txt
INLINE_BYTES=2000
LARGEST_BYTES=1048576

run_role() {
	REPORT_ROLE=verifier
	WORKDIR=$(option workdir /)
	USER_NAME=$(option user)
	KILL_GRACE=$(option kill_grace 10)
	REWARD=null
	CRLF=false
	mkdir -p "$RUN"
	chmod 0700 "$RUN"
	run_tests
	end_if_terminated verifier
	carry_out || set_fault CarryError runner "" ""
	# A reward beside an error would only be mistaken for one that counts.
	[ "$FAULT" = null ] || REWARD=null
	write_report ",\"reward\":$REWARD,\"crlf\":$CRLF"
	exit 0
}

run_tests() {
	enter_filesystem "$USER_NAME" || return 0
	open_logs /logs/agent /logs/artifacts /logs/verifier
	# What lies here is stale: a reward that somebody else wrote must never be read.
	find /logs/verifier -mindepth 1 -maxdepth 1 -exec rm -rf {} +
	rm -rf /tests
	mkdir /tests
	if ! overlay /.multistep/tests/shared /tests 2>"$RUN/tests.log" || ! overlay /.multistep/tests/step /tests 2>>"$RUN/tests.log"; then
		set_fault AddTestsDirError verifier "" "$RUN/tests.log"
		return 0
	fi
	if [ ! -f /tests/test.sh ]; then
		echo "there is no /tests/test.sh" >"$RUN/tests.log"
		set_fault AddTestsDirError verifier "" "$RUN/tests.log"
		return 0
	fi
	chmod a+rx /tests /tests/test.sh
	! has_crlf /tests/test.sh || CRLF=true
	run_stage verifier "$USER_NAME" "$(option timeout none)" "$LOG" /dev/null "$(image_shell)" -c /tests/test.sh
	end_if_terminated verifier
	if [ -n "$TIMED_OUT" ]; then
		set_fault VerifierTimeoutError verifier "" "$LOG"
		return 0
	fi
	# Nothing may write to the reward file, or to our report, after it was read.
	end_new
	hand_over_reward
}

hand_over_reward() {
	for name in reward.json reward.txt; do
		if [ -e "/logs/verifier/$name" ]; then
			describe_reward "$name"
			return 0
		fi
	done
}

describe_reward() {
	file=/logs/verifier/$1
	if [ -d "$file" ]; then
		REWARD=$(printf '{"name":"%s","kind":"directory","size":0}' "$1")
		return 0
	fi
	if [ ! -f "$file" ]; then
		REWARD=$(printf '{"name":"%s","kind":"other","size":0}' "$1")
		return 0
	fi
	# A copy, because what a link leads to may change.
	head -c "$((LARGEST_BYTES + 1))" "$file" >"$RUN/reward"
	size=$(wc -c <"$RUN/reward" | tr -d ' ')
	if [ "$size" -gt "$LARGEST_BYTES" ]; then
		REWARD=$(printf '{"name":"%s","kind":"tooLarge","size":%s}' "$1" "$size")
		return 0
	fi
	digest=$(sha256sum "$RUN/reward" | cut -d ' ' -f 1)
	content=null
	if [ "$size" -le "$INLINE_BYTES" ]; then
		content=\"$(base64 <"$RUN/reward" | tr -d '\n')\"
	else
		# Too large for a termination message: it goes to the end of the log, and the digest says which is the real one.
		printf '\n-----BEGIN MULTISTEP REWARD %s-----\n' "$digest"
		base64 <"$RUN/reward"
		printf '\n-----END MULTISTEP REWARD %s-----\n' "$digest"
	fi
	REWARD=$(printf '{"name":"%s","kind":"file","size":%s,"sha256":"%s","contentBase64":%s}' "$1" "$size" "$digest" "$content")
}
