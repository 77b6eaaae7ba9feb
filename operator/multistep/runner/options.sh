# Flags: `--some-key=value` sets OPT_some_key (and OPT_artifact_1, OPT_artifact_2, ... for what may be given more than once); after `--` comes the agent's command, whose position is kept in COMMAND_AT.

KNOWN_OPTIONS=" persistence workdir agent_user agent agent_timeout setup_timeout kill_grace step_name user timeout artifact collect
 healthcheck_environment_command healthcheck_environment_interval healthcheck_environment_timeout
 healthcheck_environment_start_period healthcheck_environment_start_interval healthcheck_environment_retries
 healthcheck_step_command healthcheck_step_interval healthcheck_step_timeout
 healthcheck_step_start_period healthcheck_step_start_interval healthcheck_step_retries "

parse_options() {
	COMMAND_AT=0
	ARTIFACT_COUNT=0
	COLLECT_COUNT=0
	position=0
	for word in "$@"; do
		position=$((position + 1))
		case $word in
		--)
			COMMAND_AT=$((position + 1))
			return 0
			;;
		--*=*)
			key=${word%%=*}
			key=${key#--}
			# By the shell alone: a step must not spend its time on starting programs for us.
			while :; do
				case $key in
				*-*) key=${key%%-*}_${key#*-} ;;
				*) break ;;
				esac
			done
			case $key in
			*[!a-z_]*) bad_option "unknown flag --$key" ;;
			esac
			case $KNOWN_OPTIONS in
			*[[:space:]]"$key"[[:space:]]*) ;;
			*) bad_option "unknown flag --$key" ;;
			esac
			value=${word#*=}
			# These two may be given more than once.
			case $key in
			artifact) ARTIFACT_COUNT=$((ARTIFACT_COUNT + 1)) && key=artifact_$ARTIFACT_COUNT ;;
			collect) COLLECT_COUNT=$((COLLECT_COUNT + 1)) && key=collect_$COLLECT_COUNT ;;
			esac
			eval "OPT_$key=\$value"
			;;
		*) bad_option "'$word' is no flag of the form --key=value" ;;
		esac
	done
}

bad_option() {
	echo "runner: $1" >&2
	write_fault RunnerError options "" "$1"
	exit 64
}

# option NAME [DEFAULT]: print the value of a flag.
option() {
	eval "printf '%s' \"\${OPT_$1-\${2-}}\""
}
