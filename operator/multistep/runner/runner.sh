#!/.multistep/bin/busybox sh
# The entry point: `busybox sh runner.sh probe|seed|step|verify --key=value ... [-- argv]`. The README beside it is the contract.
# It runs as the container's first process, by our own static shell, so nothing that an agent does to the image can change it.
set -u

. "${0%/runner/*}/runner/environment.sh"
take_environment

TOOLS=${0%/runner/*}
# The runner itself uses nothing but its own tools.
PATH=$TOOLS/applets
export PATH
umask 022

. "$TOOLS/runner/report.sh"
. "$TOOLS/runner/options.sh"
. "$TOOLS/runner/clock.sh"
. "$TOOLS/runner/process.sh"
. "$TOOLS/runner/stage.sh"
. "$TOOLS/runner/files.sh"
. "$TOOLS/runner/carry.sh"
. "$TOOLS/runner/collect.sh"
. "$TOOLS/runner/turn.sh"
. "$TOOLS/runner/place.sh"

ROLE=${1-}
case $ROLE in
probe | seed | step | verify)
	shift
	parse_options "$@"
	. "$TOOLS/runner/$ROLE.sh"
	run_role "$@"
	;;
*)
	ROLE=none
	bad_option "there is no subcommand '${1-}': it is one of probe, seed, step, verify"
	;;
esac
