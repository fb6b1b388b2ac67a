//! The fields that the contract v1beta2 gives a provider's objects, so that what all providers do with them is written once.

use capstan_capi_types::core::{APIEndpoint, MachineAddress};
use capstan_object::{Condition, Object};

capstan_capi_types::wire::wire! {
    /// Milestones on the way to being usable; contract with the core.
    #[schemars(extend("minProperties" = 1))]
    pub struct InitializationStatus {
        /// The infrastructure is there; contract with the core.
        pub provisioned: Option<bool>,
    }
}

/// An object of a provider: the infrastructure of a cluster or of a machine.
pub trait Infrastructure: Object + PartialEq {
    /// `status.initialization.provisioned`.
    fn provisioned(&self) -> Option<bool>;
    /// The same, to change. Never taken back once it is true.
    fn provisioned_mut(&mut self) -> &mut Option<bool>;
    /// `status.conditions`.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;
}

/// The infrastructure of a cluster.
pub trait InfrastructureCluster: Infrastructure {
    /// `spec.controlPlaneEndpoint`, to change.
    fn endpoint_mut(&mut self) -> &mut APIEndpoint;
}

/// The infrastructure of a machine.
pub trait InfrastructureMachine: Infrastructure {
    /// `spec.providerID`, to change: written once, before the machine is made.
    fn provider_id_mut(&mut self) -> &mut String;
    /// `status.addresses`.
    fn addresses(&self) -> &[MachineAddress];
    /// The same, to change.
    fn addresses_mut(&mut self) -> &mut Vec<MachineAddress>;
}

/// Says that a kind has its contract fields where all have them.
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
