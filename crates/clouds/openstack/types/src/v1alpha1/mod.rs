//! Kinds that have one version.

mod cluster_identity;
mod floating_ip_pool;
mod server;

pub use cluster_identity::{
    OpenStackClusterIdentity, OpenStackClusterIdentitySpec, OpenStackCredentialSecretReference,
};
pub use floating_ip_pool::{
    OpenStackFloatingIPPool, OpenStackFloatingIPPoolSpec, OpenStackFloatingIPPoolStatus,
};
pub use server::{
    OpenStackServer, OpenStackServerSpec, OpenStackServerStatus, ResolvedServerSpec, ServerResources,
};
