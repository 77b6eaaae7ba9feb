# What the users' programs get as their environment: the container's, to the byte, whatever names the runner's variables have.
# A shell that was given LOG=debug and sets its own LOG would hand that on; one that was given `a.b=1` would drop it.

# quote TEXT: set QUOTED to TEXT as one quoted word. By the shell alone: there may be hundreds of variables.
quote() {
	_rest=$1
	QUOTED="'"
	while :; do
		case $_rest in
		*\'*)
			QUOTED="$QUOTED${_rest%%\'*}'\\''"
			_rest=${_rest#*\'}
			;;
		*) break ;;
		esac
	done
	QUOTED="$QUOTED$_rest'"
}

# take_environment: set ENVIRONMENT to the container's variables as quoted words, and forget them, so that none is mistaken for ours.
take_environment() {
	unset ENVIRONMENT TERMINATION_LOG
	TERMINATION_LOG=${MULTISTEP_TERMINATION_LOG:-/dev/termination-log}
	IMAGE_PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
	_image_path=$IMAGE_PATH
	_termination_log=$TERMINATION_LOG
	quote "PATH=$IMAGE_PATH"
	ENVIRONMENT=$QUOTED
	{
		while IFS= read -r -d '' _word; do
			_name=${_word%%=*}
			case $_name in
			"$_word" | MULTISTEP_TERMINATION_LOG | PATH) continue ;;
			esac
			quote "$_word"
			ENVIRONMENT="$ENVIRONMENT $QUOTED"
			case $_name in
			_* | [0-9]* | *[!A-Za-z0-9_]* | ENVIRONMENT | QUOTED | IFS | PPID | OPTIND) ;;
			*) unset "$_name" ;;
			esac
		done <"/proc/$$/environ"
	} 2>/dev/null
	unset MULTISTEP_TERMINATION_LOG
	IMAGE_PATH=$_image_path
	TERMINATION_LOG=$_termination_log
}
