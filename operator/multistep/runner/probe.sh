# probe: runs as the image's own user and says who that is.

run_role() {
	uid=$(id -u)
	passwd_gid=$(awk -F: -v uid="$uid" '$3 == uid { print $4; exit }' /etc/passwd 2>/dev/null)
	write_report "$(printf ',"user":{"uid":%s,"gid":%s,"passwdGid":%s}' "$uid" "$(id -g)" "${passwd_gid:-null}")"
}
