//! `IPAddressClaim`: requests an address from a pool.

use capstan_object::{Condition, ObjectMeta, object};

use super::ip_address::IPPoolReference;
use crate::core::{Deprecated, V1Beta1Conditions};
use crate::schema::pattern;
use crate::wire::wire;

object!(IPAddressClaim, "ipam.cluster.x-k8s.io" / "v1beta2", "IPAddressClaim", "ipaddressclaims", Namespaced);

wire! {
    /// A claim of an IP address of a pool.
    pub struct IPAddressClaim {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
        pub spec: IPAddressClaimSpec,
        /// Observed state.
        pub status: IPAddressClaimStatus,
    }

    /// Desired state of an IPAddressClaim.
    pub struct IPAddressClaimSpec {
        /// Cluster this object belongs to.
        #[schemars(length(min = 1, max = 63))]
        pub cluster_name: String,
        /// Pool of the address.
        #[schemars(extend("x-required" = true))]
        pub pool_ref: IPPoolReference,
    }

    /// Observed state of an IPAddressClaim.
    #[schemars(extend("minProperties" = 1))]
    pub struct IPAddressClaimStatus {
        /// Conditions of the object, one per type.
        #[schemars(
            length(max = 32),
            extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
        )]
        pub conditions: Vec<Condition>,
        /// IPAddress of the claim.
        pub address_ref: IPAddressReference,
        /// Fields of the v1beta1 contract that v1beta2 dropped.
        pub deprecated: Option<Deprecated<V1Beta1Conditions>>,
    }

    /// Names an IPAddress.
    pub struct IPAddressReference {
        /// Name of the object.
        #[schemars(
            length(min = 1, max = 253),
            regex(pattern = pattern::DNS_SUBDOMAIN),
            extend("x-required" = true)
        )]
        pub name: String,
    }
}

/// Reasons of a claim's conditions, beside the [shared ones](crate::core::reason).
pub mod reason {
    pub const ALLOCATION_FAILED: &str = "AllocationFailed";
    pub const POOL_NOT_READY: &str = "PoolNotReady";
    pub const POOL_EXHAUSTED: &str = "PoolExhausted";
}
