//! What several kinds share.

use capstan_capi_types::wire::{record, wire};

record! {
    /// Where an API server is reached.
    pub struct Endpoint {
        required {
            /// Name or address; empty until one is chosen.
            pub host: String,
            /// Port; 0 until one is chosen.
            pub port: i32,
        }
    }

    /// An address of a machine.
    pub struct Address {
        required {
            /// Which one: `InternalIP`, ….
            #[serde(rename = "type")]
            pub kind: String,
            /// Address or name.
            pub address: String,
        }
    }
}

wire! {
    /// Names something in CloudStack, by id or by name.
    pub struct Identifier {
        /// Its id.
        pub id: String,
        /// Its name.
        pub name: String,
    }

    /// Names a Secret.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub struct SecretReference {
        /// Its name.
        pub name: String,
        /// Its namespace.
        pub namespace: String,
    }

    /// Milestones; contract with the core.
    #[schemars(extend("minProperties" = 1))]
    pub struct Initialization {
        /// The infrastructure is there.
        pub provisioned: Option<bool>,
    }
}

impl Identifier {
    /// Nothing is named.
    pub fn is_empty(&self) -> bool {
        self.id.is_empty() && self.name.is_empty()
    }
}
