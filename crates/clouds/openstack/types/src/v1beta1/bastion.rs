//! The bastion.

use capstan_capi_types::wire::record;

use super::{MachineResources, OpenStackMachineSpec, ResolvedMachineSpec};
use crate::schema::rule;

record! {
    /// A server through which nodes are reached by SSH.
    #[schemars(extend("x-kubernetes-validations" = [rule("!self.enabled || has(self.spec)", "spec is required if bastion is enabled")]))]
    pub struct Bastion {
        optional {
            /// Whether there is one.
            #[schemars(extend("x-default" = true))]
            pub enabled: Option<bool>,
            /// Desired state.
            pub spec: Option<OpenStackMachineSpec>,
            /// The availability zone.
            pub availability_zone: Option<String>,
            /// A floating IP that exists; one is created if not set.
            #[serde(rename = "floatingIP")]
            #[schemars(extend("format" = "ipv4"))]
            pub floating_ip: Option<String>,
        }
    }

    /// Observed state of the bastion.
    pub struct BastionStatus {
        optional {
            /// Its id.
            pub id: String,
            /// Its name.
            pub name: String,
            /// Name of an SSH key in Nova.
            pub ssh_key_name: String,
            /// State in Nova.
            pub state: String,
            /// Its address.
            pub ip: String,
            /// Its floating IP.
            #[serde(rename = "floatingIP")]
            pub floating_ip: String,
            /// Ids that filters resolved to.
            pub resolved: Option<ResolvedMachineSpec>,
            /// What was created for it.
            pub resources: Option<MachineResources>,
        }
    }
}
