//! Addresses from pools.

use capstan_object::{ObjectMeta, object};

use super::core::V1Beta2Conditions;
use crate::core::V1Beta1Condition;
use crate::kubernetes::{LocalObjectReference, TypedLocalObjectReference};
use crate::wire::wire;

object!(IPAddress, "ipam.cluster.x-k8s.io" / "v1beta1", "IPAddress", "ipaddresses", Namespaced);
object!(IPAddressClaim, "ipam.cluster.x-k8s.io" / "v1beta1", "IPAddressClaim", "ipaddressclaims", Namespaced);

wire! {
    /// An IP address of a pool.
    pub struct IPAddress {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        pub spec: IPAddressSpec,
    }

    /// Desired state of an IPAddress.
    pub struct IPAddressSpec {
        /// Claim of the address.
        #[schemars(extend("x-required" = true))]
        pub claim_ref: LocalObjectReference,
        /// Pool of the address.
        #[schemars(extend("x-required" = true))]
        pub pool_ref: TypedLocalObjectReference,
        /// IP address.
        #[schemars(length(min = 1, max = 39), extend("x-required" = true))]
        pub address: String,
        /// Prefix length of the network.
        #[schemars(schema_with = "crate::schema::integer", extend("x-required" = true))]
        pub prefix: Option<i64>,
        /// Gateway of the network.
        #[schemars(length(min = 1, max = 39))]
        pub gateway: String,
    }

    /// A claim of an IP address of a pool.
    pub struct IPAddressClaim {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
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
        pub pool_ref: TypedLocalObjectReference,
    }

    /// Observed state of an IPAddressClaim.
    pub struct IPAddressClaimStatus {
        /// IPAddress of the claim.
        pub address_ref: LocalObjectReference,
        /// Conditions of the object, one per type.
        pub conditions: Vec<V1Beta1Condition>,
        /// Status under the v1beta2 contract.
        pub v1beta2: Option<V1Beta2Conditions>,
    }
}
