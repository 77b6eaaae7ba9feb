# step: workdir, setup.sh, healthcheck, agent - in this order, once.

RUN=/.multistep/run
INSTRUCTION=/.multistep/step/instruction.md
STEP_WORKDIR=/.multistep/step/workdir
SOLUTION=/.multistep/solution

run_role() {
	WORKDIR=$(option workdir /)
	AGENT_USER=$(option agent_user)
	KILL_GRACE=$(option kill_grace 10)
	chmod 0700 "$RUN"
	# Whatever made this pod start again, an expensive agent must not run twice.
	if ! mkdir "$RUN/started" 2>/dev/null; then
		write_fault StepAlreadyStartedError runner "" "the step was started before, at $(cat "$RUN/started-at" 2>/dev/null)"
		exit 0
	fi
	now >"$RUN/started-at"
	run_stages "$@"
	end_if_terminated agent
	carry_out || set_fault CarryError runner "" ""
	write_report ""
	exit 0
}

run_stages() {
	enter_filesystem "$AGENT_USER" || return 0
	open_logs /logs/agent /logs/artifacts
	SHELL_PROGRAM=$(image_shell)
	healthcheck environment || return 0
	if [ -d "$STEP_WORKDIR" ]; then
		started=$(now)
		if ! overlay "$STEP_WORKDIR" "$WORKDIR" 2>"$RUN/workdir.log"; then
			set_fault WorkdirError workdir "" "$RUN/workdir.log"
			return 0
		fi
		add_stage workdir "$started" 0 false
	fi
	setup || return 0
	healthcheck step || return 0
	end_if_terminated setup
	run_agent "$@"
	end_if_terminated agent
	run_hooks
	collect_artifacts
}

setup() {
	[ -f "$STEP_WORKDIR/setup.sh" ] || return 0
	run_stage setup "$AGENT_USER" "$(option setup_timeout none)" "$RUN/setup.log" /dev/null "$SHELL_PROGRAM" "$WORKDIR/setup.sh"
	end_if_terminated setup
	[ "$STAGE_EXIT" -ne 0 ] || [ -n "$TIMED_OUT" ] || return 0
	crlf=false
	! has_crlf "$STEP_WORKDIR/setup.sh" || crlf=true
	[ -z "$TIMED_OUT" ] || echo "setup.sh did not end within $(option setup_timeout) seconds and was ended" >>"$RUN/setup.log"
	set_fault SetupError setup "$STAGE_EXIT" "$RUN/setup.log" "$crlf"
	return 1
}

# healthcheck environment|step: like Docker's HEALTHCHECK. A try that hangs is ended and counts as a failure.
healthcheck() {
	command=$(option "healthcheck_$1_command")
	[ -n "$command" ] || return 0
	period=$(option "healthcheck_$1_start_period" 0)
	retries=$(option "healthcheck_$1_retries" 3)
	began=$(date +%s)
	failures=0
	saved_stages=$STAGES
	while :; do
		STAGES=$saved_stages
		limit=$(option "healthcheck_$1_timeout" 30)
		! is_zero "$limit" || limit=none
		run_stage healthcheck "$AGENT_USER" "$limit" "$RUN/healthcheck.log" /dev/null "$SHELL_PROGRAM" -c "$command"
		end_if_terminated healthcheck
		[ "$STAGE_EXIT" -ne 0 ] || [ -n "$TIMED_OUT" ] || return 0
		if [ "$(date +%s)" -lt "$((began + ${period%%.*}))" ]; then
			pause "$(option "healthcheck_$1_start_interval" 5)"
		else
			failures=$((failures + 1))
			if [ "$failures" -ge "$retries" ]; then
				[ -z "$TIMED_OUT" ] || echo "the last try did not end within $limit seconds" >>"$RUN/healthcheck.log"
				set_fault HealthcheckError healthcheck "$STAGE_EXIT" "$RUN/healthcheck.log"
				return 1
			fi
			pause "$(option "healthcheck_$1_interval" 5)"
		fi
		end_if_terminated healthcheck
	done
}

run_agent() {
	limit=$(option agent_timeout none)
	case $(option agent nop) in
	nop) ;;
	oracle) run_oracle "$limit" ;;
	command)
		[ "$COMMAND_AT" -gt 0 ] || bad_option "the command agent needs its program after --"
		shift "$((COMMAND_AT - 1))"
		MULTISTEP_INSTRUCTION_FILE=$INSTRUCTION
		MULTISTEP_STEP_NAME=$(option step_name)
		export MULTISTEP_INSTRUCTION_FILE MULTISTEP_STEP_NAME
		run_stage agent "$AGENT_USER" "$limit" /logs/agent/command.txt "$INSTRUCTION" "$@"
		judge_agent
		;;
	*) bad_option "there is no agent '$(option agent)'" ;;
	esac
}

run_oracle() {
	if [ ! -f "$SOLUTION/solve.sh" ]; then
		set_fault SolutionNotFoundError agent "" ""
		return 0
	fi
	rm -rf /solution
	overlay "$SOLUTION" /solution
	chmod a+rx /solution /solution/solve.sh
	DEBIAN_FRONTEND=noninteractive
	export DEBIAN_FRONTEND
	run_stage agent "$AGENT_USER" "$1" /logs/agent/oracle.txt /dev/null "$SHELL_PROGRAM" -c /solution/solve.sh
	# A solution that fails is no error of the agent: the tests say what it is worth, as in the reference.
	if [ -n "$TIMED_OUT" ]; then
		set_fault AgentTimeoutError agent "" /logs/agent/oracle.txt
	elif [ "$STAGE_EXIT" -ne 0 ]; then
		# Never through a link that the agent left there.
		rm -rf /logs/agent/exit-code.txt
		(set -C && echo "$STAGE_EXIT" >/logs/agent/exit-code.txt) 2>/dev/null
	fi
}

judge_agent() {
	if [ -n "$TIMED_OUT" ]; then
		set_fault AgentTimeoutError agent "" /logs/agent/command.txt
	elif [ "$STAGE_EXIT" -ne 0 ]; then
		set_fault NonZeroAgentExitCodeError agent "$STAGE_EXIT" /logs/agent/command.txt
	fi
}
