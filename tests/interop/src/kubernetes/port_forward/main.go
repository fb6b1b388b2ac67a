// Manages the members of an etcd as Cluster API's control plane does: through ports of Pods.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"os"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/tools/clientcmd"

	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/etcd"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/proxy"
)

type report struct {
	Leader  uint64             `json:"leader"`
	Members []*etcd.Member     `json:"members"`
	Alarms  []etcd.MemberAlarm `json:"alarms"`
	Left    []*etcd.Member     `json:"left"`
	Refused string             `json:"refused"`
	Absent  string             `json:"absent"`
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func main() {
	config := must(clientcmd.BuildConfigFromFlags("", os.Args[1]))
	certificate := must(tls.LoadX509KeyPair(os.Args[2], os.Args[3]))
	connect := func(pod string) (*etcd.Client, error) {
		return etcd.NewClient(context.Background(), etcd.ClientConfiguration{
			Endpoint: pod,
			Proxy:    proxy.Proxy{Kind: "pods", Namespace: "kube-system", KubeConfig: config, Port: 2379},
			TLSConfig: &tls.Config{
				Certificates:       []tls.Certificate{certificate},
				InsecureSkipVerify: true,
			},
			CallTimeout: 5 * time.Second,
			Logger:      zap.NewNop(),
		})
	}
	ctx := context.Background()
	client := must(connect("etcd-a"))
	answer := report{Leader: client.LeaderID}
	answer.Members = must(client.Members(ctx))
	answer.Alarms = must(client.Alarms(ctx))
	if err := client.MoveLeader(ctx, 2); err != nil {
		panic(err)
	}
	if err := client.RemoveMember(ctx, 3); err != nil {
		panic(err)
	}
	answer.Left = must(client.Members(ctx))
	answer.Refused = client.RemoveMember(ctx, 3).Error()
	if _, err := connect("etcd-z"); err != nil {
		answer.Absent = err.Error()
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		panic(err)
	}
}
