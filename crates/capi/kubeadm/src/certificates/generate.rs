//! Making the key pairs of a cluster.

use capstan_capi_types::bootstrap::{ClusterConfiguration, EncryptionAlgorithmType as Algorithm};
use jiff::Timestamp;

use super::authority::Authority;
use super::key::PrivateKey;
use super::pair::KeyPair;
use super::purpose::Purpose;
use super::seed::Seed;
use crate::Error;

/// How keys and authorities are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySettings {
    /// Algorithm of the keys.
    pub algorithm: Algorithm,
    /// Days that an authority is valid.
    pub authority_days: i32,
}

impl KeySettings {
    /// What a configuration asks for. `default` is used where it names no algorithm: upstream's is RSA with 2048
    /// bits, ours ECDSA on P-256, whose keys cost a hundredth.
    pub fn of(config: &ClusterConfiguration, default: Algorithm) -> Self {
        let days = config.ca_certificate_validity_period_days;
        Self {
            algorithm: config.encryption_algorithm.unwrap_or(default),
            authority_days: if days == 0 { 3650 } else { days },
        }
    }
}

impl KeyPair {
    /// Makes the pair for a purpose, from a seed that is this cluster's alone.
    pub fn make(purpose: Purpose, settings: KeySettings, seed: &Seed, now: Timestamp) -> Result<Self, Error> {
        let key = PrivateKey::from_seed(settings.algorithm, &seed.derive(purpose.suffix()))?;
        if purpose == Purpose::ServiceAccount {
            return Ok(Self { certificate: key.public_pem(), key: key.to_pem().to_owned() });
        }
        let authority = Authority::create(key, settings.authority_days, now)?;
        Ok(Self { certificate: authority.certificate_pem(), key: authority.key_pem().to_owned() })
    }
}
