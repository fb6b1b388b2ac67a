//! What several kinds share.

use capstan_capi_types::wire::{record, wire};

record! {
    /// Endpoint of an API server.
    pub struct Endpoint {
        required {
            /// Host name or IP address; empty until it is known.
            #[schemars(extend("x-default" = ""))]
            pub host: String,
            /// Port; 0 until it is known.
            #[schemars(extend("x-default" = 0))]
            pub port: i32,
        }
    }

    /// An address of a machine.
    pub struct Address {
        required {
            /// Type of the address, such as `InternalIP`.
            #[serde(rename = "type")]
            pub kind: String,
            /// IP address or host name.
            pub address: String,
        }
    }
}

wire! {
    /// Reference to a CloudStack resource, by id or by name.
    pub struct Identifier {
        /// Id of the resource.
        pub id: String,
        /// Name of the resource.
        pub name: String,
    }

    /// Reference to a Secret.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub struct SecretReference {
        /// Name of the Secret.
        pub name: String,
        /// Namespace of the Secret.
        pub namespace: String,
    }

    /// Provisioning progress, as the Cluster API contract defines it.
    #[schemars(extend("minProperties" = 1))]
    pub struct Initialization {
        /// Whether the infrastructure is provisioned.
        pub provisioned: Option<bool>,
    }
}

impl Identifier {
    /// Neither an id nor a name is set.
    pub fn is_empty(&self) -> bool {
        self.id.is_empty() && self.name.is_empty()
    }
}
