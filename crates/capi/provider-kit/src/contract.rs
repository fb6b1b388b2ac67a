//! The fields of the v1beta2 contract in a provider's objects, for code that all providers have in common.

use capstan_capi_types::core::{APIEndpoint, MachineAddress};
use capstan_object::{Condition, Object};

capstan_capi_types::wire::wire! {
    /// Initialization status; part of the provider contract.
    #[schemars(extend("minProperties" = 1))]
    pub struct InitializationStatus {
        /// The infrastructure is provisioned; part of the provider contract.
        pub provisioned: Option<bool>,
    }
}

/// An object of a provider: the infrastructure of a cluster or of a machine.
pub trait Infrastructure: Object + PartialEq {
    /// `status.initialization.provisioned`.
    fn provisioned(&self) -> Option<bool>;
    /// Mutable access. Never reset once it is true.
    fn provisioned_mut(&mut self) -> &mut Option<bool>;
    /// `status.conditions`.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;
}

/// The infrastructure of a cluster.
pub trait InfrastructureCluster: Infrastructure {
    /// Mutable access to `spec.controlPlaneEndpoint`.
    fn endpoint_mut(&mut self) -> &mut APIEndpoint;
}

/// The infrastructure of a machine.
pub trait InfrastructureMachine: Infrastructure {
    /// Mutable access to `spec.providerID`: set once, before the machine is created.
    fn provider_id_mut(&mut self) -> &mut String;
    /// `status.addresses`.
    fn addresses(&self) -> &[MachineAddress];
    /// Mutable access to `status.addresses`.
    fn addresses_mut(&mut self) -> &mut Vec<MachineAddress>;
}

/// Implements the traits for a kind with its contract fields in the standard locations.
#[doc(hidden)]
#[macro_export]
macro_rules! infrastructure {
    (cluster $kind:ty) => {
        $crate::infrastructure!($kind);

        impl $crate::InfrastructureCluster for $kind {
            fn endpoint_mut(&mut self) -> &mut capstan_capi_types::core::APIEndpoint {
                &mut self.spec.control_plane_endpoint
            }
        }
    };
    (machine $kind:ty) => {
        $crate::infrastructure!($kind);

        impl $crate::InfrastructureMachine for $kind {
            fn provider_id_mut(&mut self) -> &mut String {
                &mut self.spec.provider_id
            }

            fn addresses(&self) -> &[capstan_capi_types::core::MachineAddress] {
                &self.status.addresses
            }

            fn addresses_mut(&mut self) -> &mut Vec<capstan_capi_types::core::MachineAddress> {
                &mut self.status.addresses
            }
        }
    };
    ($kind:ty) => {
        impl $crate::Infrastructure for $kind {
            fn provisioned(&self) -> Option<bool> {
                self.status.initialization.provisioned
            }

            fn provisioned_mut(&mut self) -> &mut Option<bool> {
                &mut self.status.initialization.provisioned
            }

            fn conditions_mut(&mut self) -> &mut Vec<capstan_object::Condition> {
                &mut self.status.conditions
            }
        }
    };
}
