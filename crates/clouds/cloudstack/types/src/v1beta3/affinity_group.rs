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
    /// Machines that are kept together or apart. Made by the provider.
    pub struct CloudStackAffinityGroup {
        /// Name, labels, owners and the rest of what every object has.
        pub metadata: ObjectMeta,
        /// What is wanted.
        pub spec: CloudStackAffinityGroupSpec,
        /// What was observed.
        pub status: CloudStackAffinityGroupStatus,
    }

    /// What is wanted of an affinity group.
    pub struct CloudStackAffinityGroupSpec {
        /// `host affinity` or `host anti-affinity`.
        #[serde(rename = "type")]
        pub kind: String,
        /// Its name in CloudStack.
        pub name: String,
        /// Its id in CloudStack; filled in.
        pub id: String,
        /// Failure domain it belongs to.
        pub failure_domain_name: String,
    }
}

record! {
    /// What was observed of an affinity group.
    pub struct CloudStackAffinityGroupStatus {
        required {
            /// Machines can be put into it.
            pub ready: bool,
        }
        optional {
            /// Observed aspects of the object, one per type.
            #[schemars(
                length(max = 32),
                extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
            )]
            pub conditions: Vec<Condition>,
            /// Milestones on the way to being usable.
            pub initialization: Initialization,
        }
    }
}
