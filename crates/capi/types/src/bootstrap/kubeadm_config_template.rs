//! `KubeadmConfigTemplate`: the template of KubeadmConfigs.

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
    /// Template of KubeadmConfigs.
    pub struct KubeadmConfigTemplate {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: KubeadmConfigTemplateSpec,
    }

    /// Template of KubeadmConfigs.
    pub struct KubeadmConfigTemplateSpec {
        /// Template of the objects.
        #[schemars(extend("x-required" = true))]
        pub template: KubeadmConfigTemplateResource,
    }

    /// The template of a KubeadmConfig.
    #[schemars(extend("minProperties" = 1))]
    pub struct KubeadmConfigTemplateResource {
        /// Labels and annotations of the created objects.
        pub metadata: TemplateMeta,
        /// Desired state.
        pub spec: KubeadmConfigSpec,
    }
}
