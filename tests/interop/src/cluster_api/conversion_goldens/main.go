// Converts objects of Cluster API between v1beta1 and v1beta2, one JSON object per line, as upstream's webhooks do.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime/schema"

	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	bootstrap "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/conversion"
	controlplane "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	core "sigs.k8s.io/cluster-api/core/webhooks/conversion"
)

type question struct {
	To     string          `json:"to"`
	Kind   string          `json:"kind"`
	Object json.RawMessage `json:"object"`
}

type answer struct {
	Object any    `json:"object,omitempty"`
	Error  string `json:"error,omitempty"`
}

type convert func(to string, object []byte) (any, error)

func between[Old, New any](
	up func(context.Context, *Old, *New) error,
	down func(context.Context, *New, *Old) error,
) convert {
	return func(to string, object []byte) (any, error) {
		older, newer := new(Old), new(New)
		if to == "v1beta2" {
			if err := json.Unmarshal(object, older); err != nil {
				return nil, err
			}
			return newer, up(context.Background(), older, newer)
		}
		if err := json.Unmarshal(object, newer); err != nil {
			return nil, err
		}
		return older, down(context.Background(), newer, older)
	}
}

var kinds = map[string]convert{
	"Cluster":                     between[clusterv1beta1.Cluster, clusterv1.Cluster](core.ConvertClusterV1Beta1ToHub, core.ConvertClusterHubToV1Beta1),
	"Machine":                     between[clusterv1beta1.Machine, clusterv1.Machine](core.ConvertMachineV1Beta1ToHub, core.ConvertMachineHubToV1Beta1),
	"MachineSet":                  between[clusterv1beta1.MachineSet, clusterv1.MachineSet](core.ConvertMachineSetV1Beta1ToHub, core.ConvertMachineSetHubToV1Beta1),
	"MachineDeployment":           between[clusterv1beta1.MachineDeployment, clusterv1.MachineDeployment](core.ConvertMachineDeploymentV1Beta1ToHub, core.ConvertMachineDeploymentHubToV1Beta1),
	"MachinePool":                 between[clusterv1beta1.MachinePool, clusterv1.MachinePool](core.ConvertMachinePoolV1Beta1ToHub, core.ConvertMachinePoolHubToV1Beta1),
	"MachineHealthCheck":          between[clusterv1beta1.MachineHealthCheck, clusterv1.MachineHealthCheck](core.ConvertMachineHealthCheckV1Beta1ToHub, core.ConvertMachineHealthCheckHubToV1Beta1),
	"ClusterClass":                between[clusterv1beta1.ClusterClass, clusterv1.ClusterClass](core.ConvertClusterClassV1Beta1ToHub, core.ConvertClusterClassHubToV1Beta1),
	"MachineDrainRule":            between[clusterv1beta1.MachineDrainRule, clusterv1.MachineDrainRule](core.ConvertMachineDrainRuleV1Beta1ToHub, core.ConvertMachineDrainRuleHubToV1Beta1),
	"ClusterResourceSet":          between[addonsv1beta1.ClusterResourceSet, addonsv1.ClusterResourceSet](core.ConvertClusterResourceSetV1Beta1ToHub, core.ConvertClusterResourceSetHubToV1Beta1),
	"ClusterResourceSetBinding":   between[addonsv1beta1.ClusterResourceSetBinding, addonsv1.ClusterResourceSetBinding](core.ConvertClusterResourceSetBindingV1Beta1ToHub, core.ConvertClusterResourceSetBindingHubToV1Beta1),
	"IPAddress":                   between[ipamv1beta1.IPAddress, ipamv1.IPAddress](core.ConvertIPAddressV1Beta1ToHub, core.ConvertIPAddressHubToV1Beta1),
	"IPAddressClaim":              between[ipamv1beta1.IPAddressClaim, ipamv1.IPAddressClaim](core.ConvertIPAddressClaimV1Beta1ToHub, core.ConvertIPAddressClaimHubToV1Beta1),
	"ExtensionConfig":             between[runtimev1alpha1.ExtensionConfig, runtimev1.ExtensionConfig](core.ConvertExtensionConfigV1Alpha1ToHub, core.ConvertExtensionConfigHubToV1Alpha1),
	"KubeadmConfig":               between[bootstrapv1beta1.KubeadmConfig, bootstrapv1.KubeadmConfig](bootstrap.ConvertKubeadmConfigV1Beta1ToHub, bootstrap.ConvertKubeadmConfigHubToV1Beta1),
	"KubeadmConfigTemplate":       between[bootstrapv1beta1.KubeadmConfigTemplate, bootstrapv1.KubeadmConfigTemplate](bootstrap.ConvertKubeadmConfigTemplateV1Beta1ToHub, bootstrap.ConvertKubeadmConfigTemplateHubToV1Beta1),
	"KubeadmControlPlane":         between[controlplanev1beta1.KubeadmControlPlane, controlplanev1.KubeadmControlPlane](controlplane.ConvertKubeadmControlPlaneV1Beta1ToHub, controlplane.ConvertKubeadmControlPlaneHubToV1Beta1),
	"KubeadmControlPlaneTemplate": between[controlplanev1beta1.KubeadmControlPlaneTemplate, controlplanev1.KubeadmControlPlaneTemplate](controlplane.ConvertKubeadmControlPlaneTemplateV1Beta1ToHub, controlplane.ConvertKubeadmControlPlaneTemplateHubToV1Beta1),
}

func main() {
	version := func(_ context.Context, kind schema.GroupKind) (string, error) {
		return kind.Group + "/v1beta2", nil
	}
	core.SetAPIVersionGetter(version)
	controlplane.SetAPIVersionGetter(version)
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := json.NewEncoder(os.Stdout)
	decoder := json.NewDecoder(input)
	for decoder.More() {
		var asked question
		if err := decoder.Decode(&asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		said := answer{}
		if known, ok := kinds[asked.Kind]; !ok {
			said.Error = "no such kind"
		} else if object, err := known(asked.To, asked.Object); err != nil {
			said.Error = err.Error()
		} else {
			said.Object = object
		}
		if err := output.Encode(said); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
