# The termination message: one JSON object of at most 4,000 bytes, written last. Free text in it is base64.

STAGES=""
FAULT=null
REPORT_ROLE=""
LARGEST_REPORT=4000

now() { date -u +%Y-%m-%dT%H:%M:%SZ; }

# json_string TEXT: print TEXT as a JSON string of ASCII alone; fails where TEXT is not UTF-8.
json_string() {
	case $1 in
	*[!A-Za-z0-9/._\ -]*) printf '%s' "$1" | hexdump -v -e '/1 "%u\n"' | json_bytes ;;
	*) printf '"%s"' "$1" ;;
	esac
}

# json_bytes: bytes as numbers in, a JSON string out.
json_bytes() {
	awk '
		function emit(code) {
			if (code == 34 || code == 92) printf "\\%c", code
			else if (code >= 32 && code < 127) printf "%c", code
			else if (code < 65536) printf "\\u%04x", code
			else printf "\\u%04x\\u%04x", 55296 + int((code - 65536) / 1024), 56320 + (code - 65536) % 1024
		}
		function wrong() { bad = 1; emit(65533); left = 0 }
		BEGIN { printf "\"" }
		{
			byte = $1
			if (left > 0 && byte >= 128 && byte < 192) {
				code = code * 64 + byte - 128
				if (--left == 0) {
					if (code < lowest || code > 1114111 || (code >= 55296 && code < 57344)) wrong()
					else emit(code)
				}
				next
			}
			if (left > 0) wrong()
			if (byte < 128) emit(byte)
			else if (byte >= 194 && byte < 224) { left = 1; lowest = 128; code = byte - 192 }
			else if (byte >= 224 && byte < 240) { left = 2; lowest = 2048; code = byte - 224 }
			else if (byte >= 240 && byte < 245) { left = 3; lowest = 65536; code = byte - 240 }
			else wrong()
		}
		END { if (left > 0) wrong(); printf "\""; exit bad }
	'
}

# tail_base64 FILE: print the last 1,024 bytes of a file as base64.
tail_base64() { tail -c 1024 "$1" 2>/dev/null | base64 | tr -d '\n'; }

# add_stage NAME STARTED EXIT_CODE TIMED_OUT
add_stage() {
	STAGES="$STAGES${STAGES:+,}{\"name\":\"$1\",\"startedAt\":\"$2\",\"finishedAt\":\"$(now)\",\"exitCode\":$3,\"timedOut\":$4}"
}

# set_fault TYPE STAGE EXIT_CODE|"" OUTPUT_FILE|"" [CRLF]: the first fault is the one that counts.
set_fault() {
	[ "$FAULT" = null ] || return 0
	output=""
	[ -z "$4" ] || output=$(tail_base64 "$4")
	FAULT="{\"type\":\"$1\",\"stage\":\"$2\",\"exitCode\":${3:-null},\"outputBase64\":\"$output\",\"crlf\":${5:-false}}"
}

# say_fault TYPE STAGE TEXT: a fault with a text of our own.
say_fault() {
	[ "$FAULT" = null ] || return 0
	output=$(printf '%s' "$3" | tail -c 1024 | base64 | tr -d '\n')
	FAULT="{\"type\":\"$1\",\"stage\":\"$2\",\"exitCode\":null,\"outputBase64\":\"$output\",\"crlf\":false}"
}

# write_report EXTRA_FIELDS: write the message. EXTRA_FIELDS begin with a comma. What does not fit is an error, never half a message.
write_report() {
	report="{\"version\":1,\"role\":\"${REPORT_ROLE:-$ROLE}\",\"stages\":[$STAGES],\"error\":$FAULT$1}"
	if [ "${#report}" -gt "$LARGEST_REPORT" ]; then
		FAULT=null
		say_fault RunnerError runner "the report has ${#report} bytes; at most $LARGEST_REPORT fit into a termination message"
		report="{\"version\":1,\"role\":\"${REPORT_ROLE:-$ROLE}\",\"stages\":[],\"error\":$FAULT}"
	fi
	printf '%s' "$report" >"$TERMINATION_LOG"
}
