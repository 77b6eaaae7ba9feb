#!/usr/bin/env bash
# From nothing to a finished trial: a cluster, the operator by Helm, examples/hello, and its rewards.
#   hack/demo.sh [CONTEXT] [IMAGE]
# With a context: your cluster, and IMAGE has to be pulled by it. Else kind, where a Docker engine answers; else the cluster of hack/cluster.sh.
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
CONTEXT=${1-} IMAGE=${2-}
cd "$REPOSITORY"

use_context() {
  [ -n "$IMAGE" ] || fail "on your own cluster the operator's image must come from a registry: push it and call make demo CONTEXT=$CONTEXT IMAGE=registry/name:tag"
  KUBECTL=(kubectl --context "$CONTEXT")
  HELM=(helm --kube-context "$CONTEXT")
}

use_kind() {
  IMAGE=$OPERATOR_IMAGE
  kind get clusters 2>/dev/null | grep -qx multistep || kind create cluster --name multistep
  progress "building the operator's image" hack/images.sh image "$IMAGE"
  kind load docker-image "$IMAGE" --name multistep
  KUBECTL=(kubectl --context kind-multistep)
  HELM=(helm --kube-context kind-multistep)
}

use_own_cluster() {
  IMAGE=$OPERATOR_IMAGE
  hack/cluster.sh up
  say "Building the images"
  hack/images.sh all
  eval "$(hack/cluster.sh env)"
  KUBECTL=(kubectl)
  HELM=(helm)
}

if [ -n "$CONTEXT" ]; then
  use_context
elif command -v kind >/dev/null 2>&1 && docker info >/dev/null 2>&1; then
  use_kind
else
  use_own_cluster
fi

say "Installing the operator with Helm"
"${HELM[@]}" upgrade --install multistep-operator charts/multistep-operator --namespace multistep-system --create-namespace \
  --set image.repository="${IMAGE%:*}" --set image.tag="${IMAGE##*:}" --wait --timeout 3m >/dev/null
"${KUBECTL[@]}" -n multistep-system rollout restart deployment/multistep-operator >/dev/null
"${KUBECTL[@]}" -n multistep-system rollout status deployment/multistep-operator --timeout 2m >/dev/null

say "kubectl apply -f examples/hello/"
"${KUBECTL[@]}" delete mst hello --ignore-not-found >/dev/null
"${KUBECTL[@]}" apply -f examples/hello/

"${KUBECTL[@]}" get mst hello --watch &
watcher=$!
trap 'kill "$watcher" 2>/dev/null || true' EXIT
"${KUBECTL[@]}" wait --for=condition=Reconciling=False mst/hello --timeout=5m >/dev/null || fail "the trial did not end: kubectl describe mst hello"
sleep 1
kill "$watcher" 2>/dev/null || true
wait "$watcher" 2>/dev/null || true

say "The steps"
"${KUBECTL[@]}" get mst hello -o jsonpath='{range .status.steps[*]}{.index}{"\t"}{.name}{"\t"}{.phase}{"\t"}{.rewards}{"\n"}{end}'
say "The trial"
"${KUBECTL[@]}" get mst hello -o jsonpath='{.status.phase}: {.status.message}{"\n"}rewards {.status.rewards}, {.status.gradedSteps} of {.status.totalSteps} steps graded, valid: {.status.rewardValid}{"\n"}'
[ "$("${KUBECTL[@]}" get mst hello -o jsonpath='{.status.phase}')" = Succeeded ]
