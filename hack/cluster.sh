#!/usr/bin/env bash
# A real single-node Kubernetes for tests, built from Go modules: API server, scheduler, controllers, kubelet, containerd, kube-proxy,
# a network policy engine, Helm.
#   hack/cluster.sh build | up | down | status | env | load ARCHIVE...
# State and binaries live under $CLUSTER_DIR (default ~/.cache/multistep-cluster). The first build takes 10 to 20 minutes on 2 cores, a start
# from the cache about 10 seconds. Needs root, Linux, Go 1.26 and a Debian-like system; tried with cgroup v1 and without systemd.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
. "$REPOSITORY/hack/cluster_down.sh"

KUBERNETES=37.2 CONTAINERD=v2.4.2 ETCD=v3.7.3 HELM=v4.3.1 RUNC=v1.5.3
# Not among those whose change makes everything anew: it is built alone.
NETWORK_POLICIES=v0.8.0
GO_NEEDED=1.26
BIN=$CLUSTER_DIR/bin RUN=$CLUSTER_DIR/run
export PATH=$BIN:$PATH
DAEMONS="kube-network-policies kubelet kube-proxy kube-scheduler kube-controller-manager kube-apiserver etcd"
PORTS="6443 2379 2380 10250 10257 10259 10256"
# Where the kubelet makes the cgroups of pods; "" is the root. Another one lets two clusters live on one machine (in network namespaces).
CGROUP_ROOT=${CLUSTER_CGROUP:-}

