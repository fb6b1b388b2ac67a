//! `CloudStackAffinityGroup`: machines that are kept together or apart.

use capstan_capi_types::wire::{record, wire};
use capstan_object::{Condition, ObjectMeta, object};

use super::common::Initialization;

object!(
    CloudStackAffinityGroup,
    "infrastructure.cluster.x-k8s.io" / "v1beta3",
    "CloudStackAffinityGroup",
    "cloudstackaffinitygroups",
    Namespaced
);

wire! {
    /// An affinity or anti-affinity group of instances. Created by the provider.
    pub struct CloudStackAffinityGroup {
        /// Metadata of the object.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: CloudStackAffinityGroupSpec,
        /// Observed state.
        pub status: CloudStackAffinityGroupStatus,
    }

    /// Desired state of a CloudStackAffinityGroup.
    pub struct CloudStackAffinityGroupSpec {
        /// Type of the group: `host affinity` or `host anti-affinity`.
        #[serde(rename = "type")]
        pub kind: String,
        /// Name of the affinity group.
        pub name: String,
        /// Id of the affinity group. Set by the provider.
        pub id: String,
        /// Name of the failure domain that the group belongs to.
        pub failure_domain_name: String,
    }
}

record! {
    /// Observed state of a CloudStackAffinityGroup.
    pub struct CloudStackAffinityGroupStatus {
        required {
            /// Whether instances can join the group.
            pub ready: bool,
        }
        optional {
            /// Conditions of the object, one per type.
            #[schemars(
                length(max = 32),
                extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
            )]
            pub conditions: Vec<Condition>,
            /// Provisioning progress.
            pub initialization: Initialization,
        }
    }
}
