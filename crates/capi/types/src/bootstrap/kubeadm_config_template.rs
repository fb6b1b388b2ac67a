//! `KubeadmConfigTemplate`: what KubeadmConfigs are made from.

use capstan_object::{ObjectMeta, object};

use super::kubeadm_config::KubeadmConfigSpec;
use crate::core::TemplateMeta;
use crate::wire::wire;

object!(
    KubeadmConfigTemplate,
    "bootstrap.cluster.x-k8s.io" / "v1beta2",
    "KubeadmConfigTemplate",
    "kubeadmconfigtemplates",
    Namespaced
);

wire! {
    /// What KubeadmConfigs are made from.
    pub struct KubeadmConfigTemplate {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: KubeadmConfigTemplateSpec,
    }

    /// What KubeadmConfigs are made from.
    pub struct KubeadmConfigTemplateSpec {
        /// What to make objects from.
        #[schemars(extend("x-required" = true))]
        pub template: KubeadmConfigTemplateResource,
    }

    /// A KubeadmConfig to be.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmConfigTemplateResource {
        /// Labels and annotations for the objects made from this.
        pub metadata: TemplateMeta,
        /// What is wanted.
        pub spec: KubeadmConfigSpec,
    }
}
