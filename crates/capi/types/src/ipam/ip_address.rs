//! `IPAddress`: an address given out by a pool.

use capstan_object::{ObjectMeta, object};

use crate::schema::pattern;
use crate::wire::wire;

object!(IPAddress, "ipam.cluster.x-k8s.io" / "v1beta2", "IPAddress", "ipaddresses", Namespaced);

wire! {
    /// An IP address of a pool.
    pub struct IPAddress {
        /// Standard object metadata.
        pub metadata: ObjectMeta,
        /// Desired state.
        #[schemars(extend("x-required" = true))]
        pub spec: IPAddressSpec,
    }

    /// Desired state of an IPAddress.
    pub struct IPAddressSpec {
        /// Claim of the address.
        #[schemars(extend("x-required" = true))]
        pub claim_ref: IPAddressClaimReference,
        /// Pool of the address.
        #[schemars(extend("x-required" = true))]
        pub pool_ref: IPPoolReference,
        /// IP address.
        #[schemars(length(min = 1, max = 39), extend("x-required" = true))]
        pub address: String,
        /// Prefix length of the network.
        #[schemars(range(min = 0, max = 128), extend("x-required" = true))]
        pub prefix: Option<i32>,
        /// Gateway of the network.
        #[schemars(length(min = 1, max = 39))]
        pub gateway: String,
    }

    /// Names an IPAddressClaim.
    pub struct IPAddressClaimReference {
        /// Name of the object.
        #[schemars(
            length(min = 1, max = 253),
            regex(pattern = pattern::DNS_SUBDOMAIN),
            extend("x-required" = true)
        )]
        pub name: String,
    }

    /// Names a pool of addresses.
    pub struct IPPoolReference {
        /// Name of the object.
        #[schemars(
            length(min = 1, max = 253),
            regex(pattern = pattern::DNS_SUBDOMAIN),
            extend("x-required" = true)
        )]
        pub name: String,
        /// Kind of the object.
        #[schemars(length(min = 1, max = 63), regex(pattern = pattern::KIND), extend("x-required" = true))]
        pub kind: String,
        /// API group of the object.
        #[schemars(
            length(min = 1, max = 253),
            regex(pattern = pattern::DNS_SUBDOMAIN),
            extend("x-required" = true)
        )]
        pub api_group: String,
    }
}
