//! The bastion.

use capstan_capi_types::wire::record;

use super::{MachineResources, OpenStackMachineSpec, ResolvedMachineSpec};
use crate::schema::rule;

record! {
    /// A server through which nodes are reachable by SSH.
    #[schemars(extend("x-kubernetes-validations" = [rule("!self.enabled || has(self.spec)", "spec is required if bastion is enabled")]))]
    pub struct Bastion {
        optional {
            /// Whether a bastion is created.
            #[schemars(extend("x-default" = true))]
            pub enabled: Option<bool>,
            /// Desired state of the bastion.
            pub spec: Option<OpenStackMachineSpec>,
            /// Availability zone of the bastion.
            pub availability_zone: Option<String>,
            /// Existing floating IP of the bastion. Defaults to a new one.
            #[serde(rename = "floatingIP")]
            #[schemars(extend("format" = "ipv4"))]
            pub floating_ip: Option<String>,
        }
    }

    /// Observed state of the bastion.
    pub struct BastionStatus {
        optional {
            /// Id of the server.
            pub id: String,
            /// Name of the server.
            pub name: String,
            /// Name of a key pair in Nova.
            pub ssh_key_name: String,
            /// State of the server in Nova.
            pub state: String,
            /// Fixed IP address of the server.
            pub ip: String,
            /// Floating IP of the server.
            #[serde(rename = "floatingIP")]
            pub floating_ip: String,
            /// Ids of the resources that the references resolved to.
            pub resolved: Option<ResolvedMachineSpec>,
            /// Resources that were created for the bastion.
            pub resources: Option<MachineResources>,
        }
    }
}
