# What is kept of a step: [[verifier.collect]] hooks, then the artifacts, with a manifest of all that was tried.

ARTIFACTS_ROOT=/.multistep/artifacts
CONVENTION=/logs/artifacts

# run_hooks: commands between agent and collection, each with a user and a time limit of its own. A hook that fails is no error.
run_hooks() {
	[ "${COLLECT_COUNT:-0}" -gt 0 ] || return 0
	hooks_start=$(now)
	# One stage for all of them: a report has room for a few.
	stages_before=$STAGES
	number=1
	while [ "$number" -le "$COLLECT_COUNT" ]; do
		eval "hook=\$OPT_collect_$number"
		hook_limit=$(line "$hook" 1)
		hook_user=$(line "$hook" 2)
		run_stage collect "$hook_user" "$hook_limit" "$RUN/collect-$number.log" /dev/null "$(image_shell)" -c "$(printf '%s\n' "$hook" | tail -n +3)"
		end_if_terminated collect
		number=$((number + 1))
	done
	TIMED_OUT=""
	STAGES=$stages_before
	add_stage collect "$hooks_start" 0 false
}

# collect_artifacts: copy each source to its place below the step's artifacts. What cannot be copied is recorded and no error.
collect_artifacts() {
	[ -d "$ARTIFACTS_ROOT" ] || return 0
	entries=""
	number=1
	while [ "$number" -le "${ARTIFACT_COUNT:-0}" ]; do
		eval "artifact=\$OPT_artifact_$number"
		collect_artifact 2>>"$RUN/artifacts.log"
		entries=$entries${entries:+,}$entry
		number=$((number + 1))
	done
	rm -rf "$ARTIFACTS_ROOT/manifest.json"
	printf '[%s]\n' "$entries" >"$ARTIFACTS_ROOT/manifest.json"
}

# collect_artifact: of $artifact, whose lines are: what to do, source, destination, the entry's first and last JSON fields, exclusions.
collect_artifact() {
	source=$(line "$artifact" 2)
	target=$ARTIFACTS_ROOT/$(line "$artifact" 3)
	exclusions=$(printf '%s\n' "$artifact" | tail -n +6)
	kind="file"
	! (cd "$WORKDIR" 2>/dev/null && [ -d "$source" ]) || kind=directory
	case $(line "$artifact" 1) in
	skipped-*)
		kind=$(line "$artifact" 1)
		kind=${kind#skipped-}
		state=skipped
		;;
	in-place)
		kind="directory"
		state=ok
		[ -n "$(ls -A "$CONVENTION" 2>/dev/null)" ] || state=empty
		;;
	*) if copy_artifact; then state=ok; else state=failed; fi ;;
	esac
	entry=$(printf '{%s,"type":"%s","status":"%s",%s}' "$(line "$artifact" 4)" "$kind" "$state" "$(line "$artifact" 5)")
}

# copy_artifact: what is reached through links is read as the agent's user, or a link could bring out what root alone may read.
# Links within a directory stay links.
copy_artifact() {
	cd "$WORKDIR" || return 1
	[ -e "$source" ] || return 1
	reader=$AGENT_USER
	[ "$(readlink -f "$source")" != "${source%/}" ] || reader=""
	rm -rf "$target"
	if [ "$kind" = directory ]; then
		mkdir -p "$target" || return 1
		copy_directory
	else
		mkdir -p "${target%/*}" || return 1
		(exec_as "$reader" "$TOOLS/busybox" cat "$source") >"$target" || { rm -f "$target" && return 1; }
		[ -n "$reader" ] || chmod "$(stat -c %a "$source")" "$target"
	fi
}

# copy_directory: without exclusions by tar; with them by find and cpio, because Debian's busybox has a tar that knows none.
# A pattern means what it does for GNU tar's --exclude: it may begin at any part of the path, and `*` matches a slash, too.
copy_directory() {
	(
		set -o pipefail
		if [ -z "$exclusions" ]; then
			(exec_as "$reader" "$TOOLS/busybox" tar -cf - -C "$source" .) | tar -xpf - -C "$target"
			exit
		fi
		set -- -path / # which nothing below . is
		while IFS= read -r pattern; do
			set -- "$@" -o -path "./$pattern" -o -path "./*/$pattern"
		done <<-EXCLUSIONS
			$exclusions
		EXCLUSIONS
		cd "$source" || exit 1
		(exec_as "$reader" "$TOOLS/busybox" find . -mindepth 1 "(" "$@" ")" -prune -o -mindepth 1 -print0) |
			(exec_as "$reader" "$TOOLS/busybox" cpio -0 -o -H newc) | (cd "$target" && cpio -idmu)
	)
}

# line TEXT NUMBER: print one line of a text.
line() { printf '%s\n' "$1" | sed -n "$2p"; }
