//! `ipam.cluster.x-k8s.io/v1beta2`: addresses from pools.

pub mod ip_address;
pub mod ip_address_claim;

pub use ip_address::{IPAddress, IPAddressClaimReference, IPAddressSpec, IPPoolReference};
pub use ip_address_claim::{IPAddressClaim, IPAddressClaimSpec, IPAddressClaimStatus, IPAddressReference};
