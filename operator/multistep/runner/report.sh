# The termination message: one JSON object of at most 4,000 bytes, written last. Free text in it is base64.

TERMINATION_LOG=${MULTISTEP_TERMINATION_LOG:-/dev/termination-log}
unset MULTISTEP_TERMINATION_LOG
STAGES=""
FAULT=null

now() { date -u +%Y-%m-%dT%H:%M:%SZ; }

# json_string TEXT: print TEXT as a JSON string. Control characters cannot stand in any path or name that we report.
json_string() {
	printf '"%s"' "$(printf '%s' "$1" | tr '\001-\037\177' '?' | sed 's/\\/\\\\/g; s/"/\\"/g')"
}

# tail_base64 FILE: print the last 1,024 bytes of a file as base64.
tail_base64() { tail -c 1024 "$1" 2>/dev/null | base64 | tr -d '\n'; }

# add_stage NAME STARTED EXIT_CODE TIMED_OUT
add_stage() {
	entry=$(printf '{"name":"%s","startedAt":"%s","finishedAt":"%s","exitCode":%s,"timedOut":%s}' "$1" "$2" "$(now)" "$3" "$4")
	STAGES=$STAGES${STAGES:+,}$entry
}

# set_fault TYPE STAGE EXIT_CODE|"" OUTPUT_FILE|"" [CRLF]: the first fault is the one that counts.
set_fault() {
	[ "$FAULT" = null ] || return 0
	output=""
	[ -z "$4" ] || output=$(tail_base64 "$4")
	FAULT=$(printf '{"type":"%s","stage":"%s","exitCode":%s,"outputBase64":"%s","crlf":%s}' "$1" "$2" "${3:-null}" "$output" "${5:-false}")
}

# write_report EXTRA_FIELDS: write the message. EXTRA_FIELDS begin with a comma.
write_report() {
	printf '{"version":1,"role":"%s","stages":[%s],"error":%s%s}' "${REPORT_ROLE:-$ROLE}" "$STAGES" "$FAULT" "$1" >"$TERMINATION_LOG"
}

# write_fault TYPE STAGE EXIT_CODE|"" TEXT: report one fault with a text of our own.
write_fault() {
	FAULT=$(printf '{"type":"%s","stage":"%s","exitCode":%s,"outputBase64":"%s","crlf":false}' "$1" "$2" "${3:-null}" \
		"$(printf '%s' "$4" | tail -c 1024 | base64 | tr -d '\n')")
	write_report ""
}
