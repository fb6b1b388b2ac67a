//! `OpenStackClusterTemplate`: what clusters are made from.

use capstan_capi_types::core::TemplateMeta;
use capstan_capi_types::wire::record;
use capstan_object::{ObjectMeta, object};

use super::OpenStackClusterSpec;

object!(
    OpenStackClusterTemplate,
    "infrastructure.cluster.x-k8s.io" / "v1beta2",
    "OpenStackClusterTemplate",
    "openstackclustertemplates",
    Namespaced
);

record! {
    /// A template for OpenStackClusters.
    pub struct OpenStackClusterTemplate {
        optional {
            /// Metadata of the object.
            pub metadata: ObjectMeta,
            /// Desired state.
            pub spec: OpenStackClusterTemplateSpec,
        }
    }

    /// Desired state of an OpenStackClusterTemplate.
    pub struct OpenStackClusterTemplateSpec {
        required {
            /// Template of the clusters.
            pub template: OpenStackClusterTemplateResource,
        }
    }

    /// Template of an OpenStackCluster.
    pub struct OpenStackClusterTemplateResource {
        required {
            /// Desired state of the clusters.
            pub spec: OpenStackClusterSpec,
        }
        optional {
            /// Labels and annotations of the created objects.
            pub metadata: TemplateMeta,
        }
    }
}
