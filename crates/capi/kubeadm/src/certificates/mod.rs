//! Keys and certificates of a cluster, the Secrets that store them, and their paths on machines.
//!
//! ```text
//! Seed ─▶ PrivateKey ─▶ KeyPair (CA, or the pair that signs ServiceAccount tokens) ─▶ Secret <cluster>-<purpose>
//!                          │                                                      └▶ files of a machine
//!                          └▶ admin kubeconfig, renewed at half its lifetime
//! ```
//!
//! An existing Secret is used unchanged, regardless of who created it.

mod authority;
mod generate;
mod key;
mod kubeconfig;
mod location;
mod pair;
mod purpose;
mod seed;
#[cfg(test)]
mod tests;

pub use authority::{Authority, ca_hashes, expiry, expiry_of};
pub use generate::KeySettings;
pub use key::PrivateKey;
pub use kubeconfig::{AdminKubeconfig, CLIENT_CERTIFICATE_DAYS, is_due_for_renewal, server_of};
pub use location::{
    CertificateLocation, DEFAULT_CERTIFICATES_DIR, locations_for_control_plane, locations_for_worker,
};
pub use pair::KeyPair;
pub use purpose::Purpose;
pub use seed::{Keys, Seed, SeededKeys, SystemKeys};
