//! `OpenStackClusterTemplate`: what clusters are made from.

use capstan_capi_types::wire::record;
use capstan_object::{ObjectMeta, object};

use super::OpenStackClusterSpec;

object!(
    OpenStackClusterTemplate,
    "infrastructure.cluster.x-k8s.io" / "v1beta1",
    "OpenStackClusterTemplate",
    "openstackclustertemplates",
    Namespaced
);

record! {
    /// What OpenStackClusters are made from.
    pub struct OpenStackClusterTemplate {
        optional {
            /// Name, labels, owners and the rest of what every object has.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackClusterTemplateSpec,
        }
    }

    /// What OpenStackClusters are made from.
    pub struct OpenStackClusterTemplateSpec {
        required {
            /// An object to be.
            pub template: OpenStackClusterTemplateResource,
        }
    }

    /// An OpenStackCluster to be.
    pub struct OpenStackClusterTemplateResource {
        required {
            /// Desired state.
            pub spec: OpenStackClusterSpec,
        }
    }
}
