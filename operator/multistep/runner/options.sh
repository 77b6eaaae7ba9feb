# Flags: `--some-key=value` sets OPT_some_key (and OPT_artifact_1, OPT_artifact_2, ... for what may be given more than once);
# after `--` comes the agent's command, whose position is kept in COMMAND_AT. All is checked before anything runs.

HEALTHCHECK_KEYS="command interval timeout start_period start_interval retries"

# set_defaults: set KNOWN_OPTIONS to what the role takes, and every one to its default.
set_defaults() {
	OPT_workdir="" OPT_persistence="" OPT_step_name="" OPT_user="" OPT_agent_user="" OPT_agent=""
	OPT_timeout=none OPT_agent_timeout=none OPT_setup_timeout=none OPT_kill_grace=10
	OPT_part=all OPT_before_verifier=no OPT_after_agent=no OPT_tests=upload OPT_mcp_config="" OPT_skills_dir=""
	for _when in environment step; do
		eval "OPT_healthcheck_${_when}_command='' OPT_healthcheck_${_when}_interval=5 OPT_healthcheck_${_when}_timeout=30
			OPT_healthcheck_${_when}_start_period=0 OPT_healthcheck_${_when}_start_interval=5 OPT_healthcheck_${_when}_retries=3"
	done
	case $ROLE in
	probe) KNOWN_OPTIONS="" ;;
	seed) KNOWN_OPTIONS=" persistence workdir " ;;
	verify) KNOWN_OPTIONS=" workdir user timeout kill_grace step_name tests place after_agent " ;;
	step)
		KNOWN_OPTIONS=" workdir agent_user agent agent_timeout setup_timeout kill_grace step_name artifact collect part before_verifier mcp_config skills_dir "
		for _when in environment step; do
			for _key in $HEALTHCHECK_KEYS; do KNOWN_OPTIONS="${KNOWN_OPTIONS}healthcheck_${_when}_$_key "; done
		done
		;;
	esac
}

parse_options() {
	set_defaults
	COMMAND_AT=0 ARTIFACT_COUNT=0 COLLECT_COUNT=0 PLACE_COUNT=0
	position=0
	for word in "$@"; do
		position=$((position + 1))
		case $word in
		--)
			COMMAND_AT=$((position + 1))
			break
			;;
		--*=*) parse_option "$word" ;;
		*) bad_option "'$word' is no flag of the form --key=value" ;;
		esac
	done
	check_options "$#"
}

parse_option() {
	key=${1%%=*}
	key=${key#--}
	flag=$key
	case $key in *[!a-z-]* | "") bad_option "unknown flag --$flag" ;; esac
	# By the shell alone: a step must not spend its time on starting programs for us.
	while :; do
		case $key in
		*-*) key=${key%%-*}_${key#*-} ;;
		*) break ;;
		esac
	done
	case $KNOWN_OPTIONS in
	*" $key "*) ;;
	*) bad_option "unknown flag --$flag: $ROLE does not take it" ;;
	esac
	value=${1#*=}
	case $key in
	*_interval | *timeout | *_period | kill_grace) is_seconds "$value" || bad_option "--$flag: '$value' is no number of seconds" ;;
	*_retries) is_integer "$value" || bad_option "--$flag: '$value' is no whole number" ;;
	part) is_one_of "$value" all setup agent || bad_option "--part: '$value' is none of all, setup, agent" ;;
	tests) is_one_of "$value" upload bundled || bad_option "--tests: '$value' is neither upload nor bundled" ;;
	before_verifier | after_agent) is_one_of "$value" yes no || bad_option "--$flag: '$value' is neither yes nor no" ;;
	# These may be given more than once.
	artifact) ARTIFACT_COUNT=$((ARTIFACT_COUNT + 1)) && key=artifact_$ARTIFACT_COUNT ;;
	place) PLACE_COUNT=$((PLACE_COUNT + 1)) && key=place_$PLACE_COUNT ;;
	collect) COLLECT_COUNT=$((COLLECT_COUNT + 1)) && key=collect_$COLLECT_COUNT ;;
	esac
	eval "OPT_$key=\$value"
}

# check_options WORDS: what only shows when all flags were read.
check_options() {
	case $ROLE in
	seed)
		case $OPT_persistence in
		Filesystem | Workdir) ;;
		*) bad_option "--persistence: '$OPT_persistence' is neither Filesystem nor Workdir" ;;
		esac
		;;
	step)
		case $OPT_agent in
		nop | oracle) ;;
		command) [ "$COMMAND_AT" -gt 0 ] && [ "$1" -ge "$COMMAND_AT" ] || bad_option "--agent=command needs its program after --" ;;
		*) bad_option "--agent: '$OPT_agent' is none of nop, oracle, command" ;;
		esac
		;;
	esac
	case $OPT_workdir in
	"" | /*) ;;
	*) bad_option "--workdir: '$OPT_workdir' is no absolute path" ;;
	esac
}

# is_one_of VALUE WORD...
is_one_of() {
	for _word in "$2" "$3" "${4-$2}"; do [ "$1" != "$_word" ] || return 0; done
	return 1
}

is_seconds() {
	case $1 in
	none | inf | +inf | -inf | nan) ;;
	-*) is_seconds "${1#-}" ;;
	"" | . | *[!0-9.]* | *.*.*) return 1 ;;
	esac
}

is_integer() {
	case ${1#-} in
	"" | *[!0-9]* | ???????????????????*) return 1 ;;
	esac
}

bad_option() {
	echo "runner: $1" >&2
	FAULT=null
	say_fault RunnerError options "$1"
	write_report ""
	exit 64
}
