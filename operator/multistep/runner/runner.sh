#!/.multistep/bin/busybox sh
# The entry point: `busybox sh runner.sh probe|seed|step|verify --key=value ... [-- argv]`. The README beside it is the contract.
# It runs as the container's first process, by our own static shell, so nothing that an agent does to the image can change it.
set -u

TOOLS=${0%/runner/*}
# The programs that users wrote get the image's PATH; the runner itself uses nothing but its own tools.
IMAGE_PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
PATH=$TOOLS/applets
export PATH

. "$TOOLS/runner/report.sh"
. "$TOOLS/runner/options.sh"
. "$TOOLS/runner/process.sh"
. "$TOOLS/runner/files.sh"
. "$TOOLS/runner/carry.sh"
. "$TOOLS/runner/collect.sh"

case ${1-} in
probe | seed | step | verify)
	ROLE=$1
	shift
	parse_options "$@"
	. "$TOOLS/runner/$ROLE.sh"
	run_role "$@"
	;;
*)
	echo "runner: there is no subcommand '${1-}': it is one of probe, seed, step, verify" >&2
	exit 64
	;;
esac