# go_tools DIRECTORY @VERSION|"" PACKAGE...: build programs in a module of their own.
go_tools() {
  local directory=$CLUSTER_DIR/src/$1 pin=$2 package
  shift 2
  mkdir -p "$directory"
  cd "$directory"
  [ -f go.mod ] || printf 'module local/tools\n\ngo 1.26.0\n' >go.mod
  for package in "$@"; do go get -tool "$package$pin"; done
  # By way of a folder of its own: a build that is interrupted must not leave half a program in $BIN.
  rm -rf "$BIN.new"
  mkdir -p "$BIN.new"
  for package in "$@"; do go build -trimpath -ldflags "-s -w ${LDFLAGS:-}" -o "$BIN.new/" "$package"; done
  # Go names a program after the last part of its path, which for etcd depends on the Go version.
  for package in v3 server; do [ ! -e "$BIN.new/$package" ] || mv "$BIN.new/$package" "$BIN.new/etcd"; done
  mv -f "$BIN.new"/* "$BIN/"
}

# k8s.io/kubernetes takes its staging modules by a relative replace: pin each to the matching v0.x release.
kubernetes_module() {
  local module
  mkdir -p "$CLUSTER_DIR/src/k8s"
  module=$(go mod download -json "k8s.io/kubernetes@v1.$KUBERNETES" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
  {
    echo "module local/tools"
    grep -m1 '^go ' "$module"
    echo "require k8s.io/kubernetes v1.$KUBERNETES"
    echo "replace ("
    grep -oE 'k8s.io/[a-z0-9-]+ => ./staging' "$module" | awk '{print $1}' | sort -u | sed "s#.*#& => & v0.$KUBERNETES#"
    echo ")"
  } >"$CLUSTER_DIR/src/k8s/go.mod"
}

build_kubernetes() {
  local version="-X k8s.io/component-base/version" name
  kubernetes_module
  export LDFLAGS="$version.gitVersion=v1.$KUBERNETES $version.gitMajor=1 $version.gitMinor=${KUBERNETES%.*}"
  for name in kubectl kubelet kube-apiserver kube-controller-manager kube-scheduler kube-proxy; do
    [ -x "$BIN/$name" ] || progress "building $name" go_tools k8s "" "k8s.io/kubernetes/cmd/$name"
  done
  unset LDFLAGS
}

build_runc() {
  mkdir -p "$CLUSTER_DIR/src/runc"
  cd "$CLUSTER_DIR/src/runc"
  [ -f go.mod ] || printf 'module local/tools\n\ngo 1.26.0\n' >go.mod
  go get -tool "github.com/opencontainers/runc@$RUNC"
  CGO_ENABLED=1 go build -trimpath -tags seccomp -o "$BIN/runc.new" github.com/opencontainers/runc
  mv -f "$BIN/runc.new" "$BIN/runc"
}

# What the engine in $BIN must be made from.
network_engine_stamp() { echo "$NETWORK_POLICIES $(sha256sum <"$REPOSITORY/hack/network-engine/main.go" | cut -c1-16)"; }

network_engine_built() {
  [ -x "$BIN/kube-network-policies" ] && [ "$(cat "$BIN/kube-network-policies.version" 2>/dev/null)" = "$(network_engine_stamp)" ]
}

build_network_engine() {
  rm -rf "$CLUSTER_DIR/src/network-engine"
  mkdir -p "$CLUSTER_DIR/src/network-engine"
  cd "$CLUSTER_DIR/src/network-engine"
  cp "$REPOSITORY/hack/network-engine/main.go" .
  printf 'module local/network-engine\n\ngo 1.26.0\n' >go.mod
  go get "sigs.k8s.io/kube-network-policies@$NETWORK_POLICIES"
  CGO_ENABLED=0 go build -mod=mod -trimpath -ldflags "-s -w" -o "$BIN/kube-network-policies.new" .
  mv -f "$BIN/kube-network-policies.new" "$BIN/kube-network-policies"
  network_engine_stamp >"$BIN/kube-network-policies.version"
}

# The image of the pods' sandboxes: one static program that sleeps.
build_pause() {
  mkdir -p "$CLUSTER_DIR/pause"
  cd "$CLUSTER_DIR/pause"
  printf '%s\n' '#include <signal.h>' '#include <unistd.h>' 'static void stop(int s){(void)s;_exit(0);}' \
    'int main(void){signal(SIGTERM,stop);signal(SIGINT,stop);for(;;)pause();}' >pause.c
  gcc -static -Os -o pause pause.c
  printf 'FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n' >Containerfile
  buildah bud -q -t localhost/pause:1 .
  rm -f "$CLUSTER_DIR/pause.tar"
  buildah push -q localhost/pause:1 "oci-archive:$CLUSTER_DIR/pause.tar:localhost/pause:1"
}

check_go() {
  local found
  found=$(go env GOVERSION 2>/dev/null | sed 's/^go//') || true
  [ "$(printf '%s\n' "$GO_NEEDED" "${found:-0}" | sort -V | head -1)" = "$GO_NEEDED" ] ||
    fail "the cluster is built with Go $GO_NEEDED or newer (found: ${found:-none}): install it, or point at your own cluster with CONTEXT=name"
}

# A cluster whose programs are all there needs no compiler, so this is looked at before Go is.
built() {
  local program
  [ "$(cat "$CLUSTER_DIR/versions" 2>/dev/null)" = "$1" ] && [ -s "$CLUSTER_DIR/pause.tar" ] || return 1
  for program in $DAEMONS kubectl containerd containerd-shim-runc-v2 ctr helm runc; do [ -x "$BIN/$program" ] || return 1; done
  network_engine_built
}

build() {
  local stamp="$KUBERNETES $CONTAINERD $ETCD $HELM $RUNC"
  [ "$(id -u)" = 0 ] || fail "the cluster needs root; or point at your own with CONTEXT=name"
  apt_install /usr/lib/cni/bridge=containernetworking-plugins buildah=buildah busybox=busybox-static iptables=iptables \
    openssl=openssl ip=iproute2 gcc=gcc /usr/include/seccomp.h=libseccomp-dev pkg-config=pkg-config /usr/include/stdio.h=libc6-dev
  if built "$stamp"; then return 0; fi
  check_go
  if [ -f "$CLUSTER_DIR/versions" ] && [ "$(cat "$CLUSTER_DIR/versions")" != "$stamp" ]; then rm -rf "$BIN" "$CLUSTER_DIR/src"; fi
  mkdir -p "$BIN"
  export CGO_ENABLED=0
  [ -x "$BIN/kubelet" ] && [ -x "$BIN/runc" ] || say "Building Kubernetes 1.$KUBERNETES from Go modules (10 to 20 minutes, once)"
  build_kubernetes
  [ -x "$BIN/containerd-shim-runc-v2" ] && [ -x "$BIN/ctr" ] || progress "building containerd" \
    go_tools containerd "@$CONTAINERD" github.com/containerd/containerd/v2/cmd/{containerd,containerd-shim-runc-v2,ctr}
  [ -x "$BIN/etcd" ] || progress "building etcd" go_tools etcd "@$ETCD" go.etcd.io/etcd/server/v3
  [ -x "$BIN/helm" ] || progress "building helm" go_tools helm "@$HELM" helm.sh/helm/v4/cmd/helm
  [ -x "$BIN/runc" ] || progress "building runc" build_runc
  network_engine_built || progress "building the network policy engine" build_network_engine
  [ -s "$CLUSTER_DIR/pause.tar" ] || progress "building the pause image" build_pause
  echo "$stamp" >"$CLUSTER_DIR/versions"
}

spawn() {
  local name=$1
  shift
  setsid "$@" >"logs/$name.log" 2>&1 </dev/null 9>&- &
  echo $! >"$name.pid"
}

# wait_for TENTHS COMMAND...: try until it succeeds.
wait_for() {
  local tries=$1
  shift
  while ! "$@" >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { tail -n 15 "$RUN"/logs/*.log >&2; fail "this did not come true in time: $*"; }
    sleep .1
  done
}

certificate() { # NAME SUBJECT ALTERNATIVE_NAMES
  openssl req -newkey rsa:2048 -nodes -subj "$2" -keyout "pki/$1.key" -out "pki/$1.csr" 2>/dev/null
  openssl x509 -req -in "pki/$1.csr" -CA pki/ca.crt -CAkey pki/ca.key -CAcreateserial -days 365 -out "pki/$1.crt" \
    -extfile <(printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth' "$3") 2>/dev/null
}

kubeconfig() { # NAME
  printf '%s\n' 'apiVersion: v1' 'kind: Config' 'current-context: local' \
    "clusters: [{name: local, cluster: {server: 'https://$ADDRESS:6443', certificate-authority: '$RUN/pki/ca.crt'}}]" \
    "users: [{name: user, user: {client-certificate: '$RUN/pki/$1.crt', client-key: '$RUN/pki/$1.key'}}]" \
    'contexts: [{name: local, context: {cluster: local, user: user}}]'
}

# Also the mark that the bridge, the chains and the cgroups of this machine are this cluster's: `down` takes them away where it finds this file.
configure_network() {
  cat >cni/10-bridge.conflist <<K
{"cniVersion":"1.0.0","name":"multistep","plugins":[{"type":"bridge","bridge":"cni0","isGateway":true,"ipMasq":true,"hairpinMode":true,
"ipam":{"type":"host-local","dataDir":"$RUN/cni-state","ranges":[[{"subnet":"10.244.0.0/23"}]],"routes":[{"dst":"0.0.0.0/0"}]}},
{"type":"portmap","capabilities":{"portMappings":true}}]}
K
}

start_control_plane() {
  spawn etcd etcd --data-dir etcd --unsafe-no-fsync --listen-client-urls http://127.0.0.1:2379 \
    --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380
  spawn kube-apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 --secure-port=6443 --advertise-address="$ADDRESS" \
    --service-cluster-ip-range=10.96.0.0/16 --client-ca-file=pki/ca.crt --tls-cert-file=pki/apiserver.crt \
    --tls-private-key-file=pki/apiserver.key --service-account-issuer=https://kubernetes.default.svc \
    --service-account-key-file=pki/sa.key --service-account-signing-key-file=pki/sa.key --authorization-mode=Node,RBAC \
    --enable-admission-plugins=NodeRestriction --allow-privileged --kubelet-client-certificate=pki/admin.crt \
    --kubelet-client-key=pki/admin.key --kubelet-preferred-address-types=InternalIP
  wait_for 600 kubectl get --raw /readyz
  # kubernetes.io/host-path: the controller manager's own provisioner, good for one node; it makes 'standard' work without another program.
  spawn kube-controller-manager kube-controller-manager --kubeconfig=kubeconfig --service-account-private-key-file=pki/sa.key \
    --root-ca-file=pki/ca.crt --use-service-account-credentials --leader-elect=false --enable-hostpath-provisioner \
    --allocate-node-cidrs --cluster-cidr=10.244.0.0/16
  spawn kube-scheduler kube-scheduler --kubeconfig=kubeconfig --leader-elect=false
  spawn kube-proxy kube-proxy --kubeconfig=kubeconfig --cluster-cidr=10.244.0.0/16 --hostname-override=node-1 --proxy-mode=iptables \
    --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0 --conntrack-tcp-timeout-close-wait=0
}

start_containerd() {
  # restrict_oom_score_adj: root may lack CAP_SYS_RESOURCE, and without it runc cannot lower the sandbox's score.
  cat >containerd.toml <<K
version = 3
root = "$RUN/containerd/root"
state = "$RUN/containerd/state"
[grpc]
  address = "$RUN/containerd.sock"
[ttrpc]
  address = "$RUN/containerd.ttrpc"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "localhost/pause:1"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "$RUN/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "$BIN/runc"
      SystemdCgroup = false
K
  spawn containerd containerd -c containerd.toml
  wait_for 200 ctr -a "$RUN/containerd.sock" version
  ctr -a "$RUN/containerd.sock" -n k8s.io images import "$CLUSTER_DIR/pause.tar" >/dev/null 2>&1
}

start_kubelet() {
  # failCgroupV1: false lets the kubelet start where only cgroup v1 is mounted. Local images must never be collected: nothing could pull
  # them again; and a full disk of the build machine is no reason to evict.
  cat >kubelet.yaml <<K
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: ${CGROUP_ROOT:-/}
failSwapOn: false
enforceNodeAllocatable: []
evictionHard: {memory.available: 100Mi, nodefs.available: 0%, imagefs.available: 0%, nodefs.inodesFree: 0%, imagefs.inodesFree: 0%}
imageGCHighThresholdPercent: 100
maxPods: 400
containerRuntimeEndpoint: unix://$RUN/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $RUN/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $RUN/pki/node.crt
tlsPrivateKeyFile: $RUN/pki/node.key
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
K
  spawn kubelet kubelet --kubeconfig=node.kubeconfig --config=kubelet.yaml --hostname-override=node-1 --node-ip="$ADDRESS" \
    --root-dir="$RUN/kubelet"
  wait_for 600 sh -c 'kubectl get node node-1 | grep -qw Ready'
  wait_for 100 kubectl get serviceaccount default
}

# The engine decides about the first packet of each connection from and to pods; what a connection was allowed once, it keeps. Also of those
# to the node itself (the API server among them), as most engines do; not of the node's own, or the kubelet could not probe. Without the
# engine nothing passes. The chain's name makes it one of those that `down` removes.
start_network_engine() {
  local chain=KUBE-NETWORK-POLICY pods=10.244.0.0/23
  [ "$(cat /proc/sys/net/bridge/bridge-nf-call-iptables 2>/dev/null)" = 1 ] || echo 1 2>/dev/null >/proc/sys/net/bridge/bridge-nf-call-iptables ||
    fail "network policies cannot be enforced: iptables does not see what passes the bridge of the pods (is br_netfilter in this kernel?)"
  spawn kube-network-policies kube-network-policies --kubeconfig=kubeconfig --hostname-override=node-1 --nfqueue-id=100
  wait_for 300 network_engine_settled
  pid_of kube-network-policies >/dev/null || fail "the network policy engine ended: $(tail -n 3 logs/kube-network-policies.log)"
  if iptables -w -t mangle -S "$chain" >/dev/null 2>&1; then return 0; fi
  {
    printf '%s\n' '*mangle' ":$chain - [0:0]" "-A $chain -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN" \
      "-A $chain -s $pods -j NFQUEUE --queue-num 100" "-A $chain -d $pods -j NFQUEUE --queue-num 100" \
      "-A POSTROUTING -m owner ! --uid-owner 0 -j $chain" "-A INPUT -s $pods -j $chain" COMMIT
  } | iptables-restore -w --noflush ||
    fail "network policies cannot be enforced: iptables cannot queue packets here (the kernel needs CONFIG_NETFILTER_XT_TARGET_NFQUEUE)"
}

# Listening, or gone.
network_engine_settled() {
  ! pid_of kube-network-policies || grep -qE '^ *100 ' /proc/net/netfilter/nfnetlink_queue
}

# `ready` is written when a start went all the way: a node alone may lack the StorageClass.
is_up() { [ -f "$RUN/ready" ] && KUBECONFIG=$RUN/kubeconfig timeout 5 kubectl get node node-1 2>/dev/null | grep -qw Ready; }

# Another cluster on this machine (of another CLUSTER_DIR, or not ours at all) must be told, not fought with.
check_nothing_in_the_way() {
  local port
  for port in $PORTS; do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      fail "port $port is in use: another cluster runs here. End it (hack/cluster.sh down, with its CLUSTER_DIR), or use it with CONTEXT=name"
    fi
  done
  if ip link show cni0 >/dev/null 2>&1; then fail "the network device cni0 exists and is not of the cluster in $CLUSTER_DIR"; fi
}

up() {
  build
  if is_up; then
    cd "$RUN"
    # A cluster that was started before there was an engine, or whose engine ended.
    pid_of kube-network-policies >/dev/null || start_network_engine
    return 0
  fi
  say "Starting the cluster"
  down
  check_nothing_in_the_way
  rm -rf --one-file-system "$RUN"
  mkdir -p "$RUN"/{pki,logs,containerd,kubelet,cni}
  cd "$RUN"
  ADDRESS=$(ip -4 route get 192.0.2.1 | sed -n 's/.* src \([0-9.]*\).*/\1/p' | head -1)
  openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=ca -keyout pki/ca.key -out pki/ca.crt 2>/dev/null
  openssl genrsa -out pki/sa.key 2048 2>/dev/null
  certificate apiserver /CN=kube-apiserver "DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:$ADDRESS,IP:10.96.0.1"
  certificate admin "/O=system:masters/CN=admin" DNS:admin
  certificate node "/O=system:nodes/CN=system:node:node-1" "DNS:node-1,IP:$ADDRESS"
  kubeconfig node >node.kubeconfig
  kubeconfig admin >kubeconfig
  export KUBECONFIG=$RUN/kubeconfig
  configure_network
  start_control_plane
  start_containerd
  start_network_engine
  start_kubelet
  kubectl create -f - >/dev/null <<K
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: standard, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: kubernetes.io/host-path
K
  touch ready
  say "The cluster is up: Kubernetes 1.$KUBERNETES, one node"
}

# Import images into the node's containerd.
load() {
  local archive
  for archive in "$@"; do
    ctr -a "$RUN/containerd.sock" -n k8s.io images import --all-platforms "$archive" >/dev/null
  done
}

environment() { echo "export KUBECONFIG=$RUN/kubeconfig PATH=$BIN:\$PATH"; }

status() {
  local name
  for name in $DAEMONS containerd; do printf '%-26s %s\n' "$name" "$(pid_of "$name" || echo "not running")"; done
  if is_up; then echo "ready: $(environment)"; else echo "not up"; return 1; fi
}

# Two checkouts share a CLUSTER_DIR by default: one at a time builds, starts or ends it.
alone() {
  mkdir -p "$CLUSTER_DIR"
  exec 9>"$CLUSTER_DIR/lock"
  flock -n 9 || { say "Waiting for another run of hack/cluster.sh"; flock 9; }
}

case ${1-} in
build | up | down) alone; "$1" ;;
status) status ;;
env) environment ;;
load) shift; load "$@" ;;
*) fail "usage: hack/cluster.sh build | up | down | status | env | load ARCHIVE..." ;;
esac
