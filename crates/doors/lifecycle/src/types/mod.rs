//! `anywhere.eks.amazonaws.com/v1alpha1`: the kinds as EKS Anywhere's manifests write them.

mod cluster;
mod datacenter;
mod machine_config;

pub use cluster::*;
pub use datacenter::*;
pub use machine_config::*;

use capstan_capi_types::wire::wire;

wire! {
    /// Names an object by kind and name.
    pub struct Ref {
        /// Kind of the object.
        pub kind: String,
        /// Name of the object.
        pub name: String,
    }

    /// Something in CloudStack, by id or by name.
    pub struct ResourceIdentifier {
        /// Its id.
        pub id: String,
        /// Its name.
        pub name: String,
    }
}

impl ResourceIdentifier {
    pub fn is_empty(&self) -> bool {
        self.id.is_empty() && self.name.is_empty()
    }
}
