# step: workdir, setup.sh, healthcheck, agent - in this order, once.

RUN=/.multistep/run
INSTRUCTION=/.multistep/step/instruction.md
STEP_WORKDIR=/.multistep/step/workdir
MCP_CONFIG=/.multistep/mcp.json
SOLUTION=/.multistep/solution

run_role() {
	WORKDIR=${OPT_workdir:-/}
	AGENT_USER=$OPT_agent_user
	KILL_GRACE=$OPT_kill_grace
	[ "$OPT_before_verifier" = no ] || hold_turn agent
	# At most once: whatever made this pod start again, an expensive agent must not run twice.
	if ! mkdir -p "$RUN" || ! chmod 0700 "$RUN" || ! mkdir "$RUN/started" 2>/dev/null; then
		if [ -d "$RUN/started" ]; then
			say_fault StepAlreadyStartedError runner "the step was started before, at $(cat "$RUN/started-at" 2>/dev/null)"
		else
			say_fault RunnerError runner "the step's marker cannot be written to $RUN: is the volume full, or read-only?"
		fi
		leave
	fi
	now >"$RUN/started-at"
	run_stages "$@"
	end_if_terminated agent
	carry_out || set_fault CarryError runner "" ""
	leave
}

# leave: report and end; before a verifier in the other container only after it, so that what the agent left running stays for it.
# Being told to end from here on is about the verifier: the report is written.
leave() {
	write_report ""
	if [ "$OPT_before_verifier" = yes ]; then
		case $FAULT in
		null | *'"type":"AgentTimeoutError"'* | *'"type":"NonZeroAgentExitCodeError"'*) ;;
		*) : >"$TURN/no-verification" ;;
		esac
		end_turn
		await_turn verifier
	fi
	exit 0
}

run_stages() {
	if ! carry_in; then
		set_fault CarryError runner "" ""
		return 0
	fi
	if ! user_exists "$AGENT_USER"; then
		say_fault UserNotFoundError runner "user $AGENT_USER"
		return 0
	fi
	# What an earlier agent left in the place of the verifier's results is none of this one's business.
	empty /logs/verifier
	open_logs /logs/agent /logs/artifacts /logs/verifier
	if ! mkdir -p "$WORKDIR" 2>"$RUN/workdir.log"; then
		set_fault WorkdirError workdir "" "$RUN/workdir.log"
		return 0
	fi
	end_if_terminated runner
	if [ "$OPT_part" != agent ]; then
		set_up || return 0
		[ "$OPT_part" = all ] || return 0
	fi
	run_agent "$@"
	end_if_terminated agent
	run_hooks
	collect_artifacts
}

# set_up: what comes before the agent; where that has another network, in a pod of its own.
set_up() {
	if ! bring_environment 2>"$RUN/workdir.log"; then
		set_fault WorkdirError workdir "" "$RUN/workdir.log"
		return 1
	fi
	healthcheck environment || return 1
	copy_workdir || return 1
	end_if_terminated workdir
	setup || return 1
	healthcheck step || return 1
	end_if_terminated setup
}

copy_workdir() {
	[ -d "$STEP_WORKDIR" ] || return 0
	workdir_start=$(now)
	if ! overlay "$STEP_WORKDIR" "$WORKDIR" 2>"$RUN/workdir.log"; then
		set_fault WorkdirError workdir "" "$RUN/workdir.log"
		return 1
	fi
	add_stage workdir "$workdir_start" 0 false
}

setup() {
	script=${WORKDIR%/}/setup.sh
	# Only one that this step brought: an earlier step's stays in the working directory and is not run again.
	[ -e "$STEP_WORKDIR/setup.sh" ] || [ -L "$STEP_WORKDIR/setup.sh" ] || return 0
	run_stage setup "$AGENT_USER" "$OPT_setup_timeout" "$RUN/setup.log" /dev/null "$(image_shell)" "$script"
	end_if_terminated setup
	[ "$STAGE_EXIT" -ne 0 ] || [ -n "$TIMED_OUT" ] || return 0
	crlf=false
	! has_crlf "$script" || crlf=true
	[ -z "$TIMED_OUT" ] || echo "setup.sh did not end within $OPT_setup_timeout seconds and was ended" >>"$RUN/setup.log"
	set_fault SetupError setup "$STAGE_EXIT" "$RUN/setup.log" "$crlf"
	return 1
}

