# How the cluster of cluster.sh ends: only what is certainly its own is touched. Read by cluster.sh.
# shellcheck shell=bash disable=SC2154

# pid_of NAME: the process of this cluster's daemon. The pid file may be of a session long gone, and its number some other process's by now.
pid_of() {
  local pid
  pid=$(cat "$RUN/$1.pid" 2>/dev/null) || return 1
  case $(readlink "/proc/$pid/exe" 2>/dev/null) in "$BIN/$1" | "$BIN/$1 (deleted)") echo "$pid" ;; *) return 1 ;; esac
}

# shims: the parents of this cluster's containers; they outlive containerd.
shims() {
  local directory
  for directory in /proc/[0-9]*; do
    case $(readlink "$directory/exe" 2>/dev/null) in "$BIN/containerd-shim-runc-v2"*) ;; *) continue ;; esac
    if tr '\0' '\n' <"$directory/cmdline" 2>/dev/null | grep -qxF "$RUN/containerd.sock"; then echo "${directory#/proc/}"; fi
  done
}

# ended NAME: wait for a daemon that was asked to end; after 5 seconds, kill it.
ended() {
  local pid
  for _ in $(seq 50); do pid_of "$1" >/dev/null || break; sleep .1; done
  if pid=$(pid_of "$1"); then kill -9 "$pid" 2>/dev/null || true; fi
  rm -f "$RUN/$1.pid"
}

# network_namespaces: of the sandboxes that still exist. Those of removed pods are gone already.
network_namespaces() {
  cat "$RUN"/containerd/state/io.containerd.runtime.v2.task/k8s.io/*/config.json 2>/dev/null | grep -oE '/(var/)?run/netns/cni-[0-9a-f-]+' | sort -u
}

# network_name: as the CNI plugins note it beside their rules.
network_name() { sed -n 's/.*"cniVersion":"[^"]*","name":"\([^"]*\)".*/\1/p' "$RUN/cni/10-bridge.conflist"; }

# remove_chains TABLE NETWORK: kube-proxy's and the kubelet's chains are named KUBE-*; of the CNI plugins' (others may use them too, podman
# for one) only those that our network's rules jump to. Other rules of the table stay.
remove_chains() {
  local saved rules chains
  saved=$(iptables-save -t "$1" 2>/dev/null) || return 0
  rules=$(grep -E '^-A (PREROUTING|INPUT|FORWARD|OUTPUT|POSTROUTING) ' <<<"$saved" | grep -E "name: \\\\\"$2\\\\\"|-j KUBE-") || true
  chains=$({ sed -nE 's/^:(KUBE-[^ ]+) .*/\1/p' <<<"$saved"; sed -nE 's/.* -j (CNI-[0-9a-f]{24})$/\1/p' <<<"$rules"; } | sort -u)
  [ -n "$chains$rules" ] || return 0
  {
    echo "*$1"
    awk 'NF {sub(/^-A/, "-D"); print}' <<<"$rules"
    awk 'NF {print "-F " $0}' <<<"$chains"
    awk 'NF {print "-X " $0}' <<<"$chains"
    echo COMMIT
  } | iptables-restore -w --noflush || say "some iptables rules of table $1 could not be removed"
}

# Everything that the cluster made outside its folder.
clean_machine() { # NETWORK_NAMESPACE...
  local table path
  for path in "$@"; do umount "$path" 2>/dev/null || true; rm -f "$path"; done
  ip link delete cni0 2>/dev/null || true
  "$BIN/kube-proxy" --cleanup >/dev/null 2>&1 || true
  for table in nat filter mangle; do remove_chains "$table" "$(network_name)"; done
  # What was just killed leaves its cgroup a moment later.
  for _ in $(seq 20); do
    find /sys/fs/cgroup/*"$CGROUP_ROOT"/kubepods -depth -type d -exec rmdir {} + 2>/dev/null && break
    compgen -G "/sys/fs/cgroup/*$CGROUP_ROOT/kubepods" >/dev/null || break
    sleep .1
  done
}

# volumes: where the data of this cluster's volumes is. The controller manager's provisioner has /tmp/hostpath_pv built in, which another
# cluster may share: so only those that our own API server knows.
volumes() {
  pid_of kube-apiserver >/dev/null || return 0
  timeout 5 kubectl --kubeconfig "$RUN/kubeconfig" get persistentvolumes -o jsonpath='{range .items[*]}{.spec.hostPath.path}{"\n"}{end}' 2>/dev/null |
    grep -E '^/tmp/hostpath_pv/[0-9a-f-]{36}$' || true
}

down() {
  local name pid task data namespaces=()
  [ -d "$RUN" ] || return 0
  cd "$RUN" || return
  data=$(volumes)
  for name in $DAEMONS; do if pid=$(pid_of "$name"); then kill "$pid" 2>/dev/null || true; fi; done
  mapfile -t namespaces < <(network_namespaces)
  if pid_of containerd >/dev/null; then
    for task in $(ctr -a "$RUN/containerd.sock" -n k8s.io tasks ls -q 2>/dev/null); do
      ctr -a "$RUN/containerd.sock" -n k8s.io tasks kill -s 9 "$task" >/dev/null 2>&1 || true
    done
    sleep 1
    kill "$(pid_of containerd)" 2>/dev/null || true
  fi
  for name in $DAEMONS containerd; do ended "$name"; done
  # A shim's children are its containers' first processes: with them ends all of a container, also where containerd was gone already.
  for pid in $(shims); do
    xargs -r kill -9 <"/proc/$pid/task/$pid/children" 2>/dev/null || true
    kill -9 "$pid" 2>/dev/null || true
  done
  awk -v run="$RUN/" 'index($2, run) == 1 {print $2}' /proc/mounts | sort -r | xargs -r -n1 umount -l
  # Written by `up` only when nothing else was in the way: without it, the bridge and the chains may be another cluster's.
  if [ -e cni/10-bridge.conflist ]; then clean_machine "${namespaces[@]}"; fi
  [ -z "$data" ] || xargs -r rm -rf --one-file-system <<<"$data"
  rmdir /tmp/hostpath_pv 2>/dev/null || true
  rm -f cni/10-bridge.conflist ready
}
