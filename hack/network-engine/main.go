// The test cluster's network policy engine: sigs.k8s.io/kube-network-policies, with a kubeconfig instead of a pod's service account, and for
// kernels without nftables' queue expression (CONFIG_NFT_QUEUE): hack/cluster.sh sends the packets by iptables' NFQUEUE instead, which many
// more have. The engine's own attempt to make an nftables table then fails, is logged, and does no harm.
package main

import (
	"context"
	"flag"
	"os/signal"
	"syscall"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	node := flag.String("hostname-override", "", "name of the node")
	queue := flag.Int("nfqueue-id", 100, "number of the netfilter queue")
	klog.InitFlags(nil)
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		klog.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		klog.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods()
	controller, err := networkpolicy.NewController(client, factory.Networking().V1().NetworkPolicies(), factory.Core().V1().Namespaces(), pods,
		nil, nil, nil, nil, networkpolicy.Config{QueueID: *queue, NodeName: *node})
	if err != nil {
		klog.Fatal(err)
	}
	// A finished pod keeps its address in its status while another pod has it already. The engine would take the new pod, of which it knows
	// the address from the container runtime alone at first, for the old one, and apply the old one's policies.
	err = pods.Informer().SetTransform(func(object any) (any, error) {
		if pod, ok := object.(*v1.Pod); ok {
			pod.ManagedFields = nil
			if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
				pod.Status.PodIP, pod.Status.PodIPs = "", nil
			}
		}
		return object, nil
	})
	if err != nil {
		klog.Fatal(err)
	}
	factory.Start(ctx.Done())
	if err := controller.Run(ctx); err != nil {
		klog.Fatal(err)
	}
}