# healthcheck environment|step: like Docker's HEALTHCHECK. A try that hangs is ended and counts as a failure.
healthcheck() {
	eval "command=\$OPT_healthcheck_$1_command limit=\$OPT_healthcheck_$1_timeout period=\$OPT_healthcheck_$1_start_period
		retries=\$OPT_healthcheck_$1_retries interval=\$OPT_healthcheck_$1_interval start_interval=\$OPT_healthcheck_$1_start_interval"
	[ -n "$command" ] || return 0
	! is_zero "$limit" || limit=none
	health_start=$(now)
	stages_before=$STAGES
	to_hundredths "$period"
	clock
	period_end=$((CLOCK + ${HUNDREDTHS:-100000000000}))
	failures=0
	STAGE_GRACE=1
	while ! try_healthcheck; do
		clock
		if [ "$CLOCK" -lt "$period_end" ]; then
			pause "$start_interval"
		else
			failures=$((failures + 1))
			[ "$failures" -lt "$retries" ] || break
			pause "$interval"
		fi
		end_if_terminated healthcheck
	done
	STAGE_GRACE=""
	# One stage for all tries: a report has room for a few.
	timed_out=false
	[ -z "$TIMED_OUT" ] || timed_out=true
	STAGES=$stages_before
	add_stage healthcheck "$health_start" "$STAGE_EXIT" "$timed_out"
	[ "$STAGE_EXIT" -ne 0 ] || return 0
	[ -z "$TIMED_OUT" ] || echo "the last try did not end within $limit seconds" >>"$RUN/healthcheck.log"
	set_fault HealthcheckError healthcheck "$STAGE_EXIT" "$RUN/healthcheck.log"
	return 1
}

try_healthcheck() {
	STAGES=$stages_before
	run_stage healthcheck "$AGENT_USER" "$limit" "$RUN/healthcheck.log" /dev/null "$(image_shell)" -c "$command"
	end_if_terminated healthcheck
	[ "$STAGE_EXIT" -eq 0 ]
}

run_agent() {
	case $OPT_agent in
	oracle) run_oracle ;;
	command)
		shift "$((COMMAND_AT - 1))"
		quote "MULTISTEP_STEP_NAME=$OPT_step_name"
		STAGE_EXTRA="MULTISTEP_INSTRUCTION_FILE=$INSTRUCTION $QUOTED"
		hand_over_environment
		run_stage agent "$AGENT_USER" "$OPT_agent_timeout" /logs/agent/command.txt "$INSTRUCTION" "$@"
		STAGE_EXTRA=""
		if [ -n "$TIMED_OUT" ]; then
			set_fault AgentTimeoutError agent "" "$STAGE_LOG"
		elif [ "$STAGE_EXIT" -ne 0 ]; then
			set_fault NonZeroAgentExitCodeError agent "$STAGE_EXIT" "$STAGE_LOG"
		fi
		;;
	esac
}

# hand_over_environment: tell the agent of the task's MCP servers and skills.
hand_over_environment() {
	if [ -n "$OPT_mcp_config" ]; then
		printf '%s\n' "$OPT_mcp_config" >"$MCP_CONFIG"
		STAGE_EXTRA="$STAGE_EXTRA MULTISTEP_MCP_CONFIG_FILE=$MCP_CONFIG"
	fi
	[ -n "$OPT_skills_dir" ] || return 0
	quote "MULTISTEP_SKILLS_DIR=$OPT_skills_dir"
	STAGE_EXTRA="$STAGE_EXTRA $QUOTED"
}

run_oracle() {
	# With no time at all the reference does not get to look for the solution.
	if ! is_zero "$OPT_agent_timeout"; then
		if [ ! -f "$SOLUTION/solve.sh" ]; then
			set_fault SolutionNotFoundError agent "" ""
			return 0
		fi
		rm -rf /solution
		if ! overlay "$SOLUTION" /solution 2>"$RUN/solution.log"; then
			set_fault WorkdirError agent "" "$RUN/solution.log"
			return 0
		fi
		chmod a+rx /solution /solution/solve.sh
	fi
	STAGE_EXTRA=DEBIAN_FRONTEND=noninteractive
	run_stage agent "$AGENT_USER" "$OPT_agent_timeout" /logs/agent/oracle.txt /dev/null "$(image_shell)" -c /solution/solve.sh
	STAGE_EXTRA=""
	# A solution that fails is no error of the agent: the tests say what it is worth, as in the reference.
	if [ -n "$TIMED_OUT" ]; then
		set_fault AgentTimeoutError agent "" "$STAGE_LOG"
	elif [ "$STAGE_EXIT" -ne 0 ]; then
		# Never through a link that the agent left there.
		rm -rf /logs/agent/exit-code.txt
		(set -C && printf %s "$STAGE_EXIT" >/logs/agent/exit-code.txt) 2>/dev/null
	fi
}
