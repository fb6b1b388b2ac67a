//! `anywhere.eks.amazonaws.com/v1alpha1`: the kinds as EKS Anywhere's manifests write them.

mod cluster;
mod datacenter;
mod machine_config;

pub use cluster::*;
pub use datacenter::*;
pub use machine_config::*;

use capstan_capi_types::wire::wire;

wire! {
    /// Reference to an object by kind and name.
    pub struct Ref {
        /// Kind of the object.
        pub kind: String,
        /// Name of the object.
        pub name: String,
    }

    /// Reference to a CloudStack resource, by id or by name.
    pub struct ResourceIdentifier {
        /// Id of the resource.
        pub id: String,
        /// Name of the resource.
        pub name: String,
    }
}

impl ResourceIdentifier {
    pub fn is_empty(&self) -> bool {
        self.id.is_empty() && self.name.is_empty()
    }
}
