//! What the versions share.

use std::borrow::Cow;

use capstan_capi_types::wire::{choice, record};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

record! {
    /// An address of a machine.
    pub struct NodeAddress {
        required {
            /// Type of the address, such as `InternalIP`, `ExternalIP` or `InternalDNS`.
            #[serde(rename = "type")]
            pub kind: String,
            /// IP address or host name.
            pub address: String,
        }
    }
}

choice! {
    /// A security group that is created for the cluster.
    pub enum ManagedSecurityGroupName {
        /// That of the bastion.
        Bastion = "bastion",
        /// That of control plane nodes.
        ControlPlane = "controlplane",
        /// That of workers.
        Worker = "worker",
    }
}

/// A quantity in Kubernetes notation: `4`, `8Gi`, `500m`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Quantity(pub String);

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Text(String),
            Number(i64),
        }
        Ok(Self(match Either::deserialize(deserializer)? {
            Either::Text(text) => text,
            Either::Number(number) => number.to_string(),
        }))
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
            "x-kubernetes-int-or-string": true,
        })
    }
}
