//! Generates the key pairs of a cluster.

use capstan_capi_types::bootstrap::{ClusterConfiguration, EncryptionAlgorithmType as Algorithm};
use jiff::Timestamp;

use super::authority::Authority;
use super::key::PrivateKey;
use super::pair::KeyPair;
use super::purpose::Purpose;
use super::seed::Seed;
use crate::Error;

/// Parameters for generating keys and CAs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySettings {
    pub algorithm: Algorithm,
    /// Validity of a CA in days.
    pub authority_days: i32,
}

impl KeySettings {
    /// Settings of a ClusterConfiguration. `default` applies where it sets no algorithm: upstream's default is RSA-2048,
    /// ours ECDSA P-256, which is about a hundred times cheaper to generate.
    pub fn of(config: &ClusterConfiguration, default: Algorithm) -> Self {
        let days = config.ca_certificate_validity_period_days;
        Self {
            algorithm: config.encryption_algorithm.unwrap_or(default),
            authority_days: if days == 0 { 3650 } else { days },
        }
    }
}

impl KeyPair {
    /// Generates the pair for a purpose. The seed must be unique to the cluster.
    pub fn make(purpose: Purpose, settings: KeySettings, seed: &Seed, now: Timestamp) -> Result<Self, Error> {
        let key = PrivateKey::from_seed(settings.algorithm, &seed.derive(purpose.suffix()))?;
        if purpose == Purpose::ServiceAccount {
            return Ok(Self { certificate: key.public_pem(), key: key.to_pem().to_owned() });
        }
        let authority = Authority::create(key, settings.authority_days, now)?;
        Ok(Self { certificate: authority.certificate_pem(), key: authority.key_pem().to_owned() })
    }
}
