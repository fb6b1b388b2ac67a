//! `KubeadmControlPlaneTemplate`: what KubeadmControlPlanes are made from.

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
    /// What KubeadmControlPlanes are made from.
    pub struct KubeadmControlPlaneTemplate {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: KubeadmControlPlaneTemplateSpec,
    }

    /// What KubeadmControlPlanes are made from.
    pub struct KubeadmControlPlaneTemplateSpec {
        /// What to make objects from.
        #[schemars(extend("x-required" = true))]
        pub template: KubeadmControlPlaneTemplateResource,
    }

    /// A KubeadmControlPlane to be.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneTemplateResource {
        /// Labels and annotations for the objects made from this.
        pub metadata: TemplateMeta,
        /// What is wanted.
        pub spec: KubeadmControlPlaneTemplateResourceSpec,
    }

    /// What is wanted of such a control plane; the topology says the rest.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneTemplateResourceSpec {
        /// What control plane machines are made from.
        pub machine_template: KubeadmControlPlaneTemplateMachineTemplate,
        /// How nodes are set up by kubeadm.
        pub kubeadm_config_spec: KubeadmConfigSpec,
        /// When and how machines are replaced.
        pub rollout: KubeadmControlPlaneRolloutSpec,
        /// What happens to unhealthy machines.
        pub remediation: KubeadmControlPlaneRemediationSpec,
        /// How machines are named.
        pub machine_naming: MachineNamingSpec,
    }

    /// What its machines are made from.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneTemplateMachineTemplate {
        /// Labels and annotations for the objects made from this.
        pub metadata: TemplateMeta,
        /// What is wanted.
        pub spec: KubeadmControlPlaneTemplateMachineTemplateSpec,
    }

    /// What is wanted of each machine.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmControlPlaneTemplateMachineTemplateSpec {
        /// How machines are deleted.
        pub deletion: MachineDeletionSpec,
        /// Taints for the nodes of the machines.
        #[schemars(
            length(min = 1, max = 64),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key", "effect"])
        )]
        pub taints: Vec<MachineTaint>,
    }
}
