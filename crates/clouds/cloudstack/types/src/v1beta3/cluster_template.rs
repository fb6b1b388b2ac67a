//! `CloudStackClusterTemplate`: what clusters of a ClusterClass are made from. CAPC has no such kind.

use capstan_capi_types::core::TemplateMeta;
use capstan_capi_types::wire::{record, wire};
use capstan_object::{ObjectMeta, object};

use super::cluster::CloudStackClusterSpec;

object!(
    CloudStackClusterTemplate,
    "infrastructure.cluster.x-k8s.io" / "v1beta3",
    "CloudStackClusterTemplate",
    "cloudstackclustertemplates",
    Namespaced
);

wire! {
    /// A template for CloudStackClusters.
    pub struct CloudStackClusterTemplate {
        /// Metadata of the object.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackClusterTemplateSpec,
    }
}

record! {
    /// Desired state of a CloudStackClusterTemplate.
    pub struct CloudStackClusterTemplateSpec {
        required {
            /// Template of the clusters.
            pub template: CloudStackClusterTemplateResource,
        }
    }

    /// Template of a CloudStackCluster.
    pub struct CloudStackClusterTemplateResource {
        required {
            /// Desired state of the clusters. Immutable.
            pub spec: CloudStackClusterSpec,
        }
        optional {
            /// Labels and annotations of the clusters.
            pub metadata: TemplateMeta,
        }
    }
}
