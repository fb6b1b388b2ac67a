//! `controlplane.cluster.x-k8s.io/v1beta2`: control planes of machines set up by kubeadm.

pub mod kubeadm_control_plane;
pub mod kubeadm_control_plane_template;

pub use kubeadm_control_plane::{
    KubeadmControlPlane, KubeadmControlPlaneInitializationStatus, KubeadmControlPlaneMachineTemplate,
    KubeadmControlPlaneMachineTemplateSpec, KubeadmControlPlaneRemediationSpec,
    KubeadmControlPlaneRolloutBeforeSpec, KubeadmControlPlaneRolloutSpec, KubeadmControlPlaneRolloutStrategy,
    KubeadmControlPlaneRolloutStrategyRollingUpdate, KubeadmControlPlaneRolloutStrategyType,
    KubeadmControlPlaneSpec, KubeadmControlPlaneStatus, KubeadmControlPlaneV1Beta1DeprecatedStatus,
    LastRemediationStatus,
};
pub use kubeadm_control_plane_template::{
    KubeadmControlPlaneTemplate, KubeadmControlPlaneTemplateMachineTemplate,
    KubeadmControlPlaneTemplateMachineTemplateSpec, KubeadmControlPlaneTemplateResource,
    KubeadmControlPlaneTemplateResourceSpec, KubeadmControlPlaneTemplateSpec,
};
