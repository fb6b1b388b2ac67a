//! `KubeadmControlPlaneTemplate`: the template of KubeadmControlPlanes.

use capstan_object::{ObjectMeta, object};

use super::kubeadm_control_plane::{KubeadmControlPlaneRemediationSpec, KubeadmControlPlaneRolloutSpec};
use crate::bootstrap::KubeadmConfigSpec;
use crate::core::{MachineDeletionSpec, MachineNamingSpec, MachineTaint, TemplateMeta};
use crate::wire::wire;

object!(
    KubeadmControlPlaneTemplate,
    "controlplane.cluster.x-k8s.io" / "v1beta2",
    "KubeadmControlPlaneTemplate",
    "kubeadmcontrolplanetemplates",
    Namespaced
);

wire! {
    /// Template of KubeadmControlPlanes.
    pub struct KubeadmControlPlaneTemplate {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: KubeadmControlPlaneTemplateSpec,
    }

    /// Template of KubeadmControlPlanes.
    pub struct KubeadmControlPlaneTemplateSpec {
        /// Template of the objects.
        #[schemars(extend("x-required" = true))]
        pub template: KubeadmControlPlaneTemplateResource,
    }

    /// The template of a KubeadmControlPlane.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneTemplateResource {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Desired state.
        pub spec: KubeadmControlPlaneTemplateResourceSpec,
    }

    /// Desired state of a control plane in a topology.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneTemplateResourceSpec {
        /// Template of the machines.
        pub machine_template: KubeadmControlPlaneTemplateMachineTemplate,
        /// kubeadm configuration of the nodes.
        pub kubeadm_config_spec: KubeadmConfigSpec,
        /// Settings of rollouts.
        pub rollout: KubeadmControlPlaneRolloutSpec,
        /// Remediation of unhealthy machines.
        pub remediation: KubeadmControlPlaneRemediationSpec,
        /// Naming of the machines.
        pub machine_naming: MachineNamingSpec,
    }

    /// Template of the machines.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneTemplateMachineTemplate {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Desired state.
        pub spec: KubeadmControlPlaneTemplateMachineTemplateSpec,
    }

    /// Desired state of each machine.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneTemplateMachineTemplateSpec {
        /// Settings of the deletion of machines.
        pub deletion: MachineDeletionSpec,
        /// Taints for the nodes of the machines.
        #[schemars(
            length(min = 1, max = 64),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
        )]
        pub taints: Vec<MachineTaint>,
    }
}
