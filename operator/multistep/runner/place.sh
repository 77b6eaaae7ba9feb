# What a separate verifier gets of the agent's environment: the collected artifacts, each at its source path, and nothing else.

ARTIFACTS=/.multistep/artifacts

# place_artifacts: of $OPT_place_1, $OPT_place_2, ..., whose lines are: path below the artifacts, path in this container.
place_artifacts() {
	number=1
	while [ "$number" -le "$PLACE_COUNT" ]; do
		eval "place=\$OPT_place_$number"
		from=$ARTIFACTS/${place%%
*}
		to=${place#*
}
		number=$((number + 1))
		case $to in /*) ;; *) to=${WORKDIR%/}/$to ;; esac
		# What was not collected is not there. A link on the way was made by the agent, and leads to something of the verifier's own.
		[ "$(readlink -f "$from")" = "$from" ] || continue
		if [ -d "$from" ]; then
			place_directory "$from" "${to%/}" || return 1
		elif [ -f "$from" ]; then
			place_file "$from" "$to" || return 1
		fi
	done
}

# place_file FROM TO
place_file() {
	case $2 in /*/*) mkdir -p "${2%/*}" && chmod a+rwx "${2%/*}" || return 1 ;; esac
	rm -rf "$2"
	cp "$1" "$2" && chmod ug-s,go-w "$2"
}

# place_directory FROM TO: what is in TO is replaced. Root owns all of it; nothing is setuid; links out of it and devices are left out.
place_directory() {
	mkdir -p "$2" && chmod a+rwx "$2" || return 1
	find "$2" -mindepth 1 -maxdepth 1 -exec rm -rf {} + || return 1
	cp -dR "$1/." "$2/" || return 1
	find "$2" -mindepth 1 ! -type f ! -type d ! -type l -exec rm -f {} + || return 1
	find "$2" -mindepth 1 ! -type l -exec chmod ug-s,go-w {} + || return 1
	find "$2" -type l -exec "$TOOLS/busybox" sh -c '
		root=$(readlink -f "$1")
		shift
		for link; do
			# An absolute target is the agent'"'"'s environment by name and ours by content.
			case $(readlink "$link") in /*) rm -f "$link" && continue ;; esac
			case $(readlink -f "$link") in "$root"/* | "$root") ;; *) rm -f "$link" ;; esac
		done
	' sh "$2" {} +
}
